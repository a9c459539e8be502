"""Bounds by counting one thing that pods need: devices, a resource of nodes, room for a pod, or a weight per pod.

They prove without a search, in numbers that a reader can add up: that pods never find room at once, or that others can
never close all nodes to a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dra_infra.output.wording import compress_names
from dra_infra.placement.fillings import EqualPods, Filling, NodeKind
from dra_infra.placement.free_fleet import FreeFleet
from dra_infra.placement.placement import Shortage

_SHOWN_NODES: Final = 3
"""Names of nodes, or ranges of them, that a proof shows."""


@dataclass(frozen=True, slots=True)
class Need:
    """Something that is counted.

    Args:
        name: `devices`, `pods`, or a resource of nodes.
        amounts: What each of the equal pods needs of it.
    """

    name: str
    amounts: tuple[int, ...]

    def asked(self, pods: Sequence[EqualPods]) -> int:
        """Sums what all pods need."""
        return sum(amount * each.count for amount, each in zip(self.amounts, pods, strict=True))

    def held(self, filling: Filling) -> int:
        """Sums what the pods of a filling need."""
        return sum(amount * count for amount, count in zip(self.amounts, filling.counts, strict=True))

    def most(self, kinds: Sequence[NodeKind]) -> int:
        """The most that pods on all nodes can have at once."""
        return sum(len(kind.nodes) * max(map(self.held, kind.fillings)) for kind in kinds)

    def only_for(self, which: frozenset[int]) -> Need:
        """Counts only some of the pods."""
        return Need(
            self.name, tuple(each if number in which else 0 for number, each in enumerate(self.amounts))
        )


def prove_too_little(free: FreeFleet, pods: Sequence[EqualPods]) -> Shortage | None:
    """A resource of which nodes have too little for the fewest pods that prove it, whatever else decides; None where they have enough."""
    if free.cluster.device_amounts:
        return None
    alike: dict[tuple[bool, ...], list[int]] = {}
    refusals = {each.plan.filter_key: free.refusals(each.plan) for each in pods}
    for node, refused in enumerate(zip(*refusals.values(), strict=True)):
        alike.setdefault(tuple(map(bool, refused)), []).append(node)
    where = {
        key: frozenset(kind for kind, refused in enumerate(alike) if not refused[which])
        for which, key in enumerate(refusals)
    }
    goes_to = [where[each.plan.filter_key] for each in pods]
    # Of extended resources it depends on the node whether it gives them, or devices do.
    for name in sorted({name for each in pods for name in each.plan.requests if "/" not in name}):
        need = Need(name, tuple(each.plan.requests.get(name, 0) for each in pods))
        there = [sum(free.amounts[node].get(name, 0) for node in nodes) for nodes in alike.values()]

        def give(group: frozenset[int], there: Sequence[int] = there) -> list[int]:
            kinds = frozenset().union(*(goes_to[which] for which in group))
            return [amount if kind in kinds else 0 for kind, amount in enumerate(there)]

        if short := _find_short(free, pods, need, goes_to, list(alike.values()), give):
            return short
    return None


def find_needs(kinds: Sequence[NodeKind], pods: Sequence[EqualPods]) -> list[Need]:
    """Lists what can be counted, in the order in which it is told."""
    alone = [
        min(
            (each.devices for kind in kinds for each in kind.fillings if each.arrivals == (which,)), default=0
        )
        for which in range(len(pods))
    ]
    resources = sorted({name for each in pods for name in each.plan.requests} - {"pods"})
    return [
        Need("devices", tuple(alone)),
        *(Need(name, tuple(each.plan.requests.get(name, 0) for each in pods)) for name in resources),
        Need("pods", (1,) * len(pods)),
    ]


def prove_never(
    free: FreeFleet, kinds: Sequence[NodeKind], pods: Sequence[EqualPods]
) -> tuple[Shortage, ...]:
    """Lists what is short, each thing once, for the fewest pods that prove it; empty when counting proves nothing.

    Tried are each pod by itself, those that can only go where one of them can (Hall's condition), those that compete for nodes
    with each other, directly or by others, and all. Of equally few kinds of pods the fewest pods are told.
    """
    goes_to = [
        frozenset(number for number, kind in enumerate(kinds) if is_open(kind, which))
        for which in range(len(pods))
    ]
    nodes = [kind.nodes for kind in kinds]
    short: dict[str, Shortage] = {}
    for need in find_needs(kinds, pods):

        def give(group: frozenset[int], need: Need = need) -> list[int]:
            held = need.only_for(group).held
            return [len(kind.nodes) * max(map(held, kind.fillings)) for kind in kinds]

        if found := _find_short(free, pods, need, goes_to, nodes, give):
            short[need.name] = found
    # That nodes hold too few pods follows from what these take; it says something only where nothing else is short.
    return tuple(each for each in short.values() if each.what != "pods") or tuple(short.values())


def _find_short(
    free: FreeFleet,
    pods: Sequence[EqualPods],
    need: Need,
    goes_to: Sequence[frozenset[int]],
    nodes: Sequence[Sequence[int]],
    give: Callable[[frozenset[int]], Sequence[int]],
) -> Shortage | None:
    """The shortage of the fewest pods that ask for more than each kind of *nodes* can *give* them; None where there is none."""
    groups = [frozenset(range(len(pods))), *_find_rivals(goes_to)]
    groups += [
        frozenset(which for which, where in enumerate(goes_to) if where <= most)
        for most in dict.fromkeys(goes_to)
    ]
    groups += [frozenset((which,)) for which in range(len(pods))]
    asking = frozenset(which for which, amount in enumerate(need.amounts) if amount)
    tried = dict.fromkeys(group & asking for group in groups)
    for group in sorted(tried, key=lambda each: (len(each), sum(pods[which].count for which in each))):
        asked = need.only_for(group).asked(pods)
        given = give(group)
        if asked > sum(given):
            serving = frozenset(kind for kind, amount in enumerate(given) if amount)
            where = [node for kind in sorted(serving) for node in nodes[kind]]
            return Shortage(
                what=need.name,
                asked=asked,
                there=sum(given),
                nodes=len(where),
                where=_show_nodes(free, where),
                by=tuple(
                    (str(owner), need.amounts[which] * number)
                    for which in sorted(group)
                    for owner, _, number in pods[which].members
                ),
                beside=tuple(
                    str(owner)
                    for which in sorted(asking - group)
                    if not serving.isdisjoint(goes_to[which])
                    for owner, _, _ in pods[which].members
                ),
            )
    return None


def _find_rivals(goes_to: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """The equal pods that compete for nodes, directly or by others."""
    found: list[tuple[frozenset[int], frozenset[int]]] = []
    for which, where in enumerate(goes_to):
        joined = [each for each in found if each[1] & where]
        found = [each for each in found if not each[1] & where]
        found.append(
            (
                frozenset((which,)).union(*(each for each, _ in joined)),
                where.union(*(each for _, each in joined)),
            )
        )
    return [each for each, _ in found]


def _show_nodes(free: FreeFleet, nodes: Sequence[int]) -> str:
    """The names of nodes, in the order of the fleet."""
    names = [free.cluster.nodes[node].name for node in sorted(nodes)]
    return compress_names(names, most=_SHOWN_NODES, of_nodes=True)


def is_open(kind: NodeKind, which: int) -> bool:
    """True where such nodes take any of the equal pods *which*."""
    return any(which in filling.takes for filling in kind.fillings)


def find_closings(kind: NodeKind, pods: Sequence[EqualPods], which: int) -> tuple[Filling, ...]:
    """The states in which a node takes no more of the equal pods *which*."""
    return tuple(
        filling
        for filling in kind.fillings
        # A DaemonSet's pod that is on its node waits for nothing.
        if which not in filling.takes and not (pods[which].on_each and filling.counts[which])
    )


def find_possible_closings(kind: NodeKind, pods: Sequence[EqualPods], which: int) -> tuple[Filling, ...]:
    """The same, and the last states that are known: any state behind one of them has its pods and more."""
    last = (each for each in kind.fillings if each.is_last and which in each.takes)
    return (*find_closings(kind, pods, which), *last)


def bound_closed(kinds: Sequence[NodeKind], pods: Sequence[EqualPods], which: int) -> int:
    """An upper bound of how many nodes others can close to one more of the equal pods *which*."""
    closings = [
        (len(kind.nodes), found)
        for kind in kinds
        if is_open(kind, which) and (found := find_possible_closings(kind, pods, which))
    ]
    bounds: list[int] = []
    for need in find_needs(kinds, pods):
        left = need.asked(pods) - need.amounts[which]
        closed = 0
        for cost, nodes in sorted((min(map(need.held, found)), nodes) for nodes, found in closings):
            number = min(nodes, left // cost) if cost else nodes
            closed += number
            left -= number * cost
        bounds.append(closed)
    return min(bounds)


def try_closing(
    kinds: Sequence[NodeKind], pods: Sequence[EqualPods], which: int
) -> list[tuple[tuple[Filling, int], ...]] | None:
    """Fillings that close all nodes to one more of the equal pods *which*, the cheapest first; None when these do not."""
    for need in find_needs(kinds, pods):
        left = [each.count - (number == which) for number, each in enumerate(pods)]
        chosen: list[tuple[tuple[Filling, int], ...]] = []
        for kind in kinds:
            nodes = len(kind.nodes)
            used = []
            found = find_closings(kind, pods, which) if is_open(kind, which) else ()
            for filling in sorted(found, key=lambda each: (need.held(each), len(each.arrivals))):
                fits = [left[number] // each for number, each in enumerate(filling.counts) if each]
                number = min([nodes, *fits])
                if number:
                    used.append((filling, number))
                    nodes -= number
                    left = [have - number * each for have, each in zip(left, filling.counts, strict=True)]
            if is_open(kind, which) and nodes and not pods[which].on_each:
                break
            chosen.append(tuple(used[:1] if pods[which].on_each else used))
        else:
            if any(chosen):
                return chosen
    return None
