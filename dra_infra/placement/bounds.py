"""Bounds for platforms of which not all states can be known: each node is judged by itself, with more states than it can have.

Pods without claims count as amounts that can be cut up and put on any node, and no affinity, anti-affinity, spreading, host port
or shared claim stops a pod that is in the way of others. With so much freedom there are more states than without it. A node that
none of them closes to a pod stays open to it, and pods that none of them holds never find room at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.kubernetes.scheduler import PodShape
from dra_infra.output.wording import count_of
from dra_infra.placement.demand import PodPlan, Workload
from dra_infra.placement.fillings import (
    HOSTNAME,
    EqualPods,
    Filling,
    Halted,
    NodeKind,
    States,
    count_users,
    find_alike,
    find_states,
    group_pods,
    is_hostname_unique,
)
from dra_infra.placement.free_fleet import FreeFleet
from dra_infra.placement.integer_programs import Assignment, close_nodes
from dra_infra.placement.orders import Player
from dra_infra.placement.placement import Order

_UNITS: Final = 1_000_000
"""Amounts of a resource are counted in so many parts at most, for programs are solved in floating point."""
_PLAYS: Final = 8
"""Orders that are played in search of one that leaves a pod pending."""
_ALONE: Final = PodShape(key="alone", namespace="", labels={})


@dataclass(frozen=True, slots=True)
class _Last:
    """Pods that arrive last, when others may have closed all nodes to them.

    Args:
        name: What they are called.
        plan: Of one of them.
        requests: The most that one of them takes of a node.
        spared: The least that one of them takes of what all pods without claims do.
        which: Their number among the pods with devices; None for pods without.
        on_each: Whether each has a node of its own.
    """

    name: str
    plan: PodPlan
    requests: dict[str, int]
    spared: dict[str, int]
    which: int | None
    on_each: bool


@dataclass(frozen=True, slots=True)
class _Closing:
    """Fillings that may close all nodes to pods."""

    last: _Last
    kinds: tuple[NodeKind, ...]
    assignment: Assignment


class Bounds:
    """Judges platforms node by node, with more states of each node than it can have.

    Args:
        free: The fleet.
        workloads: All of them, with their plans.
        states: States of nodes, of the pods with devices as `alone` has them.
        is_tied: Pods share claims or pools, of which the states know nothing.
    """

    def __init__(
        self, free: FreeFleet, workloads: Sequence[tuple[Workload, PodPlan]], states: States, *, is_tied: bool
    ) -> None:
        plans = {workload.owner: plan for workload, plan in workloads}
        self._free = free
        self._workloads = workloads
        self._is_tied = is_tied
        self.states = states
        self._totals: Counter[str] = Counter()
        plain = group_pods(free, [each for each in workloads if not each[1].uses_devices])
        for each in plain:
            for name, amount in each.plan.requests.items() if not each.on_each else ():
                self._totals[name] += amount * each.count
        self._plain = sorted(plain, key=self._share, reverse=True)
        self.pods = [
            *(
                replace(
                    each, members=tuple((owner, plans[owner], number) for owner, _, number in each.members)
                )
                for each in states.pods
            ),
            *self._plain,
        ]
        """All pods, numbered as in the states, and then those without claims, the largest first."""
        self._most = [_pick(max, [plan for _, plan, _ in each.members]) for each in states.pods]
        self._kinds = list(self._find_kinds())
        self._keeps_off = bool(free.running.nodes) or any(
            plan.shape.apart or plan.shape.ports for plan in plans.values()
        )

    def decide(self) -> tuple[str, ...] | Order | None:
        """Why others never close all nodes to a pod, for each pod; or an order that leaves one pending; None for neither."""
        if self._is_tied or self._free.cluster.device_amounts:
            return None
        proofs: list[str] = []
        plays = 0
        all_last = list(self._find_last())
        for last in all_last:
            found = self._prove_open(last)
            if isinstance(found, str):
                proofs.append(found)
            elif found is not None and plays < _PLAYS:
                plays += 1
                order = self._play(found)
                if order.pending:
                    return order
        return tuple(proofs) if len(proofs) == len(all_last) else None

    def find_order(self) -> Order | None:
        """An order that places all pods, of those that put pods without claims first, or last, the largest first."""
        first = len(self.states.pods)
        for pods in (self.pods, [*self.pods[first:], *self.pods[:first]]):
            order = Player(self._free, pods).finish()
            if not order.pending:
                return order
        return None

    def _share(self, pods: EqualPods) -> float:
        """How much of what all pods without claims take one of these does."""
        return max(
            (amount / (self._totals[name] or 1) for name, amount in pods.plan.requests.items()), default=0
        )

    def _play(self, closing: _Closing) -> Order:
        """Play what may close all nodes to a pod: pods with devices as it has them, then those without until the node is closed."""
        player = Player(self._free, self.pods)
        first = len(self.states.pods)
        by = range(first, len(self.pods))
        arrivals: list[tuple[int, int]] = []
        crowded: list[int] = []
        for kind, chosen in zip(closing.kinds, closing.assignment.chosen, strict=True):
            nodes = iter(kind.nodes)
            for filling in (filling for filling, number in chosen for _ in range(number)):
                node = next(nodes)
                arrivals += [(which, node) for which in filling.arrivals]
                crowded += [node] if any(filling.counts[first:]) else []
        left = len(arrivals) + 1
        while len(arrivals) < left:
            # Pods that spread, or want to be near others, go there once these are there.
            left = len(arrivals)
            arrivals = [(which, node) for which, node in arrivals if not player.arrive(which, node)]
        for node in crowded:
            player.crowd(by, node, closing.last.plan)
        return player.finish()

    def _find_kinds(self) -> Iterator[NodeKind]:
        """The nodes that any pod may go to, those alike together."""
        known = {node: kind.fillings for kind in self.states.kinds for node in kind.nodes}
        empty = Filling((0,) * len(self.states.pods), (), frozenset(), 0)
        for nodes in find_alike(self._free, [*self.states.pods, *self._plain]):
            yield NodeKind(nodes, known.get(nodes[0], (empty,)))

    def _find_last(self) -> Iterator[_Last]:
        """The pods that are taken as the last ones: of those that differ in amounts alone, one with the largest of each."""
        found: dict[tuple[int | None, bool, object], list[tuple[ObjectRef, PodPlan]]] = {}
        for number, each in enumerate(self.pods):
            which = number if number < len(self.states.pods) else None
            for owner, plan, _ in each.members:
                shape = plan.shape.key if self._keeps_off or plan.shape.asks else ""
                alone = owner if each.on_each else None
                key = which, each.on_each, (plan.filter_key, alone, shape)
                found.setdefault(key, []).append((owner, plan))
        for (which, on_each, _), members in found.items():
            (first, plan), *others = members
            plans = [each for _, each in members]
            name = f"{first} and {len(others)} more" if others else str(first)
            yield _Last(name, plan, _pick(max, plans), _pick(min, plans), which, on_each)

    def _prove_open(self, last: _Last) -> str | _Closing | None:
        """Why others leave a node open to the last pod; or what may close all; None where neither is known."""
        shape = last.plan.shape
        kinds = self._kinds_for(last)
        blocked, apart = self._find_conflicts(last)
        places = {*apart, *(term.topology_key for term in shape.near)}
        places |= {constraint.topology_key for constraint in shape.spread}
        if not places and (not blocked or not last.on_each):
            return self._prove_room(last, kinds, blocked)
        if (
            len(places) > 1
            or last.on_each
            or (shape.near and (shape.spread or apart))
            or (shape.spread and apart)
        ):
            return None
        (key,) = places
        nodes = self._free.cluster.nodes
        zones = sorted({node.labels[key] for node in nodes if key in node.labels})
        if shape.near and not (self._has_near(shape) and all(key in node.labels for node in nodes)):
            return None
        if any(each.min_domains > len(zones) for each in shape.spread):
            return None
        open_zones = 0
        rooms: dict[object, str | _Closing | None] = {}
        for zone in zones:
            inside = [
                NodeKind(within, kind.fillings)
                for kind in kinds
                if (within := tuple(node for node in kind.nodes if nodes[node].labels.get(key) == zone))
            ]
            alike = tuple((id(kind.fillings), len(kind.nodes)) for kind in inside)
            if alike not in rooms:
                rooms[alike] = self._prove_room(last, inside, blocked)
            open_zones += isinstance(rooms[alike], str)
        # One pod that it is kept apart from takes one place at most; the other pods have to leave all places open.
        needed = apart[key] + 1 if apart else len(zones)
        if not zones or open_zones < needed:
            return next((each for each in rooms.values() if isinstance(each, _Closing)), None)
        return f"others leave nodes open to {last.name} in {open_zones:,} of {len(zones):,} places by {key}"

    def _prove_room(self, last: _Last, kinds: Sequence[NodeKind], blocked: int) -> str | _Closing | None:
        """Why others cannot close all of some nodes, of which *blocked* may be closed by ports or anti-affinity."""
        pods, which = self._count_with(last)
        nodes = sum(len(kind.nodes) for kind in kinds)
        if not last.on_each and nodes <= blocked:
            return None
        closed = close_nodes(kinds, pods, which, 1 if last.on_each else nodes - blocked)
        if isinstance(closed, str):
            return None
        if closed.chosen:
            return _Closing(last, tuple(kinds), closed)
        return (
            f"others can close at most {closed.most + blocked:,} of {count_of(nodes, 'node')} to {last.name}"
        )

    def _kinds_for(self, last: _Last) -> list[NodeKind]:
        """The nodes that may take the last pod, with the states in which they do and do not."""
        refused = self._free.refusals(last.plan)
        shape = replace(last.plan.shape, near=(), spread=(), key=f"off {last.plan.shape.key}")
        kinds: list[NodeKind] = []
        for kind in self._kinds:
            nodes = tuple(
                node
                for node in kind.nodes
                if not refused[node] and not (self._keeps_off and self._free.running.refusal(shape, node))
            )
            if nodes:
                kinds.append(NodeKind(nodes, tuple(self._fill(last, kind))))
        return [kind for kind in kinds if any(filling.takes for filling in kind.fillings)]

    def _fill(self, last: _Last, kind: NodeKind) -> Iterator[Filling]:
        """The states of a node, and what of each resource pods without claims have to take until it is closed to the last pod."""
        node = kind.nodes[0]
        daemons: Counter[str] = Counter()
        for each in self._plain:
            if each.on_each and str(each) != last.name and not self._free.refusals(each.plan)[node]:
                daemons.update(each.plan.requests)
        _, which = self._count_with(last)
        names = list(self._totals)
        none = (0,) * (len(names) + (last.which is None))
        for filling in kind.fillings:
            left = {
                name: self._free.amounts[node].get(name, 0)
                - amount
                - daemons[name]
                - sum(
                    number * each.get(name, 0)
                    for number, each in zip(filling.counts, self._most, strict=True)
                    if number
                )
                for name, amount in last.requests.items()
                if amount
            }
            is_closed = last.which is not None and last.which not in filling.takes
            if is_closed or any(amount < 0 for amount in left.values()):
                yield replace(filling, counts=(*filling.counts, *none), takes=frozenset())
                continue
            yield replace(filling, counts=(*filling.counts, *none), takes=frozenset((which,)))
            for number, name in enumerate(names):
                if name in left and left[name] < self._totals[name]:
                    crowd = list(none)
                    crowd[number] = max((left[name] + 1) // self._unit(name), 1)
                    yield replace(filling, counts=(*filling.counts, *crowd), takes=frozenset())

    def _count_with(self, last: _Last) -> tuple[list[EqualPods], int]:
        """What is counted: the pods with devices, amounts of those without, the last pod if it is one of these; and its number."""
        amounts = dict(self._totals)
        if last.which is None and not last.on_each:
            amounts = {name: amount - last.spared.get(name, 0) for name, amount in amounts.items()}
        plain = ObjectRef(kind="Pod", name=last.name)
        crowd = [
            EqualPods(
                replace(last.plan, entries=(), extended=None, requests={name: self._unit(name)}),
                ((plain, last.plan, -(-amount // self._unit(name))),),
            )
            for name, amount in amounts.items()
        ]
        own = EqualPods(last.plan, ((plain, last.plan, 1),), last.on_each)
        pods = [*self.states.pods, *crowd]
        return (pods, last.which) if last.which is not None else ([*pods, own], len(pods))

    def _unit(self, name: str) -> int:
        return -(-self._totals[name] // _UNITS) or 1

    def _find_conflicts(self, last: _Last) -> tuple[int, Counter[str]]:
        """How many other pods may keep the last one off a node each, and off a place each, by topology key."""
        blocked = 0
        apart = Counter[str]()
        shape = last.plan.shape
        namespaces = self._free.namespaces
        is_own = is_hostname_unique(self._free)
        itself = 0 if last.on_each else 1
        for workload, plan in self._workloads if self._keeps_off else ():
            other = plan.shape
            number = len(self._free.cluster.nodes) if workload.replicas is None else workload.replicas
            if other == shape and number:
                number = number - itself
                itself = 0
            keys = {
                *(term.topology_key for term in shape.apart if term.matches(other, namespaces)),
                *(term.topology_key for term in other.apart if term.matches(shape, namespaces)),
            }
            if any(mine.conflicts(its) for mine in shape.ports for its in other.ports):
                keys.add(HOSTNAME)
            if last.on_each and other == shape and keys <= {HOSTNAME}:
                continue
            for key in keys:
                if key == HOSTNAME and is_own:
                    blocked += number
                else:
                    apart[key] += number
        return blocked, apart

    def _has_near(self, shape: PodShape) -> bool:
        """True where pods that wait for nobody are named by the only term of affinity, or it names the pod itself."""
        if len(shape.near) > 1:
            return False
        (term,) = shape.near
        others = (
            plan.shape for workload, plan in self._workloads if workload.replicas and not plan.shape.near
        )
        candidates: Iterable[PodShape] = (shape, *others)
        return self._free.running.has_near(shape) or any(
            term.matches(each, self._free.namespaces) for each in candidates
        )


def find_bounds(
    free: FreeFleet,
    workloads: Sequence[tuple[Workload, PodPlan]],
    is_late: Callable[[], bool],
    limit: int,
    *,
    may_cut: bool,
) -> Bounds | Halted:
    """The bounds for workloads whose pods hang together over nodes, or of which some have no claims; or why there are none.

    Args:
        free: The fleet.
        workloads: All of them, with their plans.
        is_late: Asked now and then; once true, nothing more is looked for.
        limit: How many states of nodes are looked for.
        may_cut: Those with few pods do, where there are more.
    """
    users = count_users(workloads)
    keeps = bool(free.running.apart_keys)
    alone: list[tuple[Workload, PodPlan]] = []
    is_tied = free.in_use.is_shared
    for workload, plan in workloads:
        if not plan.uses_devices:
            continue
        entries = tuple(each for each in plan.entries if not each.shared or users[each.object] < 2)
        if len(entries) < len(plan.entries):
            is_tied = True
            if free.may_abort_anywhere(plan):
                # The states below do not have the shared claims, so they do not show such an error.
                why = f"an error on a device may end the attempt of {workload.owner}, which shares a claim"
                return Halted(why, is_aborted=True)
        own = replace(plan.shape, near=(), apart=(), spread=(), ports=(), key=f"alone {plan.shape.key}")
        alone.append((workload, replace(plan, entries=entries, shape=own if keeps else _ALONE)))
    states = find_states(free, alone, is_late, limit, may_cut=may_cut)
    return states if isinstance(states, Halted) else Bounds(free, workloads, states, is_tied=is_tied)


def _pick(pick: Callable[[Iterable[int]], int], plans: Sequence[PodPlan]) -> dict[str, int]:
    """The most or least that one of the pods takes of each resource of a node."""
    names = {name for plan in plans for name in plan.requests}
    return {name: pick(plan.requests.get(name, 0) for plan in plans) for name in names}
