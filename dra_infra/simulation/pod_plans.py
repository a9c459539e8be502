"""What decides where the pods of one workload can go, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.model.metadata import ObjectRef
from dra_infra.simulation.demand import Demand, Undecided, read_demand
from dra_infra.simulation.extended_resources import CLAIM_ENTRY, ExtendedDemand
from dra_infra.simulation.node_filters import NodeFilter
from dra_infra.simulation.pod_resources import Amounts
from dra_infra.simulation.pod_shapes import PodShape
from dra_infra.simulation.quotas import Use

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
