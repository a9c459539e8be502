"""The answer of `dra-infra explain`: why the pods of an object, or a claim, get no devices, or where they get them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.advice.queues import HELD
from dra_infra.answers.checking import check
from dra_infra.answers.placing import place_one_claim, place_scene, question_of
from dra_infra.answers.scene import Scene
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.cluster import pending
from dra_infra.errors import Problem, ProgramError
from dra_infra.explanation.asking import ClusterContext, SubjectQuestion, find_subject, read_classes
from dra_infra.explanation.causes import find_causes
from dra_infra.explanation.explain import explain as explain_question
from dra_infra.explanation.question import Question
from dra_infra.explanation.records import Explanation, FitVerdict
from dra_infra.explanation.slips import find_slip_problems
from dra_infra.kubernetes.api import CLAIM_KINDS, ObjectRef, Release, name_kind
from dra_infra.kubernetes.scheduler import Taken, with_taint_rules
from dra_infra.placement.demand import Undecided
from dra_infra.placement.joint import find_refusal, find_workload
from dra_infra.placement.objects import ProgramObjects
from dra_infra.placement.placement import REFUSED, Growth, JointVerdict, Placement, Reason, WorkloadPlacement
from dra_infra.placement.scheduling import ORDERS_LEFT, OTHER_NODES
from dra_infra.program_objects import NotSeen, ProgramObject
from dra_infra.provenance import Provenance
from dra_infra.sources.questions import ask_program

Manifest = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class SubjectFacts:
    """A question about one object, and what is known before the allocator is asked.

    Args:
        subject_question: The question.
        where: The fleet or cluster.
        provenance: What it is checked for.
        not_seen: What could not be seen, warnings of the program, and every error of the objects.
        notes: What else the reader must know.
        joint: The verdict on all workloads at once; None where the question is not about one of them.
        growth: By how much node pools have to grow for all of them; None where the fleet has none that may.
        undecided: Why placement does not decide whether the pods fit.
        placed: What placement says of the pods, or of one pod with the claim; None where the question is about pods of a
            cluster, or about pods without devices that fit.
        has_errors: Whether any object has an error, also one that these pods do not need.
        is_daemon: Whether the pods are those of a DaemonSet, which has none where no node lets them in.
        refusal: What quotas say of the claims of a question.
        made: What components of a program make, by kind, namespace and name.
        warnings: About the options that the scene was read with.
        left_out: What the program or the files hold that the scene does not.
    """

    subject_question: SubjectQuestion
    where: str
    provenance: Provenance
    not_seen: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    joint: JointVerdict | None = None
    growth: Growth | None = None
    undecided: tuple[Reason, ...] = ()
    placed: WorkloadPlacement | None = None
    has_errors: bool = False
    is_daemon: bool = False
    refusal: Callable[[Question], str] = lambda _: ""
    made: Mapping[str, ProgramObject] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    left_out: tuple[NotSeen, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """The answer.

    Args:
        subject_question: What was asked.
        causes: What is wrong around it.
        answer: What the allocator says; None where it was not asked.
        where: The fleet or cluster.
        provenance: What it was checked for.
        joint: The verdict on all workloads of the program at once; None where the question is not about one of them.
        growth: By how much node pools have to grow for all of them; None where the fleet has none that may.
        undecided: Why placement does not decide whether the pods fit; what the allocator says does not count then.
        has_errors: Whether any object has an error, also one that these pods do not need.
        is_deep: Whether pairs of changes were tried too.
    """

    subject_question: SubjectQuestion
    causes: tuple[Problem, ...]
    answer: Explanation | None
    where: str
    provenance: Provenance
    joint: JointVerdict | None = None
    growth: Growth | None = None
    undecided: tuple[Reason, ...] = ()
    has_errors: bool = False
    is_deep: bool = False

    @property
    def verdict(self) -> FitVerdict:
        """The verdict on whether the pods fit, or have what they need."""
        if self.undecided:
            return "not-decided"
        if any(
            cause.severity == "error"
            for cause in self.causes
            if cause.code not in ASIDE or (self.answer is None and not self.subject_question.settled)
        ):
            return "does-not-fit"
        if self.answer is not None:
            return self.answer.verdict
        return "fits" if self.subject_question.settled or self.is_free else "does-not-fit"

    @property
    def is_free(self) -> bool:
        """True where there is a node to which the pods may go."""
        return self.subject_question.question is not None and bool(self.subject_question.question.eligible)

    @property
    def is_held(self) -> bool:
        """True where a queue never admits the pods, so that they wait whether or not devices are free."""
        return any(cause.code in HELD for cause in self.causes)

    @property
    def absent(self) -> tuple[str, ...]:
        """The classes that are requested and not there."""
        return self.subject_question.question.absent if self.subject_question.question is not None else ()

    @property
    def fits(self) -> bool:
        """True where nothing is in the way."""
        return self.verdict == "fits"

    @property
    def exit_code(self) -> int:
        """0 where `simulate` ends with 0 too, else 1: no object has an error, and it fits with all other workloads.

        What fits with the nodes that pools may get fits.
        """
        if self.has_errors:
            return 1
        if self.growth is not None and self.growth.verdict == "fits-grown":
            return 0
        return 0 if self.fits and (self.joint is None or self.joint.works is not None) else 1


ASIDE: Final = (
    "pool-incomplete",
    "pool-invalid",
    "pool-obsolete",
    "driver-not-on-node",
    "driver-missing",
    "mig-not-published",
)
"""Codes about some devices, which need not be in the way of those that are requested."""


def explain(
    scene: Scene, name: str, *, namespace: str | None = None, is_deep: bool = False, timeout: float = 20.0
) -> Explained:
    """Return why the pods of an object, or a claim, get no devices on the hardware of a scene, or where they get them.

    Args:
        scene: The objects and the hardware.
        name: `pod/x`, `deployment/x`, `claim/x`, or `x` of any kind that has pods or is a claim.
        namespace: Its namespace; None where the name is unique.
        is_deep: Whether to try pairs of changes where no single change is enough.
        timeout: Seconds for the placement, and again for the search for changes that help.

    Raises:
        ProgramError: `subject-not-known`.
        ValueError: For a scene without a fleet.
    """
    facts = ask_scene(scene, name, namespace=namespace, timeout=timeout)
    end = time.monotonic() + timeout
    return answer(facts, is_late=lambda: time.monotonic() > end, is_deep=is_deep)


def ask_scene(
    scene: Scene, name: str, *, namespace: str | None = None, timeout: float = 60.0
) -> SubjectFacts:
    """Return the question about one object of a scene, with what the check and the placement of the whole scene say of it.

    Args:
        scene: The objects and the hardware.
        name: `pod/x`, `deployment/x`, `claim/x`, or `x` of any kind that has pods or is a claim.
        namespace: Its namespace; None where the name is unique.
        timeout: Seconds for the placement; what is not answered by then is `not-decided`.

    Raises:
        ProgramError: `subject-not-known`, with the problems of the run, for what has one may be what is asked about.
        ValueError: For a scene without a fleet.
    """
    program, manifests, fleet, release = scene.program, scene.manifests, scene.fleet, scene.release
    if fleet is None:
        raise ValueError("the scene names no fleet, so nothing can be placed")
    try:
        subject, manifest = find_subject(
            name, namespace, manifests, [name_kind(kind, group) for group, kind in scene.kinds.kinds]
        )
    except ProgramError as error:
        raise ProgramError([*program.problems, *error.problems]) from None
    checked = check(scene)
    accepted = checked.accepted.manifests
    taken = scene.running.without_evicted(accepted, fleet, release)
    around, unread = _surround(scene, accepted, taken)
    placed = question_of(scene, checked, taken=taken)
    objects = ProgramObjects(placed)
    running = [*scene.running.objects.values()]
    subject_question = ask_program(
        manifest, around, manifests, running, part=subject.part, kinds=scene.kinds, held=objects.held
    )
    errors = [problem for problem in checked.problems if problem.severity == "error"]
    # If the program itself has errors, objects are missing, and it is not known which other pods would run.
    missing = [problem for problem in program.problems if problem.severity == "error"]
    facts = SubjectFacts(
        subject_question=replace(subject_question, causes=(*subject_question.causes, *missing)),
        where=fleet.name,
        provenance=scene.provenance,
        not_seen=tuple(dict.fromkeys((*program.problems, *errors, *unread))),
        notes=taken.notes,
        has_errors=bool(errors),
        is_daemon=subject.kind == "DaemonSet",
        refusal=lambda question: find_refusal(question, subject, placed),
        made={str(ObjectRef.of(each.manifest)): each for each in program.objects if each.component},
        warnings=scene.warnings,
        left_out=program.not_seen,
    )
    if subject.kind in CLAIM_KINDS:
        alone = place_one_claim(scene, subject, checked, taken=taken)
        return _with_workload(facts, alone)
    end = time.monotonic() + timeout
    placement = place_scene(scene, checked, taken=taken, is_late=lambda: time.monotonic() > end)
    workload = find_workload(objects, subject)
    undecided = workload.plan.reasons if workload and isinstance(workload.plan, Undecided) else ()
    return _with_placement(facts, placement, subject, undecided)


def _surround(
    scene: Scene, accepted: Sequence[Manifest], taken: Taken
) -> tuple[ClusterContext, list[Problem]]:
    """Return the cluster around the pods of a scene, and what of it cannot be read.

    Pods and claims that are the scene's own, or that are evicted, hold nothing there.
    """
    fleet = scene.fleet
    running = [*scene.running.objects.values()]
    assert fleet is not None  # noqa: S101  (who asks has looked)
    own = {ObjectRef.of(each).stored for each in scene.manifests} | taken.gone
    others = seen_objects(
        [each for ref, each in scene.running.objects.items() if own.isdisjoint(scene.running.owners_of(ref))]
    )
    classes, malformed = read_classes([*running, *accepted])
    slices, unread = with_taint_rules(fleet.slices, [*running, *accepted], scene.release)
    snapshot = scene.running.snapshot
    context = ClusterContext(
        fleet=replace(fleet, slices=tuple(slices)),
        release=scene.release,
        classes=classes,
        holders=pending.find_holders(others),
        taken=pending.find_amounts(others),
        placed=pending.find_placed(others, snapshot.fleet.nodes, snapshot.objects) if snapshot else None,
    )
    return context, [*malformed, *unread]


def _with_placement(
    facts: SubjectFacts, placement: Placement, subject: ObjectRef, undecided: tuple[Reason, ...]
) -> SubjectFacts:
    """Add what the placement of all workloads says of the one that is asked about."""
    facts = replace(facts, joint=placement.joint, growth=placement.growth, undecided=undecided)
    alone = next((placed for placed in placement.workloads if _is_of(placed, subject)), None)
    return facts if alone is None else _with_workload(facts, alone)


def _with_workload(facts: SubjectFacts, alone: WorkloadPlacement) -> SubjectFacts:
    """Add what the placement says of the pods that are asked about, or of one pod with the claim."""
    first = alone.reasons[0] if alone.reasons else None
    if first is not None and first.code == REFUSED:
        return replace(facts, subject_question=_refused(facts.subject_question, first))
    if first is not None and first.code == OTHER_NODES:
        # Why the nodes of the fleet do not let the pods in is known.
        facts = replace(facts, undecided=(first,))
    causes = tuple(
        Problem(
            path=facts.subject_question.subject,
            code=reason.code,
            message=reason.message,
            severity="warning" if reason.code in HELD else "error",
        )
        for reason in alone.reasons
        if reason.code in HELD or reason.code == "quota-refuses"
    )
    subject_question = replace(facts.subject_question, causes=(*facts.subject_question.causes, *causes))
    return replace(facts, subject_question=subject_question, placed=alone)


def _is_of(placed: WorkloadPlacement, subject: ObjectRef) -> bool:
    """Return True for the workload in question, or for its first part if the question names no part."""
    owner = placed.owner
    return owner.whole.stored == subject.whole.stored and subject.part in ("", owner.part)


def _refused(subject_question: SubjectQuestion, reason: Reason) -> SubjectQuestion:
    """Take the question back: pods that need an object with an error are never made, wherever devices are free."""
    cause = Problem(path=subject_question.subject, code=reason.code, message=reason.message)
    return SubjectQuestion(
        subject=subject_question.subject, causes=(cause, *subject_question.causes), settled="not placed"
    )


def ask_snapshot(cluster: Snapshot, name: str, *, namespace: str | None, release: Release) -> SubjectFacts:
    """Return the question about an object of a snapshot, where its pods run or wait.

    Raises:
        ProgramError: `subject-not-known`.
    """
    objects = seen_objects(cluster.objects, cluster.read)
    _, manifest = find_subject(name, namespace, objects.objects)
    slices, problems = with_taint_rules(cluster.fleet.slices, cluster.objects, release)
    around = ClusterContext(
        fleet=replace(cluster.fleet, slices=tuple(slices)),
        release=release,
        holders=pending.find_holders(objects),
        taken=pending.find_amounts(objects),
        placed=pending.find_placed(objects, cluster.fleet.nodes, cluster.objects),
    )
    subject_question = pending.ask_running(manifest, around, objects)
    return SubjectFacts(
        subject_question=subject_question,
        where=cluster.fleet.name,
        provenance=Provenance.of([release], placement=release),
        not_seen=tuple(problems),
    )


def seen_objects(objects: Sequence[Manifest], read: Set[str] = frozenset()) -> pending.SeenObjects:
    """Return the objects of a cluster by what an explanation needs of them.

    Args:
        objects: Those of a snapshot.
        read: Plurals of the kinds that were all read, also where there is none of them.
    """
    kinds: dict[str, list[Manifest]] = {}
    for each in objects:
        kinds.setdefault(str(each.get("kind")), []).append(each)
    owners = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")
    return pending.SeenObjects(
        pods=kinds.get("Pod", ()),
        claims=kinds.get("ResourceClaim", ()),
        templates=kinds.get("ResourceClaimTemplate", ()),
        events=[each for each in kinds.get("Event", ()) if each.get("type") == "Warning"],
        owners=[each for kind in owners for each in kinds.get(kind, ())],
        saw_claims="ResourceClaim" in kinds or "resourceclaims" in read,
        saw_templates="ResourceClaimTemplate" in kinds or "resourceclaimtemplates" in read,
    )


def answer(facts: SubjectFacts, *, is_late: Callable[[], bool], is_deep: bool = False) -> Explained:
    """Ask the allocator, and hold its answer to that of placement.

    The allocator gives each pod the first node that it can. Placement tries more orders, and places all pods of the
    object, so where both differ placement is right.

    Args:
        facts: The question.
        is_late: Asked during the search for changes that help; once true, it stops.
        is_deep: Whether to try pairs of changes too.
    """
    question = facts.subject_question.question
    subject_question = facts.subject_question
    placed = facts.placed
    explanation, causes = _ask_allocator(facts, is_late=is_late, is_deep=is_deep)
    undecided = facts.undecided
    if placed is not None and placed.verdict == "not-decided" and not undecided:
        # What stopped the search may have stopped the allocator's too, which says so in its own words.
        is_decided = explanation is None or explanation.verdict != "not-decided"
        undecided = tuple(reason for reason in placed.reasons if is_decided or reason.code == ORDERS_LEFT)
    if placed is not None and placed.verdict == "does-not-fit" and not _explains(explanation, causes):
        causes += [
            Problem(path=subject_question.subject, code=reason.code, message=str(reason))
            for reason in placed.reasons
            if reason.code not in HELD
        ]
    if explanation is not None and undecided:
        # The allocator answered without what is not known.
        explanation = replace(explanation, verdict="not-decided", error=None)
    # Placement lists pods without devices only where it does not find room for them.
    is_plain = facts.joint is not None and placed is None and question is not None and not question.claims
    if is_plain and question is not None and question.eligible:
        subject_question = replace(subject_question, settled="its pods fit, and need no devices of DRA")
    elif is_plain and facts.is_daemon:
        explanation = None
        subject_question = replace(subject_question, settled="no node lets its pods in, so it has none")
    elif placed is not None and placed.verdict == "fits" and _is_refused(explanation):
        explanation = None
        subject_question = replace(subject_question, settled=_describe_room(placed))
    return Explained(
        subject_question=subject_question,
        causes=tuple(dict.fromkeys(causes)),
        answer=explanation,
        where=facts.where,
        provenance=facts.provenance,
        joint=facts.joint,
        growth=facts.growth,
        undecided=undecided,
        has_errors=facts.has_errors,
        is_deep=is_deep,
    )


def _ask_allocator(
    facts: SubjectFacts, *, is_late: Callable[[], bool], is_deep: bool
) -> tuple[Explanation | None, list[Problem]]:
    """Return what the allocator says, None where it is not asked, and what is wrong around the pods."""
    question = facts.subject_question.question
    causes = [*facts.subject_question.causes]
    # Of a claim that is not there no change can be said to be enough, and of none there is nothing to say about devices.
    is_lost = any(cause.code == "claim-not-known" for cause in causes)
    if question is None or (is_lost and not question.claims):
        return None, causes
    causes += find_causes(question)
    is_lost = any(cause.code == "claim-not-known" for cause in causes)
    if not question.claims and (question.eligible or is_lost):
        return None, causes
    explanation = explain_question(question, is_late=is_late, is_deep=is_deep, refusal=facts.refusal)
    if explanation.verdict != "fits":
        causes += find_slip_problems(question)
    return explanation, causes


def _is_refused(explanation: Explanation | None) -> bool:
    return explanation is not None and explanation.verdict == "does-not-fit"


def _describe_room(placed: WorkloadPlacement) -> str:
    """Say why pods fit that do not if each goes to the first node that takes it."""
    about_all = (reason.message for reason in placed.reasons if not reason.nodes and reason.code not in HELD)
    return next(about_all, "its pods fit on other nodes than the first that take them, or in another order")


def _explains(explanation: Explanation | None, causes: Sequence[Problem]) -> bool:
    """Return whether there is an answer already why the pods do not fit."""
    if any(cause.severity == "error" and cause.code not in ASIDE for cause in causes):
        return True
    return explanation is not None and explanation.verdict != "fits"
