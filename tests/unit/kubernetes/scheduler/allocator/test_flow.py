"""Handing out devices, beside trying every way to do it."""

from __future__ import annotations

from itertools import combinations
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.scheduler.allocator.bounds import Flow
from dra_infra.kubernetes.scheduler.allocator.demands import positions

DEVICES = 6

needs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**DEVICES - 1)), max_size=3)
groups = st.dictionaries(st.integers(0, DEVICES - 1), st.integers(0, 1), max_size=DEVICES)
rooms = st.fixed_dictionaries({0: st.integers(0, 3), 1: st.integers(0, 3)})


def can(needs: list[tuple[int, int]], groups: dict[int, int], room: dict[int, int], taken: int = 0) -> bool:
    """Whether there is any way."""
    if not needs:
        return True
    (need, devices), *others = needs
    for chosen in combinations(positions(devices & ~taken), need):
        left = dict(room)
        for device in chosen:
            if device in groups:
                left[groups[device]] -= 1
        bits = sum(1 << device for device in chosen)
        if min(left.values()) >= 0 and can(others, groups, left, taken | bits):
            return True
    return False


@settings(max_examples=600, deadline=None)
@given(needs, groups, rooms)
def test_devices_can_be_handed_out_where_there_is_a_way(
    needs: list[tuple[int, int]], groups: dict[int, int], room: dict[int, int]
):
    assert Flow(needs, groups, room).is_possible() == can(needs, groups, room)


def test_a_group_that_is_full_makes_room():
    needs = [(1, 0b011), (1, 0b100)]
    groups = {0: 0, 2: 0}
    room = {0: 1}
    assert Flow(needs, groups, room).is_possible()
    with patch.object(Flow, "_make_room", lambda *_: False):
        assert not Flow(needs, groups, room).is_possible()


def test_nobody_looks_where_too_many_are_wanted():
    assert Flow([(10_000, 1)], {}, {}).is_possible()
