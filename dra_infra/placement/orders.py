"""Orders of arrival, played through the allocator: which pods a platform ends with, and which wait.

An order is a list of arrivals, each with the node that the pod is put on. It counts only when the allocator takes each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement.cluster_state import ClusterState
from dra_infra.placement.demand import PodPlan
from dra_infra.placement.fillings import EqualPods, Halted, find_interchangeable
from dra_infra.placement.free_fleet import FirstFit, FreeFleet
from dra_infra.placement.outcomes import Aborted, Chosen, NotDecided
from dra_infra.placement.placement import Order

STATES_LIMIT: Final = 20_000
"""States of a platform before the walk through all of them is given up."""
NODES_LIMIT: Final = 200_000
"""Nodes of all states of a walk together, which is what it costs; a limit of time would make the answer a matter of the machine."""
_TRIES: Final = 8
"""Orders that are tried, or kinds of pods for which they are."""


@dataclass(slots=True)
class _Waiting:
    owner: ObjectRef
    plan: PodPlan
    pods: int


class Player:
    """Plays an order: pods arrive at nodes that are named, then all others at the first node that takes them.

    Args:
        free: The fleet.
        pods: All pods.
    """

    def __init__(self, free: FreeFleet, pods: Sequence[EqualPods]) -> None:
        self._free = free
        self._pods = pods
        self._fit = FirstFit(free)
        self._waiting = [[_Waiting(*member) for member in each.members] for each in pods]
        self._done: list[set[int]] = [set() for _ in pods]
        self._arrived: list[tuple[ObjectRef, int]] = []

    def arrive(self, which: int, node: int) -> bool:
        """Put one of the equal pods *which* on a node; false when the node does not take it."""
        if self._pods[which].on_each and node in self._done[which]:
            return False
        state = self._fit.state
        tried: set[Hashable] = set()
        for waiting in self._waiting[which]:
            key = self._free.key_of(waiting.plan), waiting.plan.shape.key
            if key in tried:
                continue
            tried.add(key)
            if not _is_open(self._free, state, waiting.plan, node):
                continue
            outcome = state.attempt(waiting.plan, node)
            if isinstance(outcome, Chosen):
                state.commit(waiting.plan, node, outcome)
                self._note(which, waiting, node)
                return True
        return False

    def crowd(self, by: Sequence[int], node: int, plan: PodPlan) -> None:
        """Put pods of the numbers *by* on a node for as long as it would take one of the plan."""
        state = self._fit.state
        for which in by:
            while self._waiting[which] and isinstance(state.attempt(plan, node), Chosen):
                if not self.arrive(which, node):
                    break

    def finish(self) -> Order:
        """Let all others arrive, in order, until none of those that wait finds a node."""
        progress = True
        while progress:
            # Pods that want to be near others find a node behind these.
            progress = sum(self._place_all(which) for which in range(len(self._pods))) > 0
        return self.stop()

    def stop(self) -> Order:
        """Return the order with the pods that have arrived so far; all others wait."""
        nodes = self._free.cluster.nodes
        return Order.of(
            ((owner, nodes[node].name) for owner, node in self._arrived),
            [(each.owner, each.pods) for group in self._waiting for each in group],
        )

    def _place_all(self, which: int) -> int:
        """Let equal pods arrive as long as one finds a node; how many did."""
        before = len(self._arrived)
        if self._pods[which].on_each:
            for node in range(len(self._free.cluster.nodes)):
                if self._waiting[which] and node not in self._done[which]:
                    self.arrive(which, node)
        else:
            # Those that count as equal may differ in amounts, so one that waits says nothing of the next.
            for each in list(self._waiting[which]):
                while each.pods and (placed := self._fit.place(each.plan)):
                    self._note(which, each, placed.node)
        return len(self._arrived) - before

    def _note(self, which: int, waiting: _Waiting, node: int) -> None:
        self._arrived.append((waiting.owner, node))
        self._done[which].add(node)
        waiting.pods -= 1
        if not waiting.pods:
            self._waiting[which].remove(waiting)


def find_full(free: FreeFleet, pods: Sequence[EqualPods], order: Order) -> Order | None:
    """An order that places all pods, of those in which pods come first that waited in the one before."""
    for _ in range(_TRIES):
        waiting = {owner for owner, _ in order.pending}
        pods = sorted(pods, key=lambda each: all(owner not in waiting for owner, _, _ in each.members))
        order = Player(free, pods).finish()
        if not order.pending:
            return order
    return None


def find_short(free: FreeFleet, pods: Sequence[EqualPods]) -> Order | None:
    """An order that leaves a pod pending, of those in which others are spread over the nodes before pods of one kind come.

    The others come kind after kind, or one of each to every node, which leaves different gaps in partitioned devices.
    """
    for last in sorted(range(len(pods)), key=lambda each: pods[each].count)[:_TRIES]:
        others = [which for which, each in enumerate(pods) if which != last and not each.on_each]
        by_kind = [which for which in others for _ in range(pods[which].count)]
        rounds = range(max((pods[which].count for which in others), default=0))
        in_turn = [which for number in rounds for which in others if number < pods[which].count]
        for arrivals, step in ((by_kind, 1), (in_turn, len(others))):
            order = _spread(free, pods, arrivals, step)
            if order.pending:
                return order
    return None


def _spread(free: FreeFleet, pods: Sequence[EqualPods], arrivals: Sequence[int], step: int) -> Order:
    """Play arrivals, so many in turn on each node that takes them, and then all other pods."""
    player = Player(free, pods)
    nodes = len(free.cluster.nodes)
    full: set[int] = set()
    for number, which in enumerate(arrivals):
        if which not in full and not any(
            player.arrive(which, (number // step + more) % nodes) for more in range(nodes)
        ):
            full.add(which)
    return player.finish()


@dataclass(slots=True)
class Ends:
    """The ends that a walk through the states of a platform came to.

    Args:
        full: An order with which all pods find a node.
        short: One with which a pod waits at the end.
        states: How many states were seen.
        is_complete: All states were seen.
        halted: Why the walk came to no end.
    """

    full: Order | None = None
    short: Order | None = None
    states: int = 0
    is_complete: bool = False
    halted: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """A state of the platform.

    Args:
        state: The state.
        left: How many of each of the equal pods still wait.
        on: How many of each are on each node.
        arrivals: Numbers of equal pods and nodes, in an order that leads here.
        looks: A number for each node, equal for nodes with the same on them.
    """

    state: ClusterState
    left: tuple[int, ...]
    on: tuple[tuple[int, ...], ...]
    arrivals: tuple[tuple[int, int], ...]
    looks: tuple[int, ...]


class _Walk:
    def __init__(self, free: FreeFleet, pods: Sequence[EqualPods]) -> None:
        self._free = free
        self._pods = pods
        self._alike = find_interchangeable(free, pods)
        self._looks: dict[Hashable, int] = {}
        self.limit = min(STATES_LIMIT, NODES_LIMIT // max(len(free.cluster.nodes), 1))

    def start(self) -> _Place:
        state = self._free.state()
        nothing = (0,) * len(self._pods)
        nodes = range(len(self._free.cluster.nodes))
        looks = tuple(self._look(state, nothing, node) for node in nodes)
        return _Place(state, tuple(each.count for each in self._pods), (nothing,) * len(nodes), (), looks)

    def key(self, place: _Place) -> Hashable:
        """Equal for states that differ only in which of the nodes that are interchangeable is which."""
        return tuple(tuple(sorted([place.looks[node] for node in nodes])) for nodes in self._alike)

    def moves(self, place: _Place) -> Iterator[_Place | Halted]:
        """The states after one more pod, on one of the nodes that are interchangeable and have the same on them."""
        firsts = [
            node
            for nodes in self._alike
            for node in {place.looks[node]: node for node in reversed(nodes)}.values()
        ]
        for which, each in enumerate(self._pods):
            outcomes = {
                node: place.state.attempt(each.plan, node)
                for node in (firsts if place.left[which] else ())
                if not (each.on_each and place.on[node][which])
                and _is_open(self._free, place.state, each.plan, node)
            }
            if not each.on_each and any(isinstance(outcome, Aborted) for outcome in outcomes.values()):
                # An error on one node ends the attempt for the pod, whatever the others say, until another pod is placed.
                continue
            for node, outcome in outcomes.items():
                if isinstance(outcome, Chosen):
                    state = place.state.fork()
                    state.commit(each.plan, node, outcome)
                    yield self._with_pod(place, which, node, state)
                elif isinstance(outcome, NotDecided):
                    yield Halted(f"the attempt of {each} is not decided on a node")

    def _with_pod(self, place: _Place, which: int, node: int, state: ClusterState) -> _Place:
        left = tuple(count - (number == which) for number, count in enumerate(place.left))
        counts = tuple(count + (number == which) for number, count in enumerate(place.on[node]))
        on = (*place.on[:node], counts, *place.on[node + 1 :])
        # A pool that several nodes see changes what all of them have left.
        changed = range(len(on)) if self._free.in_use.is_shared else (node,)
        looks = list(place.looks)
        for each in changed:
            looks[each] = self._look(state, on[each], each)
        return _Place(state, left, on, (*place.arrivals, (which, node)), tuple(looks))

    def _look(self, state: ClusterState, on: tuple[int, ...], node: int) -> int:
        return self._looks.setdefault((on, state.key_of(node), state.claims_key(node)), len(self._looks))


def walk(free: FreeFleet, pods: Sequence[EqualPods], is_late: Callable[[], bool]) -> Ends:
    """Walk through the states of a platform until an end of either kind is known, or all states are."""
    found = Ends()
    way = _Walk(free, pods)
    stack = [way.start()]
    seen = {way.key(stack[0])}
    while stack and not (found.full and found.short):
        found.states = len(seen)
        if len(seen) > way.limit or is_late():
            return found
        place = stack.pop()
        moved = False
        for after in way.moves(place):
            if isinstance(after, Halted):
                found.halted = after.why
                return found
            moved = True
            key = way.key(after)
            if key not in seen:
                seen.add(key)
                stack.append(after)
        if not moved and any(place.left):
            found.short = found.short or _replay(free, pods, place)
        elif not moved:
            found.full = found.full or _replay(free, pods, place)
    found.states = len(seen)
    found.is_complete = not stack
    return found


def _is_open(free: FreeFleet, state: ClusterState, plan: PodPlan, node: int) -> bool:
    """The filters of the node, other pods and shared claims let the pod go there."""
    if free.refusals(plan)[node]:
        return False
    left = state.nodes_for(plan)
    return (left is None or node in left) and any(True for _ in state.open_nodes(plan, [node]))


def _replay(free: FreeFleet, pods: Sequence[EqualPods], place: _Place) -> Order:
    player = Player(free, pods)
    for which, node in place.arrivals:
        player.arrive(which, node)
    # No other pod finds a node here. First fit might place one although an error on another node ends its attempt.
    return player.stop()
