"""All workloads at once, greedily: in the order given, pod by pod, each on the first node that takes it.

The real scheduler takes pods in the order in which they come and picks the best-scored node, ties at random. That this
one order works proves that all fit; that it does not proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dra_infra.simulation.cluster_state import ClusterState
from dra_infra.simulation.demand import Undecided
from dra_infra.simulation.free_fleet import Capacity, FreeFleet
from dra_infra.simulation.in_use import InUse
from dra_infra.simulation.outcomes import Chosen, Impossible
from dra_infra.simulation.placement import NodePlacement
from dra_infra.simulation.workloads import PodPlan, Workload


@dataclass(frozen=True, slots=True)
class Together:
    """Where all pods went.

    Args:
        pods: Per workload, as far as there was room; nothing for one that is not decided.
        in_use: What is in use then.
    """

    pods: Sequence[tuple[NodePlacement, ...]]
    in_use: InUse


def place_together(free: FreeFleet, workloads: Sequence[Workload]) -> Together:
    """Place the pods of all workloads, in order."""
    joint = _Joint(free)
    pods = [
        () if isinstance(workload.plan, Undecided) else tuple(joint.place(workload.plan, workload.replicas))
        for workload in workloads
    ]
    return Together(pods, joint.in_use)


def count_daemons(free: FreeFleet, plan: PodPlan) -> Capacity:
    """How many of the nodes that a DaemonSet goes to take its pod on the otherwise free fleet."""
    placed = sum(1 for _ in _Joint(free).place(plan, None))
    return Capacity(placed, placed)


class _Joint:
    def __init__(self, free: FreeFleet) -> None:
        self._free = free
        self._state: ClusterState = free.state()
        self._starts: dict[tuple[object, ...], int] = {}

    @property
    def in_use(self) -> InUse:
        return self._state.in_use

    def place(self, plan: PodPlan, replicas: int | None) -> Iterator[NodePlacement]:
        if not self._free.answer(plan).candidates:
            return
        if replicas is None:
            yield from self._place_on_each(plan)
            return
        for _ in range(replicas):
            placed = self._place_first(plan)
            if placed is None:
                return
            yield placed

    def _place_on_each(self, plan: PodPlan) -> Iterator[NodePlacement]:
        for node, refusal in enumerate(self._free.refusals(plan)):
            left = self._state.nodes_for(plan)
            if refusal or (left is not None and node not in left):
                continue
            outcome = self._state.attempt(plan, node)
            if isinstance(outcome, Chosen):
                yield self._state.commit(plan, node, outcome)

    def _place_first(self, plan: PodPlan) -> NodePlacement | None:
        refusals = self._free.refusals(plan)
        left = self._state.nodes_for(plan)
        # Claims that only this pod has are refused by a node for good once they are, for a fleet only fills up.
        key = None if any(entry.shared for entry in plan.entries) else plan.search_key
        start = self._starts.get(key, 0) if key is not None else 0
        for node in range(start, len(refusals)):
            if refusals[node] or (left is not None and node not in left):
                continue
            outcome = self._state.attempt(plan, node)
            if isinstance(outcome, Chosen):
                if key is not None:
                    self._starts[key] = node
                return self._state.commit(plan, node, outcome)
            if not isinstance(outcome, Impossible):
                return None
        if key is not None:
            self._starts[key] = len(refusals)
        return None
