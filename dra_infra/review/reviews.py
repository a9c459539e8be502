"""The whole of a review as one record; every rendering is a pure function of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.errors import Problem
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.placement import Placement
from dra_infra.program_objects import SECRET, UNKNOWN, EnginePreview, NotSeen, PolicyFinding, Program
from dra_infra.review.capacity import RoomChange, compare_rooms, find_unplaced_resources
from dra_infra.review.changes import ACTIONS, Action, Change, compare_programs
from dra_infra.review.claim_use import ClaimUse
from dra_infra.review.dangers import Danger, find_dangers, find_uncounted, is_told_as_danger
from dra_infra.review.engine_steps import EngineSide, join_engine
from dra_infra.review.immutability import LocateField, find_refused, find_undecided
from dra_infra.review.placements import WorkloadReview, compare_placements, find_unplaced
from dra_infra.review.running import find_taken

Grade = Literal["failed", "danger", "undecided", "ok"]

FailOn = Literal["problem", "undecided", "danger", "change"]
"""What closes the gate of a review; each includes those before it."""

Source = Literal["program", "manifests", "chart"]
"""What both sides of a review were made from."""

_NO_FLEET: Final = "no fleet named"
_NO_NODES: Final = "the snapshot has no nodes"
_NAME_A_FLEET: Final = 'Nothing was placed: add --fleet "hgx-h100 x 4" to see whether the pods fit.'


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """A review: changes, placements, problems and dangers of two versions of a program.

    Args:
        project: Pulumi project of the head.
        stack: Stack that both sides were compiled for.
        base_label: What the user called the base: `origin/main`.
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
    """

    project: str
    stack: str
    base_label: str
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

    @property
    def rooms(self) -> tuple[RoomChange, ...]:
        """Room that base and head leave on the fleet, per device class and MIG profile."""
        return compare_rooms(self.before, self.after)

    @property
    def subject(self) -> str:
        """`quickstart/dev`; manifests and charts have no stack, and then it is what they are called."""
        return f"{self.project}/{self.stack}" if self.stack else self.project.removesuffix("/")

    @property
    def failed(self) -> bool:
        """True when something must be fixed before merge: a problem, or a workload that has no place any more."""
        return any(problem.severity == "error" for problem in self.problems)

    def is_blocked(self, fail_on: FailOn = "problem") -> bool:
        """True for what *fail_on* names, or anything worse: the gate is closed then, and the command ends with 1."""
        levels = (self.failed, self.undecided, bool(self.dangers), bool(self.changes))
        return any(levels[: LEVELS.index(fail_on) + 1])

    @property
    def undecided(self) -> bool:
        """True when a workload was placed, and nobody can say if it fits."""
        return any(each.after is not None and each.after.verdict == "not-decided" for each in self.workloads)

    @property
    def grade(self) -> Grade:
        """The review in one word."""
        if self.failed:
            return "failed"
        if self.dangers:
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
    def findings(self) -> str:
        """`1 problem, 1 danger`, with `no problems` said and `no dangers` not."""
        errors = sum(problem.severity == "error" for problem in self.problems)
        parts = [count_of(errors, "problem")]
        if warnings := len(self.problems) - errors:
            parts.append(count_of(warnings, "warning"))
        if self.dangers:
            parts.append(count_of(len(self.dangers), "danger"))
        return ", ".join(parts)

    @property
    def fit(self) -> str:
        """`3 of 3 workloads fit on hgx-h100 x 4`; `not placed: no fleet named`; empty where there is nothing to place."""
        if self.after is None:
            return f"not placed: {self.unplaced}" if self.unplaced else ""
        fitting = sum(workload.fits for workload in self.workloads)
        placed = [workload.after for workload in self.workloads if workload.after is not None]
        if not placed:
            return f"no workload needs devices of {self.after.fleet.name}"
        undecided = sum(workload.verdict == "not-decided" for workload in placed)
        said = f"{fitting:,} of {count_of(len(placed), 'workload')} {'fits' if len(placed) == 1 else 'fit'}"
        said += f" on {self.after.fleet.name}"
        return f"{said}, {undecided:,} not decided" if undecided else said

    @property
    def summary(self) -> str:
        """`1 replaced, 2 changed, 5 unchanged`."""
        parts = [f"{number:,} {action}" for action, number in self.counts.items() if number]
        return ", ".join([*parts, f"{self.unchanged:,} unchanged"] if parts else ["nothing changes"])


LEVELS: Final[tuple[FailOn, ...]] = ("problem", "undecided", "danger", "change")
"""What may close the gate, in the order in which each includes those before it."""

MARKS: dict[Grade, str] = {"failed": "✗", "danger": "!", "undecided": "?", "ok": "✓"}
"""The sign that each grade starts with."""


def review(
    base: Program,
    head: Program,
    *,
    base_label: str,
    before: Placement | None = None,
    after: Placement | None = None,
    snapshot: Snapshot | None = None,
    engine: EnginePreview | None = None,
    opaque: frozenset[str] | None = None,
    locate: LocateField | None = None,
) -> Review:
    """Compare two runs of a program, and where their pods go.

    Args:
        base: What is deployed, or about to be: the program at the base revision.
        head: The program with the change.
        base_label: What the user called the base.
        before: Placement of the base's pods; None when no fleet was given.
        after: Placement of the head's pods on the same fleet.
        snapshot: The cluster as it was read: what runs decides who is hit, and which quotas there are. The placements
            take it into account by `find_taken`, or not at all.
        engine: The engine's preview of the head's stack.
        opaque: URNs of the head's objects whose secrets were never known, so that nobody could compare them; None takes
            every object that shows one.
        locate: Where fields of the head's objects are written; None takes the places of the objects.
    """
    joined = join_engine(compare_programs(base, head), base, head, engine)
    changes = joined.changes
    workloads = compare_placements(before, after)
    fleet = after.fleet.name if after else ""
    asks = any(pods.claims for pods in ClaimUse.of(head).pods.values())
    unplaced = "" if after is not None or not asks else _NO_NODES if snapshot is not None else _NO_FLEET
    return Review(
        project=head.project,
        stack=head.stack,
        base_label=base_label,
        changes=changes,
        unchanged=len(head.objects) - sum(change.after is not None for change in changes),
        problems=tuple(
            _worst_first(
                {
                    *(problem for problem in head.problems if not is_told_as_danger(problem)),
                    *find_refused(changes, locate),
                    *find_unplaced(workloads, fleet),
                    *joined.problems,
                }
            )
        ),
        dangers=find_dangers(changes, base, head, before=before, after=after, snapshot=snapshot),
        workloads=workloads,
        not_known=(
            *_find_not_known(base, head, changes, workloads, opaque),
            *find_uncounted(head, after, snapshot),
            *(find_taken(snapshot, base, head)[1] if snapshot else ()),
            *find_unplaced_resources(head, after.fleet.classes if after else ()),
            *joined.not_known,
        ),
        notes=(
            *_find_notes(base, head, after),
            *([_NAME_A_FLEET] if unplaced == _NO_FLEET else []),
            *joined.notes,
        ),
        unplaced=unplaced,
        before=before,
        after=after,
        engine=joined.side,
        policies=joined.policies,
    )


def _worst_first(problems: Iterable[Problem]) -> list[Problem]:
    """Errors before warnings, each in the order of problems."""
    return sorted(problems, key=lambda each: (each.severity != "error", each))


def _find_not_known(
    base: Program,
    head: Program,
    changes: tuple[Change, ...],
    workloads: tuple[WorkloadReview, ...],
    opaque: frozenset[str] | None,
) -> Iterator[NotSeen]:
    yield from sorted({*head.not_seen, *base.not_seen})
    yield from find_undecided(changes)
    for marker, what, reason in (
        (
            SECRET,
            "secret values",
            "shown as [secret] on both sides: a change of a secret alone does not show",
        ),
        (
            UNKNOWN,
            "values known after up",
            "shown as [unknown] on both sides: a change of them does not show",
        ),
    ):
        holders = [
            str(item.ref)
            for item in head.objects
            if _holds(item.manifest, marker) and (marker != SECRET or opaque is None or item.urn in opaque)
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


def _find_notes(base: Program, head: Program, after: Placement | None) -> Iterator[str]:
    if base.problems:
        yield f"The base has {count_of(len(base.problems), 'problem')} of its own; what it lacks may show as created."
    if (base.project, base.stack) != (head.project, head.stack):
        yield f"The base is {base.project}/{base.stack}, the head {head.project}/{head.stack}: nothing can match."
    if after is not None:
        yield from after.notes


def _holds(value: object, marker: str) -> bool:
    if isinstance(value, dict):
        return any(_holds(item, marker) for item in value.values())
    if isinstance(value, list):
        return any(_holds(item, marker) for item in value)
    return value == marker
