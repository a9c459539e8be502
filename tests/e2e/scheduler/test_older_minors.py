"""The gates of older minors on the real scheduler: what it passes over there, we pass over too.

The servers are those of the newest minor and emulate the older ones, so they have their gates and not their code; that of
each minor's allocator is compared in `tests/e2e/judges`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.e2e.scheduler import themes, themes_of_devices, themes_of_places
from tests.e2e.scheduler.answers import release_of
from tests.e2e.scheduler.comparison import compare
from tests.support.scheduler.scenario import Scenario
from tests.support.scheduler.stage import Stage
from tools.cluster import ControlPlane

pytestmark = pytest.mark.e2e

THEMES: Final[dict[str, tuple[Callable[[Random], Scenario], ...]]] = {
    "1.34": (
        themes.matched,
        themes.several_claims,
        themes_of_devices.taints,
        themes_of_devices.administrators,
    ),
    "1.35": (themes.two_drivers, themes.everything, themes_of_devices.taints, themes_of_places.network_pools),
    "1.36": (
        themes.distinct,
        themes_of_devices.partitions,
        themes_of_devices.taints,
        themes_of_devices.shares,
    ),
}
"""For each minor, scenarios of which its gates decide some, such as taints of devices up to 1.35."""


@pytest.mark.parametrize("minor", THEMES)
def test_the_scheduler_does_what_we_say_of_an_older_minor(binaries: Callable[[str], Path], minor: str):
    with ControlPlane(binaries=binaries, emulated_version=minor) as plane, plane.api() as api:
        stage = Stage(api)
        differences = [each for theme in THEMES[minor] for each in _differences(stage, theme, minor)]
    assert not differences, "\n".join(differences)


def _differences(stage: Stage, theme: Callable[[Random], Scenario], minor: str) -> Iterator[str]:
    scenario = theme(Random(f"{theme.__name__} 1"))  # noqa: S311 - scenarios, no secrets.
    yield from compare(stage, scenario, release_of(minor)).differences
