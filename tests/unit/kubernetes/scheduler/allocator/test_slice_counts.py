"""Pools whose slices claim different numbers of slices: decided only where the order of the slices does not matter."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest

from dra_infra.kubernetes.scheduler.allocator import Allocated, Failed, Outcome
from tests.support.allocator.answers import allocator_of, node_of
from tests.support.allocator.cases import MINORS, Case, make_case
from tests.support.allocator.known import a_claim, a_leaf, a_slice
from tests.support.draws import seeds
from tests.support.explanation.asked import claims_of

NODES = [{"metadata": {"name": name, "labels": {}}} for name in ("n0", "n1")]


def outcome_of(case: Case, node: int = 0) -> Outcome:
    """What the allocator answers on a node."""
    return allocator_of(case).allocate(node_of(case.nodes[node]), claims_of(case))


def of_counts(minor: str, *counts: int, asked: int | None = 1, **rest: Any) -> Case:
    """A pool with a slice, and a device, for each count; and a request for devices."""
    slices = [a_slice(f"d{at}", name=f"s{at}", count=count) for at, count in enumerate(counts)]
    return make_case(minor, slices=slices, claims=[a_claim(a_leaf(asked))], **rest)


@pytest.mark.parametrize("counts", [(1, 2), (2, 1), (2, 3), (3, 2), (2, 2, 3), (3, 1, 1)])
@pytest.mark.parametrize("minor", [each for each in MINORS if each != "1.34"])
def test_a_pool_that_is_complete_by_one_slice_only_is_not_decided(minor: str, counts: tuple[int, ...]):
    outcome = outcome_of(of_counts(minor, *counts))
    if len(counts) not in counts:
        assert not isinstance(outcome, Allocated)
        assert not isinstance(outcome, Failed) or outcome.decided
        return
    assert isinstance(outcome, Failed)
    assert (outcome.decided, outcome.code, outcome.on_node) == (False, "slice-counts-differ", True)


def test_the_devices_of_an_incomplete_pool_are_allocated_in_1_34_whatever_the_slices_claim():
    assert isinstance(outcome_of(of_counts("1.34", 1, 2)), Allocated)


@pytest.mark.parametrize("minor", MINORS)
def test_all_devices_of_a_pool_that_may_be_incomplete_end_the_attempt_for_the_pod_or_do_not(minor: str):
    outcome = outcome_of(of_counts(minor, 1, 2, asked=None))
    assert isinstance(outcome, Failed)
    assert (outcome.decided, outcome.on_node) == (False, False)


@pytest.mark.parametrize("minor", MINORS)
def test_more_devices_than_there_are_fit_by_no_count(minor: str):
    outcome = outcome_of(of_counts(minor, 1, 2, asked=3))
    assert not isinstance(outcome, Allocated)
    assert not isinstance(outcome, Failed) or outcome.decided


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.draws
@pytest.mark.parametrize("seed", seeds(40))
def test_the_answer_is_the_one_of_every_count_or_not_decided(minor: str, seed: int):
    random = Random(f"{minor} {seed}")  # noqa: S311  (cases, not secrets)
    slices = [
        a_slice(
            *(f"{pool}-{at}-{device}" for device in range(random.randint(1, 2))),
            name=f"{pool}-{at}",
            pool=pool,
            count=random.choice((1, 2, 2, 3)),
            generation=random.choice((1, 1, 1, 2)),
            nodeName=random.choice(("n0", "n0", "n0", "n1")),
        )
        for pool in ("p", "q")
        for at in range(random.randint(1, 3))
    ]
    leaf = a_leaf(random.choice((1, 1, 2, 3, None)))
    answers = []
    claimed = {each["spec"]["pool"]["resourceSliceCount"] for each in slices}
    for first in sorted(claimed):
        for second in sorted(claimed):
            forced = deepcopy(slices)
            # The first slice that is listed decides: each one that the node can see may be it.
            for each in forced:
                pool = each["spec"]["pool"]
                wanted = first if pool["name"] == "p" else second
                if wanted in _seen_counts(slices, pool["name"]):
                    pool["resourceSliceCount"] = wanted
                else:
                    break
            else:
                answers.append(
                    outcome_of(make_case(minor, slices=forced, claims=[a_claim(leaf)], nodes=NODES))
                )
    outcome = outcome_of(make_case(minor, slices=slices, claims=[a_claim(leaf)], nodes=NODES))
    if isinstance(outcome, Failed) and not outcome.decided:
        assert len({str(each) for each in answers}) > 1
    elif isinstance(outcome, Allocated):
        assert all(each == outcome for each in answers)
    else:
        assert not any(isinstance(each, Allocated) for each in answers)


def _seen_counts(slices: list[dict[str, Any]], pool: str) -> set[int]:
    """The counts of the slices of a pool that node n0 sees in the newest generation there; all where it sees none."""
    own = [each["spec"] for each in slices if each["spec"]["pool"]["name"] == pool]
    seen = [each for each in own if each["nodeName"] == "n0"] or own
    newest = max(each["pool"]["generation"] for each in seen)
    return {each["pool"]["resourceSliceCount"] for each in seen if each["pool"]["generation"] == newest}
