"""One clause of one selector, and the edit that puts another expression in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from dra_infra.simulation.explaining.clauses import clauses_of
from dra_infra.simulation.explaining.edits import (
    Edit,
    change_class,
    change_leaf,
    change_selector,
    field_of,
    leaf_at,
)
from dra_infra.simulation.explaining.leaves import Leaf
from dra_infra.simulation.explaining.question import Question
from dra_infra.simulation.explaining.sieve import selector_lists

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
        """Whether the class has it, so that others are held to it too."""
        return self.owner != "request"

    @property
    def place(self) -> str:
        """What tells it from others: those of a class are the same for all requests."""
        owner = self.owner if self.is_class else str(self.leaf.key)
        return f"{owner}.selectors[{self.number}].{self.clause}"


def clauses_at(leaf: Leaf) -> Iterator[ClauseAt]:
    """Every clause that a device must pass, in order."""
    rank = 0
    for owner, selectors in selector_lists(leaf.wanted):
        for number, selector in enumerate(selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            for position, _ in enumerate(clauses_of(expression)):
                yield ClauseAt(leaf, owner, number, rank, position, expression)
            rank += 1


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
        where, text, cost = (
            f"DeviceClass {name}: spec.{selectors}",
            f"{text} (for all users of the class)",
            cost + 40,
        )
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
        line=line,
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
