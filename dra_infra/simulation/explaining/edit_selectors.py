"""Edits of selectors: without a clause, with a lower bound, with a value that is there, with a guard."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dra_infra.simulation.explaining.class_drivers import DRIVER
from dra_infra.simulation.explaining.clause_edits import ClauseAt, clauses_at, edit_clause
from dra_infra.simulation.explaining.clauses import clauses_of, without_clause
from dra_infra.simulation.explaining.edit_values import other_values
from dra_infra.simulation.explaining.edits import (
    Edit,
    Ladder,
)
from dra_infra.simulation.explaining.ends import FAILED
from dra_infra.simulation.explaining.leaves import Leaf
from dra_infra.simulation.explaining.question import Question
from dra_infra.simulation.explaining.survey import Survey
from dra_infra.simulation.explaining.values import shorten

_READ: Final = re.compile(r"device\.(?:attributes|capacity)\[(?:\"[^\"]*\"|'[^']*')\]\.\w+")


def edit_selectors(question: Question, leaves: Sequence[Leaf], survey: Survey) -> Iterator[Ladder]:
    """Edits of the clauses at which devices fail."""
    done = set()
    for leaf in leaves:
        removed = survey.removed_by(leaf)
        for at in clauses_at(leaf):
            devices = removed.get((at.rank, at.clause))
            place = at.place
            if not devices or place in done:
                continue
            done.add(place)
            yield from other_values(question, at, devices)
            # A class without its driver would take the devices of any.
            if not at.is_class or not DRIVER.fullmatch(clauses_of(at.expression)[at.clause].text):
                yield [_without(question, at)]
        for rank, clause in removed:
            if clause == FAILED:
                yield from _guarded(question, leaf, rank)
                yield from ([_without(question, at)] for at in clauses_at(leaf) if at.rank == rank)


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
        for guards in (
            (*([each] for each in missing), missing) if len(missing) > 1 else [missing] if missing else []
        ):
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
