"""Which changes need a new object: the vendor's hand-kept list, gaps included.

Kubernetes knows more immutable fields than this list. The specs of `ResourceClaim` and
`ResourceClaimTemplate` are the ones that matter here: changing them plans an update, which the API server
refuses. Source of the facts: `provider/pkg/provider/diff.go` of pulumi/pulumi-kubernetes, July 2026.
"""

from __future__ import annotations

from typing import Final

from tools.kubernetes_provider.resource_types import GroupVersionKind

Pattern = tuple[str, ...]
"""Steps of a property path; `*` stands for any list index."""

IDENTITY: Final = "metadata.name metadata.namespace"

POD_SPEC: Final = """
    affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC
    hostNetwork hostPID hostname imagePullSecrets nodeName nodeSelector overhead preemptionPolicy priority
    priorityClassName readinessGates restartPolicy runtimeClassName schedulerName securityContext
    serviceAccount serviceAccountName shareProcessNamespace subdomain terminationGracePeriodSeconds volumes
"""
CONTAINER: Final = """
    args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources
    securityContext stdin stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices
    volumeMounts workingDir
"""
PERSISTENT_VOLUME_SPEC: Final = """
    awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk
    glusterfs hostPath iscsi local nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos
    vsphereVolume
"""


def _below(prefix: str, names: str) -> str:
    return " ".join(f"{prefix}.{name}" for name in names.split())


STATEFUL_SET: Final = _below(
    "spec", "podManagementPolicy revisionHistoryLimit selector serviceName volumeClaimTemplates"
)
JOB: Final = _below("spec", "completions parallelism selector template")
PERSISTENT_VOLUME_CLAIM: Final = _below("spec", "accessModes selector storageClassName volumeName")
POD: Final = " ".join(
    (
        _below("spec", POD_SPEC),
        _below("spec.containers.*", CONTAINER),
        _below("spec.initContainers.*", CONTAINER),
    )
)

REPLACING: Final[dict[str, str]] = {
    "apps/v1/DaemonSet": "spec.selector",
    "apps/v1/Deployment": "spec.selector",
    "apps/v1/StatefulSet": STATEFUL_SET,
    "apps/v1beta1/StatefulSet": STATEFUL_SET,
    "apps/v1beta2/DaemonSet": "spec.selector",
    "apps/v1beta2/Deployment": "spec.selector",
    "apps/v1beta2/StatefulSet": STATEFUL_SET,
    "batch/v1/Job": JOB,
    "batch/v1beta1/Job": JOB,
    "batch/v2alpha1/Job": JOB,
    "policy/v1beta1/PodDisruptionBudget": "spec",
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": "roleRef",
    "rbac.authorization.k8s.io/v1/RoleBinding": "roleRef",
    "rbac.authorization.k8s.io/v1alpha1/ClusterRoleBinding": "roleRef",
    "rbac.authorization.k8s.io/v1alpha1/RoleBinding": "roleRef",
    "rbac.authorization.k8s.io/v1beta1/ClusterRoleBinding": "roleRef",
    "rbac.authorization.k8s.io/v1beta1/RoleBinding": "roleRef",
    "storage.k8s.io/v1/StorageClass": "parameters provisioner",
    "v1/PersistentVolume": _below("spec", PERSISTENT_VOLUME_SPEC),
    "v1/PersistentVolumeClaim": PERSISTENT_VOLUME_CLAIM,
    "v1/Pod": POD,
    "v1/ResourceQuota": "spec.scopes",
    "v1/Secret": "type",
    "v1/Service": "spec.clusterIP",
}
"""Fields by `apiVersion/kind`, dots between steps; a change below a field counts as one of the field."""


def replacing_fields(
    kind: GroupVersionKind, *, immutable: bool, config_maps_mutable: bool, secrets_mutable: bool
) -> tuple[Pattern, ...]:
    """Return the fields of *kind* whose change needs a new object.

    Args:
        kind: Of the object.
        immutable: The object's own `immutable` field.
        config_maps_mutable: Provider option `enableConfigMapMutable`.
        secrets_mutable: Provider option `enableSecretMutable`.
    """
    fields = f"{IDENTITY} {REPLACING.get(str(kind), '')}"
    if str(kind) == "v1/ConfigMap" and (immutable or not config_maps_mutable):
        fields += " binaryData data"
    if str(kind) == "v1/Secret" and (immutable or not secrets_mutable):
        fields += " stringData data"
    return tuple(tuple(field.split(".")) for field in fields.split())
