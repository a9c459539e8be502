"""Changes that cannot be done in place: the Kubernetes provider replaces the object, or the API server refuses them.

What the provider replaces follows `provider/pkg/provider/diff.go` of pulumi-kubernetes 4. Claims are not in that table, although
their specs are immutable on the server, so a change of those is planned as an update and then refused.

Immutable fields are those that the API server never lets change under a name that stays, for tools that change
objects in place. `kubectl apply`, Helm and most controllers of GitOps send the new object and are refused; Pulumi's
provider replaces the object instead. The rules are those of Kubernetes 1.34 to 1.37:
`ValidateDeploymentUpdate`, `ValidateDaemonSetUpdate` and `ValidateStatefulSetUpdate` in pkg/apis/apps/validation,
`ValidateJobSpecUpdate` in pkg/apis/batch/validation, `ValidateSecretUpdate`, `ValidateConfigMapUpdate`,
`ValidatePersistentVolumeClaimUpdate` and `ValidatePodUpdate` in pkg/apis/core/validation, `ValidateRoleBindingUpdate`
in pkg/apis/rbac/validation, `ValidateStorageClassUpdate` in pkg/apis/storage/validation. Of resource.k8s.io, the ported
server itself is asked (`kubernetes.apiserver.verdict`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.kubernetes.api import (
    CLAIM_KINDS,
    Placeholder,
    Release,
    can_decode,
    group_of,
    is_same_json,
    is_same_value,
    mapping,
)
from dra_infra.kubernetes.apiserver import judge
from dra_infra.markers import marker_kind
from dra_infra.program_objects import get_field
from dra_infra.target import ClusterTarget

_METADATA: Final = ("metadata.name", "metadata.namespace")
_WORKLOAD: Final = ("spec.selector",)

_REPLACING: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
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
    group = group_of(after)
    kind = str(after.get("kind", ""))
    fields = (*_METADATA, *_REPLACING.get((group, kind), ()))
    changed = [path for path in fields if not is_same_json(get_field(before, path), get_field(after, path))]
    if (group, kind) == ("", "Pod"):
        old, new = before.get("spec"), after.get("spec")
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            changed.extend(_find_pod_fields(old, new))
        elif not is_same_json(old, new):
            changed.append("spec")
    return tuple(changed)


def is_claim_kind(manifest: Mapping[str, Any]) -> bool:
    """True for a claim or a claim template, whose specs are immutable."""
    return group_of(manifest) == "resource.k8s.io" and manifest.get("kind") in CLAIM_KINDS


def _find_pod_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*before, *after} - _POD_FIELDS_KEPT):
        if not is_same_json(before.get(name), after.get(name)):
            yield f"spec.{name}"
    for name in ("containers", "initContainers"):
        pairs = zip(*(_containers(side.get(name)) for side in (before, after)), strict=False)
        for index, (old, new) in enumerate(pairs):
            yield from (
                f"spec.{name}[{index}].{field}"
                for field in _CONTAINER_FIELDS
                if not is_same_json(old.get(field), new.get(field))
            )


def _containers(value: Any) -> list[Mapping[str, Any]]:
    return [item if isinstance(item, Mapping) else {} for item in value] if isinstance(value, list) else []


_IMMUTABLE: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "DaemonSet"): _WORKLOAD,
    ("apps", "StatefulSet"): (
        "spec.podManagementPolicy",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    ("batch", "Job"): (
        "spec.backoffLimitPerIndex",
        "spec.completionMode",
        "spec.managedBy",
        "spec.podFailurePolicy",
        "spec.selector",
        "spec.successPolicy",
        "spec.template",
    ),
    ("", "PersistentVolumeClaim"): ("spec.accessModes", "spec.selector", "spec.volumeMode"),
    ("", "Secret"): ("type",),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("storage.k8s.io", "StorageClass"): ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
}
_IF_IMMUTABLE: Final = ("binaryData", "data", "immutable", "stringData")
_POD_CHANGES: Final = frozenset(
    {"activeDeadlineSeconds", "containers", "initContainers", "schedulingGates", "tolerations"}
)
"""Fields of a pod's spec that may change, some of them in parts only."""
_IMMUTABLE_RULES: Final = frozenset({"claim.immutable", "slice.immutable"})


def find_immutable_fields(
    before: Mapping[str, Any], after: Mapping[str, Any], releases: Sequence[Release] | None = None
) -> tuple[str, ...]:
    """The fields whose change the API server refuses, in a fixed order; empty where all may change.

    Args:
        before: The object as the server has it.
        after: The object that is sent.
        releases: The servers that have to take it; None takes the oldest and the newest supported minor.
    """
    group = group_of(after)
    kind = str(after.get("kind", ""))
    if group == "resource.k8s.io":
        return _find_refused_by_server(before, after, releases or ClusterTarget().releases)
    fields = _IMMUTABLE.get((group, kind), ())
    if (group, kind) in (("", "Secret"), ("", "ConfigMap")) and before.get("immutable") is True:
        fields = (*fields, *_IF_IMMUTABLE)
    if (group, kind) == ("batch", "Job") and _may_change_template(before, after, releases):
        fields = tuple(field for field in fields if field != "spec.template")
    changed = [path for path in fields if _differs(get_field(before, path), get_field(after, path))]
    if (group, kind) == ("batch", "Job") and not _may_complete(before, after):
        changed.insert(0, "spec.completions")
    if (group, kind) == ("", "Pod"):
        changed.extend(_find_immutable_pod_fields(before, after))
    return tuple(changed)


_RESOURCES_GATE: Final = "MutablePodResourcesForSuspendedJobs"
_SCHEDULING: Final = ("nodeSelector", "schedulingGates", "tolerations")


def _may_change_template(
    before: Mapping[str, Any], after: Mapping[str, Any], releases: Sequence[Release] | None
) -> bool:
    """Return whether a suspended Job may have the other template: only where its pods go may change, and by a gate their resources.

    It counts as one that has no pods, because a program does not say how far its controller is.

    Source: `validatePodTemplateUpdate` in pkg/apis/batch/validation, `validationOptionsForJob` in pkg/registry/batch/job/strategy.go.
    """
    if get_field(before, "spec.suspend") is not True:
        return False
    old, new = (mapping(get_field(side, "spec.template")) for side in (before, after))
    return not any(
        _differs(*(_fixed_template(side, old, new) for side in (old, new)))
        if release.enabled(_RESOURCES_GATE)
        else _differs(_without_scheduling(old), _without_scheduling(new))
        for release in releases or ClusterTarget().releases
    )


def _without_scheduling(template: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a template without what may change while its Job is suspended."""
    metadata = mapping(template.get("metadata"))
    spec = mapping(template.get("spec"))
    affinity = {
        name: value for name, value in mapping(spec.get("affinity")).items() if name != "nodeAffinity"
    }
    return {
        **template,
        "metadata": {name: metadata[name] for name in metadata.keys() - {"annotations", "labels"}},
        "spec": {
            **{name: spec[name] for name in spec.keys() - {"affinity", *_SCHEDULING}},
            **({"affinity": affinity} if affinity else {}),
        },
    }


def _fixed_template(
    template: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the pod spec of a template without the resources of containers, where both sides have the same containers."""
    spec = dict(mapping(_without_scheduling(template)["spec"]))
    for name in ("containers", "initContainers"):
        sides = [_containers(get_field(side, f"spec.{name}")) for side in (old, new)]
        if len(sides[0]) == len(sides[1]) and name in spec:
            same = [one.get("name") == other.get("name") for one, other in zip(*sides, strict=True)]
            spec[name] = [
                {key: value for key, value in each.items() if key != "resources" or not is_same}
                for each, is_same in zip(_containers(spec[name]), same, strict=True)
            ]
    return spec


def _may_complete(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """False where the number of completions of a Job changes: that of an indexed one may, together with parallelism.

    Source: `validateCompletions`, and `SetDefaults_Job` for a Job that says neither of the two.
    """
    if get_field(before, "spec.completions") == get_field(after, "spec.completions"):
        return True
    sides = [
        (get_field(each, "spec.completions"), get_field(each, "spec.parallelism")) for each in (before, after)
    ]
    (old, _), (new, parallelism) = ((1, 1) if side == (None, None) else side for side in sides)
    is_indexed = get_field(after, "spec.completionMode") == "Indexed"
    together = is_indexed and new in (1 if parallelism is None else parallelism, None)
    return together or _is_unknown(new) or _is_unknown(parallelism) or not _differs(old, new)


def _find_refused_by_server(
    before: Mapping[str, Any], after: Mapping[str, Any], releases: Sequence[Release]
) -> tuple[str, ...]:
    verdicts = (
        [judge(after, release, strict=False, old=before) for release in releases]
        if can_decode(before) and can_decode(after)
        else []
    )
    if not verdicts or any(verdict.status == "bad-request" for verdict in verdicts):
        # It may hold a value that is only known after `pulumi up`: the spec counts as it is written.
        same = not is_claim_kind(after) or is_same_value(get_field(before, "spec"), get_field(after, "spec"))
        return () if same else ("spec",)
    errors = (error for verdict in verdicts for error in verdict.errors)
    return tuple(dict.fromkeys(error.path for error in errors if error.rule in _IMMUTABLE_RULES))


def _find_immutable_pod_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    old, new = get_field(before, "spec"), get_field(after, "spec")
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new} - _POD_CHANGES):
            if _differs(old.get(name), new.get(name)):
                yield f"spec.{name}"


def _differs(old: Any, new: Any) -> bool:
    # What is only known later may turn out to be the same.
    return old is not new and not (is_same_value(old, new) or _is_unknown(old) or _is_unknown(new))


def _is_unknown(value: Any) -> bool:
    return isinstance(value, Placeholder) and marker_kind(value) == "unknown"
