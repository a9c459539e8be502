"""Recorded answers of the allocators, asked again; `make golden` with the binaries picks cases for mutants that have none."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.allocator import known
from tests.support.allocator.answers import answers_of, find_difference
from tests.support.allocator.cases import MANY_RUNS, MINORS, Case, draw_case, to_line
from tests.support.allocator.mutants import NAMES, VARIANTS, mutated
from tests.support.allocator.recorded import PATH, Recorded, read, write
from tests.support.parity.judge import Judge

pytestmark = pytest.mark.e2e

TRIED = 2000
"""Cases of each minor among which the ones to record are looked for."""

Ask = Callable[[Sequence[Case]], list[Any]]


@pytest.fixture(scope="module")
def ask(binaries: Callable[[str], Path]) -> Iterator[Ask]:
    with ExitStack() as stack:
        judges = {
            minor: stack.enter_context(
                Judge(binaries("allocator-judge" if minor == MINORS[-1] else f"allocator-judge-{minor}"))
            )
            for minor in MINORS
        }

        def answer(cases: Sequence[Case]) -> list[Any]:
            (minor,) = {case.minor for case in cases}
            return judges[minor].ask({"batch": [case.question(runs=MANY_RUNS) for case in cases]})

        yield answer


def test_the_allocators_still_give_what_is_recorded(ask: Ask):
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        write(pick(ask))
    for recorded in read():
        (theirs,) = ask([recorded.case])
        if recorded.case.is_ordered:
            assert theirs == recorded.theirs
        assert not find_difference(recorded.case, theirs)


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("name", known.CASES)
def test_known_bugs_and_traps_are_as_upstream_has_them(ask: Ask, name: str, minor: str):
    case = known.CASES[name](minor)
    (theirs,) = ask([case])
    assert not find_difference(case, theirs)


@pytest.mark.parametrize("minor", MINORS)
def test_a_device_whose_node_selector_is_not_parsed_ends_the_attempt_as_upstream(ask: Ask, minor: str):
    case = known.beside_foreign(known.FOREIGN_DEVICE)(minor)
    (ours,) = answers_of(case)
    # Upstream prints the whole device.
    ((answer,),) = ask([case])[0]
    shown = re.sub(r"&Device\{Name:(\w+),.* in slice", r"\1 in slice", answer["error"])
    assert json.loads(ours)["error"] == shown


def pick(ask: Ask) -> list[Recorded]:
    """What is recorded, and for each mutant that no case is about the smallest case of each minor that catches it."""
    kept = [
        Recorded(each.case, ask([each.case])[0], [name for name in each.catches if name in NAMES])
        for each in (read() if PATH.exists() else ())
    ]
    known_names = {name for each in kept for name in each.catches}
    missing = [name for name in NAMES if name not in known_names]
    found: dict[int, Recorded] = {}
    for minor in MINORS if missing else ():
        random = Random(f"recorded {minor}")  # noqa: S311  (cases, not secrets)
        drawn = [draw_case(random, minor) for _ in range(TRIED)]
        drawn += [build(minor) for build in known.CASES.values()]
        cases = sorted(drawn, key=lambda case: len(str(to_line(case))))
        answers = [
            answer for start in range(0, len(cases), 100) for answer in ask(cases[start : start + 100])
        ]
        for name in missing:
            caught = _first_caught(name, cases, answers)
            if caught is not None:
                case, theirs = cases[caught], answers[caught]
                found.setdefault(id(case), Recorded(case, theirs, [])).catches.append(name)
    return [each for each in (*kept, *found.values()) if each.catches]


def _first_caught(name: str, cases: Sequence[Case], answers: Sequence[Any]) -> int | None:
    with mutated(name) as change:
        for number, (case, theirs) in enumerate(zip(cases, answers, strict=True)):
            variant = change(case.variant)
            if name in VARIANTS and variant == case.variant:
                continue
            if find_difference(case, theirs, variant, prune=False):
                return number
    return None
