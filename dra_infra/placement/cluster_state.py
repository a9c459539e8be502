"""State of the cluster after the pods placed so far: devices, node resources, and shared claims that they took.

Devices in use are a value that can be forked; each shape of node is searched once with the same ones in use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, TypeAlias

from dra_infra.kubernetes.api import AllocationResult, Amounts, ObjectRef, matches_node_selector
from dra_infra.kubernetes.api.limits import MAX_RESERVED
from dra_infra.kubernetes.scheduler import PlacedPods, PodShape, find_shortage
from dra_infra.kubernetes.scheduler.allocator import AllocatedState, DeviceID, PoolID
from dra_infra.placement.cluster import Cluster, NodeShapes
from dra_infra.placement.demand import Demand, Entry, PodPlan, ReadFields
from dra_infra.placement.outcomes import Chosen, Impossible, Outcome, Pick
from dra_infra.placement.placement import DeviceChoice, NodePlacement

TakenDevice: TypeAlias = tuple[DeviceID, Mapping[str, str] | None, bool]
"""A device, what a share takes of it by capacity, and whether it is a share."""

FREE: tuple[()] = ()
"""What a node sees on which nothing is in use."""


class SharedPools:
    """Pools that several nodes see, with these nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @cached_property
    def nodes(self) -> dict[PoolID, tuple[int, ...]]:
        """The nodes of each pool."""
        found: defaultdict[PoolID, list[int]] = defaultdict(list)
        for node in range(len(self._cluster.nodes)):
            for pool in self._cluster.pools(node):
                found[pool.id].append(node)
        return {pool: tuple(nodes) for pool, nodes in found.items()}

    @cached_property
    def are_there(self) -> bool:
        """Several nodes see at least one pool."""
        return any(len(nodes) > 1 for nodes in self.nodes.values())


class InUse:
    """Devices in use, with what each node can tell of it.

    Args:
        cluster: The cluster.
        shared: Its pools of several nodes.
        state: What is in use.
    """

    def __init__(self, cluster: Cluster, shared: SharedPools, state: AllocatedState) -> None:
        self._cluster = cluster
        self._shared = shared
        self.state = state
        self._seen: dict[int, Hashable] = {}
        self._is_free = state.is_empty

    @property
    def is_shared(self) -> bool:
        """Devices that one node takes may be gone for others."""
        return self._shared.are_there

    def of(self, node: int) -> Hashable:
        """Equal for nodes of one shape on which a search finds the same in use."""
        if self._is_free:
            return FREE
        seen = self._seen.get(node)
        if seen is None:
            seen = self._seen[node] = self._look(node)
        return seen

    def take(self, node: int, picks: Iterable[Pick]) -> None:
        """Devices that a claim got on a node."""
        self.add(find_devices(self._cluster, node, picks))

    def add(self, taken: Sequence[TakenDevice]) -> None:
        """Devices that claims have, wherever they are; those that the fleet does not publish decide nothing."""
        self.state = self.state.with_devices(taken)
        self._is_free = self.state.is_empty
        for pool in {PoolID(device.driver, device.pool) for device, _, _ in taken}:
            for each in self._shared.nodes.get(pool, ()):
                self._seen.pop(each, None)

    def fork(self) -> Self:
        """The same, to go on from."""
        other = self.__class__(self._cluster, self._shared, self.state)
        other._seen = dict(self._seen)  # noqa: SLF001
        return other

    def emptied(self) -> Self:
        """The same devices with none in use."""
        return self.__class__(self._cluster, self._shared, AllocatedState(()))

    def _look(self, node: int) -> Hashable:
        found: list[Hashable] = []
        for number, pool in enumerate(self._cluster.pools(node)):
            for position, each in enumerate(pool.devices):
                if (used := self._use(each.id)) is not None:
                    found.append((number, position, used))
            for position, each in enumerate(pool.elsewhere):
                if each.device.consumes_counters and (used := self._use(each.id)) is not None:
                    found.append((number, ~position, used))
        return tuple(found)

    def _use(self, device: DeviceID) -> Hashable:
        state = self.state
        if not state.is_allocated(device):
            return None
        consumed = tuple(sorted(state.consumed(device).items())) if state.has_consumed(device) else None
        return state.has_whole(device), state.has_share(device), consumed


class Attempts:
    """The outcomes of searches, remembered for all states of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._shapes = NodeShapes(cluster)
        self._read_fields: dict[tuple[str, ...], ReadFields] = {}
        self._known: dict[tuple[object, ...], Outcome] = {}

    def shapes(self, demands: Sequence[Demand]) -> Sequence[int]:
        """The number of each node's shape, for claims that are still to be allocated."""
        key = tuple(demand.key for demand in demands)
        fields = self._read_fields.get(key)
        if fields is None:
            fields = self._read_fields[key] = ReadFields.of(demands)
        return self._shapes.of(fields)

    def attempt(self, node: int, demands: Sequence[Demand], in_use: InUse) -> Outcome:
        """Searches a node, or remembers what a node of its shape gave with the same devices in use."""
        shape = self.shapes(demands)[node]
        key = (tuple(demand.key for demand in demands), shape, in_use.of(node))
        outcome = self._known.get(key)
        if outcome is None:
            outcome = self._known[key] = self.cluster.search(node, demands, in_use.state)
        return outcome


@dataclass(slots=True)
class HeldClaim:
    """A claim with its allocation.

    Args:
        node: On which node it was allocated.
        picks: Its devices there, in the order of allocation.
        nodes: Where pods can use it.
        consumers: How many pods do.
        result: Its allocation, where devices count against their nodes.
    """

    node: int
    picks: tuple[Pick, ...]
    nodes: frozenset[int]
    consumers: int = 0
    result: AllocationResult | None = None


class ClusterState:
    """A cluster that fills up.

    Args:
        attempts: Searches on its nodes.
        amounts: What each node offers.
        in_use: Devices that are taken from the start; changed as the cluster fills up.
        others: Pods that are there from the start; changed in the same way.
    """

    def __init__(
        self, attempts: Attempts, amounts: Sequence[Amounts], in_use: InUse, others: PlacedPods
    ) -> None:
        self._attempts = attempts
        self._cluster = attempts.cluster
        self._amounts = amounts
        self.in_use = in_use
        self._others = others
        self._free: dict[int, Amounts] = {}
        self._claims: dict[ObjectRef, HeldClaim] = {}

    def fork(self) -> ClusterState:
        """Copies the state, to be changed apart from this one."""
        other = ClusterState(self._attempts, self._amounts, self.in_use.fork(), self._others.copy())
        other._free = dict(self._free)
        other._claims = {ref: replace(held) for ref, held in self._claims.items()}
        return other

    def occupy(self, node: int, requests: Amounts, shape: PodShape, devices: Sequence[TakenDevice]) -> None:
        """Put a pod on a node that runs there already, with the devices that it has."""
        free = dict(self._free.get(node, self._amounts[node]))
        for name, amount in requests.items():
            free[name] = free.get(name, 0) - amount
        self._free[node] = free
        self._others.add(shape, node)
        if devices:
            self.in_use.add(devices)

    def refusal(self, plan: PodPlan, node: int) -> str:
        """Why the pods that are there keep one more off a node; empty where they do not."""
        return self._others.refusal(plan.shape, node)

    def key_of(self, node: int) -> Hashable:
        """Equal for states in which a node has the same devices and the same resources left."""
        free = self._free.get(node)
        return self.in_use.of(node), None if free is None else tuple(sorted(free.items()))

    def claims_key(self, node: int) -> Hashable:
        """Equal for nodes on which the same shared claims are allocated, for as many pods and to be used from as many nodes."""
        return frozenset(
            # With a device that several nodes see, others can use the claim too; with one of its own, this node alone.
            (ref, held.consumers, None if held.nodes == {node} else held.nodes)
            for ref, held in self._claims.items()
            if held.node == node
        )

    def open_demands(self, plan: PodPlan) -> tuple[Demand, ...]:
        """Demands of those claims of a pod that are not allocated yet."""
        return tuple(entry.demand for entry in plan.entries if not self._held(entry))

    def nodes_for(self, plan: PodPlan) -> frozenset[int] | None:
        """The nodes that the shared claims of a pod leave; None for all, empty when a claim has all its consumers."""
        left: frozenset[int] | None = None
        for entry in plan.entries:
            held = self._held(entry)
            if held is not None:
                nodes = held.nodes if held.consumers < MAX_RESERVED else frozenset[int]()
                left = nodes if left is None else left & nodes
        return left

    def open_nodes(self, plan: PodPlan, nodes: Sequence[int]) -> Iterable[int]:
        """The nodes of *nodes* that other pods leave open to the pod, in order."""
        if not plan.shape.asks and self._others.is_free(plan.shape):
            return nodes
        if plan.shape.only_fills:
            # Whoever asks goes on where it has stopped, so one node after the other is less to look at.
            return (node for node in nodes if not self._others.refusal(plan.shape, node))
        return self._others.open_nodes(plan.shape, nodes)

    def attempt(self, plan: PodPlan, node: int) -> Outcome:
        """Tries a pod on a node that node filters and other pods let it through to."""
        plan = plan.at(self._cluster.offered[node])
        free = self._free.get(node, self._amounts[node])
        if plan.refusal or find_shortage(plan.requests, free):
            return Impossible()
        outcome = self._attempts.attempt(node, self.open_demands(plan), self.in_use)
        if isinstance(outcome, Chosen) and self._cluster.device_amounts:
            amounts = self.count_amounts(plan, node)
            if isinstance(amounts, str) or find_shortage(amounts, free):
                return Impossible()
        return outcome

    def find_shortage(self, plan: PodPlan, node: int) -> str:
        """The resource of which a node has too little left for a pod; empty where it has enough."""
        return find_shortage(
            plan.at(self._cluster.offered[node]).requests, self._free.get(node, self._amounts[node])
        )

    def count_amounts(self, plan: PodPlan, node: int) -> Amounts | str:
        """Resources that a pod takes of a node, those of its devices included, or why it cannot have them."""
        opened = [entry for entry in plan.entries if not self._held(entry)]
        results = iter(
            self._cluster.allocate(node, [entry.demand for entry in opened], self.in_use.state)
            if opened
            else ()
        )
        claims: list[tuple[str, AllocationResult]] = []
        for entry in plan.entries:
            held = self._held(entry)
            result = held.result if held else next(results, None)
            if result is None:
                continue
            if held and held.consumers and self._cluster.device_amounts.maps(result):
                return (
                    f"claim {entry.object.name} stands for resources of the node, so no second pod can use it"
                )
            claims.append((entry.name, result))
        amounts = self._cluster.device_amounts.count_for(plan.spec, claims)
        if isinstance(amounts, str):
            return amounts
        return {name: amount for name, amount in amounts.items() if name in plan.requests or "/" not in name}

    def commit(self, plan: PodPlan, node: int, outcome: Chosen) -> NodePlacement:
        """Place the pod: take its devices and resources, allocate its claims."""
        plan = plan.at(self._cluster.offered[node])
        counted = self.count_amounts(plan, node) if self._cluster.device_amounts else plan.requests
        free = dict(self._free.get(node, self._amounts[node]))
        for name, amount in (counted if isinstance(counted, dict) else plan.requests).items():
            free[name] = free.get(name, 0) - amount
        self._free[node] = free
        self._others.add(plan.shape, node)
        nodes = self._find_nodes(plan, node)
        choices: list[DeviceChoice] = []
        number = 0
        for entry in plan.entries:
            held = self._held(entry)
            if held is None:
                picks = tuple(pick for pick in outcome.picks if pick.claim == number)
                where, result = nodes.get(number, (frozenset[int](), None))
                held = HeldClaim(node, picks, where, result=result)
                number += 1
                if entry.shared:
                    self._claims[entry.object] = held
            held.consumers += 1
            choices.extend(choose(self._cluster, entry, held.node, held.picks))
        self.in_use.take(node, outcome.picks)
        return NodePlacement(node=self._cluster.nodes[node].name, devices=tuple(choices))

    def _held(self, entry: Entry) -> HeldClaim | None:
        return self._claims.get(entry.object) if entry.shared else None

    def _find_nodes(
        self, plan: PodPlan, node: int
    ) -> dict[int, tuple[frozenset[int], AllocationResult | None]]:
        """Where the shared claims among those that are allocated now can be used, by their number."""
        opened = [entry for entry in plan.entries if not self._held(entry)]
        if not any(entry.shared for entry in opened):
            return {}
        demands = [entry.demand for entry in opened]
        results = self._cluster.allocate(node, demands, self.in_use.state)
        return {number: (self._usable_from(node, result), result) for number, result in enumerate(results)}

    def _usable_from(self, node: int, result: AllocationResult) -> frozenset[int]:
        selector = result.node_selector
        nodes = self._cluster.nodes
        if selector is None:
            return frozenset(range(len(nodes)))
        if any(term.match_fields for term in selector.node_selector_terms or ()):
            # A device of one node: its name is all that the selector has.
            return frozenset((node,))
        manifest = selector.to_manifest()
        return frozenset(
            number
            for number, each in enumerate(nodes)
            if matches_node_selector(manifest, each.labels, each.name)
        )


def find_devices(cluster: Cluster, node: int, picks: Iterable[Pick]) -> list[TakenDevice]:
    """Return the devices that picks take on a node, without those for admin access."""
    return [
        (cluster.device(node, pick), pick.consumed if pick.share else None, pick.share)
        for pick in picks
        if not pick.admin
    ]


def choose(cluster: Cluster, entry: Entry, node: int, picks: Sequence[Pick]) -> list[DeviceChoice]:
    """The devices of a claim as the answer shows them."""
    if not picks:
        return []
    classes = {name: leaf.device_class_name for name, leaf in entry.demand.leaves}
    return [
        DeviceChoice(
            entry=entry.name,
            claim=entry.object.name,
            request=pick.request,
            driver=device.driver,
            pool=device.pool,
            device=device.device,
            admin=pick.admin,
            share=pick.share,
            consumed=tuple(sorted((pick.consumed or {}).items())),
            device_class=classes[pick.request],
        )
        for pick in picks
        for device in (cluster.device(node, pick),)
    ]
