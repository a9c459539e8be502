"""The clauses of a selector as a person counts them: each test with the `has(...)` that guards it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dra_infra.cel.conjunction import split

_GUARD: Final = re.compile(r"has\((?P<path>[^()]+)\)")


@dataclass(frozen=True, slots=True)
class Clause:
    """One test of a conjunction.

    Args:
        text: The test without its guards.
        guards: What says that the test has something to read.
    """

    text: str
    guards: tuple[str, ...] = ()

    @property
    def expression(self) -> str:
        """The test as it can be evaluated alone."""
        return " && ".join((*self.guards, self.text))


@lru_cache(maxsize=4096)
def clauses_of(expression: str) -> tuple[Clause, ...]:
    """The tests that `&&` joins; the whole expression where it is none of several."""
    parts = [each.text.strip() for each in split(expression)]
    if not parts:
        return (Clause(expression.strip()),)
    found: list[Clause] = []
    guards: list[str] = []
    for number, part in enumerate(parts):
        guard = _GUARD.fullmatch(part)
        if guard and number + 1 < len(parts) and guard["path"] in parts[number + 1]:
            guards.append(part)
            continue
        found.append(Clause(part, tuple(guards)))
        guards = []
    return tuple(found)


def join_clauses(clauses: tuple[Clause, ...]) -> str:
    """The expression of clauses; `true` where none is left."""
    return " && ".join(each.expression for each in clauses) or "true"


def without_clause(expression: str, number: int) -> str:
    """The expression without one test; its guards stay where another test needs them."""
    clauses = clauses_of(expression)
    dropped, rest = clauses[number], [*clauses[:number], *clauses[number + 1 :]]
    for guard in dropped.guards:
        path = guard[4:-1]
        for at, each in enumerate(rest):
            if path in each.text and guard not in each.guards:
                rest[at] = Clause(each.text, (guard, *each.guards))
                break
    return join_clauses(tuple(rest))


def with_clause(expression: str, number: int, text: str) -> str:
    """The expression with another test in place of one; the guards stay."""
    clauses = list(clauses_of(expression))
    clauses[number] = Clause(text, clauses[number].guards)
    return join_clauses(tuple(clauses))
