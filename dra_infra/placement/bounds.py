"""Bounds for platforms of which not all states can be known: each node by itself, beside more than can come to be.

Pods without claims count as amounts that can be cut up and put on any node, and no affinity, anti-affinity, spreading, host port
or shared claim stops a pod that is in the way of others. With so much freedom there are more states than without it. What none of them
closes stays open, and pods that none of them holds never find room at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.scheduler.pod_shapes import PodShape
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
class _Asker:
    """Pods to which others may close nodes.

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

    asker: _Asker
    kinds: tuple[NodeKind, ...]
    assignment: Assignment


class Bounds:
    """Nodes by themselves, beside more than can come to be.

    Args:
        free: The fleet.
        workloads: All of them, with their plans.
        states: States of nodes, of the pods with devices as `alone` has them.
        is_tied: Pods share claims or pools, of which the states know nothing.
    """

    def __init__(
        self,
        free: FreeFleet,
        workloads: Sequence[tuple[Workload, PodPlan]],
        states: States,
        *,
        is_tied: bool,
    ) -> None:
        plans = {workload.owner: plan for workload, plan in workloads}
        self._free = free
        self._workloads = workloads
        self._is_tied = is_tied
        self.states = states
        self._totals: Counter[str] = Counter()
        plain = group_pods(free, [each for each in workloads if not has_devices(each[1])])
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
        """Why others never close all nodes to a pod; an order that leaves one pending; or none of both."""
        if self._is_tied or self._free.cluster.device_amounts:
            return None
        proofs: list[str] = []
        plays, askers = 0, list(self._find_askers())
        for asker in askers:
            found = self._prove_open(asker)
            if isinstance(found, str):
                proofs.append(found)
            elif found is not None and plays < _PLAYS:
                plays += 1
                order = self._play(found)
                if order.pending:
                    return order
        return tuple(proofs) if len(proofs) == len(askers) else None

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
            player.crowd(by, node, closing.asker.plan)
        return player.finish()

    def _find_kinds(self) -> Iterator[NodeKind]:
        """The nodes that any pod may go to, those alike together."""
        known = {node: kind.fillings for kind in self.states.kinds for node in kind.nodes}
        empty = Filling((0,) * len(self.states.pods), (), frozenset(), 0)
        for nodes in find_alike(self._free, [*self.states.pods, *self._plain]):
            yield NodeKind(nodes, known.get(nodes[0], (empty,)))

    def _find_askers(self) -> Iterator[_Asker]:
        """Pods that no others are asked for: of those that differ in amounts alone, one with the largest of each."""
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
            yield _Asker(name, plan, _pick(max, plans), _pick(min, plans), which, on_each)

    def _prove_open(self, asker: _Asker) -> str | _Closing | None:
        """Why others leave a node open to a pod; or what may close all."""
        shape = asker.plan.shape
        kinds = self._kinds_for(asker)
        blocked, apart = self._find_conflicts(asker)
        places = {*apart, *(term.topology_key for term in shape.near)}
        places |= {constraint.topology_key for constraint in shape.spread}
        if not places and (not blocked or not asker.on_each):
            return self._prove_room(asker, kinds, blocked)
        if (
            len(places) > 1
            or asker.on_each
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
                rooms[alike] = self._prove_room(asker, inside, blocked)
            open_zones += isinstance(rooms[alike], str)
        # One pod that it is kept apart from takes one place at most; the other pods have to leave all places open.
        needed = apart[key] + 1 if apart else len(zones)
        if not zones or open_zones < needed:
            return next((each for each in rooms.values() if isinstance(each, _Closing)), None)
        return f"others leave nodes open to {asker.name} in {open_zones:,} of {len(zones):,} places by {key}"

    def _prove_room(self, asker: _Asker, kinds: Sequence[NodeKind], blocked: int) -> str | _Closing | None:
        """Why others cannot close all of some nodes, of which *blocked* may be closed by ports or anti-affinity."""
        pods, which = self._count_with(asker)
        nodes = sum(len(kind.nodes) for kind in kinds)
        if not asker.on_each and nodes <= blocked:
            return None
        closed = close_nodes(kinds, pods, which, 1 if asker.on_each else nodes - blocked)
        if isinstance(closed, str):
            return None
        if closed.chosen:
            return _Closing(asker, tuple(kinds), closed)
        return (
            f"others can close at most {closed.most + blocked:,} of {count_of(nodes, 'node')} to {asker.name}"
        )

    def _kinds_for(self, asker: _Asker) -> list[NodeKind]:
        """The nodes that may take the asker, with the states in which they do and do not."""
        refused = self._free.refusals(asker.plan)
        shape = replace(asker.plan.shape, near=(), spread=(), key=f"off {asker.plan.shape.key}")
        kinds: list[NodeKind] = []
        for kind in self._kinds:
            nodes = tuple(
                node
                for node in kind.nodes
                if not refused[node] and not (self._keeps_off and self._free.running.refusal(shape, node))
            )
            if nodes:
                kinds.append(NodeKind(nodes, tuple(self._fill(asker, kind))))
        return [kind for kind in kinds if any(filling.takes for filling in kind.fillings)]

    def _fill(self, asker: _Asker, kind: NodeKind) -> Iterator[Filling]:
        """The states of a node, and what of each resource pods without claims have to take until it is closed to the asker."""
        node = kind.nodes[0]
        daemons: Counter[str] = Counter()
        for each in self._plain:
            if each.on_each and str(each) != asker.name and not self._free.refusals(each.plan)[node]:
                daemons.update(each.plan.requests)
        _, which = self._count_with(asker)
        names = list(self._totals)
        none = (0,) * (len(names) + (asker.which is None))
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
                for name, amount in asker.requests.items()
                if amount
            }
            is_closed = asker.which is not None and asker.which not in filling.takes
            if is_closed or any(amount < 0 for amount in left.values()):
                yield replace(filling, counts=(*filling.counts, *none), takes=frozenset())
                continue
            yield replace(filling, counts=(*filling.counts, *none), takes=frozenset((which,)))
            for number, name in enumerate(names):
                if name in left and left[name] < self._totals[name]:
                    crowd = list(none)
                    crowd[number] = max((left[name] + 1) // self._unit(name), 1)
                    yield replace(filling, counts=(*filling.counts, *crowd), takes=frozenset())

    def _count_with(self, asker: _Asker) -> tuple[list[EqualPods], int]:
        """What is counted: the pods with devices, amounts of those without, the asker if it is one; and its number."""
        amounts = dict(self._totals)
        if asker.which is None and not asker.on_each:
            amounts = {name: amount - asker.spared.get(name, 0) for name, amount in amounts.items()}
        plain = ObjectRef(kind="Pod", name=asker.name)
        crowd = [
            EqualPods(
                replace(asker.plan, entries=(), extended=None, requests={name: self._unit(name)}),
                ((plain, asker.plan, -(-amount // self._unit(name))),),
            )
            for name, amount in amounts.items()
        ]
        own = EqualPods(asker.plan, ((plain, asker.plan, 1),), asker.on_each)
        pods = [*self.states.pods, *crowd]
        return (pods, asker.which) if asker.which is not None else ([*pods, own], len(pods))

    def _unit(self, name: str) -> int:
        return -(-self._totals[name] // _UNITS) or 1

    def _find_conflicts(self, asker: _Asker) -> tuple[int, Counter[str]]:
        """How many other pods may keep the asker off a node each, and off a place each, by topology key."""
        blocked, apart = 0, Counter[str]()
        shape, namespaces = asker.plan.shape, self._free.namespaces
        names = [node.labels.get(HOSTNAME) for node in self._free.cluster.nodes]
        is_own = len(set(names)) == len(names)
        itself = 0 if asker.on_each else 1
        for workload, plan in self._workloads if self._keeps_off else ():
            other = plan.shape
            number = len(names) if workload.replicas is None else workload.replicas
            if other == shape and number:
                number, itself = number - itself, 0
            keys = {
                *(term.topology_key for term in shape.apart if term.matches(other, namespaces)),
                *(term.topology_key for term in other.apart if term.matches(shape, namespaces)),
            }
            if any(mine.conflicts(its) for mine in shape.ports for its in other.ports):
                keys.add(HOSTNAME)
            if asker.on_each and other == shape and keys <= {HOSTNAME}:
                continue
            for key in keys:
                if key == HOSTNAME and is_own:
                    blocked += number
                else:
                    apart[key] += number
        return blocked, apart

    def _has_near(self, shape: PodShape) -> bool:
        """There are pods that the only term of affinity names, and that wait for nobody; or it names the pod itself."""
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
    """Nodes by themselves, for workloads whose pods hang together, or of which some have no claims.

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
        if not has_devices(plan):
            continue
        entries = tuple(each for each in plan.entries if not each.shared or users[each.object] < 2)
        is_tied = is_tied or len(entries) < len(plan.entries)
        own = replace(plan.shape, near=(), apart=(), spread=(), ports=(), key=f"alone {plan.shape.key}")
        alone.append((workload, replace(plan, entries=entries, shape=own if keeps else _ALONE)))
    states = find_states(free, alone, is_late, limit, may_cut=may_cut)
    return states if isinstance(states, Halted) else Bounds(free, workloads, states, is_tied=is_tied)


def has_devices(plan: PodPlan) -> bool:
    """True for pods that ask for devices, by claims or extended resources."""
    return bool(plan.entries or plan.extended)


def _pick(pick: Callable[[Iterable[int]], int], plans: Sequence[PodPlan]) -> dict[str, int]:
    """The most or least that one of the pods takes of each resource of a node."""
    names = {name for plan in plans for name in plan.requests}
    return {name: pick(plan.requests.get(name, 0) for plan in plans) for name in names}
