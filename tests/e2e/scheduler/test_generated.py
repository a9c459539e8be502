"""Generated scenarios on the real scheduler: node, devices and allocation are those that we named, or none as we said."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from tests.e2e.scheduler import themes, themes_of_devices, themes_of_neighbours, themes_of_places
from tests.e2e.scheduler.answers import release_of
from tests.e2e.scheduler.comparison import compare
from tests.support.scheduler.scenario import Scenario
from tests.support.scheduler.stage import Stage

pytestmark = pytest.mark.e2e

NEWEST: Final = "1.37"
THEMES: Final[tuple[Callable[[Random], Scenario], ...]] = (
    themes.counts,
    themes.everything,
    themes.ladders,
    themes.matched,
    themes.distinct,
    themes.two_drivers,
    themes.several_claims,
    themes.shared_claims,
    themes_of_devices.partitions,
    themes_of_devices.shares,
    themes_of_devices.administrators,
    themes_of_devices.taints,
    themes_of_devices.broken_pools,
    themes_of_devices.careless,
    themes_of_devices.configured,
    themes_of_places.network_pools,
    themes_of_places.nodes_of_devices,
    themes_of_places.node_rules,
    themes_of_places.shared_in_a_zone,
    themes_of_neighbours.affinity,
    themes_of_neighbours.spread,
    themes_of_neighbours.ports,
    themes_of_neighbours.extended,
)
SEEDS: Final = (1, 2)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.__name__)
def test_the_scheduler_does_what_we_say(stage: Stage, theme: Callable[[Random], Scenario]):
    reports = [compare(stage, _draw(theme, seed), release_of(NEWEST)) for seed in SEEDS]
    differences = [each for report in reports for each in report.differences]
    assert not differences, "\n".join(differences)
    # A theme shows both: where pods go, and that some have nowhere to go.
    nodes = [node for report in reports for node in report.nodes]
    assert any(nodes)
    assert not all(nodes)


def test_the_answers_of_another_minor_are_seen_to_be_wrong(stage: Stage):
    # 1.34 knows no counters: we would say that the partitions fit nowhere.
    assert compare(stage, _draw(themes_of_devices.partitions, 1), release_of("1.34")).differences


def _draw(theme: Callable[[Random], Scenario], seed: int) -> Scenario:
    return theme(Random(f"{theme.__name__} {seed}"))  # noqa: S311 - scenarios, no secrets.
