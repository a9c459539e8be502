"""Random expressions, and mistakes, beside Kubernetes' own CEL packages of all minors: never another verdict, and the same texts.

`DRA_INFRA_PARITY_N` expressions for each minor, from the seed `DRA_INFRA_PARITY_SEED`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.parity.cel_comparison import EQUAL, MINORS, UNDECIDED, Judges, cycled, run
from tests.support.parity.cel_generator import ExpressionGenerator
from tests.support.parity.cel_mistakes import Mistakes
from tests.support.parity.plan import VARIABLE

pytestmark = pytest.mark.e2e

SEED = int(os.environ.get("DRA_INFRA_PARITY_SEED", "1"))
COUNT = max(3000, int(os.environ.get(VARIABLE, "0")))


@pytest.fixture(scope="module")
def judges(binaries: Callable[[str], Path]) -> Iterator[Judges]:
    with Judges(binaries) as started:
        yield started


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize(
    ("name", "generator", "least"),
    [("generated", ExpressionGenerator, 1 / 5), ("mistakes", Mistakes, 1 / 20)],
    ids=["generated", "mistakes"],
)
def test_no_random_expression_gets_another_verdict(
    judges: Judges, name: str, generator: type[ExpressionGenerator | Mistakes], least: float, minor: int
):
    expressions = generator(SEED * 100 + minor).expressions(COUNT)
    tally = run(judges, cycled(expressions, minor), minor=minor)
    tally.write(name)
    assert not tally.wrong, "\n\n".join(tally.wrong[:10])
    assert tally.counts[UNDECIDED] <= tally.total // 1000 + 1
    assert tally.counts[EQUAL] > tally.total * 0.98
    # A generator of which all is refused, or nothing, would show little.
    assert min(tally.counts["accepted"], tally.counts["refused"]) > tally.total * least
