"""The length of the scheduler's own search, counted without making it."""

from __future__ import annotations

import random

import pytest

from dra_infra.kubernetes.api import ResourceClaim
from dra_infra.kubernetes.scheduler.allocator import Allocated, AllocationError
from dra_infra.kubernetes.scheduler.allocator.pruning import SearchLength
from dra_infra.kubernetes.scheduler.allocator.search import Search
from tests.support.allocator.answers import allocator_of, node_of
from tests.support.allocator.cases import MINORS, Case, make_case
from tests.support.allocator.contested import draw_contested
from tests.support.allocator.known import a_claim, a_leaf, a_slice, valued

MOST = 20_000


class LookingSearch(Search):
    """The search as the scheduler makes it, with its looks."""

    looks = 0

    def _allocate_any(self, key, wanted, number, *, is_entry, start):
        self.looks += len(self._candidates) - start
        if self.looks > MOST:
            raise AllocationError(None)
        return super()._allocate_any(key, wanted, number, is_entry=is_entry, start=start)


def groups(few: int, many: int, minor: str = "1.37") -> Case:
    """Two groups of devices; as many are wanted as the larger has, all with one value."""
    devices = [valued(f"d{number:02}", "x" if number < few else "y") for number in range(few + many)]
    claim = a_claim(a_leaf(many), constraints=[{"matchAttribute": "k8s.io/root"}])
    return make_case(minor, slices=[a_slice(*devices)], claims=[claim])


def lengths(case: Case) -> tuple[int, int]:
    """The looks that are counted, and those that are made."""
    allocator = allocator_of(case)
    node = node_of(case.nodes[0])
    claims = [ResourceClaim.from_manifest(each) for each in case.claims]
    counted = SearchLength(
        allocator._attempt(node, claims, frozenset(), lambda: False), allocator._availability
    )
    made = LookingSearch(allocator._attempt(node, claims, frozenset(), lambda: False))
    for search in (counted, made):
        try:
            search.run()
        except AllocationError:
            return 0, 0
    return counted.looks, made.looks


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_looks_of_two_groups_are_counted_exactly(minor: str):
    counted, made = lengths(groups(5, 6, minor))
    assert counted == made > 200


@pytest.mark.parametrize("minor", MINORS)
def test_looks_of_contested_cases_are_never_more_than_are_made_and_not_much_fewer(minor: str):
    seen = 0
    for seed in range(60):
        counted, made = lengths(draw_contested(random.Random(f"length {minor} {seed}"), minor))  # noqa: S311  (not for secrets)
        if made > 100:
            seen += 1
            assert made * 0.6 < counted <= made, seed
    assert seen >= 3


@pytest.mark.parametrize(("few", "many", "is_sure"), [(3, 4, True), (12, 13, True), (19, 20, False)])
def test_an_answer_that_takes_too_long_is_none_that_is_sure(few: int, many: int, *, is_sure: bool):
    case = groups(few, many)
    allocator = allocator_of(case)
    node = node_of(case.nodes[0])
    claims = [ResourceClaim.from_manifest(each) for each in case.claims]
    found = allocator.allocate(node, claims)
    assert isinstance(found, Allocated)
    assert not found.leaves_out or allocator.answers_in_time(node, claims) is is_sure
