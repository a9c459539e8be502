"""Problems as data, and the one error tree.

Every finding of the product is a `Problem`; an exception carries all problems that were found, sorted,
so that one look fixes all. `CODES` is the complete list of stable codes; `docs/errors.md` has a section for each
and a contract test compares both.

    DraInfraError
    ├── InvalidSpecError      a pure spec was given arguments that break rules
    ├── SelectorError         a Python selector was written in a way that would lose a clause or a type
    ├── InvalidProgramError   components of a program reported problems; the run is over
    ├── ProgramError          the user's program raised, never ended, or could not be found
    ├── UnsupportedError      something real that this version does not model yet, refused by name
    └── FleetError            a fleet could not be read
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

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
        code: Stable slug from `CODES`.
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

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        line = f"{where}{self.path}: {self.message} [{self.code}]"
        return f"{line}\n  hint: {self.hint}" if self.hint else line

    def at(self, place: Place | None) -> Problem:
        """The same problem with the place where the user wrote it."""
        return replace(self, place=place)

    def below(self, prefix: str) -> Problem:
        """The same problem with its path put below *prefix*."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return replace(self, path=f"{prefix}{joint}{self.path}")


class DraInfraError(Exception):
    """Base of everything that this package raises on purpose."""


class ProblemsError(DraInfraError):
    """An error that carries problems; `problems` is sorted and never empty."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))


class InvalidSpecError(ProblemsError):
    """A spec was given arguments that break one or more rules."""


class InvalidProgramError(ProblemsError):
    """Components of a program reported problems, or its objects break rules."""


class SelectorError(ProblemsError, TypeError):
    """A selector was written in a way that Python would silently change or that can never match."""

    def __init__(self, message: str, *, code: str, hint: str = "", path: str = "selector") -> None:
        super().__init__([Problem(path=path, code=code, message=message, hint=hint)])


class ProgramError(ProblemsError):
    """The user's program raised, never ended, or could not be found; `place` is the user's line."""


class UnsupportedError(ProblemsError):
    """Something real that this version does not model yet: refused by name, never ignored."""


class FleetError(ProblemsError):
    """A fleet could not be read."""


CODES: dict[str, str] = {
    # One line per code: what it means. Grouped by where it is found.
    # cel
    "selector-used-as-bool": "a selector was used with and, or, not, if or a chained comparison",
    "selector-used-with-in": "`in` was used on an attribute",
    "selector-type": "an attribute is compared with a value of another type",
    "selector-invalid-value": "a quantity, version or attribute name in a selector is malformed",
    "cel-syntax": "a CEL expression does not parse",
    "cel-type": "a CEL expression does not type-check or is not a test",
    "cel-too-long": "a CEL expression is longer than 10240 bytes",
    "cel-unguarded-read": "a CEL expression reads an attribute that a device may lack, which blocks scheduling",
    "cel-not-decided-here": "a CEL expression is beyond what the engine here can decide",
}
"""Every stable code with its one-line meaning."""
