"""One workload on the otherwise free fleet: which nodes can take a pod, why not the others, and how many pods fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from dra_infra.simulation.attempts import Attempts
from dra_infra.simulation.cluster import Cluster
from dra_infra.simulation.cluster_state import ClusterState
from dra_infra.simulation.demand import Demand
from dra_infra.simulation.explaining import Finding
from dra_infra.simulation.in_use import FREE, InUse, SharedPools
from dra_infra.simulation.outcomes import Aborted, Chosen, Halt, Impossible, Outcome
from dra_infra.simulation.pod_resources import Amounts, find_shortage, node_amounts
from dra_infra.simulation.taken import NOTHING, Taken
from dra_infra.simulation.workloads import PodPlan

PODS_LIMIT = 10_000
"""Pods are counted up to here where they are placed one by one."""


@dataclass(slots=True)
class Tally:
    """How many nodes, and the first of them."""

    count: int = 0
    first: int = -1

    def add(self, node: int) -> None:
        """Count one more node; nodes come in order."""
        self.first = node if self.first < 0 else self.first
        self.count += 1


@dataclass(slots=True)
class FreeAnswer:
    """What becomes of one pod on each node while nothing else runs.

    Args:
        candidates: Nodes that can take it, in order.
        refused: Nodes that the filters refuse, by text.
        short: Nodes with too little of a resource, by resource and what the node has.
        failed: Nodes without a choice of devices, by shape.
        busy: Nodes that may do when less is in use, by shape and what is.
        halted: Nodes at which the answer ends, by shape.
    """

    candidates: list[int] = field(default_factory=list)
    refused: dict[str, Tally] = field(default_factory=dict)
    short: dict[tuple[str, int], Tally] = field(default_factory=dict)
    failed: dict[int, Tally] = field(default_factory=dict)
    busy: dict[tuple[int, Hashable], Tally] = field(default_factory=dict)
    halted: dict[int, tuple[Halt, Tally]] = field(default_factory=dict)

    @property
    def eligible(self) -> int:
        """How many nodes the filters let through."""
        return (
            len(self.candidates)
            + sum(tally.count for tally in (*self.short.values(), *self.failed.values(), *self.busy.values()))
            + sum(tally.count for _, tally in self.halted.values())
        )


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many equal pods fit.

    Args:
        pods: On the whole fleet, where a claim is shared on the best node.
        worst: Where a claim is shared: on the worst candidate node; else the same.
        halt: What ends the search on a node that fills up.
        before_halt: How many pods a node takes before that.
    """

    pods: int
    worst: int
    halt: Halt | None = None
    before_halt: int = 0


class FreeFleet:
    """Answers for single workloads, equal questions once.

    Args:
        cluster: The cluster.
        taken: What is not free of it.
    """

    def __init__(self, cluster: Cluster, taken: Taken = NOTHING) -> None:
        self.cluster = cluster
        self.attempts = Attempts(cluster)
        self._shared = SharedPools(cluster)
        self._in_use = InUse(cluster, self._shared, taken.state)
        self._nothing = InUse(cluster, self._shared, NOTHING.state)
        by_shape: dict[tuple[tuple[str, str], ...], Amounts] = {}
        self.amounts: list[Amounts] = []
        for node in cluster.nodes:
            shape = tuple(sorted(node.allocatable.items()))
            if shape not in by_shape:
                by_shape[shape] = node_amounts(node.allocatable)
            self.amounts.append(taken.left_of(node.name, by_shape[shape]))
        self._refusals: dict[str, list[str]] = {}
        self._answers: dict[tuple[object, ...], FreeAnswer] = {}
        self._capacities: dict[tuple[object, ...], Capacity] = {}

    @property
    def in_use(self) -> InUse:
        """What was taken before."""
        return self._in_use

    def state(self) -> ClusterState:
        """The fleet with nothing on it but what was taken before."""
        return ClusterState(self.attempts, self.amounts, self._in_use.fork())

    def attempt(self, plan: PodPlan, node: int) -> Outcome:
        """What a node gives the claims of a pod while nothing else runs."""
        return self.attempts.attempt(node, _demands(plan), self._in_use)

    def explain(self, plan: PodPlan, node: int) -> Finding:
        """Why a node that the filters let through has no devices for a pod."""
        demands = _demands(plan)
        in_use = self._in_use
        if in_use.of(node) != FREE and not isinstance(
            self.attempts.attempt(node, demands, self._nothing), Chosen
        ):
            in_use = self._nothing
        return self.cluster.explain(node, demands, in_use.state, [entry.object for entry in plan.entries])

    def refusals(self, plan: PodPlan) -> list[str]:
        """Per node why the node filters refuse the pod, empty where they do not."""
        refusals = self._refusals.get(plan.filter_key)
        if refusals is None:
            refusals = [plan.filter.refusal(node) for node in self.cluster.nodes]
            self._refusals[plan.filter_key] = refusals
        return refusals

    def answer(self, plan: PodPlan) -> FreeAnswer:
        """Try one pod on every node."""
        answer = self._answers.get(plan.search_key)
        if answer is not None:
            return answer
        answer = self._answers[plan.search_key] = FreeAnswer()
        demands = _demands(plan)
        shapes = self.attempts.shapes(demands)
        for node, refusal in enumerate(self.refusals(plan)):
            if refusal:
                answer.refused.setdefault(refusal, Tally()).add(node)
                continue
            shortage = find_shortage(plan.requests, self.amounts[node])
            if shortage:
                key = (shortage, self.amounts[node].get(shortage, 0))
                answer.short.setdefault(key, Tally()).add(node)
                continue
            shape = shapes.numbers[node]
            outcome = self.attempts.attempt(node, demands, self._in_use)
            if isinstance(outcome, Chosen):
                answer.candidates.append(node)
            elif isinstance(outcome, Impossible):
                used = self._in_use.of(node)
                if used != FREE and isinstance(self.attempts.attempt(node, demands, self._nothing), Chosen):
                    answer.busy.setdefault((shape, used), Tally()).add(node)
                else:
                    answer.failed.setdefault(shape, Tally()).add(node)
            else:
                answer.halted.setdefault(shape, (outcome, Tally()))[1].add(node)
        if any(isinstance(halt, Aborted) for halt, _ in answer.halted.values()):
            # An error on one node ends the attempt for the pod, whatever the others say.
            answer.candidates.clear()
        return answer

    def capacity(self, plan: PodPlan) -> Capacity:
        """Fill the fleet with such pods."""
        capacity = self._capacities.get(plan.search_key)
        if capacity is None:
            if any(entry.shared for entry in plan.entries):
                capacity = self._fill_shared(plan)
            elif self._shared.are_there:
                capacity = self._fill_in_order(plan)
            else:
                capacity = self._fill_nodes(plan)
            self._capacities[plan.search_key] = capacity
        return capacity

    def _fill_nodes(self, plan: PodPlan) -> Capacity:
        """Each kind of node by itself, for nothing on one node takes anything from another."""
        answer = self.answer(plan)
        kinds: Counter[tuple[Hashable, ...]] = Counter()
        first: dict[tuple[Hashable, ...], int] = {}
        for node in answer.candidates:
            kind = self._kind(plan, node)
            kinds[kind] += 1
            first.setdefault(kind, node)
        pods = 0
        halts: list[tuple[int, Halt]] = []
        for kind, count in kinds.items():
            per_node, halt = self._fill_one(plan, self.state(), [first[kind]])
            pods += per_node * count
            if halt is not None:
                halts.append((per_node, halt))
        before, halt = min(halts, key=lambda each: each[0]) if halts else (0, None)
        return Capacity(pods, pods, halt, before)

    def _fill_in_order(self, plan: PodPlan) -> Capacity:
        pods, halt = self._fill_one(plan, self.state(), self.answer(plan).candidates)
        return Capacity(pods, pods, halt, pods)

    def _fill_shared(self, plan: PodPlan) -> Capacity:
        """From each kind of first node, for the first pod decides where the claim is."""
        answer = self.answer(plan)
        eligible = [node for node, refusal in enumerate(self.refusals(plan)) if not refusal]
        seen: set[tuple[Hashable, ...]] = set()
        fills: list[tuple[int, Halt | None]] = []
        for node in answer.candidates:
            kind = self._kind(plan, node)
            if kind in seen and not self._shared.are_there:
                continue
            seen.add(kind)
            state = self.state()
            outcome = state.attempt(plan, node)
            if isinstance(outcome, Chosen):
                state.commit(plan, node, outcome)
                more, halt = self._fill_one(plan, state, eligible)
                fills.append((more + 1, halt))
        if not fills:
            return Capacity(0, 0)
        before, halt = next(
            ((pods, halt) for pods, halt in sorted(fills, key=lambda each: each[0]) if halt), (0, None)
        )
        return Capacity(max(pods for pods, _ in fills), min(pods for pods, _ in fills), halt, before)

    def _kind(self, plan: PodPlan, node: int) -> tuple[Hashable, ...]:
        """Equal for nodes that take the same pods."""
        shape = self.attempts.shapes(_demands(plan)).numbers[node]
        return shape, id(self.amounts[node]), self._in_use.of(node)

    def _fill_one(self, plan: PodPlan, state: ClusterState, nodes: Sequence[int]) -> tuple[int, Halt | None]:
        """Place pods one by one, each on the first of the nodes that takes it, until none does."""
        pods, start = 0, 0
        left = state.nodes_for(plan)
        while pods < PODS_LIMIT:
            while start < len(nodes):
                if left is None or nodes[start] in left:
                    outcome = state.attempt(plan, nodes[start])
                    if isinstance(outcome, Chosen):
                        break
                    if not isinstance(outcome, Impossible):
                        return pods, outcome
                # What a node refuses once it refuses for good: a fleet only fills up.
                start += 1
            else:
                return pods, None
            state.commit(plan, nodes[start], outcome)
            pods += 1
            left = state.nodes_for(plan)
        return pods, None


def _demands(plan: PodPlan) -> tuple[Demand, ...]:
    return tuple(entry.demand for entry in plan.entries)
