"""`dra.gpu`: that it is complete, and that whatever is built of it compiles on every server and is never too costly."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.catalog.drivers import DeviceType, drivers
from dra_infra.catalog.gpus import capabilities, capabilities_of
from dra_infra.catalog.records import gpu_products
from dra_infra.errors import SelectorError
from dra_infra.kubernetes.api import DeviceAttribute, DeviceCapacity
from dra_infra.kubernetes.api.limits import MAX_COST
from dra_infra.kubernetes.apiserver import environment_of
from dra_infra.kubernetes.cel import DeviceView, check_expression, compile_expression
from dra_infra.kubernetes.cel.evaluate import Match, NoMatch
from dra_infra.selectors.any_attribute import (
    AnyAttribute,
    CapacityAmount,
    VersionAttribute,
    attribute,
    capacity,
    version,
)
from dra_infra.selectors.attributes import Attribute, BoolAttribute, IntAttribute, TextAttribute
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector, driver
from dra_infra.specs.products import with_capabilities
from dra_infra.target import ClusterTarget

NVIDIA = "gpu.nvidia.com"
VOCABULARY: dict[str, Attribute] = {
    name: value for name, value in vars(type(gpu)).items() if isinstance(value, Attribute)
}
LEFT_OUT = {
    *(f"{NVIDIA}/{name}" for name in ("index", "minor", "parentIndex")),  # of 25.3 alone
    f"{NVIDIA}/numa",  # of VFIO devices up to 0.4; numaNode says it since
    *(f"{NVIDIA}/memorySlice{index}" for index in range(8)),  # where a static MIG device lies
}
TYPES = {
    "string": TextAttribute,
    "int": IntAttribute,
    "bool": BoolAttribute,
    "version": VersionAttribute,
    "quantity": CapacityAmount,
}
DEVICES = [device for release in drivers()[NVIDIA].releases for device in release.devices.values()]
ENVIRONMENTS = [environment_of(ClusterTarget(kubernetes=minor).releases[0]) for minor in ("1.34", "1.37")]


def names_of(value: Attribute) -> set[str]:
    older = {f"{NVIDIA}/pcieBusID"} if value is gpu.pci_address else set()
    return {value.qualified_name, *older}


def test_everything_that_the_driver_publishes_has_a_name_of_its_type():
    published = {}
    for device in DEVICES:
        published |= {name: entry.type for name, entry in {**device.attributes, **device.capacity}.items()}
    named = {name: value for value in VOCABULARY.values() for name in names_of(value)}
    assert set(published) - LEFT_OUT == set(named)
    for name, value in named.items():
        assert isinstance(value, TYPES[published[name]]), name


SAMPLE = {"string": "x", "int": 1, "bool": True, "version": "1.0.0"}


def view_of(device: DeviceType, **values: str) -> DeviceView:
    """A device with what each of its type has in that release."""
    attributes = {}
    amounts = {}
    for name, entry in device.attributes.items():
        if not entry.absent:
            value = values.get(name.partition("/")[2], entry.value or SAMPLE[entry.type])
            attributes[name] = DeviceAttribute.model_validate({entry.type: value})
    for name, entry in device.capacity.items():
        if not entry.absent:
            amounts[name] = DeviceCapacity(value="1Gi")
    return DeviceView(device.driver, attributes, amounts)


def a_test(value: Attribute) -> Selector:
    if isinstance(value, BoolAttribute):
        return value.is_true()
    if isinstance(value, IntAttribute):
        return value >= 0
    if isinstance(value, CapacityAmount):
        return value >= "1Ki"
    return value >= "1.0.0" if isinstance(value, VersionAttribute) else value == "x"  # type: ignore[operator]


@pytest.mark.parametrize("name", VOCABULARY)
def test_no_release_fails_a_test_for_want_of_an_attribute(name):
    test = a_test(VOCABULARY[name])
    for selector in (test, ~test, VOCABULARY[name].exists(), VOCABULARY[name].missing()):
        program = compile_expression(selector.expression())
        for device in DEVICES:
            assert isinstance(program.evaluate(view_of(device)), Match | NoMatch), (name, device.name)


words = st.sampled_from(["", "H100", "NVIDIA H100 80GB HBM3", 'a"b\\', "é\n", "x" * 200])
numbers = st.integers(-(2**63), 2**63 - 1)
amounts = st.sampled_from(["0", "1", "40Gi", "1.5Gi", "1500m", "81559Mi"])
releases = st.sampled_from(["0.0.1", "7.0.0", "9.0.0", "580.126.20", "1.0.0-rc.1"])
operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
named = st.sampled_from(
    [
        *VOCABULARY.values(),
        attribute("gpu.example.com/namespace", "string"),
        attribute("gpu.example.com/index", "int"),
        attribute("gpu.example.com/full", "bool"),
        attribute("gpu.example.com/driverVersion", "version"),
        capacity("gpu.example.com/memory"),
    ]
)


@st.composite
def single_tests(draw: st.DrawFn) -> Selector:
    value = draw(named)
    shape = draw(st.sampled_from(["presence", "comparison", "range", "choice", "text"]))
    if shape == "presence":
        return value.exists() if draw(st.booleans()) else value.missing()
    if isinstance(value, BoolAttribute):
        return value.is_true() if draw(st.booleans()) else value.is_false()
    if isinstance(value, TextAttribute):
        if shape == "choice":
            return value.one_of(*draw(st.lists(words, min_size=1, max_size=4)))
        if shape == "text":
            method = draw(st.sampled_from(["contains", "startswith", "endswith"]))
            return getattr(value, method)(draw(words))
        if shape == "range":
            return value.matches(draw(st.sampled_from(["^NVIDIA (H100|H200)", "x*y+", "[a-z]{1,20}"])))
        return value._compare(draw(st.sampled_from(["==", "!="])), draw(words))
    texts = amounts if isinstance(value, CapacityAmount) else releases
    values = numbers if isinstance(value, IntAttribute) else texts
    if shape == "range":
        same = draw(values)
        return value.between(same, same)
    if isinstance(value, IntAttribute) and shape == "choice":
        return value.one_of(*draw(st.lists(numbers, min_size=1, max_size=4)))
    return value._compare(draw(operators), draw(values))


selectors = st.recursive(
    st.one_of(
        single_tests(),
        st.sets(st.sampled_from(sorted(capabilities())), min_size=1).map(with_capabilities),
        st.just(driver(NVIDIA)),
    ),
    lambda inner: st.one_of(
        inner.map(lambda one: ~one),
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(selectors)
def test_every_selector_compiles_to_a_test_below_the_limit_on_the_oldest_and_the_newest_server(
    selector: Selector,
):
    for environment in ENVIRONMENTS:
        checked = check_expression(selector.expression(), environment=environment)
        assert checked.problems == ()
        assert checked.return_type == "bool"
        assert checked.cost is not None
        assert checked.cost <= MAX_COST
        assert all(read.guarded for read in checked.reads)


@pytest.mark.parametrize("line", ["25.8", "25.12"])
def test_the_pci_address_is_found_under_the_name_of_the_release(line):
    device = drivers()[NVIDIA].by_line[line].devices["gpu"]
    view = view_of(device, pciBusID="0000:65:00.0", pcieBusID="0000:65:00.0")
    for selector, expected in {
        gpu.pci_address == "0000:65:00.0": Match(),
        gpu.pci_address != "0000:65:00.0": NoMatch(),
        ~(gpu.pci_address == "0000:66:00.0"): Match(),
        gpu.pci_address.startswith("0000:"): Match(),
        ~gpu.pci_address.one_of("0000:65:00.0"): NoMatch(),
        gpu.pci_address.exists(): Match(),
        gpu.pci_address.missing(): NoMatch(),
        ~gpu.pci_address.missing(): Match(),
        ~gpu.pci_address.exists(): NoMatch(),
    }.items():
        assert compile_expression(selector.expression()).evaluate(view) == expected, selector


def test_an_address_that_is_under_no_name_is_missing():
    nothing = DeviceView(NVIDIA, {}, {})
    for selector, expected in {
        gpu.pci_address.missing(): Match(),
        gpu.pci_address.exists(): NoMatch(),
        ~gpu.pci_address.exists(): Match(),
        gpu.pci_address == "x": NoMatch(),
        gpu.pci_address != "x": NoMatch(),
    }.items():
        assert compile_expression(selector.expression()).evaluate(nothing) == expected, selector


def test_a_renamed_attribute_reads_every_name_behind_its_own_guard():
    assert (gpu.pci_address == "0000:65:00.0").expression() == (
        '(has(device.attributes["resource.kubernetes.io"].pciBusID)'
        ' && device.attributes["resource.kubernetes.io"].pciBusID == "0000:65:00.0")'
        ' || (has(device.attributes["gpu.nvidia.com"].pcieBusID)'
        ' && device.attributes["gpu.nvidia.com"].pcieBusID == "0000:65:00.0")'
    )
    assert repr(~(gpu.pci_address == "x")) == '~(gpu.pci_address == "x")'
    assert gpu.pci_address.qualified_name == gpu.pci_bus_id.qualified_name


def test_the_drivers_name_for_the_cuda_version_reads_the_same():
    assert (gpu.cuda_driver_version >= "13.0.0").expression() == (gpu.cuda_version >= "13.0.0").expression()


@pytest.mark.parametrize("type_", ["string", "int", "bool", "version"])
def test_an_attribute_of_any_driver_may_be_given_its_type(type_):
    assert type(attribute("gpu.example.com/x", type_)) is TYPES[type_]


def test_a_typed_attribute_compiles_as_the_untyped_one():
    assert type(attribute("gpu.example.com/x")) is AnyAttribute
    assert (attribute("a.example/x", "int") >= 3).expression() == (attribute("a.example/x") >= 3).expression()
    typed = attribute("a.example/v", "version")
    plain = version("a.example/v")
    assert (typed >= "1.2.3").expression() == (plain >= "1.2.3").expression()


def test_a_typed_attribute_refuses_a_value_of_another_type():
    with pytest.raises(SelectorError) as caught:
        _ = attribute("gpu.example.com/index", "int") == "3"
    assert caught.value.problems[0].code == "selector-type"
    with pytest.raises(SelectorError) as caught:
        attribute("gpu.example.com/index", "integer")
    assert caught.value.problems[0].code == "selector-invalid-value"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("capabilities", "with_capabilities"),
        ("index", 'attribute("gpu.nvidia.com/index")'),
        ("pcie_bus_id", "gpu.pci_address"),
        ("cuda_driver", "gpu.cuda_driver_version"),
    ],
)
def test_a_name_that_is_none_says_what_to_write(name, hint):
    with pytest.raises(SelectorError) as caught:
        getattr(gpu, name)
    assert hint in caught.value.problems[0].hint


@pytest.mark.parametrize("product", sorted(gpu_products()))
def test_a_product_passes_for_exactly_what_the_catalogue_says_it_can_do(product):
    known = gpu_products()[product]
    name = f"{NVIDIA}/cudaComputeCapability"
    view = DeviceView(NVIDIA, {name: DeviceAttribute(version=known.cuda_compute_capability)}, {})
    able = set(capabilities_of(product))
    for capability in capabilities():
        program = compile_expression(with_capabilities({capability}).expression())
        assert program.evaluate(view) == (Match() if capability in able else NoMatch())


def test_several_capabilities_are_bounded_by_the_greatest():
    both = with_capabilities({"tensor-cores", "nvfp4"})
    assert both.expression() == (gpu.compute_capability >= "10.0.0").expression()
    assert with_capabilities("fp8").expression() == (gpu.compute_capability >= "8.9.0").expression()


@pytest.mark.parametrize(
    ("given", "code", "hint"),
    [
        ({"tensor_cores"}, "selector-invalid-value", "'tensor-cores'"),
        ({"levitation"}, "selector-invalid-value", "known are"),
        (set(), "selector-invalid-value", "name one or more"),
        ({8}, "selector-type", "with_capabilities"),
        (8, "selector-type", "with_capabilities"),
    ],
)
def test_a_capability_that_is_not_known_is_refused(given, code, hint):
    with pytest.raises(SelectorError) as caught:
        with_capabilities(given)
    (problem,) = caught.value.problems
    assert problem.code == code
    assert hint in problem.hint
