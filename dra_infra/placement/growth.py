"""By how much the node pools of a fleet have to grow so that all pods fit, at the lowest cost.

An integer program over the states of nodes proposes it where what decides is on each node alone; elsewhere sizes are tried
in the order of their cost. A growth counts only when the verdict on the fleet with its nodes has an order that places all pods.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dra_infra.catalog.publication import COMPUTE_DOMAIN_DRIVER
from dra_infra.fleet import Fleet, NodePool, SharedLimit, whole_of
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.kubernetes.scheduler import show_amount
from dra_infra.output.wording import join_words
from dra_infra.placement.autoscaling import ClaimUse, find_use, judge, see_pools
from dra_infra.placement.demand import PodPlan
from dra_infra.placement.fillings import HOSTNAME, Halted, NodeKind, States, are_nodes_apart, find_states
from dra_infra.placement.free_fleet import FreeFleet
from dra_infra.placement.integer_programs import SECONDS, Growing, grow, has_solver
from dra_infra.placement.joint import ObjectMakers, place_together
from dra_infra.placement.joint_verdict import judge_jointly
from dra_infra.placement.open_programs import OpenProgram, open_program
from dra_infra.placement.outcomes import Chosen
from dra_infra.placement.outlooks import PoolOutlook
from dra_infra.placement.placement import Growth, GrowthAnswer, JointAnswer, JointVerdict, Order, Placement
from dra_infra.placement.question import PlacementQuestion, never_late
from dra_infra.placement.scheduling import place

TRIES: Final = 64
"""Sizes of pools that are tried where no integer program finds the cheapest."""
_BITS: Final = 24
"""Of an amount that node pools may have together, what an integer program looks at: its floats are not exact to more."""
_BEYOND: Final = "no further nodes within the limits of node pools hold all pods"
_CUT: Final = "; limits of node pools leave room for more nodes than are looked at"

Added = tuple[int, ...]
"""How many nodes, or racks, each pool gets."""


def find_growth(question: PlacementQuestion, placement: Placement) -> Growth | None:
    """Return the cheapest growth with which all pods of a program fit; None if the fleet has no node pools.

    Args:
        question: The program and the fleet.
        placement: The answer of `place` to it.
    """
    if not question.fleet.pools:
        return None
    search = _Search(question, placement)
    growth = search.find()
    if growth.verdict == "never-within-limits":
        return _open_annotated(growth)
    return _ask_autoscalers(question, placement, search, growth) if growth.verdict == "fits-grown" else growth


_STEPS: Final[tuple[tuple[GrowthAnswer, frozenset[str]], ...]] = (
    ("fits-grown", frozenset({"grows"})),
    ("grows-if", frozenset({"grows", "grows-if"})),
    ("not-decided", frozenset({"grows", "grows-if", "not-known"})),
)
"""The answers of autoscalers with which a pool counts, and the verdict where that is enough."""


def _ask_autoscalers(
    question: PlacementQuestion, placement: Placement, search: _Search, growth: Growth
) -> Growth:
    """Return the growth with the nodes that autoscalers add for these pods, or why they do not add enough."""
    fleet, release = question.fleet, question.release
    if all(pool.scaler is None for pool in fleet.pools):
        return growth
    use = search.find_use(growth.added)
    outlooks = [judge(pool, use, release) for pool in fleet.pools]
    # The pools that the cheapest growth needs: what is said of them if no other growth does.
    needed = growth.added
    for verdict, accepted in _STEPS:
        seen = see_pools(fleet.pools, outlooks, accepted)
        grown = growth if seen == fleet.pools else None
        if grown is None:
            grown = _Search(replace(question, fleet=replace(fleet, pools=seen)), placement).find()
        if not grown.fits or not search.works(grown.added):
            continue
        used = _used(outlooks, grown.added)
        if verdict == "fits-grown":
            return replace(search.tell_grown(grown), outlooks=used)
        lacking = tuple(each for each in used if each.answer == verdict or verdict == "not-decided")
        return _unmade(growth, placement, verdict, lacking)
    lacking = tuple(each for each in _used(outlooks, needed) if each.answer != "grows")
    if not lacking:
        why = "the claims of these pods do not fit the devices of its template of a new node"
        lacking = tuple(replace(each, answer="does-not-grow", reason=why) for each in _used(outlooks, needed))
    return _unmade(growth, placement, "does-not-grow", lacking)


def _open_annotated(growth: Growth) -> Growth:
    """Leave open what never fits on machines of which annotations tell only the number of devices."""
    names = [pool.name for pool in growth.pools if pool.is_annotated]
    if not names:
        return growth
    why = f"annotations do not say which devices nodes of {join_words(names)} have, only how many"
    reasons = (f"{why}: {growth.reasons[0]}",)
    joint = JointVerdict(verdict="not-decided", reasons=reasons)
    return replace(growth, verdict="not-decided", joint=joint, reasons=reasons)


def _used(outlooks: Sequence[PoolOutlook | None], added: Added) -> tuple[PoolOutlook, ...]:
    return tuple(each for each, number in zip(outlooks, added, strict=True) if number and each is not None)


def _unmade(
    growth: Growth, placement: Placement, verdict: GrowthAnswer, outlooks: tuple[PoolOutlook, ...]
) -> Growth:
    """Return the growth that autoscalers do not make: the pools stay as they are now."""
    reasons = tuple(map(str, outlooks))
    joint = placement.joint
    if verdict == "not-decided":
        joint = JointVerdict(verdict=verdict, reasons=reasons)
    return Growth(
        verdict=verdict,
        pools=growth.pools,
        added=(0,) * len(growth.pools),
        billing=growth.billing,
        joint=joint,
        reasons=reasons,
        outlooks=outlooks,
    )


def place_within_limits(question: PlacementQuestion) -> Placement:
    """Return where the pods of a program go with as many nodes as they need, with headroom and growth.

    Where they do not fit within the limits of the fleet's node pools, it is that with each of these at its largest, and the
    joint verdict is that of the growth. Where autoscalers do not add the nodes, it is that on the fleet as it is. It has no headroom where the limits do not allow all these nodes together.

    Args:
        question: The program and the fleet.
    """
    fleet = question.fleet
    growth = None
    if fleet.pools:
        growth = find_growth(question, place(question))
        if growth is not None:
            largest = [0 if growth.is_unmade else len(pool.spare) for pool in fleet.pools]
            fleet = fleet.grown(growth.added if growth.fits else largest)
    placement = place(replace(question, fleet=fleet), with_headroom=True)
    if growth is None:
        return placement
    workloads = placement.workloads
    if growth.verdict == "not-decided" and not growth.is_unmade and any(pool.is_cut for pool in fleet.pools):
        # More nodes than are looked at may hold what these do not.
        workloads = tuple(
            replace(each, verdict="not-decided") if each.verdict == "does-not-fit" and each.nodes else each
            for each in workloads
        )
    # More pods do not fit where fewer do not.
    most = placement.joint_at_most and (placement.joint_at_most if growth.fits else growth.joint)
    placement = replace(placement, growth=growth, joint=growth.joint, joint_at_most=most, workloads=workloads)
    if growth.fits or growth.is_unmade or fleet.allows([len(pool.spare) for pool in fleet.pools]):
        return placement
    fleet = replace(fleet, name=f"{fleet.name}, more than limits of node pools allow together")
    return replace(placement, fleet=fleet, headroom=(), fragments=())


class _Search:
    def __init__(self, question: PlacementQuestion, placement: Placement) -> None:
        self._question = question
        self._fleet = question.fleet
        self._pools = question.fleet.pools
        self._is_late = question.is_late
        self._now: Added = (0,) * len(self._pools)
        self._largest: Added = tuple(len(pool.spare) for pool in self._pools)
        self._known = {self._now: placement}
        self._costs = find_costs(self._pools)
        self._proof = ""

    def find(self) -> Growth:
        if self._works(self._now):
            return self._tell("fits-now", self._now)
        top = self._open(self._largest)
        proposed = self._propose(top)
        if proposed and self._fleet.allows(proposed) and self._works(proposed):
            # The program counts in floats, which hold no larger numbers exactly.
            return self._tell("fits-grown", proposed, is_cheapest=self._cost(self._largest) < 2**53)
        steady = self._never_hurts(top)
        if steady and not self._works(self._largest):
            joint = self._at(self._largest).joint
            verdict: GrowthAnswer = "never-within-limits" if joint.verdict == "never" else "not-decided"
            return self._tell(verdict, self._largest)
        if self._proof:
            return self._tell("never-within-limits", self._largest, self._proof)
        sizes = self._list_sizes()
        if sizes is not None:
            return self._try_all(sizes, steady=steady)
        for start in self._find_starts():
            if len(self._known) < TRIES and self._works(start):
                return self._shrink(start, steady=steady)
        return self._tell(
            "not-decided", self._largest, f"more than {TRIES} sizes of its pools are not all tried"
        )

    def works(self, added: Added) -> bool:
        """Return whether all pods fit with so many more nodes."""
        return self._works(added)

    def find_use(self, added: Added) -> ClaimUse:
        """Return what the claims of the pods use that go to added nodes."""
        return find_use(self._open(added), self._at(added), self._pools)

    def tell_grown(self, found: Growth) -> Growth:
        """Return a growth that was found with other devices, as it is with the devices of this fleet."""
        return self._tell("fits-grown", found.added, is_cheapest=found.is_cheapest)

    def _at(self, added: Added) -> Placement:
        if added not in self._known:
            self._known[added] = place(self._with(added))
        return self._known[added]

    def _works(self, added: Added) -> bool:
        return self._at(added).joint.works is not None

    def _cost(self, added: Added) -> int:
        return sum(cost * number for cost, number in zip(self._costs, added, strict=True))

    def _open(self, added: Added) -> OpenProgram:
        # Whoever counts states here asks for the time itself.
        return open_program(replace(self._with(added), is_late=never_late))

    def _with(self, added: Added) -> PlacementQuestion:
        """Return the question on the fleet with more nodes."""
        return replace(self._question, fleet=self._fleet.grown(added))

    def _propose(self, top: OpenProgram) -> Added | None:
        """The growth that an integer program finds; None where there is no program for it, empty or None where it has no answer."""
        made, refused = ObjectMakers(top).make_together(top.arriving)
        workloads = [(each, each.plan) for each in made if isinstance(each.plan, PodPlan)]
        if len(workloads) < len(made) or not has_solver() or not are_nodes_apart(top.free, workloads):
            return None
        states = find_states(top.free, workloads, self._is_late)
        if isinstance(states, Halted):
            return None
        steps = _find_steps(top.free, states, self._pools, self._costs)
        if steps is None:
            return None
        kinds, there, pools = steps
        cut = [(limit, *_cut(limit)) for limit in self._fleet.limits]
        shared = [(limit.left // unit, takes) for limit, unit, takes in cut]
        found = grow(kinds, states.pods, there, pools, shared, seconds=SECONDS)
        if found == () and cut and not refused:
            self._proof = _BEYOND
            for limit, unit, takes in cut:
                # The least of it, whatever the other limits say.
                taking = [replace(each, cost=take) for each, take in zip(pools, takes, strict=True)]
                added = grow(kinds, states.pods, there, taking, (), seconds=SECONDS) or self._now
                least = sum(take * number for take, number in zip(takes, added, strict=True))
                if least * unit > limit.left:
                    needed, left = (show_amount(limit.what, each) for each in (least * unit, limit.left))
                    self._proof = (
                        f"further nodes with which all pods fit have at least {needed} {limit.what} of node pool "
                        f"{limit.pool}, and its limit leaves {left}"
                    )
                    break
        return found

    def _never_hurts(self, top: OpenProgram) -> bool:
        """True where what works on some of the nodes works with more of them.

        Pods are not spread, nothing ends an attempt on the new nodes, and DaemonSets have their pods there, which take nothing
        from pods on other nodes: neither a quota nor shared devices, and no zone that pods have to themselves.
        """
        if any(isinstance(each.plan, PodPlan) and each.plan.shape.spread for each in top.arriving):
            return False
        placed = self._at(self._largest)
        if any(reason.code == "allocation-aborted" for each in placed.workloads for reason in each.reasons):
            return False
        daemons = [
            (each, each.plan)
            for each in top.arriving
            if each.replicas is None and isinstance(each.plan, PodPlan)
        ]
        if not daemons:
            return True
        keys = {
            term.topology_key
            for each in top.arriving
            if isinstance(each.plan, PodPlan)
            for term in each.plan.shape.apart
        }
        is_sharing = top.free.in_use.is_shared or any(
            entry.shared for _, plan in daemons for entry in plan.entries
        )
        _, refused = ObjectMakers(top).make_together(top.arriving)
        if keys - {HOSTNAME} or is_sharing or refused:
            return False
        first = place_together(top.free, [each for each, _ in daemons]).order
        return judge_jointly(top.free, daemons, first, self._is_late).works is not None

    def _list_sizes(self) -> list[Added] | None:
        """All sizes within the limits, the cheapest first; None where they are too many to try."""
        sizes: list[Added] = [()]
        for most in self._largest:
            longer = ((*each, more) for each in sizes for more in range(min(most, TRIES) + 1))
            sizes = [each for each in longer if self._fleet.allows(each)]
            if len(sizes) > TRIES:
                return None
        return sorted(sizes, key=lambda each: (self._cost(each), each))

    def _find_starts(self) -> list[Added]:
        """Sizes within the limits that no pool leaves larger: each pool first by turns. The cheapest first."""
        starts = set()
        for lead in range(len(self._pools)):
            added = list(self._now)
            for number in sorted(range(len(added)), key=lambda each: (each != lead, each)):
                rooms = [
                    limit.leaves(added) // limit.takes[number]
                    for limit in self._fleet.limits
                    if limit.takes[number]
                ]
                added[number] = min((self._largest[number], *rooms))
            starts.add(tuple(added))
        return sorted(starts, key=lambda each: (self._cost(each), each))

    def _try_all(self, sizes: Sequence[Added], *, steady: bool) -> Growth:
        never: list[Added] = []
        sure = True
        for added in sizes:
            if steady and any(all(a <= b for a, b in zip(added, each, strict=True)) for each in never):
                continue
            if self._works(added):
                return self._tell("fits-grown", added, is_cheapest=sure)
            if self._at(added).joint.verdict == "never":
                never.append(added)
            else:
                sure = False
        return self._tell("never-within-limits" if sure else "not-decided", self._largest)

    def _shrink(self, start: Added, *, steady: bool) -> Growth:
        """Take nodes away from a large fleet, of the dearest pool first, as long as all pods fit."""
        found = list(start)
        sure = steady and len(self._pools) == 1
        for number in sorted(range(len(found)), key=lambda each: -self._costs[each]):
            least = 0
            most = found[number]
            while least < most and len(self._known) < TRIES and not self._is_late():
                middle = (least + most) // 2
                tried = (*found[:number], middle, *found[number + 1 :])
                if self._works(tried):
                    most = middle
                else:
                    sure = sure and self._at(tried).joint.verdict == "never"
                    least = middle + 1
            sure, found[number] = sure and least == most, most
        return self._tell("fits-grown", tuple(found), is_cheapest=sure)

    def _tell(
        self, verdict: GrowthAnswer, added: Added, why: str = "", *, is_cheapest: bool = True
    ) -> Growth:
        placed = self._at(added)
        cut = [number for number, pool in enumerate(self._pools) if pool.is_cut]
        if cut and verdict == "never-within-limits":
            # More nodes like these help neither a pod that none of them takes, nor one that a quota refuses.
            refused = [each for each in placed.workloads if each.verdict == "does-not-fit"]
            codes = {reason.code for each in refused for reason in each.reasons}
            if all(each.nodes for each in refused) and "quota-refuses" not in codes:
                verdict = "not-decided"
        growth = Growth(
            verdict=verdict,
            pools=self._pools,
            added=added if verdict == "fits-grown" else self._now,
            billing=self._fleet.billing,
            is_cheapest=is_cheapest
            and all(self._cost(added) <= (self._largest[each] + 1) * self._costs[each] for each in cut),
            joint=placed.joint,
        )
        works = placed.joint.works
        if works is None:
            largest = join_words((f"{pool.name} x {pool.most:,}" for pool in self._pools), most=8)
            reason = next(iter(placed.joint.reasons), "no reason known")
            why = why or f"with {largest}, {reason}"
        is_open = bool(cut) and verdict == "not-decided"
        if works is None and not is_open:
            return replace(growth, reasons=(why,))
        if works is None or not growth.fits:
            # All pods fit where all pools are at their largest, which their limits do not allow, or may with more nodes.
            reasons = ((why or _BEYOND) + (_CUT if is_open else ""),)
            answer: JointAnswer = "never" if verdict == "never-within-limits" else "not-decided"
            return replace(growth, joint=JointVerdict(verdict=answer, reasons=reasons), reasons=reasons)
        devices = count_devices(placed.fleet, self._pools, added)
        held = count_held(self._open(added), works, frozenset().union(*devices.values()))
        return replace(growth, devices=devices, held=held)


def find_costs(pools: Sequence[NodePool]) -> tuple[int, ...]:
    """What one more node of each pool costs, in whole numbers: its price, where all have one, and of equal ones fewer nodes."""
    prices = [pool.price for pool in pools if pool.price is not None]
    if len(prices) < len(pools):
        # Of equally few nodes those with fewer devices, and of these the pools that come first.
        sizes = [
            1_000 * pool.spare[0].device_count + number if pool.spare else 0
            for number, pool in enumerate(pools)
        ]
        one = 1 + sum(size * len(pool.spare) for size, pool in zip(sizes, pools, strict=True))
        return tuple(one + size for size in sizes)
    digits = max(-int(price.as_tuple().exponent) for price in prices)
    nodes = sum(len(pool.spare) for pool in pools)
    return tuple(int(price.scaleb(max(digits, 0))) * (nodes + 1) + 1 for price in prices)


def _cut(limit: SharedLimit) -> tuple[int, list[int]]:
    """A unit in which a limit has small numbers, and what nodes take in it, rounded down: so it allows what it allowed, or more."""
    unit = math.gcd(*limit.takes) or 1
    unit <<= max((limit.left // unit).bit_length() - _BITS, 0)
    return unit, [each // unit for each in limit.takes]


def _find_steps(
    free: FreeFleet, states: States, pools: Sequence[NodePool], costs: Sequence[int]
) -> tuple[list[NodeKind], list[int], list[Growing]] | None:
    """The kinds of nodes, how many of each are there now, and what a step of each pool adds; None where steps differ."""
    names = [node.name for node in free.cluster.nodes]
    steps = {
        node.name: (number, step)
        for number, pool in enumerate(pools)
        for step, more in enumerate(pool.spare)
        for node in more.nodes
    }
    kinds: list[NodeKind] = []
    there: list[int] = []
    adds: defaultdict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for number, kind in enumerate(states.kinds):
        due = [
            which
            for which, each in enumerate(states.pods)
            if each.on_each and not free.refusals(each.plan)[kind.nodes[0]]
        ]
        fillings = tuple(each for each in kind.fillings if all(each.counts[which] for which in due))
        kinds.append(NodeKind(kind.nodes, fillings))
        there.append(sum(names[node] not in steps for node in kind.nodes))
        for node in kind.nodes:
            if names[node] in steps:
                adds[steps[names[node]]][number] += 1
    growing: list[Growing] = []
    for number, pool in enumerate(pools):
        added = [dict(adds[number, step]) for step in range(len(pool.spare))]
        if any(each != added[0] for each in added):
            return None
        growing.append(Growing(costs[number], len(pool.spare), added[0] if added else {}))
    return kinds, there, growing


def count_devices(fleet: Fleet, pools: Sequence[NodePool], added: Added) -> dict[str, dict[str, int]]:
    """How many devices each node has, by pool and node; a GPU that is published in partitions is one."""
    found: defaultdict[str, set[object]] = defaultdict(set)
    for slice_ in fleet.slices:
        spec = slice_.spec
        if spec.node_name and spec.driver != COMPUTE_DOMAIN_DRIVER:
            found[spec.node_name].update(
                (spec.driver, spec.pool.name, whole_of(each)) for each in spec.devices or ()
            )
    return {
        pool.name: {name: len(found[name]) for name in (*pool.nodes, *_names(pool.spare[:number]))}
        for pool, number in zip(pools, added, strict=True)
    }


def _names(spare: Sequence[Fleet]) -> list[str]:
    return [node.name for each in spare for node in each.nodes]


def count_held(
    program: OpenProgram, order: Order, nodes: frozenset[str]
) -> dict[ObjectRef, dict[str, Fraction]]:
    """How many devices the pods of each workload have on each of the *nodes*, when they arrive in an order.

    A device that several workloads share is divided between them; one for admin access is nobody's. Those of evicted pods of
    others are not told, as those that others have before are not.
    """
    free = program.free
    own = {each.owner for each in program.workloads}
    wholes = {
        (slice_.spec.driver, slice_.spec.pool.name, each.name): whole_of(each)
        for slice_ in free.cluster.fleet.slices
        for each in slice_.spec.devices or ()
    }
    numbers = {node.name: number for number, node in enumerate(free.cluster.nodes)}
    plans = {each.owner: each.plan for each in program.arriving if isinstance(each.plan, PodPlan)}
    users: defaultdict[tuple[str, object], set[ObjectRef]] = defaultdict(set)
    state = free.state()
    for arrival in order.arrivals:
        plan = plans[arrival.owner]
        node = numbers[arrival.node]
        for _ in range(arrival.pods):
            outcome = state.attempt(plan, node)
            if not isinstance(outcome, Chosen):
                break
            for choice in state.commit(plan, node, outcome).devices:
                device = choice.driver, choice.pool, choice.device
                if arrival.node in nodes and not choice.admin and choice.driver != COMPUTE_DOMAIN_DRIVER:
                    users[arrival.node, (*device[:2], wholes.get(device, choice.device))].add(arrival.owner)
    held: dict[ObjectRef, dict[str, Fraction]] = {}
    for (name, _), owners in users.items():
        for owner in owners & own:
            on = held.setdefault(owner, {})
            on[name] = on.get(name, Fraction()) + Fraction(1, len(owners))
    return held
