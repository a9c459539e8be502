"""Pod plans: what decides where the pods of one workload can go, as records.

Scheduler plugins that are not modelled are left out of the placement; what a pod uses of them is found by field path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.pod_containers import Amounts, mapping, objects
from dra_infra.kubernetes.api.pods import PodTemplate
from dra_infra.kubernetes.apiserver.admission import PodAdmission, Use
from dra_infra.kubernetes.scheduler.extended_resources import CLAIM_ENTRY, ExtendedDemand
from dra_infra.kubernetes.scheduler.node_filters import NodeFilter
from dra_infra.kubernetes.scheduler.pod_shapes import REQUIRED, PodShape, find_host_ports
from dra_infra.placement.demand import Demand, Undecided, read_demand

_API_VERSION: Final = "resource.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a pod's `spec.resourceClaims`, or the claim that the scheduler makes for extended resources.

    Args:
        name: Name of the entry.
        object: The claim or template.
        demand: What it asks for.
        shared: Whether all pods use the one claim; else each pod gets its own.
    """

    name: str
    object: ObjectRef
    demand: Demand
    shared: bool


class ExtendedClaim:
    """The claim that the scheduler makes for the extended resources of a pod, which depends on the node.

    Args:
        demand: What the pod asks for.
        namespace: Of the pod.
        classes: Manifests of the known classes by name.
        has_claims: Whether the pod has claims of its own.
    """

    def __init__(
        self,
        demand: ExtendedDemand,
        namespace: str,
        classes: Mapping[str, Mapping[str, Any]],
        *,
        has_claims: bool,
    ) -> None:
        self.demand = demand
        self._ref = ObjectRef(kind="ResourceClaim", name=CLAIM_ENTRY, namespace=namespace)
        self._classes = classes
        self._has_claims = has_claims
        self._entries: dict[tuple[str, ...], Entry | Undecided | None] = {}

    def entry_for(self, offered: Amounts) -> Entry | Undecided | None:
        """The claim on a node that offers so much; None where the pod needs none."""
        names = self.demand.by_devices(offered)
        if names not in self._entries:
            self._entries[names] = self._read(offered)
        return self._entries[names]

    def refusal_for(self, offered: Amounts) -> str:
        """Why the pod never starts on such a node although it may go there; empty when it does."""
        if not self.demand.is_stuck(offered, has_claims=self._has_claims):
            return ""
        return (
            "a device plugin serves the extended resources of a pod with claims, which the scheduler fails to bind: "
            "nil or empty request mappings (a bug of Kubernetes 1.35 to 1.37)"
        )

    def spec_for(self, offered: Amounts) -> dict[str, Any] | None:
        """The spec of the claim on such a node."""
        requests = self.demand.requests_for(offered, has_claims=self._has_claims)
        return {"devices": {"requests": [each.to_manifest() for each in requests]}} if requests else None

    def _read(self, offered: Amounts) -> Entry | Undecided | None:
        spec = self.spec_for(offered)
        if spec is None:
            return None
        manifest = {"apiVersion": _API_VERSION, "kind": "ResourceClaim", "spec": spec}
        demand = read_demand(manifest, self._ref, self._classes, self.demand.served.release)
        if isinstance(demand, Undecided):
            return demand
        return Entry(name=CLAIM_ENTRY, object=self._ref, demand=demand, shared=False)


@dataclass(frozen=True, slots=True)
class PodPlan:
    """All that decides where one pod of a workload can go.

    Args:
        entries: Its claims in the order written.
        requests: What it takes of a node.
        filter: The filters that look at nodes only.
        filter_key: Equal for equal filters.
        shape: What decides beside other pods.
        extended: Extended resources that device classes serve.
        made: The objects that are made for one pod, in order: what they are, and what they count for in quotas.
        spec: The pod spec as it is stored.
        refusal: Why it never starts on the nodes that the plan is for; see `at`.
    """

    entries: tuple[Entry, ...]
    requests: Amounts = field(hash=False)
    filter: NodeFilter = field(hash=False, compare=False)
    filter_key: str
    shape: PodShape
    extended: ExtendedClaim | None = field(default=None, hash=False, compare=False)
    made: tuple[tuple[str, Use], ...] = field(default=(), hash=False, compare=False)
    spec: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)
    refusal: str = field(default="", hash=False, compare=False)
    _at: dict[tuple[str, ...], PodPlan] = field(
        default_factory=dict, init=False, repr=False, hash=False, compare=False
    )

    @property
    def search_key(self) -> tuple[object, ...]:
        """Equal for pods with the same answer where no other pods decide."""
        demands = tuple((entry.demand, entry.shared) for entry in self.entries)
        extended = () if self.extended is None else self.at({}).entries[len(self.entries) :]
        more = tuple(entry.demand for entry in extended)
        return demands, more, tuple(self.requests.items()), self.filter_key

    def at(self, offered: Amounts) -> PodPlan:
        """The plan on a node that offers so much: what devices stand for there is asked of them, and not of the node."""
        if self.extended is None:
            return self
        names = self.extended.demand.by_devices(offered)
        found = self._at.get(names)
        if found is None:
            entry = self.extended.entry_for(offered)
            left = {name: amount for name, amount in self.requests.items() if name not in names}
            entries = (*self.entries, entry) if isinstance(entry, Entry) else self.entries
            refusal = self.extended.refusal_for(offered)
            found = self._at[names] = replace(
                self, entries=entries, requests=left, extended=None, refusal=refusal
            )
        return found


@dataclass(frozen=True, slots=True)
class Workload:
    """The pods of one object.

    Args:
        owner: The object.
        replicas: How many pods at once; None for one on every node (DaemonSet).
        plan: What each of them asks for, or why that is not known.
        unmodelled: What they use and the answer leaves out.
        beside: Workloads whose pods have to be there before, for required affinity names them.
    """

    owner: ObjectRef
    replicas: int | None
    plan: PodPlan | Undecided
    unmodelled: tuple[str, ...] = ()
    beside: tuple[ObjectRef, ...] = ()


_DEFAULT_SCHEDULER = "default-scheduler"

_FIELDS = {
    "preemptionPolicy": "preemption",
    "priority": "preemption",
    "priorityClassName": "preemption",
    "schedulingGates": "the pod waits until its gates are removed",
    "schedulingGroup": "gang scheduling",
    "workloadRef": "gang scheduling",
}

_VOLUMES = {
    "awsElasticBlockStore": "volume limits and zones",
    "azureDisk": "volume limits and zones",
    "ephemeral": "volume binding and zones",
    "gcePersistentDisk": "volume limits and zones",
    "iscsi": "one node at a time",
    "persistentVolumeClaim": "volume binding and zones",
    "rbd": "one node at a time",
}


def find_unmodelled(
    template: PodTemplate, manifest: Mapping[str, Any], admission: PodAdmission | None = None
) -> tuple[str, ...]:
    """Field paths with what they would have the scheduler do, sorted.

    Args:
        template: The pods.
        manifest: The object that makes them.
        admission: The runtime classes that are known; None where neither these nor other pods are looked at, which is
            named then too.
    """
    found = {f"{template.path}.{path} ({why})" for path, why in _find(template.spec)}
    if admission is None:
        found |= {f"{template.path}.{path} ({why})" for path, why in _find_other_pods(template.spec)}
    runtime = template.spec.get("runtimeClassName")
    if runtime and not (admission and admission.knows_runtime(str(runtime))):
        found.add(f"{template.path}.runtimeClassName (overhead and nodes of the runtime class)")
    if mapping(manifest.get("spec")).get("volumeClaimTemplates"):
        found.add("spec.volumeClaimTemplates (volume binding and zones)")
    return tuple(sorted(found))


def _find(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, why) for name, why in _FIELDS.items() if spec.get(name))
    if spec.get("nodeName"):
        yield "nodeName", "the pod goes round the scheduler, so a claim that is not allocated stays so"
    if spec.get("schedulerName", _DEFAULT_SCHEDULER) not in ("", _DEFAULT_SCHEDULER):
        yield "schedulerName", "the answer is that of the default scheduler"
    for index, volume in enumerate(objects(spec.get("volumes"))):
        for name in sorted(set(volume) & set(_VOLUMES)):
            yield f"volumes[{index}].{name}", _VOLUMES[name]


def _find_other_pods(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    affinity = mapping(spec.get("affinity"))
    for name in ("podAffinity", "podAntiAffinity"):
        if mapping(affinity.get(name)).get(REQUIRED):
            yield f"affinity.{name}", "where other pods run"
    spread = objects(spec.get("topologySpreadConstraints"))
    if any(constraint.get("whenUnsatisfiable") != "ScheduleAnyway" for constraint in spread):
        yield "topologySpreadConstraints", "where other pods run"
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(objects(spec.get(kind))):
            if find_host_ports({**spec, "initContainers": [], "containers": [], kind: [container]}):
                yield f"{kind}[{index}].ports", "ports of the node"
