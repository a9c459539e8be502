from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.review.rollout import Rollout


def rollout(replicas, **rolling):
    return Rollout.of({"spec": {"strategy": {"rollingUpdate": rolling}}}, replicas)


@pytest.mark.parametrize(
    ("replicas", "rolling", "surge", "unavailable"),
    [
        (1, {}, 1, 0),
        (4, {}, 1, 1),
        (10, {}, 3, 2),
        (10, {"maxSurge": "10%"}, 1, 2),
        (10, {"maxSurge": 3, "maxUnavailable": 0}, 3, 0),
        (10, {"maxSurge": 0, "maxUnavailable": 0}, 0, 1),
        (3, {"maxSurge": "0%", "maxUnavailable": "10%"}, 0, 1),
        (3, {"maxSurge": "100%"}, 3, 0),
    ],
)
def test_surge_rounds_up_and_unavailable_down(replicas, rolling, surge, unavailable):
    assert (rollout(replicas, **rolling).surge, rollout(replicas, **rolling).unavailable) == (
        surge,
        unavailable,
    )


def test_recreate_has_no_surge():
    assert Rollout.of({"spec": {"strategy": {"type": "Recreate"}}}, 4) == Rollout(
        surge=0, unavailable=4, stops_first=True
    )


@given(st.integers(0, 5000), st.integers(0, 100), st.integers(0, 100))
def test_a_rollout_can_always_take_a_step(replicas, surge, unavailable):
    result = rollout(replicas, maxSurge=f"{surge}%", maxUnavailable=f"{unavailable}%")
    assert result.surge + result.unavailable >= 1
