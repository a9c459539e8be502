"""Edits of the values in a clause: a lower bound, or a value that is there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Final

from dra_infra.cel.clauses import quote
from dra_infra.simulation.allocation.amounts import nanos
from dra_infra.simulation.allocation.attributes import scalar, static_attribute
from dra_infra.simulation.allocation.identity import Published
from dra_infra.simulation.dependencies import find_dependencies
from dra_infra.simulation.explaining.clause_edits import ClauseAt, edit_clause
from dra_infra.simulation.explaining.clauses import clauses_of, with_clause
from dra_infra.simulation.explaining.edits import Edit, Ladder
from dra_infra.simulation.explaining.question import Question

_VALUES: Final = 6
"""Other values that are tried in place of one."""

_LITERAL: Final = re.compile(
    r""""(?P<double>[^"\\]*)"|'(?P<single>[^'\\]*)'|(?<![\w."'])(?P<int>\d+)(?![\w."'])"""
)
_INDEX: Final = re.compile(r"[\w)\]]\[\??\s*$")
_DEFAULT: Final = re.compile(r"orValue\(\s*$")


def other_values(question: Question, at: ClauseAt, devices: Sequence[Published]) -> Iterator[Ladder]:
    """The clause with other literals, those that devices have; only of one that reads a single value."""
    clause = clauses_of(at.expression)[at.clause]
    reads = [each for each in find_dependencies(clause.text) or () if each[2]]
    if len(reads) != 1:
        return
    source, domain, identifier = reads[0]
    is_wrapped = "quantity(" in clause.text or "semver(" in clause.text
    for literal in _LITERAL.finditer(clause.text):
        before = clause.text[: literal.start()]
        number = literal["int"]
        if _INDEX.search(before) or _DEFAULT.search(before) or (number is not None and is_wrapped):
            continue
        old = (
            number
            if number is not None
            else literal["double"]
            if literal["double"] is not None
            else literal["single"]
        )
        if f"{domain}/{identifier}".startswith(old) or old == identifier:
            continue
        values = {_raw(each, source, f"{domain}/{identifier}") for each in devices} - {None, old}
        yield [
            _replaced(
                question,
                at,
                clause.text,
                literal.span(),
                old,
                str(value),
                identifier,
                is_number=number is not None,
            )
            for value in _nearest(old, [str(each) for each in values], source, is_number=number is not None)
        ]


def _replaced(
    question: Question,
    at: ClauseAt,
    text: str,
    span: tuple[int, int],
    old: str,
    value: str,
    identifier: str,
    *,
    is_number: bool,
) -> Edit:
    written = value if is_number else quote(value)
    changed = with_clause(at.expression, at.clause, f"{text[: span[0]]}{written}{text[span[1] :]}")
    is_bound = is_number or "quantity(" in text
    far = _distance(old, value) if is_bound else 1 - difflib.SequenceMatcher(None, old, value).ratio()
    words = (
        f"{identifier} {value} instead of {old}"
        if is_bound
        else f"{identifier} {quote(value)} instead of {quote(old)}"
    )
    return edit_clause(
        question, at, "lower-bound" if is_bound else "other-value", words, changed, 8 + 20 * min(far, 1.0)
    )


def _raw(published: Published, source: str, name: str) -> str | None:
    if source == "capacity":
        capacities = published.device.capacity or {}
        found = capacities.get(name)
        domain, _, identifier = name.rpartition("/")
        if found is None and domain == published.id.driver:
            found = capacities.get(identifier)
        return None if found is None else found.value
    attribute = static_attribute(published, name)
    single = None if attribute is None else scalar(attribute)
    return None if single is None or single[0] == "bool_" else str(single[1])


def _nearest(old: str, values: Sequence[str], source: str, *, is_number: bool) -> list[str]:
    if is_number:
        whole = {int(each) for each in values if each.lstrip("-").isdigit()}
        # Beside each value the ones around it, for `<` and `>`.
        near = {max(each + step, 0) for each in whole for step in (-1, 0, 1)}
        return [str(each) for each in sorted(near, key=lambda each: (abs(each - int(old)), each))][
            : 2 * _VALUES
        ]
    if source == "capacity":
        return sorted(values, key=lambda each: (_distance(old, each), each))[:_VALUES]
    return sorted(values, key=lambda each: (-difflib.SequenceMatcher(None, old, each).ratio(), each))[
        :_VALUES
    ]


def _distance(old: str, value: str) -> float:
    try:
        return abs(nanos(old) - nanos(value)) / max(abs(nanos(old)), abs(nanos(value)), 1)
    except ValueError:
        return 1.0
