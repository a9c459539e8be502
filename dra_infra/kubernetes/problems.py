"""Problems as data: what is wrong, where, and what to do; and the errors that carry them.

Checks of expressions and objects return problems; what cannot go on raises an error that carries all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, Self

Severity = Literal["error", "warning"]


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class Place:
    """Where in the user's files something is written; `line` and `column` count from 1, 0 means not known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        position = "".join(f":{number}" for number in (self.line, self.column) if number)
        return f"{self.file}{position}"


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class Problem:
    """One thing that the author of a program can fix.

    Args:
        path: What is wrong, in the user's terms: `GpuClaimTemplate("trainer").count`, or a field path of an object.
        code: Stable slug from `dra_infra.codes.CODES`.
        message: What is wrong with which value.
        hint: What to do, with the line to write where it is known.
        severity: `error` fails the run, `warning` does not.
        place: File and line of the user's code, where known.
    """

    path: str
    code: str
    message: str
    hint: str = ""
    severity: Severity = "error"
    place: Place | None = field(default=None, compare=False)

    @property
    def where(self) -> str:
        """Place and path as they stand before the message, each with a colon behind it."""
        place = f"{self.place}: " if self.place else ""
        # A program's own error has the file for a path: it is told once.
        return place if self.place and self.place.file == self.path else f"{place}{self.path}: "

    def __str__(self) -> str:
        line = f"{self.where}{self.message} [{self.code}]"
        return f"{line}\n  hint: {self.hint}" if self.hint else line

    def to_data(self) -> dict[str, str]:
        """Returns what reports in JSON say of it beside its place."""
        told = {"path": self.path, "code": self.code, "message": self.message}
        return {**told, "hint": self.hint, "severity": self.severity}

    def at(self, place: Place | None) -> Problem:
        """The same problem with the place where the user wrote it."""
        return replace(self, place=place)

    def below(self, prefix: str) -> Problem:
        """The same problem with its path put below *prefix*."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return replace(self, path=f"{prefix}{joint}{self.path}")


def in_reading_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """*problems* without repetitions, as a reader goes through the files; those without a place come last."""
    return tuple(
        sorted(
            dict.fromkeys(problems),
            key=lambda problem: (problem.place is None, problem.place or Place(file=""), problem),
        )
    )


class DraInfraError(Exception):
    """Base of everything that this package raises on purpose."""


class ProblemsError(DraInfraError):
    """An error that carries problems; `problems` is in reading order and never empty."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = in_reading_order(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def of(cls, path: str, code: str, message: str, hint: str = "") -> Self:
        """Make the error of one problem; `SelectorError` takes what is wrong by itself."""
        return cls([Problem(path=path, code=code, message=message, hint=hint)])


class InvalidSpecError(ProblemsError):
    """A spec was given arguments that break one or more rules."""
