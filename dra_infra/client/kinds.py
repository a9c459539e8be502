"""Kinds of objects that are read from a cluster.

Secrets and ConfigMaps are none of them, and nothing else can be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

RESOURCE_GROUP: Final = "resource.k8s.io"


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of objects.

    Args:
        name: Such as `Pod`.
        plural: As in paths and in rules of roles.
        group: Its API group; empty for the core.
        versions: Those that are asked for, the best first.
        namespaced: Whether its objects are in namespaces.
        needed_for: What is not known without it.
    """

    name: str
    plural: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    needed_for: str = ""

    def path(self, version: str, namespace: str = "") -> str:
        """Path under which its objects are listed."""
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"

    def api_version(self, version: str) -> str:
        """`apiVersion` of its objects."""
        return f"{self.group}/{version}" if self.group else version

    @property
    def rule(self) -> str:
        """The line of a role that lets it be listed."""
        return f'{{apiGroups: ["{self.group}"], resources: ["{self.plural}"], verbs: ["list", "watch"]}}'


_DRA: Final = ("v1", "v1beta2", "v1beta1")
_dra_kind: Final = partial(Kind, group=RESOURCE_GROUP, versions=_DRA)

NODES: Final = Kind(name="Node", plural="nodes", namespaced=False, needed_for="where pods can go at all")
SLICES: Final = _dra_kind(
    name="ResourceSlice",
    plural="resourceslices",
    namespaced=False,
    needed_for="which devices there are",
)
CLASSES: Final = _dra_kind(
    name="DeviceClass",
    plural="deviceclasses",
    namespaced=False,
    needed_for="which devices a claim may have",
)
TAINT_RULES: Final = Kind(
    name="DeviceTaintRule",
    plural="devicetaintrules",
    group=RESOURCE_GROUP,
    # 1.37 has v1, 1.36 v1beta2, older ones the alpha, all but the first off by default.
    versions=("v1", "v1beta2", "v1alpha3"),
    namespaced=False,
    needed_for="which devices are tainted by an administrator",
)
CLAIMS: Final = _dra_kind(
    name="ResourceClaim",
    plural="resourceclaims",
    needed_for="which devices are taken",
)
TEMPLATES: Final = _dra_kind(
    name="ResourceClaimTemplate",
    plural="resourceclaimtemplates",
    needed_for="what pods that are to come ask for",
)
PODS: Final = Kind(name="Pod", plural="pods", needed_for="CPU, memory and devices that pods take")
NAMESPACES: Final = Kind(
    name="Namespace", plural="namespaces", namespaced=False, needed_for="who may have admin access"
)
QUOTAS: Final = Kind(name="ResourceQuota", plural="resourcequotas", needed_for="which quotas there are")
LIMIT_RANGES: Final = Kind(
    name="LimitRange", plural="limitranges", needed_for="requests that pods get by default"
)
PRIORITIES: Final = Kind(
    name="PriorityClass",
    plural="priorityclasses",
    group="scheduling.k8s.io",
    namespaced=False,
    needed_for="which pods go first",
)
DAEMON_SETS: Final = Kind(
    name="DaemonSet", plural="daemonsets", group="apps", needed_for="whose pods run on every node"
)
_policy_kind: Final = partial(
    Kind, group="admissionregistration.k8s.io", namespaced=False, needed_for="what admission policies refuse"
)
DEFINITIONS: Final = Kind(
    name="CustomResourceDefinition",
    plural="customresourcedefinitions",
    group="apiextensions.k8s.io",
    namespaced=False,
    needed_for="whether the driver's own kinds are there",
)
_queue_kind: Final = partial(
    Kind, group="kueue.x-k8s.io", versions=("v1beta2", "v1beta1"), needed_for="which workloads wait for good"
)
QUEUES: Final = (
    _queue_kind(name="ClusterQueue", plural="clusterqueues", namespaced=False),
    _queue_kind(name="LocalQueue", plural="localqueues"),
)
EVENTS: Final = Kind(name="Event", plural="events", needed_for="why pods wait")

SNAPSHOT: Final = (
    NODES,
    SLICES,
    CLASSES,
    TAINT_RULES,
    CLAIMS,
    TEMPLATES,
    PODS,
    NAMESPACES,
    QUOTAS,
    LIMIT_RANGES,
    PRIORITIES,
    Kind(name="Deployment", plural="deployments", group="apps", needed_for="whose pods are whose"),
    Kind(name="ReplicaSet", plural="replicasets", group="apps", needed_for="whose pods are whose"),
    Kind(name="StatefulSet", plural="statefulsets", group="apps", needed_for="whose pods are whose"),
    DAEMON_SETS,
    Kind(name="Job", plural="jobs", group="batch", needed_for="whose pods are whose"),
    Kind(name="CronJob", plural="cronjobs", group="batch", needed_for="whose pods are whose"),
    Kind(
        name="PodDisruptionBudget",
        plural="poddisruptionbudgets",
        group="policy",
        needed_for="which drains do not end",
    ),
    DEFINITIONS,
    *QUEUES,
    _policy_kind(name="ValidatingAdmissionPolicy", plural="validatingadmissionpolicies"),
    _policy_kind(name="ValidatingAdmissionPolicyBinding", plural="validatingadmissionpolicybindings"),
)
"""Kinds that a snapshot holds, in the order in which they are read."""

EXTRA: Final = frozenset({TAINT_RULES, *QUEUES})
"""Kinds that most clusters do not serve: nothing is missing without them."""

CRD_GROUPS: Final = (".nvidia.com", ".x-k8s.io", ".volcano.sh")
"""Ends of the names of definitions that matter for devices or for who schedules pods."""
