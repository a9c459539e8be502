"""All workloads at once, greedily: in the order given, pod by pod, each on the first node that takes it.

The real scheduler takes pods in the order in which they come and picks the best-scored node, ties at random. That this
one order works proves that all fit; that it does not proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dra_infra.simulation.cluster_state import ClusterState
from dra_infra.simulation.demand import Undecided
from dra_infra.simulation.free_answers import Capacity
from dra_infra.simulation.free_fleet import FreeFleet
from dra_infra.simulation.in_use import InUse
from dra_infra.simulation.near_pods import alone, in_order
from dra_infra.simulation.outcomes import Chosen, Impossible
from dra_infra.simulation.placement import NodePlacement
from dra_infra.simulation.pod_plans import PodPlan, Workload


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
    """Place the pods of all workloads, in order; those whose affinity names others come behind these."""
    joint = _Joint(free)
    placed: dict[int, tuple[NodePlacement, ...]] = {}
    for number in in_order(workloads):
        plan = workloads[number].plan
        if isinstance(plan, Undecided) or not free.answer(alone(workloads[number], plan)).candidates:
            placed[number] = ()
        else:
            placed[number] = tuple(joint.place(plan, workloads[number].replicas))
    return Together([placed[number] for number in range(len(workloads))], joint.in_use)


def count_daemons(free: FreeFleet, plan: PodPlan) -> Capacity:
    """How many of the nodes that a DaemonSet goes to take its pod on the otherwise free fleet."""
    placed = sum(1 for _ in _Joint(free).place(plan, None)) if free.answer(plan).candidates else 0
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
            if not any(True for _ in self._state.open_nodes(plan, [node])):
                continue
            outcome = self._state.attempt(plan, node)
            if isinstance(outcome, Chosen):
                yield self._state.commit(plan, node, outcome)

    def _place_first(self, plan: PodPlan) -> NodePlacement | None:
        refusals = self._free.refusals(plan)
        left = self._state.nodes_for(plan)
        # Claims that only this pod has are refused by a node for good once they are, for a fleet only fills up; and so
        # are pods, unless others that come make room for them.
        settled = plan.shape.only_fills and not any(entry.shared for entry in plan.entries)
        key = self._free.key_of(plan) if settled else None
        start = self._starts.get(key, 0) if key is not None else 0
        for node in self._state.open_nodes(plan, range(start, len(refusals))):
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
