"""One workload on the otherwise free fleet: which nodes can take a pod, why not the others, and how many fit.

First fit fills a fleet with the pods of several workloads, each on the first node in order that takes it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dra_infra.explanation.node_reasons import NodeReason
from dra_infra.kubernetes.api import Amounts, Namespaces
from dra_infra.kubernetes.scheduler import NOTHING_TAKEN, PlacedPods, Taken, find_shortage, show_amount
from dra_infra.placement.cluster import Cluster
from dra_infra.placement.cluster_state import FREE, Attempts, ClusterState, InUse, SharedPools, choose
from dra_infra.placement.demand import Demand, PodPlan, Workload
from dra_infra.placement.outcomes import Aborted, Chosen, Halt, Impossible, Outcome
from dra_infra.placement.placement import NodePlacement


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
    """The nodes for one pod while nothing else runs: those that can take it, and the others by what refuses it.

    Args:
        taking: Nodes with room and devices for it, in order.
        refused: Nodes that the filters refuse, by text.
        apart: Nodes from which running pods keep it off, by text.
        short: Nodes with too little of a resource, by resource and what the node has.
        failed: Nodes without a choice of devices, by the devices that are asked for there and the shape.
        busy: Nodes that may do when less is in use, by the same and what is.
        costly: Nodes with too little for the devices that the pod would get there, by text.
        halted: Nodes at which the answer ends, by shape.
    """

    taking: list[int] = field(default_factory=list)
    refused: dict[str, Tally] = field(default_factory=dict)
    apart: dict[str, Tally] = field(default_factory=dict)
    short: dict[tuple[str, int], Tally] = field(default_factory=dict)
    failed: dict[Hashable, Tally] = field(default_factory=dict)
    busy: dict[Hashable, Tally] = field(default_factory=dict)
    costly: dict[str, Tally] = field(default_factory=dict)
    halted: dict[Hashable, tuple[Halt, Tally]] = field(default_factory=dict)

    @property
    def is_aborted(self) -> bool:
        """True where an error on a node ends the attempt of a pod that may go to several nodes."""
        return any(isinstance(halt, Aborted) for halt, _ in self.halted.values())

    @property
    def candidates(self) -> Sequence[int]:
        """Nodes that can take a pod which may go to several nodes; none if an error on one of them ends the attempt."""
        return () if self.is_aborted else self.taking

    @property
    def eligible(self) -> int:
        """How many nodes the filters let through."""
        return (
            len(self.taking)
            + sum(tally.count for group in self._left_out for tally in group.values())
            + sum(tally.count for _, tally in self.halted.values())
        )

    @property
    def _left_out(self) -> tuple[Mapping[Any, Tally], ...]:
        return self.apart, self.short, self.failed, self.busy, self.costly


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


PODS_LIMIT = 10_000
"""Pods are counted up to here where they are placed one by one."""


class FreeFleet:
    """Answers for single workloads, equal questions once.

    Args:
        cluster: The cluster.
        taken: What is not free of it.
        namespaces: For affinity terms that select namespaces.
        keeps_off: Whether pods that are to be placed keep others off by required anti-affinity.
    """

    def __init__(
        self,
        cluster: Cluster,
        taken: Taken = NOTHING_TAKEN,
        namespaces: Namespaces | None = None,
        *,
        keeps_off: bool = False,
    ) -> None:
        self.cluster = cluster
        self.attempts = Attempts(cluster)
        self._shared = SharedPools(cluster)
        self._in_use = InUse(cluster, self._shared, taken.state)
        self._nothing = InUse(cluster, self._shared, NOTHING_TAKEN.state)
        self.amounts: list[Amounts] = [
            taken.left_of(node.name, offered)
            for node, offered in zip(cluster.nodes, cluster.offered, strict=True)
        ]
        self.namespaces = namespaces or Namespaces()
        self.running = PlacedPods(cluster.nodes, self.namespaces)
        numbers = {node.name: number for number, node in enumerate(cluster.nodes)}
        for name, shape in taken.pods or ():
            if name in numbers:
                self.running.add(shape, numbers[name])
        self._keeps_off = keeps_off or any(shape.apart for _, shape in taken.pods or ())
        self._refusals: dict[str, list[str]] = {}
        self._answers: dict[tuple[object, ...], FreeAnswer] = {}
        self._capacities: dict[tuple[object, ...], Capacity] = {}
        self._may_abort: dict[tuple[object, ...], bool] = {}

    @property
    def in_use(self) -> InUse:
        """Devices that were in use before."""
        return self._in_use

    def state(self) -> ClusterState:
        """The fleet with nothing on it but what was taken before."""
        return ClusterState(self.attempts, self.amounts, self._in_use.fork(), self.running.copy())

    def node_state(self, node: int) -> ClusterState:
        """A node as `state` has it, without what is known of the others, so that many states of it are cheap."""
        in_use = InUse(self.cluster, self._shared, self._in_use.state)
        return ClusterState(self.attempts, self.amounts, in_use, self.running.on_node(node))

    def key_of(self, plan: PodPlan) -> tuple[object, ...]:
        """Equal for pods with the same answer, now and as the fleet fills up."""
        if not plan.shape.asks and not self._keeps_off:
            return plan.search_key
        return *plan.search_key, plan.shape.key

    def may_abort(self, plan: PodPlan, node: int) -> bool:
        """True if an error on a device may end the attempt of a pod on a node, in some state of the node."""
        return self.cluster.may_abort(node, _demands(plan.at(self.cluster.offered[node])))

    def find_abort(self, state: ClusterState, plan: PodPlan, nodes: Iterable[int]) -> Aborted | None:
        """Return the error on one of the nodes that ends the attempt of a pod; None if there is none.

        The scheduler tries a pod on all nodes that its filters let through. An error on one of them ends the attempt,
        even if other nodes can take the pod.

        Args:
            state: The fleet with the pods placed so far.
            plan: The pod.
            nodes: The nodes that the pod may go to.
        """
        if not self.may_abort_anywhere(plan):
            return None
        outcomes = (state.attempt(plan, node) for node in nodes)
        return next((outcome for outcome in outcomes if isinstance(outcome, Aborted)), None)

    def may_abort_anywhere(self, plan: PodPlan) -> bool:
        """True if an error on a node may end the attempt of a pod, in some state of the node."""
        key = plan.search_key
        known = self._may_abort.get(key)
        if known is None:
            kinds = {
                self._kind(plan, node): node
                for node, refusal in enumerate(self.refusals(plan))
                if not refusal
            }
            known = self._may_abort[key] = any(self.may_abort(plan, node) for node in kinds.values())
        return known

    def attempt(self, plan: PodPlan, node: int) -> Outcome:
        """Searches a node for the claims of a pod while nothing else runs."""
        plan = plan.at(self.cluster.offered[node])
        return self.attempts.attempt(node, _demands(plan), self._in_use)

    def placement_on(self, node: int, plan: PodPlan) -> NodePlacement:
        """A pod on a node while nothing else runs, with the devices that it gets there."""
        plan = plan.at(self.cluster.offered[node])
        outcome = self.attempt(plan, node)
        picks = outcome.picks if isinstance(outcome, Chosen) else ()
        choices = []
        for number, entry in enumerate(plan.entries):
            own = [pick for pick in picks if pick.claim == number]
            choices.extend(choose(self.cluster, entry, node, own))
        return NodePlacement(node=self.cluster.nodes[node].name, devices=tuple(choices))

    def explain(self, plan: PodPlan, node: int) -> NodeReason:
        """Why a node that the filters let through has no devices for a pod."""
        plan = plan.at(self.cluster.offered[node])
        demands = _demands(plan)
        in_use = self._in_use
        if in_use.of(node) != FREE and not isinstance(
            self.attempts.attempt(node, demands, self._nothing), Chosen
        ):
            in_use = self._nothing
        return self.cluster.explain(node, demands, in_use.state, [entry.object for entry in plan.entries])

    def find_bugs(self, plan: PodPlan) -> tuple[str, ...]:
        """Return the bugs of the minor, in words, without which no node would take a pod that fits; none for one that fits without them.

        The bugs are those of the first node. The search ends at the first node that needs none, which is nearly always the first.
        """
        needed: tuple[str, ...] = ()
        asked: set[tuple[Hashable, ...]] = set()
        for node in self.answer(plan).candidates:
            kind = self._kind(plan, node)
            if kind in asked:
                continue
            asked.add(kind)
            demands = _demands(plan.at(self.cluster.offered[node]))
            bugs = self.cluster.find_bugs(node, demands, self._in_use.state)
            if not bugs:
                return ()
            needed = needed or bugs
        return needed

    def refusals(self, plan: PodPlan) -> list[str]:
        """Per node why the node filters refuse the pod, empty where they do not."""
        refusals = self._refusals.get(plan.filter_key)
        if refusals is None:
            refusals = [plan.filter.refusal(node) for node in self.cluster.nodes]
            self._refusals[plan.filter_key] = refusals
        return refusals

    def count_wanted(self, workload: Workload) -> int:
        """How many pods a workload makes; on every node that lets them in without a number, and none if its plan is not known."""
        if workload.replicas is not None:
            return workload.replicas
        return self.answer(workload.plan).eligible if isinstance(workload.plan, PodPlan) else 0

    def answer(self, plan: PodPlan) -> FreeAnswer:
        """Try one pod on every node."""
        key = self.key_of(plan)
        answer = self._answers.get(key)
        if answer is not None:
            return answer
        answer = self._answers[key] = FreeAnswer()
        is_free = self.running.is_free(plan.shape)
        for node, refusal in enumerate(self.refusals(plan)):
            if refusal:
                answer.refused.setdefault(refusal, Tally()).add(node)
                continue
            apart = "" if is_free else self.running.refusal(plan.shape, node)
            if apart:
                answer.apart.setdefault(apart, Tally()).add(node)
                continue
            self._try(answer, plan.at(self.cluster.offered[node]), node)
        return answer

    def _try(self, answer: FreeAnswer, plan: PodPlan, node: int) -> None:
        """Take note of what becomes of a pod on a node that filters and other pods let through."""
        shortage = find_shortage(plan.requests, self.amounts[node])
        if shortage:
            answer.short.setdefault((shortage, self.amounts[node].get(shortage, 0)), Tally()).add(node)
            return
        if plan.refusal:
            answer.refused.setdefault(plan.refusal, Tally()).add(node)
            return
        demands = _demands(plan)
        shape = tuple(demand.key for demand in demands), self.attempts.shapes(demands)[node]
        outcome = self.attempts.attempt(node, demands, self._in_use)
        if isinstance(outcome, Chosen):
            costs = self._find_costs(plan, node) if self.cluster.device_amounts else ""
            if costs:
                answer.costly.setdefault(costs, Tally()).add(node)
            else:
                answer.taking.append(node)
        elif isinstance(outcome, Impossible):
            used = self._in_use.of(node)
            if used != FREE and isinstance(self.attempts.attempt(node, demands, self._nothing), Chosen):
                answer.busy.setdefault((shape, used), Tally()).add(node)
            else:
                answer.failed.setdefault(shape, Tally()).add(node)
        else:
            answer.halted.setdefault(shape, (outcome, Tally()))[1].add(node)

    def _find_costs(self, plan: PodPlan, node: int) -> str:
        """Why the node is too small for the devices that the pod would get, where these count against it."""
        amounts = self.state().count_amounts(plan, node)
        if isinstance(amounts, str):
            return amounts
        short = find_shortage(amounts, self.amounts[node])
        return f"with its devices the pod takes {show_amount(short, amounts[short])} {short}" if short else ""

    def capacity(self, plan: PodPlan) -> Capacity:
        """Fill the fleet with such pods."""
        key = self.key_of(plan)
        capacity = self._capacities.get(key)
        if capacity is None:
            if any(entry.shared for entry in plan.entries):
                capacity = self._fill_shared(plan)
            elif self._shared.are_there or plan.shape.asks or not self.running.is_free(plan.shape):
                capacity = self._fill_in_order(plan)
            else:
                capacity = self._fill_nodes(plan)
            self._capacities[key] = capacity
        return capacity

    def fills_best(self, plan: PodPlan) -> bool:
        """Whether no order of such pods places more of them than each on the first node that takes it."""
        # Each pod then closes the same places, whichever come first: one node, or all with its value of one label.
        labels = {term.topology_key for term in plan.shape.apart}
        return plan.shape.only_fills and len(labels) <= 1 and not self._shared.are_there

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
        # Pods that are there may open nodes to others: by affinity, and as places fill up evenly.
        nodes = self.answer(plan).candidates
        if nodes and not plan.shape.only_fills:
            nodes = [node for node, refusal in enumerate(self.refusals(plan)) if not refusal]
        pods, halt = self._fill_one(plan, self.state(), nodes)
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
        demands = _demands(plan.at(self.cluster.offered[node]))
        shape = tuple(demand.key for demand in demands), self.attempts.shapes(demands)[node]
        return shape, id(self.amounts[node]), self._in_use.of(node)

    def _fill_one(self, plan: PodPlan, state: ClusterState, nodes: Sequence[int]) -> tuple[int, Halt | None]:
        """Place pods one by one, each on the first of the nodes that takes it, until none does."""
        pods = 0
        left = list(nodes)
        while pods < PODS_LIMIT:
            usable = state.nodes_for(plan)
            gone: set[int] = set()
            for node in state.open_nodes(plan, left):
                outcome = state.attempt(plan, node) if usable is None or node in usable else Impossible()
                if isinstance(outcome, Chosen):
                    break
                if not isinstance(outcome, Impossible):
                    return pods, outcome
                # Room and devices that are refused once are refused for good, for a fleet only fills up; and so are
                # nodes that other pods close, unless pods that come open them again.
                gone.add(node)
            else:
                return pods, None
            usable_nodes = (
                other for other in state.open_nodes(plan, left) if usable is None or other in usable
            )
            if error := self.find_abort(state, plan, usable_nodes):
                return pods, error
            state.commit(plan, node, outcome)
            pods += 1
            if plan.shape.only_fills:
                left = left[bisect_left(left, node) :]
            elif gone:
                left = [each for each in left if each not in gone]
        return pods, None


def _demands(plan: PodPlan) -> tuple[Demand, ...]:
    return tuple(entry.demand for entry in plan.entries)


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """One pod on its node.

    Args:
        node: Number of the node.
        chosen: Its devices there.
        placement: Both, as the answer shows them.
    """

    node: int
    chosen: Chosen
    placement: NodePlacement


class FirstFit:
    """Places pods on a fleet that fills up, each on the first node in order that takes it.

    Args:
        free: The fleet.
        on_attempt: Called before a node is tried.
    """

    def __init__(self, free: FreeFleet, on_attempt: Callable[[], None] = lambda: None) -> None:
        self.state = free.state()
        self._free = free
        self._on_attempt = on_attempt
        self._starts: dict[tuple[object, ...], int] = {}

    def place(self, plan: PodPlan) -> PlacedPod | None:
        """Place one pod; None when no node takes it, or a node ends the attempt."""
        refusals = self._free.refusals(plan)
        left = self.state.nodes_for(plan)
        # Claims that only this pod has are refused by a node for good once they are, for a fleet only fills up; and so
        # are pods, unless others that come make room for them.
        settled = plan.shape.only_fills and not any(entry.shared for entry in plan.entries)
        key = self._free.key_of(plan) if settled else None
        start = self._starts.get(key, 0) if key is not None else 0
        for node in self.state.open_nodes(plan, range(start, len(refusals))):
            if refusals[node] or (left is not None and node not in left):
                continue
            self._on_attempt()
            outcome = self.state.attempt(plan, node)
            if isinstance(outcome, Chosen):
                if self._free.find_abort(self.state, plan, self._open_nodes(plan)):
                    return None
                if key is not None:
                    self._starts[key] = node
                return PlacedPod(node, outcome, self.state.commit(plan, node, outcome))
            if not isinstance(outcome, Impossible):
                return None
        if key is not None:
            self._starts[key] = len(refusals)
        return None

    def _open_nodes(self, plan: PodPlan) -> Iterator[int]:
        """Yield the nodes that the filters, shared claims and other pods leave open to the pod."""
        refusals = self._free.refusals(plan)
        usable = self.state.nodes_for(plan)
        for node in self.state.open_nodes(plan, range(len(refusals))):
            if not refusals[node] and (usable is None or node in usable):
                yield node

    def place_on_each(self, plan: PodPlan) -> Iterator[PlacedPod]:
        """Place a pod of a DaemonSet on each node that takes it."""
        for node in range(len(self._free.cluster.nodes)):
            pod = self.place_at(plan, node)
            if pod is not None:
                yield pod

    def place_at(self, plan: PodPlan, node: int) -> PlacedPod | None:
        """Place one pod on this node; None when the node does not take it."""
        left = self.state.nodes_for(plan)
        if self._free.refusals(plan)[node] or (left is not None and node not in left):
            return None
        if not any(True for _ in self.state.open_nodes(plan, [node])):
            return None
        self._on_attempt()
        outcome = self.state.attempt(plan, node)
        if not isinstance(outcome, Chosen):
            return None
        return PlacedPod(node, outcome, self.state.commit(plan, node, outcome))
