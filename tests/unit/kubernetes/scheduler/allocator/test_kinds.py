"""Each expression is evaluated once per kind of device, and gives what it gives on each device by itself."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.api import ResourceSlice
from dra_infra.kubernetes.scheduler.allocator import Published, Trouble
from dra_infra.kubernetes.scheduler.allocator.identity import published_devices
from dra_infra.kubernetes.scheduler.allocator.selection import CelEvaluator, KindEvaluator
from dra_infra.kubernetes.scheduler.allocator.variants import choose_variant
from tests.support.allocator.cases import MINORS, draw_case, everything_of, release_of
from tests.support.allocator.known import a_slice

MODEL = "device.attributes['a.example.com'].model == 'x'"
ALL = "device.attributes['a.example.com'].exists(name, name == 'model')"


def variant_of(minor: str, *without: str):
    return choose_variant(release_of(minor, [gate for gate in everything_of(minor) if gate not in without]))


def devices(*attributes: dict, **device) -> tuple[Published, ...]:
    written = [{"name": f"d{at}", "attributes": each, **device} for at, each in enumerate(attributes)]
    return published_devices(ResourceSlice.from_manifest(a_slice(*written)))


class Counting:
    """Evaluates as CEL does and counts."""

    def __init__(self, variant) -> None:
        self.evaluator = CelEvaluator(variant)
        self.asked = 0

    def test(self, expression: str, published: Published):
        self.asked += 1
        return self.evaluator.test(expression, published)

    def derive(self, expression: str, published: Published):
        self.asked += 1
        return self.evaluator.derive(expression, published)


def answers(minor: str, expression: str, published: tuple[Published, ...], *without: str):
    variant = variant_of(minor, *without)
    counting = Counting(variant)
    evaluator = KindEvaluator(variant, counting)
    given = [evaluator.test(expression, each) for _ in range(2) for each in published]
    plain = CelEvaluator(variant)
    assert given == [plain.test(expression, each) for each in published] * 2
    return given[: len(published)], counting.asked


def test_what_is_not_read_does_not_matter():
    published = devices(
        *({"model": {"string": "x"}, "uuid": {"string": f"GPU-{number}"}} for number in range(8))
    )
    assert answers("1.37", MODEL, published) == ([True] * 8, 1)


def test_other_spellings_of_a_name_are_read_too():
    published = devices(
        {"model": {"string": "x"}},
        {"a.example.com/model": {"string": "x"}},
        {"model": {"string": "y"}},
        {"a.example.com/model": {"version": "1.0.0"}},
    )
    given, _ = answers("1.37", MODEL, published)
    assert given[:3] == [True, True, False]


def test_an_expression_that_may_read_anything_is_evaluated_on_all_that_differ():
    published = devices({"model": {"string": "x"}}, {"size": {"int": 1}}, {"size": {"int": 1}})
    assert answers("1.37", ALL, published) == ([True, False, False], 2)


@pytest.mark.parametrize(
    "broken",
    [
        {"size": {"version": "one"}},
        {"size": {}},
        {"size": {"int": 1}, "a.example.com/size": {"int": 2}},
        {"size": {"string": "a\0b"}},
    ],
)
def test_a_value_that_cannot_be_read_matters_where_nothing_reads_it(broken: dict):
    published = devices({"model": {"string": "x"}, **broken}, {"model": {"string": "x"}})
    answers("1.37", MODEL, published)
    answers("1.37", MODEL, published[::-1])


def test_1_36_without_its_gate_reads_no_device_that_has_a_list():
    with_list = {"model": {"string": "x"}, "sizes": {"ints": [1, 2]}}
    published = devices({"model": {"string": "x"}}, with_list)
    given, _ = answers("1.36", MODEL, published, "DRAListTypeAttributes")
    assert given[0] is True
    assert isinstance(given[1], Trouble)
    assert answers("1.37", MODEL, published) == ([True, True], 1)


def test_a_text_is_no_version():
    published = devices({"model": {"string": "1.0.0"}}, {"model": {"version": "1.0.0"}})
    _, asked = answers("1.37", "device.attributes['a.example.com'].?model.orValue('') == '1.0.0'", published)
    assert asked == 2


def test_derived_attributes_are_kept_by_kind():
    variant = variant_of("1.37")
    counting = Counting(variant)
    evaluator = KindEvaluator(variant, counting)
    sizes = devices(*({"size": {"int": number % 2}} for number in range(6)))
    for expression in ("device.attributes['a.example.com'].size", "device.nope"):
        expected = [CelEvaluator(variant).derive(expression, each) for each in sizes]
        assert [evaluator.derive(expression, each) for each in sizes] == expected
    assert counting.asked <= 2 + 6


@pytest.mark.parametrize("minor", MINORS)
@settings(max_examples=60, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_verdicts_are_those_on_each_device_by_itself(minor: str, random: Random):
    case = draw_case(random, minor)
    plain = CelEvaluator(case.variant)
    kinds = KindEvaluator(case.variant)
    published = [
        each for slice_ in case.slices for each in published_devices(ResourceSlice.from_manifest(slice_))
    ]
    for claim in case.claims:
        for request in claim["spec"]["devices"]["requests"]:
            for leaf in request.get("firstAvailable", ()) or [request.get("exactly", {})]:
                for selector in leaf.get("selectors", ()):
                    text = selector.get("cel", {}).get("expression", "")
                    assert [kinds.test(text, each) for each in published] == [
                        plain.test(text, each) for each in published
                    ]
                for derived in leaf.get("derivedAttributes", ()):
                    text = derived["expression"]
                    assert [kinds.derive(text, each) for each in published] == [
                        plain.derive(text, each) for each in published
                    ]
