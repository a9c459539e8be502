"""What our components generate, with names from the catalogue, needs no advice."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dra_infra as dra
from dra_infra.catalog.vocabulary import product_memory, product_names
from dra_infra.specs.device_classes import compile_class
from tests.unit.advice import conftest as build

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/expected.yaml"))
MEMORY = sorted({f"{memory // 1024 - 1}Gi" for memory in product_memory().values() if memory})
TESTS = st.one_of(
    st.sampled_from(product_names()).map(lambda name: dra.gpu.product == name),
    st.sampled_from(["Hopper", "Blackwell"]).map(lambda name: dra.gpu.architecture == name),
    st.sampled_from(["7.5.0", "9.0.0"]).map(lambda text: dra.gpu.compute_capability >= text),
    st.sampled_from(["535.0.0", "580.126.20"]).map(lambda text: dra.gpu.driver_version >= text),
    st.integers(0, 7).map(lambda number: dra.gpu.numa_node == number),
    st.just(dra.gpu.addressing_mode == "HMM"),
)


def test_there_are_examples():
    assert len(EXAMPLES) >= 7


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_need_no_advice(path):
    manifests = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
    assert build.advice_on(*manifests) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TESTS, st.booleans())
def test_one_test_needs_no_advice(test, in_class):
    """In a class, and in a request for the class that the driver ships."""
    if in_class:
        spec = compile_class(test).to_manifest()
        manifest = {**build.a_class("own"), "spec": spec}
    else:
        manifest = build.a_claim(build.a_request(test.expression()))
    assert build.advice_on(manifest) == []


@pytest.mark.parametrize("amount", MEMORY)
def test_memory_a_little_below_that_of_a_card_needs_no_advice_on_units(amount):
    problems = build.of_selector((dra.gpu.memory >= amount).expression())
    assert {each.code for each in problems} <= {"memory-just-missed"}
