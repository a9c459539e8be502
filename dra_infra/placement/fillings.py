"""Fillings: every state that pods can bring a node into, found by asking the allocator pod after pod.

Where a pod on one node changes nothing for the others, the states of a cluster are those of its nodes side by side, and
equal nodes have the same ones. Pods that the scheduler cannot tell apart are counted, not told apart here either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.kubernetes.scheduler import PodShape
from dra_infra.placement.cluster_state import ClusterState
from dra_infra.placement.demand import PodPlan, Workload
from dra_infra.placement.free_fleet import FreeFleet
from dra_infra.placement.outcomes import Aborted, Chosen, Impossible

FILLINGS_LIMIT: Final = 5_000
"""Fillings of all kinds of nodes together before they are given up, or cut short."""
TOO_MANY_STATES: Final = f"nodes have more than {FILLINGS_LIMIT:,} states"

HOSTNAME: Final = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class EqualPods:
    """Pods that the scheduler cannot tell apart.

    Args:
        plan: What each of them asks for.
        members: The workloads that they belong to, with the plan of each, which names its own claims, and the number of pods.
        on_each: One for every node that they may go to, as DaemonSets have them; the number of a member is None then.
    """

    plan: PodPlan
    members: tuple[tuple[ObjectRef, PodPlan, int], ...]
    on_each: bool = False

    @property
    def count(self) -> int:
        """Number of pods; for `on_each` that of the nodes that they may go to."""
        return sum(number for _, _, number in self.members)

    def __str__(self) -> str:
        first = str(self.members[0][0])
        return first if len(self.members) == 1 else f"{first} and {len(self.members) - 1} more"


@dataclass(frozen=True, slots=True)
class Filling:
    """One state of a node.

    Args:
        counts: How many of each of the equal pods are on it.
        arrivals: Numbers of the equal pods in an order of arrival that leads there.
        takes: Numbers of the equal pods of which it would take one more.
        devices: How many devices its pods have, those for admin access and shares left out.
        is_last: States with more pods follow that were not looked for, and with it what it takes is not known: it may be any.
    """

    counts: tuple[int, ...]
    arrivals: tuple[int, ...]
    takes: frozenset[int]
    devices: int
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes on which equal pods have equal answers.

    Args:
        nodes: Their numbers, in order.
        fillings: All states of one of them, or those with few pods; the first is that in which it is found.
    """

    nodes: tuple[int, ...]
    fillings: tuple[Filling, ...]


@dataclass(frozen=True, slots=True)
class Halted:
    """Why the states of the nodes are not all known.

    Args:
        why: In words.
        is_aborted: An error on a node ends the attempt of a pod, so what is on one node decides for the others.
    """

    why: str
    is_aborted: bool = False


def group_pods(
    free: FreeFleet, workloads: Sequence[tuple[Workload, PodPlan]], *, without: frozenset[str] = frozenset()
) -> list[EqualPods]:
    """The pods of workloads, equal ones together, in the order of the workloads.

    Args:
        free: The fleet.
        workloads: Whose pods.
        without: Resources of nodes in which equal pods may differ, for they decide nothing.
    """
    found: dict[Hashable, EqualPods] = {}
    users = count_users(workloads)
    near = {term for _, plan in workloads for term in plan.shape.near}
    spread = {(plan.shape.namespace, each.selector) for _, plan in workloads for each in plan.shape.spread}

    def looks(shape: PodShape) -> Hashable:
        # Pods that ask for nothing are told apart by those that want to be near some of them, or count them.
        return (
            frozenset(term for term in near if term.matches(shape, free.namespaces)),
            frozenset(
                each for each in spread if each[0] == shape.namespace and each[1].matches(shape.labels)
            ),
        )

    for workload, plan in workloads:
        on_each = workload.replicas is None
        number = free.answer(plan).eligible if workload.replicas is None else workload.replicas
        if not number:
            continue
        # The one pod that uses a claim has it to itself, as if it were made from a template.
        own = replace(
            plan,
            entries=tuple(
                replace(each, shared=each.shared and users[each.object] > 1) for each in plan.entries
            ),
            requests={name: amount for name, amount in plan.requests.items() if name not in without},
        )
        claims = tuple(each.object for each in own.entries if each.shared)
        key = on_each, free.key_of(own), claims, workload.owner if on_each else None, looks(plan.shape)
        known = found.get(key) or EqualPods(own, (), on_each)
        found[key] = replace(known, members=(*known.members, (workload.owner, plan, number)))
    return list(found.values())


def are_nodes_apart(free: FreeFleet, workloads: Sequence[tuple[Workload, PodPlan]]) -> bool:
    """True where a pod on one node changes nothing for the others: what decides is on the node alone."""
    shapes = [plan.shape for _, plan in workloads]
    if any(shape.near or shape.spread for shape in shapes):
        return False
    keys = free.running.apart_keys.union(term.topology_key for shape in shapes for term in shape.apart)
    if keys and (keys != {HOSTNAME} or not is_hostname_unique(free)):
        return False
    return not free.in_use.is_shared and all(number < 2 for number in count_users(workloads).values())


def is_hostname_unique(free: FreeFleet) -> bool:
    """True where each node is a place of its own for terms of affinity with this topology key."""
    return len({node.labels.get(HOSTNAME) for node in free.cluster.nodes}) == len(free.cluster.nodes)


def count_users(workloads: Sequence[tuple[Workload, PodPlan]]) -> Counter[ObjectRef]:
    """Counts how many pods use each claim that is shared; more than one stands for many."""
    users: Counter[ObjectRef] = Counter()
    for workload, plan in workloads:
        for entry in plan.entries:
            if entry.shared:
                users[entry.object] += 2 if workload.replicas is None else workload.replicas
    return users


@dataclass(frozen=True, slots=True)
class States:
    """Equal pods, and the kinds of nodes with their fillings.

    Args:
        pods: The pods.
        kinds: The nodes.
        is_exact: The fillings are the states that there are. Else they are those and more, for pods that differ in a resource
            count as equal: in a filling there are as many as fit when each is the smallest, and it takes one more only
            where it does when each is the largest. So what no fillings hold, no nodes do, and what no fillings close
            stays open.
    """

    pods: Sequence[EqualPods]
    kinds: Sequence[NodeKind]
    is_exact: bool = True


def find_states(
    free: FreeFleet,
    workloads: Sequence[tuple[Workload, PodPlan]],
    is_late: Callable[[], bool],
    limit: int = FILLINGS_LIMIT,
    *,
    may_cut: bool = False,
) -> States | Halted:
    """All states of the nodes, or more where these are too many.

    Pods may have a thousand amounts of CPU and memory of which no node ever has too little, for its devices are gone before.
    So devices are looked at alone first, and then with those resources that could run short.

    Args:
        free: The fleet.
        workloads: Whose pods.
        is_late: Asked now and then; once true, nothing more is looked for.
        limit: Fillings before it ends.
        may_cut: It then ends with the states that have few pods.
    """
    resources = frozenset(name for _, plan in workloads for name in plan.requests)
    without = frozenset() if free.cluster.device_amounts else resources
    short: frozenset[str] = frozenset()
    while True:
        pods = group_pods(free, workloads, without=without)
        kinds = find_kinds(free, pods, is_late, limit, may_cut=may_cut and not short)
        if isinstance(kinds, Halted):
            if not short:
                return kinds
            return _find_more_states(free, workloads, without | short, short, is_late, limit, may_cut=may_cut)
        short = frozenset(name for name in without if _runs_short(free, pods, kinds, name))
        if not short:
            return States(pods, kinds)
        without -= short


def _find_more_states(
    free: FreeFleet,
    workloads: Sequence[tuple[Workload, PodPlan]],
    without: frozenset[str],
    short: frozenset[str],
    is_late: Callable[[], bool],
    limit: int,
    *,
    may_cut: bool,
) -> States | Halted:
    """Fillings of which pods that differ in the *short* resources have the smallest amount, and want the largest."""
    pods: list[EqualPods] = []
    largest: list[dict[str, int]] = []
    for each in group_pods(free, workloads, without=without):
        amounts = {name: [plan.requests.get(name, 0) for _, plan, _ in each.members] for name in short}
        least = {name: min(found) for name, found in amounts.items() if any(found)}
        pods.append(replace(each, plan=replace(each.plan, requests={**each.plan.requests, **least})))
        largest.append({name: max(found) for name, found in amounts.items()})
    kinds = find_kinds(free, pods, is_late, limit, may_cut=may_cut)
    if isinstance(kinds, Halted):
        return kinds

    def takes(filling: Filling, node: int) -> frozenset[int]:
        left = {
            name: free.amounts[node].get(name, 0)
            - sum(number * most[name] for number, most in zip(filling.counts, largest, strict=True))
            for name in short
        }
        return frozenset(
            which for which in filling.takes if all(largest[which][name] <= left[name] for name in short)
        )

    loose = [
        NodeKind(kind.nodes, tuple(replace(each, takes=takes(each, kind.nodes[0])) for each in kind.fillings))
        for kind in kinds
    ]
    return States(pods, loose, is_exact=False)


def _runs_short(free: FreeFleet, pods: Sequence[EqualPods], kinds: Sequence[NodeKind], resource: str) -> bool:
    """True where a node may have too little of a resource for a filling, if the largest of equal pods are on it."""
    largest = [max(plan.requests.get(resource, 0) for _, plan, _ in each.members) for each in pods]
    return any(
        sum(number * amount for number, amount in zip(filling.counts, largest, strict=True))
        > free.amounts[kind.nodes[0]].get(resource, 0)
        for kind in kinds
        for filling in kind.fillings
    )


def find_kinds(
    free: FreeFleet,
    pods: Sequence[EqualPods],
    is_late: Callable[[], bool],
    limit: int = FILLINGS_LIMIT,
    *,
    may_cut: bool = False,
) -> list[NodeKind] | Halted:
    """The kinds of nodes that take any of the pods, with all their fillings; or with an equal part of as many as the limit."""
    beside = bool(_look_beside(free, pods))
    kinds: list[NodeKind] = []
    left = limit
    alike = find_alike(free, pods)
    for number, nodes in enumerate(alike):
        usable = [number for number, each in enumerate(pods) if not free.refusals(each.plan)[nodes[0]]]
        most = left // (len(alike) - number) if may_cut else left
        found = _fill(free, pods, usable, nodes[0], most, is_late, beside=beside, may_cut=may_cut)
        if isinstance(found, Halted):
            return found
        if found[-1].is_last and any(free.may_abort(pods[number].plan, nodes[0]) for number in usable):
            # Such an error, in a state that is not known, would keep the pod off all other nodes too.
            return Halted(f"{TOO_MANY_STATES}, and a device may end attempts in some of them")
        left -= len(found)
        if len(found) > 1:
            kinds.append(NodeKind(nodes, tuple(found)))
    return kinds


def find_alike(
    free: FreeFleet, pods: Sequence[EqualPods], describe: Callable[[int], Hashable] = lambda _: None
) -> list[tuple[int, ...]]:
    """Nodes on which equal pods have equal answers.

    Args:
        free: The fleet.
        pods: The pods.
        describe: What else has to be equal for a node to be like another.
    """
    refusals = list({each.plan.filter_key: free.refusals(each.plan) for each in pods}.values())
    plans = [each.plan.at({}) for each in pods]
    shapes = free.attempts.shapes([entry.demand for plan in plans for entry in plan.entries])
    beside = _look_beside(free, pods)
    alike: dict[Hashable, list[int]] = {}
    for node in range(len(free.cluster.nodes)):
        open_to = tuple(not refused[node] for refused in refusals)
        amounts = frozenset(free.amounts[node].items()), id(free.cluster.offered[node])
        kept_off = tuple(bool(free.running.refusal(shape, node)) for shape in beside)
        kind = open_to, shapes[node], amounts, free.in_use.of(node), kept_off, describe(node)
        alike.setdefault(kind, []).append(node)
    return [tuple(nodes) for nodes in alike.values()]


def find_interchangeable(free: FreeFleet, pods: Sequence[EqualPods]) -> list[tuple[int, ...]]:
    """Nodes that can be exchanged for each other in any state of the whole cluster, for they are in the same places too."""
    shapes = [each.plan.shape for each in pods]
    keys = {term.topology_key for shape in shapes for term in (*shape.near, *shape.apart)}
    keys |= {constraint.topology_key for shape in shapes for constraint in shape.spread}
    nodes = free.cluster.nodes
    keys |= free.running.apart_keys
    if is_hostname_unique(free):
        keys.discard(HOSTNAME)
    held = free.running.nodes

    def describe(node: int) -> Hashable:
        # What runs on a node counts for those that look at pods; nodes that see one pool are not told apart by it.
        own = node if node in held or free.in_use.is_shared else None
        return own, tuple(nodes[node].labels.get(key) for key in sorted(keys))

    return find_alike(free, pods, describe)


def _fill(
    free: FreeFleet,
    pods: Sequence[EqualPods],
    usable: Sequence[int],
    node: int,
    most: int,
    is_late: Callable[[], bool],
    *,
    beside: bool,
    may_cut: bool,
) -> list[Filling] | Halted:
    """All states of one node, those with fewer pods first."""
    found: list[Filling] = []
    states: dict[Hashable, tuple[ClusterState, tuple[int, ...], tuple[int, ...], int]] = {}
    start = free.node_state(node)
    states[start.key_of(node)] = start, (0,) * len(pods), (), 0
    while states:
        larger: dict[Hashable, tuple[ClusterState, tuple[int, ...], tuple[int, ...], int]] = {}
        for state, counts, arrivals, devices in states.values():
            takes: set[int] = set()
            for number in usable:
                plan = pods[number].plan
                is_open = not beside or any(True for _ in state.open_nodes(plan, [node]))
                outcome = state.attempt(plan, node) if is_open else Impossible()
                if isinstance(outcome, Impossible):
                    continue
                if not isinstance(outcome, Chosen):
                    why = f"a node with {_tell(pods, arrivals)} ends the attempt of {pods[number]}"
                    return Halted(why, is_aborted=isinstance(outcome, Aborted))
                takes.add(number)
                if counts[number] >= (1 if pods[number].on_each else pods[number].count):
                    continue
                after = tuple(each + (place == number) for place, each in enumerate(counts))
                larger_state = state.fork()
                larger_state.commit(plan, node, outcome)
                key = after, larger_state.key_of(node)
                if key not in larger:
                    own = sum(not pick.admin and not pick.share for pick in outcome.picks)
                    larger[key] = larger_state, after, (*arrivals, number), devices + own
            found.append(Filling(counts, arrivals, frozenset(takes), devices))
        if is_late():
            return Halted("the time was up while the states of nodes were found")
        if len(found) + len(larger) > most:
            last = [
                Filling(counts, arrivals, frozenset(usable), devices, is_last=True)
                for _, counts, arrivals, devices in larger.values()
            ]
            return [*found, *last] if may_cut else Halted(TOO_MANY_STATES)
        states = larger
    return found


def _look_beside(free: FreeFleet, pods: Sequence[EqualPods]) -> list[PodShape]:
    """The shapes that other pods on the node may keep off; empty where none does, which saves looking."""
    shapes = list(dict.fromkeys(each.plan.shape for each in pods))
    if free.running.apart_keys or any(shape.apart or shape.ports for shape in shapes):
        return shapes
    return []


def _tell(pods: Sequence[EqualPods], arrivals: Sequence[int]) -> str:
    return (
        ", ".join(f"{number} of {pods[which]}" for which, number in Counter(arrivals).items())
        or "nothing on it"
    )
