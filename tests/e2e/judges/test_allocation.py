"""The allocator beside Kubernetes' own of all minors: the same result for the same cluster, byte for byte.

`DRA_INFRA_PARITY_N` cases for each minor, at least 3,000, from the seed `DRA_INFRA_PARITY_SEED`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.scheduler.allocator import pruning
from tests.e2e.judges.allocation_features import LEAST, expected_features
from tests.e2e.judges.allocation_table import Tally
from tests.support.allocator.answers import find_difference
from tests.support.allocator.cases import MANY_RUNS, MINORS, Case, draw_case
from tests.support.allocator.contested import draw_contested
from tests.support.parity.judge import Judge
from tests.support.parity.plan import VARIABLE

pytestmark = pytest.mark.e2e

SEED = int(os.environ.get("DRA_INFRA_PARITY_SEED", "1"))
COUNT = max(3000, int(os.environ.get(VARIABLE, "0")))
BATCH = 100
CONTESTED = 500
"""Cases in which the search goes back a lot."""


@pytest.fixture(scope="module", params=MINORS)
def judge(request: pytest.FixtureRequest, binaries: Callable[[str], Path]) -> Iterator[tuple[str, Judge]]:
    minor = request.param
    name = "allocator-judge" if minor == MINORS[-1] else f"allocator-judge-{minor}"
    with Judge(binaries(name)) as process:
        yield minor, process


def compare(process: Judge, cases: list[Case]) -> Iterator[tuple[Case, Any, str]]:
    """Each case with what the judge answers and what is different."""
    answers = process.ask({"batch": [case.question() for case in cases]})
    for case, few in zip(cases, answers, strict=True):
        theirs = few
        difference = differ(case, few)
        if difference and not case.is_ordered:
            (theirs,) = process.ask({"batch": [case.question(runs=MANY_RUNS)]})
            difference = differ(case, theirs)
        yield case, theirs, difference


def differ(case: Case, theirs: Any) -> str:
    """What is different, of the plain search or of the one with proofs from its first step on."""
    with patch.object(pruning, "DEAD_ENDS_BEFORE_PROOFS", 0):
        return find_difference(case, theirs, prune=False) or find_difference(case, theirs, prune=True)


def test_every_random_case_gets_the_same_result(judge: tuple[str, Judge]):
    minor, process = judge
    random = Random(f"{SEED} {minor}")  # noqa: S311  (cases, not secrets)
    tally = Tally(minor)
    for _ in range(0, COUNT, BATCH):
        cases = [draw_case(random, minor) for _ in range(BATCH)]
        for case, theirs, difference in compare(process, cases):
            tally.add(case, theirs, difference)
    tally.write()
    assert not tally.wrong, "\n\n".join(tally.wrong[:5])
    rare = {
        name: tally.features[name]
        for name in expected_features(int(minor[2:]))
        if tally.features[name] < LEAST
    }
    assert not rare


def test_every_contested_case_gets_the_same_result(judge: tuple[str, Judge]):
    minor, process = judge
    random = Random(f"contested {SEED} {minor}")  # noqa: S311  (cases, not secrets)
    for _ in range(0, CONTESTED, BATCH):
        cases = [draw_contested(random, minor) for _ in range(BATCH)]
        for _, _, difference in compare(process, cases):
            assert not difference


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(random=st.randoms(use_true_random=False))
def test_no_case_that_hypothesis_finds_gets_another_result(judge: tuple[str, Judge], random: Random):
    minor, process = judge
    ((_, _, difference),) = compare(process, [draw_case(random, minor)])
    assert not difference
