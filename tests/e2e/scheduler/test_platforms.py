"""Generated platforms on the real scheduler: the verdict on all pods at once holds for every order that is tried."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from tests.e2e.scheduler.answers import release_of
from tests.e2e.scheduler.platforms import compare_platform, write_counts
from tests.e2e.scheduler.scenario import Scenario
from tests.e2e.scheduler.stage import Stage
from tests.e2e.scheduler.test_generated import NEWEST, THEMES
from tests.e2e.scheduler.themes_of_platforms import PLATFORMS

pytestmark = pytest.mark.e2e

IS_SOAK: Final = bool(os.environ.get("DRA_INFRA_SOAK"))
PLATFORM_SEEDS: Final = range(1, 14 if IS_SOAK else 3)
"""With all of them there are 364 platforms."""


@pytest.mark.parametrize("theme", [*THEMES, *PLATFORMS], ids=lambda theme: theme.__name__)
def test_what_all_pods_do_in_any_order_is_what_we_say(stage: Stage, theme: Callable[[Random], Scenario]):
    verdicts: Counter[str] = Counter()
    for seed in PLATFORM_SEEDS:
        random = Random(f"{theme.__name__} {seed} together")  # noqa: S311 - scenarios, no secrets.
        scenario = theme(random)
        # The platforms that are drawn have a pod too many; with fewer pods all verdicts come up.
        pods = scenario.pods[: random.randint(1, len(scenario.pods))]
        scenario = Scenario(name=scenario.name, fleet=scenario.fleet, objects=scenario.objects, pods=pods)
        report = compare_platform(stage, scenario, release_of(NEWEST), random)
        print(
            f"{theme.__name__} {seed}: {report.joint.verdict} of {len(pods)} pods; {report.joint.reasons[:1]}"
        )
        assert not report.differences, "\n".join(report.differences)
        verdicts[report.joint.verdict] += 1
    if IS_SOAK:
        write_counts(theme.__name__, verdicts)
