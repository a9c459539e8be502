from __future__ import annotations

import sys
from itertools import count

import pytest

from dra_infra.kubernetes.api import DeviceClass, ResourceClaim, ResourceSlice
from dra_infra.kubernetes.scheduler.allocator import Allocated, Allocator, Failed, Trouble
from tests.support.allocator.answers import allocator_of, node_of
from tests.support.allocator.cases import MINORS, make_case
from tests.support.allocator.known import a_claim, a_leaf, a_slice, selecting


def outcome_of(minor: str, slices, claims, *, prune: bool = True, **options):
    case = make_case(minor, slices=slices, claims=claims)
    read = [ResourceClaim.from_manifest(each) for each in claims]
    return allocator_of(case, prune=prune).allocate(node_of(case.nodes[0]), read, **options)


@pytest.mark.parametrize("minor", MINORS)
def test_a_pod_may_have_many_claims(minor: str):
    limit = sys.getrecursionlimit()
    slices = [a_slice(*(f"d{number}" for number in range(400)))]
    claims = [a_claim(a_leaf(), name=f"c{number}") for number in range(400)]
    outcome = outcome_of(minor, slices, claims)
    assert isinstance(outcome, Allocated)
    assert len(outcome.results) == 400
    assert sys.getrecursionlimit() == limit


def test_a_search_that_takes_for_ever_can_be_ended():
    steps = count()
    slices = [a_slice(*(f"d{number}" for number in range(30)))]
    claims = [a_claim(a_leaf(16)), a_claim(a_leaf(15), name="c1")]
    outcome = outcome_of("1.37", slices, claims, prune=False, is_cancelled=lambda: next(steps) > 5000)
    assert outcome == Failed("filter operation aborted: context deadline exceeded")


def test_class_selectors_come_before_those_of_the_request():
    slices = [a_slice({"name": "d0"}, driver="b.example.com")]
    careless = selecting("device.attributes['b.example.com'].nope == 1")
    outcome = outcome_of("1.37", slices, [a_claim(a_leaf(device_class="a", selectors=careless))])
    assert not isinstance(outcome, Failed)


@pytest.mark.parametrize("minor", MINORS)
def test_an_error_of_cel_names_who_asked_and_from_1_37_on_the_device(minor: str):
    careless = selecting("device.attributes['a.example.com'].nope == 1")
    outcome = outcome_of(minor, [a_slice("d0")], [a_claim(a_leaf(selectors=careless))])
    assert isinstance(outcome, Failed)
    assert not outcome.on_node
    on_device = " on device a.example.com/p/d0" if minor == "1.37" else ""
    start = f"claim ml/c0: selector #0{on_device}: CEL runtime error: no such key: nope"
    assert outcome.text.startswith(start)
    assert outcome.text.endswith("for optional fields" if minor == "1.37" else "no such key: nope")


@pytest.mark.parametrize("minor", MINORS[1:])
def test_an_invalid_pool_is_an_error_of_the_node_where_nothing_else_fits(minor: str):
    outcome = outcome_of(minor, [a_slice("d0", "d0")], [a_claim(a_leaf())])
    assert outcome == Failed("invalid resource pools were encountered", on_node=True)


def test_an_invalid_pool_ends_the_attempt_in_1_34():
    outcome = outcome_of("1.34", [a_slice("d0", "d0")], [a_claim(a_leaf())])
    assert outcome == Failed("pool p is invalid: duplicate device name d0")


def test_another_evaluator_may_answer_for_cel():
    class Knowing:
        def test(self, expression: str, published) -> bool:
            return published.id.device == expression

        def derive(self, expression: str, published):
            raise AssertionError

    case = make_case("1.37", slices=[a_slice("d0", "d1")], claims=[])
    claim = ResourceClaim.from_manifest(a_claim(a_leaf(selectors=selecting("d1"))))
    slices = [ResourceSlice.from_manifest(each) for each in case.slices]
    classes = [DeviceClass.from_manifest(each) for each in case.classes]
    allocator = Allocator(case.variant, slices, classes, evaluator=Knowing())
    outcome = allocator.allocate(node_of(case.nodes[0]), [claim])
    assert isinstance(outcome, Allocated)
    assert [each.device for each in outcome.results[0].devices.results or ()] == ["d1"]


def test_what_is_not_decided_here_says_so():
    class Doubting:
        def test(self, expression: str, published) -> Trouble:
            return Trouble("nobody knows", decided=False)

        def derive(self, expression: str, published):
            raise AssertionError

    case = make_case("1.37", slices=[a_slice("d0")], claims=[])
    claim = ResourceClaim.from_manifest(a_claim(a_leaf(selectors=selecting("true"))))
    slices = [ResourceSlice.from_manifest(each) for each in case.slices]
    classes = [DeviceClass.from_manifest(each) for each in case.classes]
    outcome = Allocator(case.variant, slices, classes, evaluator=Doubting()).allocate(
        node_of(case.nodes[0]), [claim]
    )
    assert isinstance(outcome, Failed)
    assert not outcome.decided
