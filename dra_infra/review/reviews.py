"""The whole of a review as one record; every rendering is a pure function of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from dra_infra.advice.clusters import find_several_clusters
from dra_infra.errors import Problem
from dra_infra.fleet import Billing
from dra_infra.kubernetes.api import ObjectRef, WorkloadKinds
from dra_infra.markers import CHANGED_SECRET, find_markers, marker_kind
from dra_infra.output.repeated_problems import merge_repeated
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.fragments import describe_fragments
from dra_infra.placement.placement import FITS_BY_BUG, JointAnswer, JointVerdict, Placement
from dra_infra.placement.running import NOTHING_RUNS, Running
from dra_infra.program_objects import EnginePreview, Locate, NotSeen, PolicyFinding, Program
from dra_infra.provenance import Provenance
from dra_infra.review.changes import (
    ACTIONS,
    Action,
    Change,
    compare_programs,
    find_refused,
    find_undecided,
)
from dra_infra.review.comparison import Comparison
from dra_infra.review.dangers import Danger
from dra_infra.review.dangers.claims import find_claim_dangers
from dra_infra.review.dangers.quotas import find_passed_quotas, find_uncounted
from dra_infra.review.dangers.releases import find_release_dangers
from dra_infra.review.dangers.removals import find_removals, is_told_as_danger
from dra_infra.review.dangers.rights import find_widened_rights
from dra_infra.review.dangers.workloads import find_rules_that_evict, find_workload_dangers
from dra_infra.review.engine_steps import EngineSide, Joined, join_engine
from dra_infra.review.growth import GrowthChange, compare_growth
from dra_infra.review.options import describe_options, find_option_problems, find_staying
from dra_infra.review.placements import (
    RoomChange,
    WorkloadReview,
    compare_placements,
    compare_rooms,
    find_no_order,
    find_unplaced,
    needs_devices,
)
from dra_infra.upgrades.differences import Upgrade

Grade = Literal["failed", "danger", "undecided", "ok"]

FailOn = Literal["problem", "undecided", "danger", "change"]
"""What closes the gate of a review; each includes those before it."""

Source = Literal["program", "manifests", "chart", "kustomization"]
"""What both sides of a review were made from."""

_AT_ONCE: Final[dict[JointAnswer, str]] = {
    "always": " in every order",
    "depends-on-order": " depending on the order",
    "never": ", never all at once",
    "not-decided": ", all at once not decided",
}
_NO_FLEET: Final = "no fleet named"
_NO_NODES: Final = "the snapshot has no nodes"
_LACKING: Final = "the head has errors and does not make it; whether it goes shows when they are mended"
_NAME_A_FLEET: Final = 'Nothing was placed: add --fleet "hgx-h100 x 4" to see whether the pods fit.'


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """A review: changes, placements, problems and dangers of two versions of a program.

    Args:
        project: Pulumi project of the head.
        stack: Stack that both sides were compiled for.
        base_label: What the user called the base: `origin/main`.
        provenance: What it was checked for; the sides where they were read from a repository or from files.
        changes: Every object that differs, the worst first.
        unchanged: How many objects are the same on both sides.
        problems: Problems of the head, and changes that the API server or the fleet refuses; what fails first, then warnings.
        dangers: What works and a reviewer wants to know; sorted.
        workloads: Placement before and after, by workload.
        not_known: What could not be known offline, and what the placement does not take into account.
        notes: What else the reader must know.
        before: The placement of the base, when a fleet was given.
        after: The placement of the head, when a fleet was given.
        engine: What the preview of the real engine adds, when it was asked for.
        policies: What policies found in it; they are among the problems too.
        source: What both sides were made from.
        unplaced: Why nothing was placed, where pods ask for devices; empty where they were placed, or none asks.
        growth: What the change does to the fleet's node pools; None where it has none.
        rooms: Room that base and head leave on the fleet, per device class and MIG profile.
        rollouts: Rollouts that were played through on the fleet to their end: told, and no dangers; sorted.
        folder: Where relative places begin, seen from the top of the repository; empty for the top itself.
        upgrade: What the release of the head changes for the objects of the base; None where the base names the same release, or none.
    """

    project: str
    stack: str
    base_label: str
    provenance: Provenance
    changes: tuple[Change, ...] = ()
    unchanged: int = 0
    problems: tuple[Problem, ...] = ()
    dangers: tuple[Danger, ...] = ()
    workloads: tuple[WorkloadReview, ...] = ()
    not_known: tuple[NotSeen, ...] = ()
    notes: tuple[str, ...] = ()
    before: Placement | None = field(default=None, repr=False)
    after: Placement | None = field(default=None, repr=False)
    engine: EngineSide | None = None
    policies: tuple[PolicyFinding, ...] = ()
    source: Source = "program"
    unplaced: str = ""
    rooms: tuple[RoomChange, ...] = ()
    rollouts: tuple[Danger, ...] = ()
    growth: GrowthChange | None = None
    folder: str = ""
    upgrade: Upgrade | None = None

    @property
    def fragmented(self) -> tuple[str, ...]:
        """Lines on what the head leaves free and no large claim can have; none where there is no such class."""
        return (
            tuple(line.strip() for line in describe_fragments(self.after.fragments))[2:] if self.after else ()
        )

    @property
    def subject(self) -> str:
        """`quickstart/dev`; manifests and charts have no stack, and then it is what they are called."""
        return f"{self.project}/{self.stack}" if self.stack else self.project.removesuffix("/")

    @property
    def failed(self) -> bool:
        """True when something must be fixed before merge: a problem, or a workload that has no place any more."""
        return any(each.severity == "error" and each.code != BASE_NOT_RUN for each in self.problems)

    @property
    def is_base_known(self) -> bool:
        """False when the base did not run: no change is known then, and the gate is closed."""
        return all(each.code != BASE_NOT_RUN for each in self.problems)

    def is_blocked(self, fail_on: FailOn = "problem") -> bool:
        """True for what *fail_on* names, or anything worse: the gate is closed then, and the command ends with 1."""
        if not self.is_base_known:
            return True
        is_dangerous = bool(self.dangers) or self.does_upgrade_break
        levels = (self.failed, self.undecided, is_dangerous, bool(self.changes))
        return any(levels[: LEVELS.index(fail_on) + 1])

    @property
    def does_upgrade_break(self) -> bool:
        """Whether the release of the head breaks something that the base has: it counts as a danger."""
        return self.upgrade is not None and self.upgrade.grade == "failed"

    @property
    def undecided(self) -> bool:
        """True when nobody can say if a workload that was placed fits, if every order places all of them, or what changes."""
        if not self.is_base_known:
            return True
        if self.after is not None and self.after.joint.verdict == "not-decided":
            return True
        return any(each.after is not None and each.after.verdict == "not-decided" for each in self.workloads)

    @property
    def grade(self) -> Grade:
        """The review in one word."""
        if self.failed:
            return "failed"
        if (self.dangers or self.does_upgrade_break) and self.is_base_known:
            return "danger"
        return "undecided" if self.undecided else "ok"

    @property
    def counts(self) -> dict[Action, int]:
        """How many objects each action happens to, in the order of reports."""
        counted = Counter(change.action for change in self.changes)
        return {action: counted[action] for action in ACTIONS}

    @property
    def verdict(self) -> str:
        """`✗ 1 problem, 1 danger · 2 of 3 workloads fit`."""
        return (
            f"{MARKS[self.grade]} {self.findings} · {self.fit}"
            if self.fit
            else f"{MARKS[self.grade]} {self.findings}"
        )

    @property
    def mistakes(self) -> tuple[Problem, ...]:
        """The problems, those that a loop makes of many objects as one."""
        return merge_repeated(self.problems)

    @property
    def findings(self) -> str:
        """`1 problem, 1 danger`, with `no problems` said, where the base ran, and `no dangers` not."""
        mistakes = [each for each in self.mistakes if each.code != BASE_NOT_RUN]
        errors = sum(each.severity == "error" for each in mistakes)
        parts = ["not decided: the base did not run"] if not self.is_base_known else []
        if errors or self.is_base_known:
            parts.append(count_of(errors, "problem"))
        if warnings := len(mistakes) - errors:
            parts.append(count_of(warnings, "warning"))
        if self.dangers:
            parts.append(count_of(len(self.dangers), "danger"))
        if self.upgrade is not None:
            parts.append(f"with {self.upgrade.after.minor} {self.upgrade.headline}")
        return ", ".join(parts)

    @property
    def fit(self) -> str:
        """`3 of 3 workloads fit on hgx-h100 x 4`; `not placed: no fleet named`; empty where there is nothing to place."""
        if self.after is None:
            return f"not placed: {self.unplaced}" if self.unplaced else ""
        fitting = sum(workload.fits for workload in self.workloads)
        placed = [workload.after for workload in self.workloads if workload.after is not None]
        left = f", {join_words(self.after.unplaced, most=2)} not placed" if self.after.unplaced else ""
        if not placed:
            return f"no workload{' that is placed' if left else ''} needs devices of {self.after.fleet.name}{left}"
        undecided = sum(workload.verdict == "not-decided" for workload in placed)
        said = f"{fitting:,} of {count_of(len(placed), 'workload')} {'fits' if len(placed) == 1 else 'fit'}"
        said += f" on {self.after.fleet.name}"
        if self.joint is not None:
            said += _AT_ONCE[self.joint.verdict]
        said += left
        return f"{said}, {undecided:,} not decided" if undecided else said

    @property
    def joint(self) -> JointVerdict | None:
        """The verdict on all workloads at once, and evicted pods; None for one alone, or where one does not fit by itself."""
        if self.after is None or self.after.fits_count < len(self.after.workloads):
            return None
        return self.after.joint if self.after.evicted or len(self.after.workloads) > 1 else None

    @property
    def joint_at_most(self) -> JointVerdict | None:
        """The verdict with as many pods as autoscalers may make; None where none scales a workload."""
        return self.after.joint_at_most if self.after is not None else None

    @property
    def summary(self) -> str:
        """`1 replaced, 2 changed, 5 unchanged`."""
        if not self.is_base_known:
            return "changes not known"
        parts = [f"{number:,} {action}" for action, number in self.counts.items() if number]
        parts += ["deletions not known"] if any(each.reason == _LACKING for each in self.not_known) else []
        if parts:
            return ", ".join([*parts, f"{self.unchanged:,} unchanged"])
        hidden = [f"{each.what} {each.name}" for each in self.not_known if each.hides_objects]
        return f"no change is known, not expanded: {join_words(hidden)}" if hidden else "nothing changes"


BASE_NOT_RUN: Final = "base-not-run"
"""Code of the problem that leaves a review undecided: every report shows it."""

LEVELS: Final[tuple[FailOn, ...]] = ("problem", "undecided", "danger", "change")
"""What may close the gate, in the order in which each includes those before it."""

MARKS: dict[Grade, str] = {"failed": "✗", "danger": "!", "undecided": "?", "ok": "✓"}
"""The sign that each grade starts with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HowMade:
    """What is known of the runs that made both sides, beside their objects.

    Args:
        base_failure: Why the base did not run; None where it did.
        is_whole: Whether the head makes all of its objects. If it has errors, it is not known which of those that it lacks it deletes.
        meant: The head as it is written, where the engine sends something else; None where it does not.
        opaque: URNs of the head's objects whose secrets were never known, so that they could not be compared; None takes
            every object that shows one.
        locate: Where fields of the head's objects are written; None takes the places of the objects.
    """

    base_failure: Problem | None = None
    is_whole: bool = True
    meant: Program | None = field(default=None, repr=False)
    opaque: frozenset[str] | None = None
    locate: Locate | None = None


def review(
    base: Program,
    head: Program,
    *,
    base_label: str,
    before: Placement | None = None,
    after: Placement | None = None,
    running: Running = NOTHING_RUNS,
    engine: EnginePreview | None = None,
    kinds: WorkloadKinds | None = None,
    changes: Sequence[Change] | None = None,
    made: HowMade | None = None,
) -> Review:
    """Compare two runs of a program, and where their pods go.

    Args:
        base: What is deployed, or about to be: the program at the base revision.
        head: The program with the change.
        base_label: What the user called the base.
        before: Placement of the base's pods; None when no fleet was given.
        after: Placement of the head's pods on the same fleet.
        running: What runs in the cluster that was read: it decides who is hit, and which quotas there are. The placements
            take it into account already, or not at all.
        engine: The engine's preview of the head's stack.
        kinds: Kinds of objects that make pods; None takes those that the catalogue knows.
        changes: What differs, where it was compared already.
        made: What is known of both runs; None for two that made all of their objects.
    """
    made = made or HowMade()
    every = compare_programs(base, head) if changes is None else changes
    lacking = [] if made.is_whole else [each.ref for each in every if each.after is None]
    known = tuple(each for each in every if made.is_whole or each.after is not None)
    if lacking and after is not None and not after.workloads:
        before = after = None
    joined = join_engine(known, base, head, engine) if engine else Joined(changes=known)
    in_cluster = _with_staying(head, joined.changes, base)
    compared = Comparison.of(
        joined.changes, base, in_cluster, running=running, before=before, after=after, kinds=kinds
    )
    workloads = tuple(each for each in _find_workloads(compared) if each.owner.whole not in lacking)
    unplaced = _find_why_unplaced(compared)
    found = find_dangers(compared)
    return Review(
        project=head.project,
        stack=head.stack,
        base_label=base_label,
        provenance=_find_provenance(base, head, after),
        changes=joined.changes,
        unchanged=len(head.objects) - sum(change.after is not None for change in joined.changes),
        problems=_find_problems(compared, workloads, joined, made, base_label),
        dangers=tuple(each for each in found if each.level == "danger"),
        rollouts=tuple(each for each in found if each.level == "note"),
        workloads=workloads,
        not_known=(*_find_not_known(compared, workloads, made.opaque, lacking), *joined.not_known),
        notes=(
            *_find_notes(base, head, after, unplaced),
            *describe_options(joined.changes, base, head, made.meant or head),
            *joined.notes,
        ),
        unplaced=unplaced,
        before=before,
        after=after,
        engine=joined.side,
        policies=joined.policies,
        rooms=() if lacking else compare_rooms(before, after),
        growth=None if lacking else compare_growth(before, after, compared.base_index, compared.head_index),
    )


def _with_staying(head: Program, changes: Sequence[Change], base: Program) -> Program:
    """Return the head with the objects that it lacks and that stay in the cluster."""
    staying = tuple(find_staying(changes, base))
    return replace(head, objects=(*head.objects, *staying)) if staying else head


def _describe_failure(base_label: str, failure: Problem) -> Problem:
    where = f"{failure.place}: " if failure.place else ""
    return Problem(
        path=f"base {base_label}",
        code=BASE_NOT_RUN,
        message=f"it did not run, so what changes is not known: {where}{failure.message} [{failure.code}]",
        hint="mend the base, or compare with another one; --assume-empty-base counts it as empty",
    )


def _find_workloads(compared: Comparison) -> Iterator[WorkloadReview]:
    """Yield the workloads of both sides, each with the team that its label names."""
    before, after = compared.base_placement, compared.head_placement
    label = (after.fleet.billing if after else Billing()).team_label
    for each in compare_placements(before, after):
        team = compared.head_index.team_of(each.owner, label) or compared.base_index.team_of(
            each.owner, label
        )
        yield replace(each, team=team)


def _find_provenance(base: Program, head: Program, after: Placement | None) -> Provenance:
    """Return what both sides are checked for, and which release places their pods."""
    fleet = after.fleet if after is not None else None
    provenance = Provenance.of_program(head, target=head.target, fleet=fleet, is_placed=after is not None)
    return provenance.with_base(base)


def _find_why_unplaced(compared: Comparison) -> str:
    """Return why pods that need devices are not placed, empty where they are or none needs any."""
    if compared.head_placement is not None or not any(map(needs_devices, compared.head_index.pods.values())):
        return ""
    return _NO_FLEET if compared.running.snapshot is None else _NO_NODES


def _find_problems(
    compared: Comparison,
    workloads: Sequence[WorkloadReview],
    joined: Joined,
    made: HowMade,
    base_label: str,
) -> tuple[Problem, ...]:
    """Return why the base did not run, and the problems of the head and of its placement, errors first."""
    head, after = compared.head, compared.head_placement
    problems = {
        *(problem for problem in head.problems if not is_told_as_danger(problem)),
        *find_refused(compared.changes, head, made.locate),
        *find_option_problems(compared.changes, compared.base, head, is_whole=made.is_whole),
        *find_unplaced(workloads, after.fleet.name if after else ""),
        *find_no_order(compared.base_placement, after),
        *joined.problems,
    }
    failure = [_describe_failure(base_label, made.base_failure)] if made.base_failure else []
    return (*failure, *sorted(problems, key=lambda each: (each.severity != "error", each)))


def find_dangers(compared: Comparison) -> tuple[Danger, ...]:
    """Every danger of the changes, and notes on rollouts that end well, sorted by object, each once."""
    found = [
        *find_claim_dangers(compared),
        *find_workload_dangers(compared),
        *find_removals(compared),
        *find_widened_rights(compared),
        *find_passed_quotas(compared),
        *find_rules_that_evict(compared),
        *find_release_dangers(compared),
    ]
    return tuple(sorted(_with_place(each, compared) for each in dict.fromkeys(found)))


def _with_place(danger: Danger, compared: Comparison) -> Danger:
    who = danger.who.whole
    item = compared.head_index.objects.get(who) or compared.base_index.objects.get(who)
    return replace(danger, place=item.place) if item is not None and danger.place is None else danger


def _find_not_known(
    compared: Comparison,
    workloads: Sequence[WorkloadReview],
    opaque: frozenset[str] | None,
    lacking: Sequence[ObjectRef],
) -> Iterator[NotSeen]:
    head = compared.head
    if lacking:
        yield NotSeen(what="deletion of", name=join_words(lacking), reason=_LACKING)
    yield from sorted({*head.not_seen, *compared.base.not_seen})
    yield from find_several_clusters(head)
    yield from find_undecided(compared.changes)
    for kind, what, reason in (
        (
            "secret",
            "secret values",
            "shown as [secret] on both sides: a change of a secret alone does not show",
        ),
        (
            "unknown",
            "values known after up",
            "shown as [unknown] on both sides: a change of them does not show",
        ),
    ):
        holders = [
            str(item.ref)
            for item in head.objects
            if _holds(item.manifest, kind) and (kind != "secret" or opaque is None or item.urn in opaque)
        ]
        if holders:
            yield NotSeen(what=what, name=f"in {join_words(holders)}", reason=reason)
    for workload in workloads:
        if workload.after is not None and workload.after.unmodelled:
            yield NotSeen(
                what="placement of",
                name=str(workload.owner),
                reason=f"does not take into account {join_words(workload.after.unmodelled, most=8)}",
            )
    yield from find_uncounted(compared)
    yield from compared.running.not_counted


def _find_notes(base: Program, head: Program, after: Placement | None, unplaced: str) -> Iterator[str]:
    if base.problems:
        yield f"The base has {count_of(len(base.problems), 'problem')} of its own; what it lacks may show as created."
    if (base.project, base.stack) != (head.project, head.stack):
        yield f"The base is {base.project}/{base.stack}, the head {head.project}/{head.stack}: nothing can match."
    if after is not None:
        yield from after.notes
        for workload in after.workloads:
            yield from (f"{workload.owner}: {each}" for each in workload.reasons if each.code == FITS_BY_BUG)
    if unplaced == _NO_FLEET:
        yield _NAME_A_FLEET


def _holds(value: object, kind: str) -> bool:
    """Check for a marker of a kind, beside those that say that their value changes."""
    return any(marker_kind(marker) == kind and marker != CHANGED_SECRET for _, marker in find_markers(value))
