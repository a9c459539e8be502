"""CEL as Python selectors: what is written compiles to the very text that was read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dra_infra as dra
from dra_infra.program_writing.python_text import literal, write
from dra_infra.program_writing.selector_texts import read_selector
from dra_infra.selectors.selector import Selector
from tests.support.migration.program_cases import names_read

TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)
ATTRIBUTES = st.sampled_from([dra.gpu.product, dra.gpu.profile, dra.attribute("example.com/kind", "string")])
TESTS: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda each, text: each == text, ATTRIBUTES, TEXTS),
    st.builds(lambda each, text: each != text, ATTRIBUTES, TEXTS),
    st.builds(lambda each, text: each.contains(text), ATTRIBUTES, TEXTS),
    st.builds(lambda each, texts: each.one_of(*texts), ATTRIBUTES, st.lists(TEXTS, min_size=1, max_size=3)),
    st.builds(lambda each: each.exists(), ATTRIBUTES),
    st.builds(lambda each: each.missing(), ATTRIBUTES),
    st.builds(lambda number: dra.gpu.memory >= f"{number}Gi", st.integers(1, 200)),
    st.builds(lambda number: dra.gpu.compute_capability < f"{number}.0.0", st.integers(1, 12)),
    st.builds(lambda number: dra.attribute("example.com/index") > number, st.integers(-(2**63), 2**63 - 1)),
    st.sampled_from([dra.driver("gpu.nvidia.com"), dra.attribute("example.com/ready", "bool").is_true()]),
)
SELECTORS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner), st.builds(lambda a, b: a | b, inner, inner), st.builds(lambda a: ~a, inner)
    ),
    max_leaves=5,
)  # fmt: skip


def evaluated(code: Any) -> Selector:
    text = write(code)
    assert names_read(text) == {"dra"}
    found: Selector = eval(text, {"dra": dra})  # noqa: S307
    return found


@pytest.mark.parametrize(
    "selector",
    [
        dra.gpu.product.exists() & (dra.gpu.profile.exists() | dra.driver("gpu.nvidia.com")),
        ~(dra.driver("gpu.nvidia.com") & ~dra.driver("gpu.example.com")) | (dra.gpu.memory >= "40Gi"),
    ],
)
def test_the_test_of_a_driver_is_of_the_package_wherever_it_stands(selector: Selector):
    assert evaluated(read_selector(selector.expression()).code).expression() == selector.expression()


@given(SELECTORS)
def test_a_selector_compiles_to_the_text_that_it_was_read_from(selector: Selector):
    found = read_selector(selector.expression())
    assert found.selector.expression() == selector.expression()
    assert evaluated(found.code).expression() == selector.expression()


@given(st.text(max_size=40) | TEXTS.map(lambda text: f'device.driver == "{text}"'))
@example('device.driver == "\r"')
def test_any_text_comes_out_as_it_was(text: str):
    found = read_selector(text)
    assert found.selector.expression() == text
    assert evaluated(found.code).expression() == text


@pytest.mark.parametrize(
    ("selector", "written"),
    [
        (dra.gpu.memory >= "40Gi", 'dra.gpu.memory >= "40Gi"'),
        (dra.gpu.product.contains("H100"), 'dra.gpu.product.contains("H100")'),
        (
            (dra.gpu.architecture == "Hopper") & (dra.gpu.memory >= "79Gi"),
            '(dra.gpu.architecture == "Hopper") & (dra.gpu.memory >= "79Gi")',
        ),
        (dra.attribute("gpu.amd.com/type") == "amdgpu", 'dra.attribute("gpu.amd.com/type") == "amdgpu"'),
        (dra.gpu.profile.missing() | dra.driver("a.b"), 'dra.gpu.profile.missing() | dra.driver("a.b")'),
        (~dra.gpu.product.contains("A10G"), '~dra.gpu.product.contains("A10G")'),
    ],
)
def test_selectors_come_back_as_a_person_writes_them(selector: Selector, written: str):
    assert write(read_selector(selector.expression()).code) == written


@pytest.mark.parametrize(
    "text",
    [
        "device.driver == 'gpu.nvidia.com'",
        'device.attributes["gpu.nvidia.com"].productName == "H100"',
        'true) || (device.driver == "a.b"',
        'device.driver == "a.b" && true',
    ],
)
def test_what_no_selector_compiles_to_stays_cel(text: str):
    assert write(read_selector(text).code) == f"dra.cel({literal(text)})"
