"""One mistake that a loop makes of many objects, told once: with how many they are, and the names of the first."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
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
    merged = tuple(_told(*each) for each in _group(groups, with_name=False))
    return tuple(_merge_causes(_merge_reads(merged)))


_CAUSES: Final = frozenset(
    {
        "attribute-other-release",
        "class-not-known",
        "compute-domain-nodes",
        "field-dropped",
        "field-ignored",
        "namespace-not-known",
        "unknown-version",
        "version-not-served",
    }
)
"""Codes whose message names the cause: a missing class or namespace, a gate, a release, or a version of the API."""


def _merge_causes(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems, those with one cause in different places as the first of them, whose message names the other places."""
    causes: dict[Hashable, list[Problem]] = {}
    for number, each in enumerate(problems):
        is_cause = each.code in _CAUSES and each.place is not None
        key = (each.code, each.severity, each.message, each.hint) if is_cause else number
        causes.setdefault(key, []).append(each)
    for first, *others in causes.values():
        places = list(dict.fromkeys(str(each.place) for each in others if each.place != first.place))
        same = (
            f"; the same at {count_of(len(places), 'other')}: {join_words(places, most=_MOST)}"
            if places
            else ""
        )
        yield replace(first, message=f"{first.message}{same}")


_READ: Final = re.compile(
    r"(?P<section>attribute|capacity) (?P<name>\S+) (?P<rest>is read without a test that it exists.*)",
    re.DOTALL,
)
"""The message of `cel-unguarded-read`: what is read, and why a device may lack it."""
_GUARD: Final = re.compile(r"has\(device\.[^()]*\)")


def _merge_reads(problems: Iterable[Problem]) -> list[Problem]:
    """Join the reads without a guard that have one cause, wherever they are, with the mend for all of them."""
    reads: dict[Hashable, list[Problem]] = {}
    found: list[Problem | list[Problem]] = []
    for each in problems:
        match = _READ.match(each.message) if each.code == "cel-unguarded-read" else None
        if match is None:
            found.append(each)
            continue
        key = each.severity, match["rest"]
        if key not in reads:
            found.append(reads.setdefault(key, []))
        reads[key].append(each)
    return [each if isinstance(each, Problem) else _join_reads(each) for each in found]


def _join_reads(reads: list[Problem]) -> Problem:
    """Return one problem for reads of one cause, at the first of them."""
    first, *others = reads
    if not others:
        return first
    matches = [match for each in reads if (match := _READ.match(each.message))]
    names = list(dict.fromkeys(f"{each['section']} {each['name']}" for each in matches))
    guards = list(dict.fromkeys(each for problem in reads for each in _GUARD.findall(problem.hint)[:1]))
    verb = (
        matches[0]["rest"]
        if len(names) == 1
        else matches[0]["rest"].replace("is read", "are read", 1).replace("it exists", "they exist", 1)
    )
    places = list(dict.fromkeys(str(each.place) if each.place else each.path for each in others))
    where = f"; the same at {count_of(len(others), 'other')}: {join_words(places, most=_MOST)}"
    hint = f"put {guards[0]} && in front of each test that reads it" if guards else first.hint
    if len(guards) > 1:
        hint = f"put the guard of each in front of the tests that read it: {join_words([f'{each} &&' for each in guards])}"
    return replace(first, message=f"{join_words(names)} {verb}{where}", hint=hint)


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
