"""Changes that make the Kubernetes provider delete an object and create a new one.

The table follows `provider/pkg/provider/diff.go` of pulumi-kubernetes 4: a change of one of these fields replaces the
object. Claims are not in it, although their specs are immutable on the server
(pkg/apis/resource/validation/validation.go), so a change of those is planned as an update and then refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_METADATA: Final = ("metadata.name", "metadata.namespace")
_WORKLOAD: Final = ("spec.selector",)
_CLAIM_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate")

_FIELDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "DaemonSet"): _WORKLOAD,
    ("apps", "StatefulSet"): (
        "spec.podManagementPolicy",
        "spec.revisionHistoryLimit",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    ("batch", "Job"): ("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
    ("", "ConfigMap"): ("binaryData", "data"),
    ("", "Secret"): ("data", "stringData", "type"),
    ("", "PersistentVolumeClaim"): ("spec",),
    ("", "ResourceQuota"): ("spec.scopes",),
    ("", "Service"): ("spec.clusterIP",),
    ("policy", "PodDisruptionBudget"): ("spec",),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("storage.k8s.io", "StorageClass"): ("parameters", "provisioner"),
}

_POD_FIELDS_KEPT: Final = frozenset(
    {
        "activeDeadlineSeconds",
        "containers",
        "ephemeralContainers",
        "initContainers",
        "resourceClaims",
        "tolerations",
        "topologySpreadConstraints",
    }
)
"""Fields of a pod's spec that do not make the provider replace the pod, or are compared piece by piece."""

_CONTAINER_FIELDS: Final = (
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
)


def find_replacing_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields whose change makes the provider replace the object, in a fixed order; empty for an update."""
    group, kind = group_of(after), str(after.get("kind", ""))
    fields = (*_METADATA, *_FIELDS.get((group, kind), ()))
    changed = [path for path in fields if get_field(before, path) != get_field(after, path)]
    if (group, kind) == ("", "Pod"):
        old, new = before.get("spec"), after.get("spec")
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            changed.extend(_find_pod_fields(old, new))
        elif old != new:
            changed.append("spec")
    return tuple(changed)


def is_claim_kind(manifest: Mapping[str, Any]) -> bool:
    """Whether the object is a claim or a claim template, whose specs are immutable."""
    return group_of(manifest) == "resource.k8s.io" and manifest.get("kind") in _CLAIM_KINDS


def group_of(manifest: Mapping[str, Any]) -> str:
    """The API group, empty for the core group."""
    group, slash, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    return group if slash else ""


def get_field(manifest: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    value: Any = manifest
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _find_pod_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*before, *after} - _POD_FIELDS_KEPT):
        if before.get(name) != after.get(name):
            yield f"spec.{name}"
    for name in ("containers", "initContainers"):
        pairs = zip(*(_containers(side.get(name)) for side in (before, after)), strict=False)
        for index, (old, new) in enumerate(pairs):
            yield from (
                f"spec.{name}[{index}].{field}"
                for field in _CONTAINER_FIELDS
                if old.get(field) != new.get(field)
            )


def _containers(value: Any) -> list[Mapping[str, Any]]:
    return [item if isinstance(item, Mapping) else {} for item in value] if isinstance(value, list) else []
