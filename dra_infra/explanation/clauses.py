"""Clauses of a selector, the drivers that a class is for, and short texts of the values that devices have.

A clause is counted as a person does: each test with the `has(...)` that guards it. The drivers whose devices a class
is for are those that its selectors name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dra_infra.kubernetes.cel import find_dependencies, split_conjunction
from dra_infra.kubernetes.scheduler.allocator import (
    Published,
    attribute_values,
    scalar_value,
    static_attribute,
)

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
    parts = [each.text.strip() for each in split_conjunction(expression)]
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
    dropped = clauses[number]
    rest = [*clauses[:number], *clauses[number + 1 :]]
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


_SHOWN_TEXT: Final = 160
_SHOWN_VALUES: Final = 3


def shorten(text: str, most: int = _SHOWN_TEXT) -> str:
    """In one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def describe_values(expression: str, devices: Iterable[Published]) -> str:
    """A few distinct values of each attribute and capacity that *expression* reads."""
    seen = list(devices)
    shown = []
    for source, domain, identifier in sorted(find_dependencies(expression) or ()):
        if identifier:
            found = sorted({show_value(device, source, domain, identifier) for device in seen})
            shown.append(f"{identifier} is {join_values(found)}")
    return "; ".join(shown)


def join_values(found: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(found) - _SHOWN_VALUES} more" if len(found) > _SHOWN_VALUES else ""
    return f"{', '.join(found[:_SHOWN_VALUES])}{more}"


def show_value(published: Published, source: str, domain: str, identifier: str) -> str:
    """One value as a person writes it; `absent` where the device has none."""
    name = f"{domain}/{identifier}"
    if source == "capacity":
        capacity = published.device.capacity or {}
        found = capacity.get(name)
        if found is None and domain == published.id.driver:
            found = capacity.get(identifier)
        return "absent" if found is None else found.value
    attribute = static_attribute(published, name)
    if attribute is None:
        return "absent"
    single = scalar_value(attribute)
    if single is not None:
        return _quoted(*single)
    several = attribute_values(attribute)
    if several is None:
        return "empty"
    return f"[{', '.join(sorted(_quoted(several[0], each) for each in several[1]))}]"


def _quoted(kind: str, value: object) -> str:
    return f'"{value}"' if kind in ("string", "version") else str(value).lower()
