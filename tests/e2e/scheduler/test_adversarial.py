"""Clusters of the generator that the allocator is compared by, on a whole scheduler: what is around the allocator agrees too."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from tests.e2e.scheduler.adversarial import draw
from tests.e2e.scheduler.answers import release_of
from tests.e2e.scheduler.comparison import compare
from tests.support.scheduler.stage import Stage

pytestmark = pytest.mark.e2e

NEWEST: Final = "1.37"
SCENARIOS: Final = 12


def test_the_scheduler_does_what_we_say_in_small_adversarial_clusters(stage: Stage):
    stage.prepare()
    nodes: list[str] = []
    messages: list[str] = []
    for seed in range(SCENARIOS):
        scenario = draw(Random(f"adversarial {seed}"), stage.api, NEWEST)  # noqa: S311 - scenarios, no secrets.
        report = compare(stage, scenario, release_of(NEWEST))
        assert not report.differences, "\n".join([f"seed {seed}", *report.differences])
        nodes += report.nodes
        messages += report.messages
    # Some are bound, some fit nowhere, and some end in an error.
    assert any(nodes)
    assert any("cannot allocate all claims" in each for each in messages)
    assert any("running" in each and "filter plugin" in each for each in messages)
