"""The cheapest moves of running pods after which others find room, proven move by move with the allocator.

The search proposes which pods leave which nodes and where they go. A proposal counts when it was played from the first move to the last: each
pod is evicted, created again by its controller and placed before the next one is evicted, and then the wanted pods are placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from dra_infra.kubernetes.api import ObjectRef, mappings, value_at
from dra_infra.kubernetes.scheduler.allocator import DeviceID
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.cluster_state import TakenDevice
from dra_infra.placement.demand import PodPlan, Undecided, Workload
from dra_infra.placement.freed_nodes import NOTHING, Cost, Landed, Layout, Mover, add_costs
from dra_infra.placement.movable_pods import MoveRules, RunningPod, count_stays, find_running_pods
from dra_infra.placement.open_programs import OpenProgram, open_program, without_affinity
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.room_proofs import prove_no_room
from dra_infra.placement.running import Running

RoomVerdict: TypeAlias = Literal["fits-now", "moves", "never", "not-found", "not-decided"]

_MOST_STEPS: Final = 4_000
"""Places for pods that are tried after the first proposal; with more, a cheaper plan is not excluded."""
_MOST_LOOKS: Final = 400_000
"""Nodes that are looked at for single pods meanwhile."""
_MOST_PODS: Final = 500
"""Wanted pods for which moves are looked for."""
_DEEPEST: Final = 300
"""Pods that are placed in one proposal of the search; the first proposal may have more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoomQuestion:
    """Who is to find room, and by which moves.

    Args:
        question: The objects of the wanted pods, the fleet, and the release. What is taken of the fleet follows from *running*.
        running: What runs.
        wanted: The object whose pods are to find room.
        rules: Which pods may be moved.
        priority: The priority of the wanted pods; None where it is not known.
        domain: The label of nodes in which all wanted pods need one value; empty where only their own affinity decides.
    """

    question: PlacementQuestion
    running: Running = field(repr=False)
    wanted: ObjectRef
    rules: MoveRules = field(default_factory=MoveRules)
    priority: int | None = None
    domain: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A running pod that is evicted, and where it goes.

    Args:
        pod: The pod.
        devices: The devices that it leaves, as `pool/device`.
        lands: The node on which it is placed again; empty for a pod that no controller replaces.
        takes: The devices that it gets there.
        choices: How many nodes may take it then. With more than one the scheduler chooses, and each choice ends well.
        cordon: Nodes that stay closed during this move alone, so that the pod goes where it has to.
    """

    pod: RunningPod
    devices: tuple[str, ...]
    lands: str = ""
    takes: tuple[str, ...] = ()
    choices: int = 1
    cordon: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """A wanted pod, once there is room.

    Args:
        owner: The object that makes it.
        node: Its node.
        devices: Its devices, as `pool/device`.
    """

    owner: ObjectRef
    node: str
    devices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoomPlan:
    """Moves after which the wanted pods fit.

    Args:
        cordon: Nodes that take no pods from the first move to the last.
        moves: The moves, in order.
        keep_off: Nodes that take no pods while the wanted pods start, because one of these there would keep the others from the rest.
        arrivals: Where the wanted pods go then.
        cost: What the moves cost.
        is_cheapest: Whether every plan that costs less was excluded.
        doubts: What the plan does not rule out.
    """

    cordon: tuple[str, ...]
    moves: tuple[Move, ...]
    keep_off: tuple[str, ...] = ()
    arrivals: tuple[Arrival, ...]
    cost: Cost
    is_cheapest: bool
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeRoom:
    """The answer.

    Args:
        verdict: `fits-now`: without a move. `moves`: with those of the plan. `never`: no moves help, by the proof in *reasons*.
            `not-found`: no moves were found within the bounds of the search. `not-decided`: the question is not understood whole.
        wanted: The object whose pods are to find room.
        pods: How many these are.
        waiting: How many of them are in the cluster already, without a node.
        plan: The moves; None where there are none.
        reasons: The proof, or why there is no answer.
        stays: Which pods are not moved, and why.
        notes: What else is to be known.
    """

    verdict: RoomVerdict
    wanted: ObjectRef
    pods: int = 0
    waiting: int = 0
    plan: RoomPlan | None = None
    reasons: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def make_room(asked: RoomQuestion) -> MadeRoom:
    """Return the cheapest moves with which the wanted pods find room, or why there are none."""
    pods, _ = find_running_pods(asked.running, asked.wanted, asked.priority, asked.rules)
    opened, movers, pods = open_layout(asked, pods)
    stays = tuple(count_stays(pods))
    workloads = [
        each
        for each in (*opened.workloads, *opened.bystanders, *opened.left_out)
        if each.owner.whole.stored == asked.wanted.whole.stored
        and each.owner.part in ("", asked.wanted.part or each.owner.part)
    ]
    waiting = _count_waiting(asked)
    notes = tuple(_find_notes(asked))

    def answer(verdict: RoomVerdict, reasons: Sequence[str] = (), plan: RoomPlan | None = None) -> MadeRoom:
        return MadeRoom(
            verdict=verdict,
            wanted=asked.wanted,
            pods=sum(each.replicas or 0 for each in workloads),
            waiting=waiting,
            plan=plan,
            reasons=tuple(reasons),
            stays=stays,
            notes=notes,
        )

    if problem := _find_problem(asked, opened, workloads):
        return answer("not-decided", [problem])
    wanted = [(each, each.plan) for each in workloads if isinstance(each.plan, PodPlan) and each.replicas]
    layout = Layout(opened.free, movers)
    domains = _find_domains(asked, opened, wanted)
    if isinstance(domains, str):
        return answer("not-decided", [domains])
    if not wanted:
        return answer("fits-now", ["all of its pods have a node"])
    best = _find_best(asked, layout, wanted, domains)
    if best.proposal is None:
        proof = prove_no_room(layout, wanted, _plans_of(wanted), [each.nodes for each in domains])
        return answer("never", proof) if proof else answer("not-found", [best.tell_why_none()])
    if not best.proposal.moves:
        return answer("fits-now", plan=_write_plan(layout, best, wanted))
    return answer("moves", plan=_write_plan(layout, best, wanted))


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes of which the wanted pods use no others.

    Args:
        name: Which these are: `nvidia.com/gpu.clique=a.1`; empty for all nodes.
        nodes: Their numbers.
    """

    name: str
    nodes: tuple[int, ...]


LATE: Final = "the search reached its bounds"
"""Why not everything was tried."""

Option: TypeAlias = tuple[Cost, bool, int, int, tuple[int, ...]]
"""A node for a pod, comparable: what it costs, whether wanted pods are there, its free devices, its number, and the pods that leave it."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Moves that were played through.

    Args:
        moves: Number of each pod that moves, in order, with where it landed; None for one that no controller replaces.
        arrivals: The wanted pods, where they were placed.
        cost: What the moves cost.
        domain: In which domain.
    """

    moves: tuple[tuple[int, Landed | None], ...]
    arrivals: tuple[Landed, ...]
    cost: Cost
    domain: Domain


def open_layout(
    asked: RoomQuestion, pods: list[RunningPod]
) -> tuple[OpenProgram, list[Mover], list[RunningPod]]:
    """Open the fleet without the pods that may be moved. Pods of which it is not known how they are placed anew stay."""
    while True:
        moving = {each.ref for each in pods if not each.why_stays}
        remade = asked.running.without_pods(moving)
        opened = open_program(replace(asked.question, taken=remade.taken))
        plans = [each.plan for each in opened.bystanders[: len(remade.taken.evicted)]]
        numbers = {node.name: number for number, node in enumerate(opened.free.cluster.nodes)}
        why: dict[ObjectRef, str] = {}
        for each in pods:
            plan = plans[remade.templates[each.ref]] if each.ref in moving else None
            if each.ref in moving and each.node not in numbers:
                why[each.ref] = "is on a node that is not in the snapshot"
            elif isinstance(plan, Undecided):
                why[each.ref] = f"it is not known where it can be placed anew: {plan.reasons[0]}"
            elif isinstance(plan, PodPlan) and opened.free.may_abort_anywhere(plan):
                why[each.ref] = "an error on a device may end every attempt to place it anew"
            elif (
                isinstance(plan, PodPlan) and any(entry.shared for entry in plan.entries) and not each.claims
            ):
                why[each.ref] = "uses a claim that is not its own"
        if not why:
            break
        pods = [replace(each, why_stays=why.get(each.ref, each.why_stays)) for each in pods]
    movers = [
        _read_mover(asked.running, each, plans[remade.templates[each.ref]], numbers)
        for each in pods
        if not each.why_stays
    ]
    return opened, movers, pods


def _read_mover(
    running: Running, pod: RunningPod, plan: PodPlan | Undecided, numbers: Mapping[str, int]
) -> Mover:
    assert isinstance(plan, PodPlan)  # noqa: S101  (`open_layout` lets the others stay)
    devices: list[TakenDevice] = []
    for claim in pod.claims:
        whole, shares = running.devices_of(claim)
        devices += [(DeviceID(*each), None, False) for each in whole]
        devices += [(DeviceID(*each), consumed, True) for each, consumed in shares]
    lost = pod.hours * len(devices)
    return Mover(
        pod=pod,
        node=numbers[pod.node],
        plan=None if pod.is_bare else plan,
        own=plan,
        devices=tuple(devices),
        cost=(lost, 1, int(pod.loses_work or pod.is_bare), len(devices)),
    )


def _count_waiting(asked: RoomQuestion) -> int:
    running = asked.running
    pods = running.pods.get(asked.wanted.whole.stored, ())
    return sum(not running.pod_records[each].node for each in pods)


def _find_notes(asked: RoomQuestion) -> Iterator[str]:
    """Yield what else may take the room, and what the rules leave open."""
    own = set(asked.running.pods.get(asked.wanted.whole.stored, ()))
    others = [
        f"{ref.namespace}/{ref.name}"
        for ref, pod in asked.running.pod_records.items()
        if ref not in own and not pod.node and not pod.is_done
    ]
    if others:
        verb = "waits" if len(others) == 1 else "wait"
        yield f"{count_of(len(others), 'other pod')} {verb} for a node and may take what becomes free: {join_words(others, most=5)}"
    if asked.priority is None:
        yield "the priority of the wanted pods is not known, so no pod stays for a higher one"


def _find_problem(asked: RoomQuestion, opened: OpenProgram, workloads: Sequence[Workload]) -> str:
    """Return why the question cannot be answered; empty where it can."""
    if not workloads:
        return f"{asked.wanted} makes no pods that are known here"
    for each in workloads:
        if isinstance(each.plan, Undecided):
            return f"{each.owner} is not decided: {each.plan.reasons[0]}"
        if each.replicas is None:
            return f"{each.owner} makes a pod on every node, so there is no room to make for it elsewhere"
        if opened.free.may_abort_anywhere(each.plan):
            return f"{each.owner}: an error on a device may end every attempt to place its pods"
        if any(entry.shared for entry in each.plan.entries) and (each.replicas or 0) > 1:
            return f"{each.owner}: its pods share a claim, which is not looked into"
    number = sum(each.replicas or 0 for each in workloads)
    if number > _MOST_PODS:
        return f"{asked.wanted} makes {number:,} pods, and room is made for up to {_MOST_PODS}"
    return ""


def _find_domains(
    asked: RoomQuestion, opened: OpenProgram, wanted: Sequence[tuple[Workload, PodPlan]]
) -> list[Domain] | str:
    """The sets of nodes of which the wanted pods need one, by the affinity that they have to each other; or why that is not known."""
    nodes = opened.free.cluster.nodes
    keys = {asked.domain} if asked.domain else set[str]()
    for workload, plan in wanted:
        for term in plan.shape.near:
            if not all(term.matches(other.shape, opened.free.namespaces) for _, other in wanted):
                return f"{workload.owner} needs to be near pods of others, which is not looked into"
            keys.add(term.topology_key)
    if len(keys) > 1:
        return f"{asked.wanted} needs one value of several labels ({join_words(sorted(keys))}), which is not looked into"
    if not keys:
        return [Domain("", tuple(range(len(nodes))))]
    (key,) = keys
    values = sorted({node.labels[key] for node in nodes if key in node.labels})
    return [
        Domain(
            f"{key}={value}",
            tuple(number for number, node in enumerate(nodes) if node.labels.get(key) == value),
        )
        for value in values
    ]


def _plans_of(wanted: Sequence[tuple[Workload, PodPlan]]) -> list[PodPlan]:
    """The plan of each wanted pod, inside a domain."""
    plans: list[PodPlan] = []
    for workload, plan in wanted:
        plans += [without_affinity(plan) if plan.shape.near else plan] * (workload.replicas or 0)
    return plans


def _find_best(
    asked: RoomQuestion,
    layout: Layout,
    wanted: Sequence[tuple[Workload, PodPlan]],
    domains: Sequence[Domain],
) -> _Best:
    plans = _plans_of(wanted)
    best = _Best()
    searches = [_Search(layout, plans, domain, asked.question.is_late, best) for domain in domains]
    for search in searches:
        search.propose()
    for search in searches:
        search.explore()
    if any(each.is_open for each in searches):
        best.is_cut = best.is_cut or "a search for devices on a node was given up"
    return best


class _Best:
    """The cheapest proposal so far, of all domains.

    Args:
        proposal: The proposal.
        least: No plan costs less, in any domain.
        is_cut: Whether the search ended before it had tried everything, and why.
    """

    def __init__(self) -> None:
        self.proposal: Proposal | None = None
        self.is_cut = ""
        self.bounds: list[Cost] = []
        self.seen = 0

    @property
    def is_cheapest(self) -> bool:
        """True if everything was tried, or nothing can cost less."""
        if self.proposal is None:
            return False
        return not self.is_cut or self.proposal.cost <= min(self.bounds, default=NOTHING)

    def offer(self, proposal: Proposal) -> None:
        """Keep a proposal that costs less than the best one."""
        if self.proposal is None or proposal.cost < self.proposal.cost:
            self.proposal = proposal

    def tell_why_none(self) -> str:
        """Why there is no plan, although none was shown to be impossible."""
        if self.is_cut:
            return f"no plan was found: {self.is_cut}"
        return (
            f"no plan was found: {count_of(self.seen, 'way')} to place the pods were tried, each pod moved at most once and running again before "
            "the next one moves"
        )


class _Search:
    """Looks for moves in one domain.

    Args:
        layout: Who is where.
        plans: The wanted pods.
        domain: The nodes that they may use.
        is_late: Asked now and then; once true, the search ends.
        best: The best proposal of all domains.
    """

    def __init__(
        self,
        layout: Layout,
        plans: Sequence[PodPlan],
        domain: Domain,
        is_late: Callable[[], bool],
        best: _Best,
    ) -> None:
        self._layout = layout.fresh()
        self._plans = plans
        self._domain = domain
        self._is_late = is_late
        self._best = best
        self._steps = 0
        self._looks = 0
        self._is_exploring = False
        self._seen: set[object] = set()
        self._is_hopeless = False

    @property
    def is_open(self) -> bool:
        """True where a search for devices on a node ended without an answer."""
        return self._layout.is_open

    def propose(self) -> None:
        """Offer the wanted pods each the node that is cheapest to free, and the pods that leave it the fullest node that takes them."""
        layout = self._layout
        landed: list[Landed] = []
        taken: list[int] = []
        cost = NOTHING
        known: dict[PodPlan, dict[int, list[Option]]] = {}
        for plan in dict.fromkeys(self._plans):
            known[plan] = {node: [*self._options(plan, [node])] for node in self._domain.nodes}
            options = [option for found in known[plan].values() for option in found]
            if not options and not self._best.is_cut:
                self._is_hopeless = True
                return
            self._best.bounds.append(self._bound(plan, options))
        for plan in self._plans:
            if not layout.is_apart:
                known[plan] = {node: [*self._options(plan, [node])] for node in self._domain.nodes}
            option = min((option for found in known[plan].values() for option in found), default=None)
            if option is None:
                break
            extra, _, _, node, chosen = option
            layout.take_away(chosen)
            taken += chosen
            cost = add_costs(cost, extra)
            placed = layout.place(plan, node)
            if placed is None:
                break
            landed.append(placed)
            for each, found in known.items():
                found[node] = [*self._options(each, [node])]
        if len(landed) == len(self._plans):
            self._land_greedily(taken, landed, cost)
        self._undo(landed, taken)

    def explore(self) -> None:
        """Try all other ways, the cheapest first, until none can be cheaper or the bounds are reached."""
        best = self._best
        if self._is_hopeless or (
            best.proposal is not None and best.proposal.cost <= min(best.bounds, default=NOTHING)
        ):
            return
        if len(self._plans) > _DEEPEST:
            best.is_cut = f"it needs room for {len(self._plans)} pods at once"
            return
        self._is_exploring = True
        self._go_on([(plan, None) for plan in self._plans], NOTHING, [], {})

    def _bound(self, plan: PodPlan, options: Sequence[Option]) -> Cost:
        """No plan costs less: as few nodes as can hold the pods, each freed for the first of them."""
        if not self._layout.is_apart or self._best.is_cut or len(set(self._plans)) > 1:
            return NOTHING
        cheapest: dict[int, Cost] = {}
        for cost, _, _, node, _ in options:
            cheapest[node] = min(cheapest.get(node, cost), cost)
        most = max(_count_most(self._layout, plan, node, len(self._plans)) for node in cheapest)
        total = NOTHING
        for cost in sorted(cheapest.values())[: -(-len(self._plans) // max(most, 1))]:
            total = add_costs(total, cost)
        return total

    def _options(self, plan: PodPlan, nodes: Sequence[int], avoid: int = -1) -> Iterator[Option]:
        """Yield the nodes for a pod, each with the pods that leave it; comparable by what they cost, then the fullest node."""
        layout = self._layout
        for node in nodes:
            if node == avoid:
                continue
            self._looks += 1
            if self._is_late() or (self._is_exploring and self._looks > _MOST_LOOKS):
                self._best.is_cut = LATE
                return
            freed = layout.find_sets([plan], node)
            if not freed.is_exact:
                self._best.is_cut = "a node has too many pods to try every set of them"
            free = layout.free_devices(node) if freed.sets else 0
            is_wanted = any(each.plan in self._plans for each in layout.placed[node])
            for cost, chosen in freed.sets:
                yield cost, is_wanted, free, node, chosen

    def _land_greedily(self, taken: Sequence[int], arrivals: Sequence[Landed], cost: Cost) -> None:
        layout = self._layout
        closed = {each.node for each in arrivals} | {layout.movers[number].node for number in taken}
        landed: dict[int, Landed] = {}
        for number in sorted(taken, key=lambda each: -len(layout.movers[each].devices)):
            plan = layout.movers[number].plan
            if plan is None:
                continue
            nodes = [
                node
                for node in range(len(layout.free.cluster.nodes))
                if node not in closed and layout.attempt(plan, node)
            ]
            if not nodes:
                break
            placed = layout.place(plan, min(nodes, key=lambda node: (layout.free_devices(node), node)))
            if placed is None or self._is_late():
                break
            landed[number] = placed
        else:
            self._offer(taken, arrivals, landed, cost)
        for each in reversed(landed.values()):
            layout.unplace(each)

    def _go_on(
        self,
        waiting: list[tuple[PodPlan, int | None]],
        cost: Cost,
        arrivals: list[Landed],
        landed: dict[int, Landed],
    ) -> None:
        """Place the first of the pods that wait in every way, and then the others."""
        best, layout = self._best, self._layout
        if self._is_late() or self._steps > _MOST_STEPS or len(arrivals) + len(landed) > _DEEPEST:
            best.is_cut = LATE
            return
        if not waiting:
            self._offer(sorted(layout.gone), arrivals, landed, cost)
            return
        key = (
            frozenset(layout.gone),
            frozenset(
                (plan, node, sum(each.plan == plan for each in there))
                for node, there in layout.placed.items()
                for plan in {each.plan for each in there}
            ),
        )
        if key in self._seen:
            return
        self._seen.add(key)
        (plan, number), *rest = waiting
        nodes = self._domain.nodes if number is None else range(len(layout.free.cluster.nodes))
        avoid = layout.movers[number].node if number is not None else -1
        if avoid >= 0 and not layout.is_plain(avoid):
            avoid = -1
        for extra, _, _, node, chosen in sorted(self._options(plan, nodes, avoid)):
            total = add_costs(cost, extra)
            if best.proposal is not None and total >= best.proposal.cost:
                return
            self._steps += 1
            if self._steps > _MOST_STEPS:
                best.is_cut = LATE
                return
            layout.take_away(chosen)
            placed = layout.place(plan, node)
            if placed is None:
                layout.put_back(chosen)
                continue
            more: list[tuple[PodPlan, int | None]] = [
                (new, each) for each in chosen if (new := layout.movers[each].plan) is not None
            ]
            if number is None:
                self._go_on(rest + more, total, [*arrivals, placed], landed)
            else:
                self._go_on(rest + more, total, arrivals, {**landed, number: placed})
            layout.unplace(placed)
            layout.put_back(chosen)

    def _offer(
        self, taken: Sequence[int], arrivals: Sequence[Landed], landed: Mapping[int, Landed], cost: Cost
    ) -> None:
        """Play the moves from the start, and keep them if all pods find their places."""
        self._best.seen += 1
        played = play(self._layout, taken, {number: each.node for number, each in landed.items()})
        if played is None:
            return
        moves, then = played
        found: list[Landed] = []
        for each in arrivals:
            placed = then.place(each.plan, each.node)
            if placed is None:
                return
            found.append(placed)
        self._best.offer(Proposal(tuple(moves), tuple(found), cost, self._domain))

    def _undo(self, landed: Sequence[Landed], taken: Sequence[int]) -> None:
        for each in reversed(landed):
            self._layout.unplace(each)
        self._layout.put_back(taken)


def _count_most(layout: Layout, plan: PodPlan, node: int, most: int) -> int:
    """How many such pods a node takes without the pods that may be moved, up to a number."""
    present = [number for number in layout.on_node[node] if number not in layout.gone]
    layout.take_away(present)
    landed: list[Landed] = []
    while len(landed) < most and (each := layout.place(plan, node)) is not None:
        landed.append(each)
    for each in reversed(landed):
        layout.unplace(each)
    layout.put_back(present)
    return len(landed)


def play(
    layout: Layout, taken: Sequence[int], goes_to: Mapping[int, int]
) -> tuple[list[tuple[int, Landed | None]], Layout] | None:
    """Evict pods one after the other, each placed again before the next one goes; None where no order does that.

    Args:
        layout: The fleet. It is not changed.
        taken: Numbers of the pods.
        goes_to: The node of each pod that is created again.
    """
    then = layout.fresh()
    waiting = sorted(taken, key=lambda number: (layout.movers[number].node, number))
    moves: list[tuple[int, Landed | None]] = []
    while waiting:
        for number in waiting:
            mover = layout.movers[number]
            then.take_away([number])
            if mover.plan is None:
                moves.append((number, None))
                break
            landed = then.place(mover.plan, goes_to[number])
            if landed is not None:
                moves.append((number, landed))
                break
            then.put_back([number])
        else:
            return None
        waiting.remove(number)
    return moves, then


def _write_plan(
    layout: Layout,
    best: _Best,
    wanted: Sequence[tuple[Workload, PodPlan]],
) -> RoomPlan:
    """Write down the best proposal: what stays closed meanwhile, and what the scheduler may choose."""
    proposal = best.proposal
    assert proposal is not None  # noqa: S101  (the caller has looked)
    start = layout.fresh()
    nodes = layout.free.cluster.nodes
    sources = {layout.movers[number].node for number, _ in proposal.moves}
    closed = sources | {each.node for each in proposal.arrivals} if proposal.moves else set[int]()
    choices = _count_choices(start, proposal, closed)
    moves = list(_write_moves(start, proposal, closed, choices))
    owners = [workload.owner for workload, _ in wanted for _ in range(workload.replicas or 0)]
    arrivals = [
        Arrival(owner=owner, node=nodes[each.node].name, devices=_name_devices(each.devices))
        for owner, each in zip(owners, proposal.arrivals, strict=True)
    ]
    arrivals.sort(key=lambda each: (str(each.owner), each.node))
    keep_off = sorted(
        nodes[node].name
        for node in range(len(nodes))
        if proposal.domain.name
        and node not in proposal.domain.nodes
        and any(
            start.attempt(plan, node) or layout.attempt(plan, node)
            for plan in {each.plan for each in proposal.arrivals}
        )
    )
    return RoomPlan(
        cordon=tuple(sorted(nodes[node].name for node in closed if not nodes[node].unschedulable)),
        moves=tuple(moves),
        keep_off=tuple(keep_off),
        arrivals=tuple(arrivals),
        cost=proposal.cost,
        is_cheapest=best.is_cheapest,
        doubts=tuple(_find_doubts(layout, proposal)),
    )


def _count_choices(start: Layout, proposal: Proposal, closed: set[int]) -> list[int] | None:
    """How many open nodes may take each pod that moves, where each choice ends well; None where it may not.

    Open nodes only fill. Whatever nodes the pods before took, they closed at most one node each. So a pod with more nodes than there are moves
    before it always finds one.
    """
    if not start.is_apart:
        return None
    known: dict[PodPlan, int] = {}
    choices: list[int] = []
    for before, (number, landed) in enumerate(proposal.moves):
        plan = start.movers[number].plan
        if plan is None or landed is None:
            choices.append(0)
            continue
        if plan not in known:
            known[plan] = sum(
                node not in closed and start.attempt(plan, node) is not None
                for node in range(len(start.free.cluster.nodes))
            )
        if landed.node in closed or known[plan] <= before:
            return None
        choices.append(known[plan])
    return choices


def _write_moves(
    start: Layout, proposal: Proposal, closed: set[int], choices: list[int] | None
) -> Iterator[Move]:
    """Yield the moves. Where not every choice of the scheduler ends well, all other nodes that may take the pod are closed meanwhile."""
    nodes = start.free.cluster.nodes
    for step, (number, landed) in enumerate(proposal.moves):
        mover = start.movers[number]
        start.take_away([number])
        cordon: list[str] = []
        if landed is not None and choices is None:
            cordon = [
                nodes[node].name
                for node in range(len(nodes))
                if node != landed.node and node not in closed and start.attempt(landed.plan, node)
            ]
        if landed is not None:
            start.place(landed.plan, landed.node)
        yield Move(
            pod=mover.pod,
            devices=_name_devices(mover.devices),
            lands=nodes[landed.node].name if landed else "",
            takes=_name_devices(landed.devices) if landed else (),
            choices=choices[step] if choices is not None else 1,
            cordon=tuple(cordon),
        )


def _name_devices(devices: Sequence[TakenDevice]) -> tuple[str, ...]:
    return tuple(f"{device.pool}/{device.device}" for device, _, _ in devices)


def _find_doubts(layout: Layout, proposal: Proposal) -> Iterator[str]:
    if len({each.plan for each in proposal.arrivals}) > 1:
        yield "the wanted pods differ, and the plan was played for one order in which they start"
    if not layout.is_apart:
        yield "pods or devices of several nodes decide together, and the plan was played for one order in which the wanted pods start"
    claims = [name for number, _ in proposal.moves for name in _find_volumes(layout.movers[number])]
    if claims:
        yield f"whether volumes let pods go to other nodes is not looked at: PersistentVolumeClaim {join_words(claims, most=3)}"
    cluster = layout.free.cluster
    places = {each.node for each in proposal.arrivals} | {each.node for _, each in proposal.moves if each}
    if cluster.release.number < _ORDERED_SINCE and any(len(cluster.pools(node)) > 1 for node in places):
        yield f"Kubernetes {cluster.release.minor} tries the pools of a node in random order, so pods may get other devices"


def _find_volumes(mover: Mover) -> list[str]:
    """The PersistentVolumeClaims of a pod."""
    names = [
        value_at(each, "persistentVolumeClaim", "claimName")
        for each in mappings(mover.own.spec.get("volumes"))
    ]
    return [f"{mover.pod.ref.namespace}/{name}" for name in names if name]


_ORDERED_SINCE: Final = 36
"""The minor from which on pools are tried in the order of their names (design decision 6)."""
