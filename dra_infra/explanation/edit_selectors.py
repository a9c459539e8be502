"""Edits of selectors: drop a clause, lower a bound, use a value that is there, add a guard.

An edit puts another expression in the place of one clause of one selector.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from dra_infra.explanation.clauses import clauses_of, shorten, with_clause, without_clause
from dra_infra.explanation.device_checks import list_selectors
from dra_infra.explanation.edits import (
    Edit,
    Ladder,
    change_class,
    change_leaf,
    change_selector,
    field_of,
    leaf_at,
)
from dra_infra.explanation.question import Leaf, Question
from dra_infra.explanation.records import FAILED
from dra_infra.explanation.slips import Names, find_slips
from dra_infra.explanation.survey import Survey
from dra_infra.kubernetes.api import DRIVER_TEST, nanos
from dra_infra.kubernetes.cel import find_dependencies
from dra_infra.kubernetes.scheduler.allocator import Published, scalar_value, static_attribute
from dra_infra.selectors.selector import quote

_PLAIN: Final = re.compile(r"[A-Za-z(]")


@dataclass(frozen=True, slots=True)
class ClauseAt:
    """One clause of one selector.

    Args:
        leaf: The request that is held to it.
        owner: Whose selector it is: `class h100` or `request`.
        number: Index of the selector.
        rank: Number of selectors before it, those of the class first.
        clause: Number of the clause in the selector.
        expression: The whole selector.
    """

    leaf: Leaf
    owner: str
    number: int
    rank: int
    clause: int
    expression: str

    @property
    def is_class(self) -> bool:
        """It stands in the class, so that other claims are held to it too."""
        return self.owner != "request"

    @property
    def place(self) -> str:
        """A key that tells it from others: those of a class are the same for all requests."""
        owner = self.owner if self.is_class else str(self.leaf.key)
        return f"{owner}.selectors[{self.number}].{self.clause}"


def clauses_at(leaf: Leaf) -> Iterator[ClauseAt]:
    """Every clause that a device must pass, in order."""
    for rank, (owner, number, expression) in enumerate(list_selectors(leaf.wanted)):
        for position, _ in enumerate(clauses_of(expression)):
            yield ClauseAt(leaf, owner, number, rank, position, expression)


def edit_clause(question: Question, at: ClauseAt, kind: str, text: str, expression: str, cost: float) -> Edit:
    """Another expression in place of the selector of a clause.

    Args:
        question: The question.
        at: The clause.
        kind: Of the edit.
        text: What changes, in words.
        expression: What stands there then; `true` for no selector.
        cost: How large the change is; one of a class, which is others' too, is larger.
    """
    selectors = f"selectors[{at.number}].cel.expression"
    if at.is_class:
        name = at.leaf.wanted.device_class.metadata.name or ""
        where = f"DeviceClass {name}: spec.{selectors}"
        text = f"{text} (for all users of the class)"
        cost = cost + 40
        apply = partial(change_class, name=name, number=at.number, expression=expression)
    else:
        where = field_of(question, at.leaf, selectors)
        apply = partial(_with_selector, leaf=at.leaf, number=at.number, expression=expression)
    line = "(delete this selector)" if expression == "true" else f"expression: {yaml_text(expression)}"
    owner = at.owner if at.is_class else str(at.leaf.key)
    return Edit(
        kind=kind,
        text=text,
        where=where,
        lines=(line,),
        cost=cost,
        place=f"{owner}.selectors[{at.number}]",
        apply=apply,
    )


def yaml_text(text: str) -> str:
    """A text as it can stand behind a key, in quotes where YAML would take it for something else."""
    if _PLAIN.match(text) and ": " not in text and " #" not in text:
        return text
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _with_selector(question: Question, *, leaf: Leaf, number: int, expression: str) -> Question:
    selectors = leaf_at(question, leaf.key).selectors or ()
    return change_leaf(question, leaf.key, selectors=change_selector(selectors, number, expression))


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
        old = next(each for each in (number, literal["double"], literal["single"]) if each is not None)
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
    single = None if attribute is None else scalar_value(attribute)
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


_READ: Final = re.compile(r"device\.(?:attributes|capacity)\[(?:\"[^\"]*\"|'[^']*')\]\.\w+")


def edit_selectors(question: Question, leaves: Sequence[Leaf], survey: Survey) -> Iterator[Ladder]:
    """Edits of the clauses at which devices fail."""
    done = set()
    names = Names.of(survey.devices.values())
    for leaf in leaves:
        removed = survey.removed_by(leaf)
        yield from _corrected(question, leaf, names)
        for at in clauses_at(leaf):
            devices = removed.get((at.rank, at.clause))
            place = at.place
            if not devices or place in done:
                continue
            done.add(place)
            yield from other_values(question, at, devices)
            # A class without its driver would take the devices of any.
            if not at.is_class or not DRIVER_TEST.fullmatch(clauses_of(at.expression)[at.clause].text):
                yield [_without(question, at)]
        for rank, clause in removed:
            if clause == FAILED:
                yield from _guarded(question, leaf, rank)
                yield from ([_without(question, at)] for at in clauses_at(leaf) if at.rank == rank)


def _corrected(question: Question, leaf: Leaf, names: Names) -> Iterator[Ladder]:
    """A selector as it is most likely meant."""
    for at in clauses_at(leaf):
        for slip in find_slips(at.expression, names) if not at.clause else ():
            words = f"{slip.message}: {slip.hint}"
            yield [edit_clause(question, at, slip.kind, words, slip.expression, 4.0)]


def _without(question: Question, at: ClauseAt) -> Edit:
    clause = clauses_of(at.expression)[at.clause]
    return edit_clause(
        question,
        at,
        "drop-clause",
        f"drop {shorten(clause.text)}",
        without_clause(at.expression, at.clause),
        35.0,
    )


def _guarded(question: Question, leaf: Leaf, rank: int) -> Iterator[Ladder]:
    """A test whether the attribute is there, before what has no value without it."""
    for at in clauses_at(leaf):
        if at.rank != rank or at.clause:
            continue
        paths = list(dict.fromkeys(_READ.findall(at.expression)))
        missing = [f"has({path})" for path in paths if f"has({path})" not in at.expression]
        choices = [[each] for each in missing]
        if len(missing) > 1:
            choices.append(missing)
        for guards in choices:
            expression = " && ".join([*guards, _wrapped(at.expression)])
            yield [
                edit_clause(
                    question,
                    at,
                    "guard",
                    f"test first whether it is there: {' && '.join(guards)}",
                    expression,
                    5.0,
                )
            ]


def _wrapped(expression: str) -> str:
    return f"({expression})" if "||" in expression or "?" in expression else expression
