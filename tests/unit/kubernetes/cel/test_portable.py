from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.cel import Environment, check
from dra_infra.kubernetes.cel.environment import DEFAULT

ENVIRONMENTS = [
    Environment(minor=minor, stored=stored, list_attributes=lists, consumable_capacity=capacity)
    for minor, stored, lists, capacity in product(
        (34, 35, 36, 37), (True, False), (True, False), (True, False)
    )
]
ATTRIBUTE = 'device.attributes["gpu.nvidia.com"].productName'
VERSION = 'device.attributes["gpu.nvidia.com"].driverVersion'
CAPACITY = 'device.capacity["gpu.nvidia.com"].memory'
ATOMS = [
    "true",
    'device.driver == "gpu.nvidia.com"',
    f'{ATTRIBUTE} == "NVIDIA H100"',
    f"{ATTRIBUTE} == 7",
    f"{ATTRIBUTE} > 7",
    f"{ATTRIBUTE} < 7.5",
    f"7 == {ATTRIBUTE}",
    f'{ATTRIBUTE}.contains("H100")',
    f'{ATTRIBUTE}.lowerAscii().startsWith("h")',
    f'{VERSION}.isGreaterThan(semver("1.2.3"))',
    f'{VERSION}.compareTo(semver("1.2.3")) >= 0',
    f'{VERSION} == semver("1.2.3")',
    f'{CAPACITY}.compareTo(quantity("40Gi")) >= 0',
    f'{CAPACITY} == quantity("40Gi")',
    f"has({ATTRIBUTE})",
    f"has({CAPACITY})",
    '"productName" in device.attributes["gpu.nvidia.com"]',
    '"gpu.nvidia.com" in device.attributes',
    'device.attributes["a"] == device.attributes["b"]',
    "device.attributes == device.attributes",
    f"{ATTRIBUTE} == {CAPACITY}",
    'device.attributes["gpu.nvidia.com"]["a"]["b"] == 1',
    f"{ATTRIBUTE}.nested == 1",
    f"{ATTRIBUTE}",
    '"x" + device.driver == "y"',
    "device.allowMultipleAllocations",
    'device.`driver` == "a"',
]
TEXTS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} == {})".format, inner, inner),
    ),
    max_leaves=5,
)


@settings(deadline=None, max_examples=200)
@given(TEXTS)
def test_a_portable_expression_has_one_verdict_and_one_cost_everywhere(text: str):
    here = check._check(text, DEFAULT, derived=False)
    if not here.portable or "`" in text:
        return
    for environment in ENVIRONMENTS:
        there = check._check(text, environment, derived=False)
        assert (there.kind, there.return_type, there.cost, there.undecided) == ("", "bool", here.cost, ""), (
            environment
        )


def test_the_usual_selectors_are_portable():
    for text in ATOMS[1:18]:
        assert check._check(text, DEFAULT, derived=False).portable, text


def test_what_releases_differ_in_is_not_portable():
    for text in (
        "device.allowMultipleAllocations",
        ATTRIBUTE,
        f'{ATTRIBUTE} in ["a"]',
        f"{ATTRIBUTE}.includes(1)",
    ):
        checked = check._check(text, DEFAULT, derived=False)
        assert checked.trees
        assert not checked.portable, text
