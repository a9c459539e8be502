from __future__ import annotations

import pytest

from tests.support.allocator.answers import find_difference
from tests.support.allocator.mutants import NAMES, mutated
from tests.support.allocator.recorded import Recorded, read

RECORDED = read()


def identify(recorded: Recorded) -> str:
    return f"{recorded.case.minor}-{recorded.case.variant.channel}"


@pytest.mark.parametrize("recorded", RECORDED, ids=identify)
def test_a_recorded_case_gets_the_result_of_the_real_allocator(recorded: Recorded):
    assert not find_difference(recorded.case, recorded.theirs)


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_that_is_switched_off_is_missed(name: str):
    cases = [each for each in RECORDED if name in each.catches]
    assert cases, f"no recorded case is about: {name}"
    with mutated(name) as change:
        assert all(
            find_difference(each.case, each.theirs, change(each.case.variant), prune=False) for each in cases
        )
