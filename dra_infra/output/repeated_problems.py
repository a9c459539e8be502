"""One mistake that a loop makes of many objects, told once: with how many they are, and the names of the first."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Final

from dra_infra.errors import Problem
from dra_infra.output.wording import count_of, join_words

_MOST: Final = 3
"""Other objects that are named."""

_SUBJECT: Final = re.compile(r'\w+\("(?P<name>[^"]*)"\)|\w+ (?:[^\s./\[]+/)?(?P<object>[^\s./\[]+)')
"""The component or object that a path begins with: `GpuClaim("a")`, `Deployment ml/web`."""


def merge_repeated(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """*problems* in their order, with those of one mistake as the first of them, whose message names the others.

    They are of one mistake where line, code, field, message and hint are the same but for the name of the object. What
    has no line in the user's files stays as it is.
    """
    # First those of the very same words: a name may be a word that messages have anyway, such as `a`.
    groups = _group(([each] for each in problems), with_name=True)
    return tuple(_told(*each) for each in _group(groups, with_name=False))


def _group(groups: Iterable[list[Problem]], *, with_name: bool) -> list[list[Problem]]:
    """Join the groups whose first problems are of one mistake."""
    alike: dict[Hashable, list[Problem]] = {}
    for group in groups:
        alike.setdefault(_mistake(group[0], with_name=with_name), []).extend(group)
    return list(alike.values())


def _mistake(problem: Problem, *, with_name: bool) -> Hashable:
    subject = _SUBJECT.match(problem.path)
    if problem.place is None or subject is None:
        return problem, problem.place
    said = [problem.message, problem.hint]
    if not with_name:
        name = subject["name"] or subject["object"] or ""
        anywhere = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        said = [anywhere.sub("", text) for text in said]
    return problem.place, problem.code, problem.severity, problem.path[subject.end() :], *said


def _told(first: Problem, *others: Problem) -> Problem:
    if not others:
        return first
    names = [found[0] for each in others if (found := _SUBJECT.match(each.path))]
    also = f"{count_of(len(others), 'other')}: {join_words(names, most=_MOST)}"
    return replace(first, message=f"{first.message}; the same for {also}")
