"""Places the pods of a program on a fleet: each workload then all together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dra_infra.explanation.node_reasons import NodeReason
from dra_infra.explanation.records import FitVerdict
from dra_infra.explanation.shortages import literal
from dra_infra.kubernetes.api import Gang, ObjectRef
from dra_infra.kubernetes.scheduler import show_amount
from dra_infra.output.wording import count_of
from dra_infra.placement.candidates import CandidateNodes
from dra_infra.placement.cluster import name_claims
from dra_infra.placement.demand import PodPlan, Undecided, Workload
from dra_infra.placement.fragmentation import count_fragments
from dra_infra.placement.free_fleet import Capacity, FreeAnswer, FreeFleet, Tally
from dra_infra.placement.headroom import count_headroom
from dra_infra.placement.joint import (
    ObjectMakers,
    count_daemons,
    find_cut,
    place_together,
    plan_alone,
    show_refusal,
    without_absent,
)
from dra_infra.placement.joint_verdict import judge_jointly
from dra_infra.placement.objects import find_lacking, name_policies
from dra_infra.placement.open_programs import open_program
from dra_infra.placement.outcomes import Aborted, NotDecided
from dra_infra.placement.placement import (
    FITS_BY_BUG,
    JointVerdict,
    Order,
    Placement,
    Reason,
    WorkloadPlacement,
    by_owner,
)
from dra_infra.placement.question import PlacementQuestion

OTHER_NODES: Final = "fleet-is-partial"
"""Code of the reason why it is open where pods without devices go: the cluster may have nodes that the fleet does not name."""
ORDERS_LEFT: Final = "orders-not-all-tried"
"""Code of a reason why it is open whether pods fit, where they do not in the orders that were tried."""


def place(
    question: PlacementQuestion, *, last: frozenset[ObjectRef] = frozenset(), with_headroom: bool = False
) -> Placement:
    """Return where the pods of a program can go.

    Args:
        question: The program and the fleet.
        last: Workloads that the joint placement puts behind all others.
        with_headroom: Whether to count what is left per class and MIG profile, before and after.

    Returns:
        One answer per workload whose pods use devices, and one per other workload that does not fit. Nothing is raised for what a program or fleet holds: what
        cannot be answered is `not-decided` with its reason.
    """
    fleet, taken, is_late = question.fleet, question.taken, question.is_late
    opened = open_program(question)
    objects, workloads, free = opened.objects, opened.workloads, opened.free
    makers = ObjectMakers(opened)
    scheduler = _Scheduler(free, makers, is_late)
    answers = scheduler.place_gangs(workloads, [scheduler.place_alone(each) for each in workloads])
    order = sorted(range(len(workloads)), key=lambda number: workloads[number].owner in last)
    wanted = [*(workloads[number] for number in order), *opened.bystanders]
    made, refused = makers.make_together(wanted)
    refused = {**refused, **find_lacking(objects, wanted, fleet)}
    together = place_together(free, made)
    joint = dict(zip(order, together.pods, strict=False))
    placed = tuple(replace(answer, pods=joint[number]) for number, answer in enumerate(answers))
    # Pods without devices need CPU, memory and what device plugins give out; where they find it, nobody asks about them.
    evicted = {each.owner for each in taken.evicted}
    others = [scheduler.place_alone(each) for each in opened.bystanders if each.owner not in evicted]
    placed = (*placed, *(answer for answer in others if answer.verdict != "fits"))
    verdict = _judge_jointly(free, placed, wanted, together.order, refused, is_late)
    placed = tuple(_with_others(answer, verdict) for answer in placed)
    told = {each.owner for each in placed if any(reason.code == "quota-refuses" for reason in each.reasons)}
    return Placement(
        fleet=fleet,
        workloads=tuple(sorted(placed, key=by_owner)),
        left_out=tuple(
            _leave_open(scheduler.place_alone(each)) for each in opened.left_out if each.replicas is not None
        ),
        joint=verdict,
        joint_at_most=_judge_at_most(free, placed, wanted, makers, is_late),
        notes=(
            *fleet.notes,
            *opened.notes,
            *(f"{each.path}: {each.message}" for each in free.cluster.problems),
            *name_policies(objects, workloads),
            *(text for owner, text in refused.items() if owner not in told and text not in verdict.reasons),
        ),
        unplaced=tuple(opened.unplaced),
        headroom=count_headroom(free.attempts, free.in_use, together.in_use, objects.readable_classes)
        if with_headroom
        else (),
        fragments=count_fragments(free.attempts, together.in_use, objects.readable_classes)
        if with_headroom
        else (),
        evicted=sum(each.replicas or 0 for each in taken.evicted),
    )


def place_claim(question: PlacementQuestion, claim: ObjectRef) -> WorkloadPlacement:
    """Return where one pod can go that uses nothing but the given claim or claim template."""
    opened = open_program(question, claim=claim)
    (workload,) = opened.workloads
    answer = _Scheduler(opened.free, ObjectMakers(opened), question.is_late).place_alone(workload)
    return replace(answer, pods=place_together(opened.free, opened.workloads).pods[0])


_MOST_WAYS: Final = 100
"""Of how many numbers of pods from the parts of a gang it is asked whether they fit."""


class _Scheduler:
    def __init__(self, free: FreeFleet, makers: ObjectMakers, is_late: Callable[[], bool]) -> None:
        self._cluster = free.cluster
        self.free = free
        self._makers = makers
        self._is_late = is_late
        self._tried: dict[tuple[object, ...], JointVerdict] = {}
        self._findings: dict[tuple[object, ...], NodeReason] = {}

    def place_alone(self, workload: Workload) -> WorkloadPlacement:
        """One workload on the otherwise free fleet."""
        plan = workload.plan
        if isinstance(plan, Undecided):
            return WorkloadPlacement(
                owner=workload.owner,
                replicas=workload.replicas or 0,
                verdict="not-decided",
                reasons=_distinct(plan.reasons),
                unmodelled=workload.unmodelled,
            )
        plan = plan_alone(workload, plan)
        answer = self.free.answer(plan)
        daemon = workload.replicas is None
        replicas = answer.eligible if workload.replicas is None else workload.replicas
        capacity = count_daemons(self.free, plan) if daemon else self.free.capacity(plan)
        verdict, first = _judge(answer, capacity, replicas, daemon=daemon)
        most, refusal = self._makers.count_alone(workload.owner, plan, max(capacity.pods, replicas))
        objects = self._makers.program.objects
        crowded = objects.find_crowded([(workload.owner, replicas)]).get(workload.owner, "")
        if (crowded or most < replicas) and verdict == "fits":
            verdict = "does-not-fit"
        elif most >= replicas and verdict == "does-not-fit" and answer.candidates:
            verdict, first = self._try_orders(workload, plan, first)
        most_used = min(most, objects.count_seats(workload.owner))
        left = min(capacity.pods, most_used) - replicas
        room = max(capacity.pods, replicas if verdict == "fits" else 0)
        reasons = (*first, *self._explain(plan, answer))
        if most < replicas:
            text = show_refusal(most, replicas, refusal)
            reasons = (Reason(code="quota-refuses", message=text), *reasons)
        if crowded:
            reasons = (Reason(code="claim-reserved", message=crowded), *reasons)
        return WorkloadPlacement(
            owner=workload.owner,
            replicas=replicas,
            verdict=verdict,
            nodes=CandidateNodes(self.free, plan, answer.taking if daemon else answer.candidates),
            more_pods=max(left, 0) if verdict == "fits" and not daemon else 0,
            reasons=(
                *reasons,
                *(self._tell_bugs(plan) if verdict == "fits" else ()),
                *_tell_autoscaled(workload, min(room, most_used)),
            ),
            unmodelled=workload.unmodelled,
            most=workload.most,
        )

    def _tell_bugs(self, plan: PodPlan) -> Iterator[Reason]:
        if bugs := self.free.find_bugs(plan):
            text = f"it fits only because of a bug of Kubernetes {self._cluster.release.minor}: {'; '.join(bugs)}"
            yield Reason(code=FITS_BY_BUG, message=text)

    def _try_orders(
        self, workload: Workload, plan: PodPlan, reasons: tuple[Reason, ...]
    ) -> tuple[FitVerdict, tuple[Reason, ...]]:
        """The verdict on pods of which each goes to the first node that takes it, and not all find one.

        Where they may in another order, or on other nodes, the joint search is asked about this workload alone.
        """
        if self.free.fills_best(plan):
            return "does-not-fit", reasons
        number = None if workload.replicas is None else max(workload.replicas, 1)
        key = (*self.free.key_of(plan), number)
        if key not in self._tried:
            self._tried[key] = self._judge_beside(
                [replace(workload, plan=plan, replicas=number, affinity_to=())]
            )
        joint = self._tried[key]
        if joint.works is not None:
            return "fits", ()
        if joint.verdict == "never":
            return "does-not-fit", reasons
        return "not-decided", (Reason(code=ORDERS_LEFT, message=str(joint)),)

    def _judge_beside(self, workloads: Sequence[Workload]) -> JointVerdict:
        """The verdict on some of the workloads without the others."""
        plans = [(each, each.plan) for each in workloads if isinstance(each.plan, PodPlan)]
        first = place_together(self.free, workloads).order
        return judge_jointly(self.free, plans, first, self._is_late)

    def place_gangs(
        self, workloads: Sequence[Workload], answers: Sequence[WorkloadPlacement]
    ) -> list[WorkloadPlacement]:
        """The answers, where a part of an object that needs all of its pods fits only beside its other parts."""
        gangs: dict[Gang, list[int]] = {}
        for number, each in enumerate(workloads):
            if each.gang:
                gangs.setdefault(each.gang, []).append(number)
        found = list(answers)
        program = self._makers.program
        beside = [*program.left_out, *program.bystanders]
        everyone = [*beside, *workloads]
        cut = find_cut(everyone, [each.replicas or 0 for each in everyone])
        for gang, members in gangs.items():
            numbers = [each for each in members if answers[each].verdict == "fits"]
            asked = sum(workloads[number].replicas or 0 for number in numbers)
            elsewhere = sum(each.replicas or 0 for each in beside if each.gang == gang)
            least = min(asked, (gang.least or asked + elsewhere) - elsewhere)
            joint = None
            if len(numbers) > 1 and (least == asked or numbers == members):
                joint = self._judge_gang([workloads[number] for number in numbers], least)
            verdict: FitVerdict = "does-not-fit"
            code = "gang-does-not-fit"
            how = "its parts" if least == asked else "they"
            text = f"needs {'all' if least == asked else f'{least:,}'} of its pods, and"
            if gang in cut:
                text = f"needs {count_of(cut[gang], 'pod')} at once, and there are fewer"
            elif joint is None or joint.works is not None:
                continue
            elif joint.verdict == "never":
                text += f" {how} {joint}"
            else:
                verdict = "not-decided"
                code = ORDERS_LEFT
                text = f"{text} it is {joint}"
            reason = Reason(code=code, message=f"{gang.owner} {text}")
            for number in numbers:
                found[number] = replace(
                    found[number], verdict=verdict, more_pods=0, reasons=(reason, *found[number].reasons)
                )
        return found

    def _judge_gang(self, parts: Sequence[Workload], least: int) -> JointVerdict | None:
        """The verdict on as many pods as a gang needs, the best of all ways to take them from its parts; None for too many ways."""
        most = [each.replicas or 0 for each in parts]
        ways: Iterable[Sequence[int]] = [most]
        if least < sum(most):
            if math.prod(number + 1 for number in most) > _MOST_WAYS:
                return None
            ways = itertools.product(*(range(number + 1) for number in most))
        judged = None
        for way in (each for each in ways if sum(each) == least):
            some = zip(parts, way, strict=True)
            verdict = self._judge_beside(
                without_absent([replace(each, replicas=number) for each, number in some if number])
            )
            if verdict.works is not None:
                return verdict
            judged = verdict if judged is None or verdict.verdict != "never" else judged
        return judged

    def _explain(self, plan: PodPlan, answer: FreeAnswer) -> tuple[Reason, ...]:
        found: dict[tuple[str, str], tuple[Tally, int]] = {}

        def note(finding: NodeReason, tally: Tally) -> None:
            known, best = found.get((finding.code, finding.text), (Tally(), finding.best))
            first = min(known.first, tally.first) if known.count else tally.first
            merged = Tally(known.count + tally.count, first)
            found[finding.code, finding.text] = (merged, max(best, finding.best))

        for text, tally in answer.refused.items():
            note(NodeReason("node-refuses-pod", literal(text)), tally)
        for text, tally in answer.apart.items():
            note(NodeReason("other-pods-in-the-way", literal(text)), tally)
        for text, tally in answer.costly.items():
            note(NodeReason("node-too-small", literal(text)), tally)
        for (resource, amount), tally in answer.short.items():
            note(_describe_shortage(plan, resource, amount), tally)
        for key, tally in (*answer.failed.items(), *answer.busy.items()):
            note(self._find(plan, key, tally.first), tally)
        for halt, tally in answer.halted.values():
            note(_describe_halt(plan.at(self._cluster.offered[tally.first]), halt), tally)
        reasons = [
            Reason(
                code=code,
                message=text.format(best=best),
                nodes=tally.count,
                example=self._cluster.nodes[tally.first].name,
            )
            for (code, text), (tally, best) in found.items()
        ]
        return tuple(sorted(reasons, key=_urgency))

    def _find(self, plan: PodPlan, key: Hashable, node: int) -> NodeReason:
        asked = plan.at(self._cluster.offered[node])
        entries = tuple((entry.object, entry.demand) for entry in asked.entries)
        finding = self._findings.get((entries, key))
        if finding is None:
            finding = self._findings[entries, key] = self.free.explain(plan, node)
        return finding


def _judge(
    answer: FreeAnswer, capacity: Capacity, replicas: int, *, daemon: bool
) -> tuple[FitVerdict, tuple[Reason, ...]]:
    """The verdict, and the reasons that are about all pods of the workload rather than about nodes."""
    if answer.is_aborted:
        return "does-not-fit", ()
    if any(not (isinstance(halt, NotDecided) and halt.on_node) for halt, _ in answer.halted.values()):
        return "not-decided", ()
    wanted = max(replicas, 1)
    if daemon and not replicas:
        # Its controller makes no pods, which is no failure.
        text = "no node lets its pods in, so it has none"
        return "fits", (Reason(code="node-refuses-pod", message=text),)
    if answer.halted and capacity.pods < wanted:
        return "not-decided", ()
    if not answer.candidates:
        empty = Reason(code="too-few-nodes", message="the fleet has no nodes")
        return "does-not-fit", () if answer.eligible or answer.refused else (empty,)
    if capacity.pods < wanted:
        where = "of the nodes that it goes to have room" if daemon else "pods fit on the free fleet"
        text = f"{capacity.pods} of {wanted} {where}"
        return "does-not-fit", (Reason(code="too-few-nodes", message=text),)
    if capacity.halt is not None and capacity.before_halt < wanted:
        text = f"when {capacity.before_halt} pods are on one node, the next attempt ends: {_halt_text(capacity.halt)}"
        return "not-decided", (Reason(code=_halt_code(capacity.halt), message=text),)
    if capacity.worst < wanted:
        text = (
            f"all pods share a claim and go where it is allocated: the best node takes {wanted} pods or more, "
            f"the worst candidate only {capacity.worst}"
        )
        return "fits", (Reason(code="claim-elsewhere", message=text),)
    return "fits", ()


def _describe_shortage(plan: PodPlan, resource: str, amount: int) -> NodeReason:
    if resource == "pods":
        return NodeReason("node-too-small", "the node has no slot for a pod")
    wanted = show_amount(resource, plan.requests[resource])
    has = show_amount(resource, amount) if amount else "none"
    return NodeReason("node-too-small", literal(f"the pod requests {wanted} {resource}, the node has {has}"))


def _describe_halt(plan: PodPlan, halt: Aborted | NotDecided) -> NodeReason:
    text = name_claims(_halt_text(halt), [entry.object for entry in plan.entries])
    return NodeReason(_halt_code(halt), literal(text))


def _halt_text(halt: Aborted | NotDecided) -> str:
    if isinstance(halt, Aborted):
        return f"the scheduler crashes: {halt.text}" if halt.crashes else halt.text
    return f"{halt.what} is not modelled yet" if halt.code == "not-modelled" else halt.what


def _halt_code(halt: Aborted | NotDecided) -> str:
    return "allocation-aborted" if isinstance(halt, Aborted) else halt.code


def _judge_jointly(
    free: FreeFleet,
    placed: Sequence[WorkloadPlacement],
    wanted: Sequence[Workload],
    first: Order,
    refused: Mapping[ObjectRef, str],
    is_late: Callable[[], bool],
) -> JointVerdict:
    answers = {answer.owner: answer for answer in placed}
    for each in wanted:
        answer = answers.get(each.owner)
        reasons = each.plan.reasons if isinstance(each.plan, Undecided) else ()
        if answer:
            reasons = answer.reasons
        # Of all workloads at once an order may be known where none is of this one alone.
        is_open = any(reason.code == ORDERS_LEFT for reason in reasons)
        if isinstance(each.plan, Undecided) or (answer and answer.verdict == "not-decided" and not is_open):
            why = f": {reasons[0]}" if reasons else ""
            return JointVerdict(verdict="not-decided", reasons=(f"{each.owner} is not decided{why}",))
        if each.owner in refused:
            # Quotas count whatever the order, so what one order makes is the most that any does.
            return JointVerdict(verdict="never", reasons=(refused[each.owner],))
    # Quotas also refuse pods that may be for other nodes.
    placed_owners = {each.owner for each in wanted}
    if elsewhere := [text for owner, text in refused.items() if owner not in placed_owners]:
        return JointVerdict(verdict="never", reasons=(elsewhere[0],))
    plans = [(each, each.plan) for each in wanted if isinstance(each.plan, PodPlan)]
    return judge_jointly(free, plans, first, is_late)


def _leave_open(answer: WorkloadPlacement) -> WorkloadPlacement:
    """Return the answer for pods that may be for nodes which the fleet does not name; what a quota refuses is made nowhere."""
    if any(reason.code == "quota-refuses" for reason in answer.reasons):
        return answer
    text = "no node of the fleet lets its pods in, and they may be for nodes that the fleet does not name"
    reasons = (Reason(code=OTHER_NODES, message=text), *answer.reasons)
    return replace(answer, verdict="not-decided", reasons=reasons)


def _with_others(answer: WorkloadPlacement, joint: JointVerdict) -> WorkloadPlacement:
    """The answer for one workload, where all of its pods find a node although they do not, or may not, without the others."""
    is_aborted = any(reason.code == "allocation-aborted" for reason in answer.reasons)
    if answer.verdict == "fits" or not answer.replicas or joint.works is None or is_aborted:
        return answer
    text = "its pods are known to find room where pods of other workloads are, and not without these"
    reasons = (Reason(code="fits-beside-others", message=text), *answer.reasons)
    return replace(answer, verdict="fits", reasons=reasons)


def _judge_at_most(
    free: FreeFleet,
    placed: Sequence[WorkloadPlacement],
    wanted: Sequence[Workload],
    makers: ObjectMakers,
    is_late: Callable[[], bool],
) -> JointVerdict | None:
    """The verdict with every workload that is autoscaled at its most pods; None where none has more than now."""
    most = [each if each.most is None else replace(each, replicas=each.most) for each in wanted]
    if most == list(wanted):
        return None
    made, refused = makers.make_together(most)
    first = place_together(free, made).order
    return _judge_jointly(free, placed, most, first, refused, is_late)


def _tell_autoscaled(workload: Workload, room: int) -> Iterator[Reason]:
    if (
        workload.most is not None
        and workload.replicas is not None
        and room < workload.most > workload.replicas
    ):
        text = (
            f"an autoscaler makes up to {workload.most:,} pods, of which {room:,} find room on the free fleet"
        )
        yield Reason(code="autoscaled-beyond-room", message=text)


def _urgency(reason: Reason) -> tuple[bool, int, str, str]:
    """Sorts what ends the attempt first, then what holds for most nodes."""
    return reason.code != "allocation-aborted", -reason.nodes, reason.code, reason.message


def _distinct(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    return tuple(dict.fromkeys(reasons))
