"""Fields that the API server never lets change under a name that stays, for tools that change objects in place.

`kubectl apply`, Helm and most controllers of GitOps send the new object and are refused; Pulumi's provider replaces the
object instead (`replacement`). The rules are those of Kubernetes 1.34 to 1.37: `ValidateDeploymentUpdate`,
`ValidateDaemonSetUpdate` and `ValidateStatefulSetUpdate` in pkg/apis/apps/validation, `ValidateJobSpecUpdate` in
pkg/apis/batch/validation, `ValidateSecretUpdate`, `ValidateConfigMapUpdate`, `ValidatePersistentVolumeClaimUpdate` and
`ValidatePodUpdate` in pkg/apis/core/validation, `ValidateRoleBindingUpdate` in pkg/apis/rbac/validation,
`ValidateStorageClassUpdate` in pkg/apis/storage/validation, `ValidateResourceClaimUpdate` and
`ValidateResourceClaimTemplateUpdate` in pkg/apis/resource/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.model.program import UNKNOWN
from dra_infra.planning.replacement import get_field, group_of

_SELECTOR: Final = ("spec.selector",)
_FIELDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("apps", "Deployment"): _SELECTOR,
    ("apps", "DaemonSet"): _SELECTOR,
    ("apps", "StatefulSet"): (
        "spec.podManagementPolicy",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    # The template of a suspended Job may change in parts, its pods' resources among them.
    ("batch", "Job"): ("spec.completionMode", "spec.selector", "spec.template"),
    ("", "PersistentVolumeClaim"): ("spec.accessModes", "spec.selector", "spec.volumeMode"),
    ("", "Secret"): ("type",),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("resource.k8s.io", "ResourceClaim"): ("spec",),
    ("resource.k8s.io", "ResourceClaimTemplate"): ("spec",),
    ("storage.k8s.io", "StorageClass"): (
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ),
}
_IF_IMMUTABLE: Final = ("binaryData", "data", "immutable", "stringData")
_POD_CHANGES: Final = frozenset(
    {"activeDeadlineSeconds", "containers", "initContainers", "schedulingGates", "tolerations"}
)
"""Fields of a pod's spec that may change, some of them in parts only."""


def find_immutable_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields whose change the API server refuses, in a fixed order; empty where all may change."""
    group, kind = group_of(after), str(after.get("kind", ""))
    fields = _FIELDS.get((group, kind), ())
    if (group, kind) in (("", "Secret"), ("", "ConfigMap")) and before.get("immutable") is True:
        fields = (*fields, *_IF_IMMUTABLE)
    if (group, kind) == ("batch", "Job") and get_field(before, "spec.suspend") is True:
        fields = tuple(field for field in fields if field != "spec.template")
    changed = [path for path in fields if _differs(get_field(before, path), get_field(after, path))]
    if (group, kind) == ("", "Pod"):
        changed.extend(_find_pod_fields(before, after))
    return tuple(changed)


def _find_pod_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    old, new = get_field(before, "spec"), get_field(after, "spec")
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new} - _POD_CHANGES):
            if _differs(old.get(name), new.get(name)):
                yield f"spec.{name}"


def _differs(old: Any, new: Any) -> bool:
    # What is only known later may turn out to be the same.
    return bool(old != new and UNKNOWN not in (old, new))
