"""What advice concludes about types of devices holds on devices."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_infra.advice.reach import advance, contradicts, everything
from dra_infra.advice.study import study
from dra_infra.catalog.drivers import read_pins
from dra_infra.kubernetes.api import DeviceAttribute, DeviceCapacity
from dra_infra.kubernetes.cel import DeviceView, Environment, compile_expression
from dra_infra.kubernetes.cel.evaluate import Failed, Match, NoMatch

A = 'device.attributes["gpu.nvidia.com"]'
S = 'device.attributes["resource.kubernetes.io"]'
M = 'device.capacity["gpu.nvidia.com"].memory'
ATOMS = [
    'device.driver == "gpu.nvidia.com"',
    'device.driver != "gpu.nvidia.com"',
    'device.driver in ["gpu.nvidia.com", "other.example.com"]',
    'device.driver.startsWith("gpu.")',
    *(f'{A}.type {sign} "{type_}"' for sign in ("==", "!=") for type_ in ("gpu", "mig", "vfio")),
    f'{A}["type"] in ["gpu", "mig"]',
    f"has({A}.type)",
    f'"profile" in {A}',
    '"gpu.nvidia.com" in device.attributes',
    f'{A}.profile == "1g.10gb"',
    f'{A}.?profile.orValue("") == "1g.10gb"',
    f"has({S}.pcieRoot)",
    f'{S}.pcieRoot == "pci0000:64"',
    f'{S}.pcieRoot != "pci0000:64"',
    f'{A}.productName.contains("H100")',
    f'{A}.productName.startsWith("NVIDIA A100")',
    f'{A}.productName == "NVIDIA L4"',
    f'{A}.architecture in ["Hopper", "Blackwell"]',
    f'("id" in {A} ? {A}.id == 0 : has({A}.uuid))',
    f'cel.bind(g, {A}, g.type == "gpu" && has(g.brand))',
    'cel.bind(all, device.attributes, all["gpu.nvidia.com"].type == "gpu")',
    f'["gpu", "mig"].exists(t, t == {A}.type)',
    'device.attributes["compute-domain.nvidia.com"].id == 0',
    f"has({M})",
    *(
        f'{M}.{method}(quantity("{amount}"))'
        for method in ("isGreaterThan", "isLessThan")
        for amount in ("20Gi", "40Gi")
    ),
    *(
        f'{M}.compareTo(quantity("40Gi")) {sign} {number}'
        for sign in ("<", "==", ">=")
        for number in (-1, 0, 1)
    ),
    f'0 <= {M}.compareTo(quantity("20Gi"))',
    f'quantity("40Gi").compareTo({M}) > 0',
    f'{A}.cudaComputeCapability.compareTo(semver("9.0.0")) >= 0',
    f'{A}.cudaComputeCapability.isLessThan(semver("8.0.0"))',
    "true",
    "false",
]
POOLS = {
    "string": [
        "x",
        "1g.10gb",
        "pci0000:64",
        "NVIDIA L4",
        "NVIDIA H100 NVL",
        "NVIDIA A100-SXM4-40GB",
        "Hopper",
    ],
    "int": [0, 1, 7],
    "bool": [True, False],
    "version": ["7.5.0", "8.0.0", "9.0.0"],
    "quantity": ["10Gi", "20Gi", "30Gi", "40Gi", "50Gi"],
}
EXPRESSIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "&&", "||"]), inner).map(lambda each: f"({' '.join(each)})"),
        inner.map(lambda each: f"!({each})"),
        st.tuples(inner, inner, inner).map(lambda each: f"({each[0]} ? {each[1]} : {each[2]})"),
    ),
    max_leaves=5,
)
ENVIRONMENT = Environment()
CALM = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def devices(draw):
    """A type of device of some release, and a device of that type."""
    pins = read_pins(draw(st.sampled_from(["newest", "25.12", "25.3"])))
    type_ = draw(st.sampled_from(pins.devices))
    values = {
        section: {
            name: draw(st.sampled_from(POOLS[entry.type])) if entry.value is None else entry.value
            for name, entry in entries.items()
            if not entry.absent or draw(st.booleans())
        }
        for section, entries in (("attribute", type_.attributes), ("capacity", type_.capacity))
    }
    attributes = {
        name: DeviceAttribute.model_validate({type_.attributes[name].type: value})
        for name, value in values["attribute"].items()
    }
    capacity = {name: DeviceCapacity(value=value) for name, value in values["capacity"].items()}
    return pins, type_, DeviceView(type_.driver, attributes, capacity), values


@CALM
@given(EXPRESSIONS, devices())
def test_what_is_left_of_an_expression_is_what_it_does_on_devices(expression, device):
    _, type_, view, values = device
    found = study(expression, ENVIRONMENT)
    left = found.on(type_)
    verdict = compile_expression(expression).evaluate(view)
    if left.decided is not None:
        assert isinstance(verdict, Match if left.decided else NoMatch)
    if not left.unguarded:
        assert not isinstance(verdict, Failed)
    if contradicts(left.tests):
        assert not isinstance(verdict, Match)
    if isinstance(verdict, Match):
        assert all(place.name in values[place.section] for place in left.present if place.domain != "device")


@CALM
@given(EXPRESSIONS, EXPRESSIONS, devices())
def test_what_follows_from_an_earlier_selector_does(first, second, device):
    pins, type_, view, _ = device
    before = advance(study(first, ENVIRONMENT), everything(pins))
    verdicts = [compile_expression(each).evaluate(view) for each in (first, second)]
    if not isinstance(verdicts[0], Match):
        return
    assert type_ in before.after.types
    step = advance(study(second, ENVIRONMENT), before.after)
    if step.outcome in ("implied", "always"):
        assert isinstance(verdicts[1], Match)
    if step.outcome == "never" or type_ not in step.after.types:
        assert not isinstance(verdicts[1], Match)
    if isinstance(verdicts[1], Failed):
        assert any(type_ in lacking for lacking in step.lacking.values())


@pytest.mark.parametrize("expression", ATOMS)
def test_every_part_of_the_strategy_compiles(expression):
    assert study(expression, ENVIRONMENT) is not None
