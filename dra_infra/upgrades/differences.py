"""The records of an upgrade: what differs, what was compared, what was not, and the steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from dra_infra.errors import Place
from dra_infra.kubernetes.api import ObjectRef, Release
from dra_infra.output.wording import count_of
from dra_infra.provenance import Provenance

Level = Literal["breaks", "changes", "note"]
"""How bad a difference is: something that worked no longer does, something works differently, or it is good to know."""

LEVELS: Final[tuple[Level, ...]] = ("breaks", "changes", "note")
"""Levels, the worst first. What closes the gate of `--fail-on` includes those before it."""

FailOn = Literal["breaks", "changes", "note", "never"]
"""The lowest level that ends the command with 1."""

Area = Literal[
    "objects",
    "stored versions",
    "selectors",
    "placement",
    "evictions",
    "quotas",
    "metrics",
    "gates",
    "drivers",
]

AREAS: Final[tuple[Area, ...]] = (
    "objects",
    "stored versions",
    "selectors",
    "placement",
    "evictions",
    "quotas",
    "metrics",
    "gates",
    "drivers",
)
"""Areas in the order of reports."""

TITLES: Final[dict[Level, str]] = {
    "breaks": "Breaks",
    "changes": "Works differently",
    "note": "Good to know",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One thing that the older and the newer release do differently.

    Args:
        level: How bad it is.
        area: What it is about.
        code: Stable slug from `dra_infra.codes.CODES`.
        subject: The object; None for the cluster as a whole.
        path: The field in the object; empty for all of it.
        message: What changes, in a sentence without its object.
        before: The answer of the older release; empty where there is nothing to quote.
        after: The answer of the newer release.
        hint: What to do about it.
        place: Where the object is written.
    """

    level: Level
    area: Area
    code: str
    message: str
    subject: ObjectRef | None = None
    path: str = ""
    before: str = ""
    after: str = ""
    hint: str = ""
    place: Place | None = None

    @property
    def where(self) -> str:
        """The object and the field, `cluster` where it is about no object."""
        if self.subject is None:
            return f"cluster.{self.path}" if self.path else "cluster"
        return f"{self.subject}.{self.path}" if self.path else str(self.subject)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """An area that was compared.

    Args:
        area: The area.
        what: What was compared, with numbers: `12 objects, created and updated on both API servers`.
    """

    area: Area
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NotCompared:
    """Something that was not compared, so that nothing is said of it.

    Args:
        what: What it is.
        reason: Why not, and what would make it comparable.
    """

    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step of the upgrade.

    Args:
        when: Whether it is safe before the control plane is upgraded, or has to wait until after it.
        what: What to do.
        command: The command, where there is one.
    """

    when: Literal["before", "after"]
    what: str
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Upgrade:
    """What changes between two releases for some objects and hardware.

    Args:
        subject: What was compared: a stack, a folder or a snapshot.
        before: The older release.
        after: The newer release.
        through: Minors between both, whose API servers the stored objects pass.
        differences: Everything that differs, the worst first.
        compared: What was compared.
        not_compared: What was not compared.
        steps: What to do, in order.
        provenance: What both answers were made for.
    """

    subject: str
    before: Release
    after: Release
    through: tuple[Release, ...] = ()
    differences: tuple[Difference, ...] = ()
    compared: tuple[Compared, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    steps: tuple[Step, ...] = ()
    provenance: Provenance

    def of_level(self, level: Level) -> list[Difference]:
        """Return the differences of a level, in order."""
        return [each for each in self.differences if each.level == level]

    @property
    def grade(self) -> Literal["failed", "danger", "ok"]:
        """The worst level in the words of reviews."""
        if self.of_level("breaks"):
            return "failed"
        return "danger" if self.of_level("changes") else "ok"

    @property
    def headline(self) -> str:
        """`2 things break, 3 work differently`; that nothing changes is said of what was compared alone."""
        breaks, changes = len(self.of_level("breaks")), len(self.of_level("changes"))
        if not breaks and not changes:
            return "nothing changes for you in what was compared" if self.compared else "nothing was compared"
        parts = [f"{count_of(breaks, 'thing')} {'breaks' if breaks == 1 else 'break'}"] if breaks else []
        if changes:
            noun = f"{changes:,}" if breaks else count_of(changes, "thing")
            parts.append(f"{noun} {'works' if changes == 1 else 'work'} differently")
        return ", ".join(parts)

    def is_blocked(self, fail_on: FailOn = "breaks") -> bool:
        """Return whether there is a difference of a level, or of a worse one."""
        if fail_on == "never":
            return False
        levels = LEVELS[: LEVELS.index(fail_on) + 1]
        return any(each.level in levels for each in self.differences)


def in_order(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """Return differences once each: the worst first, then by area, object and field."""
    return tuple(
        sorted(
            dict.fromkeys(differences),
            key=lambda each: (
                LEVELS.index(each.level),
                AREAS.index(each.area),
                each.subject is None,
                each.where,
                each.code,
                each.message,
            ),
        )
    )
