"""What pods placed so far have taken: devices, node resources, and claims that are shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dra_infra.model.claim_status import AllocationResult
from dra_infra.model.metadata import ObjectRef
from dra_infra.simulation.attempts import Attempts
from dra_infra.simulation.cluster import Cluster
from dra_infra.simulation.demand import Demand
from dra_infra.simulation.in_use import InUse
from dra_infra.simulation.node_selectors import matches_node_selector
from dra_infra.simulation.outcomes import Chosen, Impossible, Outcome, Pick
from dra_infra.simulation.placement import DeviceChoice, NodePlacement
from dra_infra.simulation.pod_resources import Amounts, find_shortage
from dra_infra.simulation.workloads import Entry, PodPlan

CONSUMERS_LIMIT = 256
"""Most pods that may share a claim: ResourceClaimReservedForMaxSize."""


@dataclass(slots=True)
class HeldClaim:
    """A claim with its allocation.

    Args:
        node: On which node it was allocated.
        picks: Its devices there, in the order of allocation.
        nodes: Where pods can use it.
        consumers: How many pods do.
    """

    node: int
    picks: tuple[Pick, ...]
    nodes: frozenset[int]
    consumers: int = 0


class ClusterState:
    """A cluster that fills up.

    Args:
        attempts: Searches on its nodes.
        amounts: What each node offers.
        in_use: Devices that are taken from the start; changed as the cluster fills up.
    """

    def __init__(self, attempts: Attempts, amounts: Sequence[Amounts], in_use: InUse) -> None:
        self._attempts = attempts
        self._cluster = attempts.cluster
        self._amounts = amounts
        self.in_use = in_use
        self._free: dict[int, Amounts] = {}
        self._claims: dict[ObjectRef, HeldClaim] = {}

    def open_demands(self, plan: PodPlan) -> tuple[Demand, ...]:
        """What those claims of a pod ask for that are not allocated yet."""
        return tuple(entry.demand for entry in plan.entries if not self._held(entry))

    def nodes_for(self, plan: PodPlan) -> frozenset[int] | None:
        """The nodes that the shared claims of a pod leave; None for all, empty when a claim has all its consumers."""
        left: frozenset[int] | None = None
        for entry in plan.entries:
            held = self._held(entry)
            if held is not None:
                nodes = held.nodes if held.consumers < CONSUMERS_LIMIT else frozenset[int]()
                left = nodes if left is None else left & nodes
        return left

    def attempt(self, plan: PodPlan, node: int) -> Outcome:
        """What the scheduler finds on a node for a pod that the node filters let through."""
        if find_shortage(plan.requests, self._free.get(node, self._amounts[node])):
            return Impossible()
        return self._attempts.attempt(node, self.open_demands(plan), self.in_use)

    def commit(self, plan: PodPlan, node: int, outcome: Chosen) -> NodePlacement:
        """Place the pod: take its devices and resources, allocate its claims."""
        free = dict(self._free.get(node, self._amounts[node]))
        for name, amount in plan.requests.items():
            free[name] -= amount
        self._free[node] = free
        nodes = self._find_nodes(plan, node)
        choices: list[DeviceChoice] = []
        number = 0
        for entry in plan.entries:
            held = self._held(entry)
            if held is None:
                picks = tuple(pick for pick in outcome.picks if pick.claim == number)
                held = HeldClaim(node, picks, nodes.get(number, frozenset()))
                number += 1
                if entry.shared:
                    self._claims[entry.object] = held
            held.consumers += 1
            choices.extend(choose(self._cluster, entry, held.node, held.picks))
        self.in_use.take(node, outcome.picks)
        return NodePlacement(node=self._cluster.nodes[node].name, devices=tuple(choices))

    def _held(self, entry: Entry) -> HeldClaim | None:
        return self._claims.get(entry.object) if entry.shared else None

    def _find_nodes(self, plan: PodPlan, node: int) -> dict[int, frozenset[int]]:
        """Where the shared claims among those that are allocated now can be used, by their number."""
        opened = [entry for entry in plan.entries if not self._held(entry)]
        if not any(entry.shared for entry in opened):
            return {}
        demands = [entry.demand for entry in opened]
        results = self._cluster.allocate(node, demands, self.in_use.state)
        return {number: self._usable_from(node, result) for number, result in enumerate(results)}

    def _usable_from(self, node: int, result: AllocationResult) -> frozenset[int]:
        selector = result.node_selector
        nodes = self._cluster.nodes
        if selector is None:
            return frozenset(range(len(nodes)))
        if any(term.match_fields for term in selector.node_selector_terms or ()):
            # A device of one node: its name is all that the selector has.
            return frozenset((node,))
        manifest = selector.to_manifest()
        return frozenset(number for number, each in enumerate(nodes) if matches_node_selector(manifest, each))


def choose(cluster: Cluster, entry: Entry, node: int, picks: Sequence[Pick]) -> list[DeviceChoice]:
    """The devices of a claim as the answer shows them."""
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
        )
        for pick in picks
        for device in (cluster.device(node, pick),)
    ]
