"""What random selectors mean on random devices, by a second reading of them that knows no CEL.

The oracle below evaluates the same choices in Python: a test on a missing attribute is false, and so is its negation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import celpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.api import DeviceAttribute, DeviceCapacity, Quantity, Semver
from dra_infra.kubernetes.cel import DeviceView, check_expression, compile_expression
from dra_infra.kubernetes.cel.evaluate import Match, NoMatch
from dra_infra.selectors.any_attribute import attribute, capacity, version
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector, driver

OTHER = "gpu.example.com"
SECOND_OPINION = celpy.Environment()


@dataclass(frozen=True)
class Device:
    driver: str
    values: Mapping[str, Any]
    """Plain values, versions and quantities by qualified name; capacities have `capacity:` in front."""

    def view(self) -> DeviceView:
        attributes = {}
        amounts = {}
        for name, value in self.values.items():
            if isinstance(value, Quantity):
                amounts[name.removeprefix("capacity:")] = DeviceCapacity(value=value.text)
            elif isinstance(value, Semver):
                attributes[name] = DeviceAttribute(version=value.text)
            elif isinstance(value, bool):
                attributes[name] = DeviceAttribute(bool=value)
            elif isinstance(value, int):
                attributes[name] = DeviceAttribute(int=value)
            else:
                attributes[name] = DeviceAttribute(string=value)
        return DeviceView(self.driver, attributes, amounts)


@dataclass(frozen=True)
class Meaning:
    """A selector with what it means: True, False, or None where something that it reads is missing."""

    selector: Selector
    leaf: Callable[[Device], bool | None] | None = None
    operator: str = ""
    operands: tuple[Meaning, ...] = ()

    def holds(self, device: Device, *, negated: bool = False) -> bool:
        if self.operator == "~":
            return self.operands[0].holds(device, negated=not negated)
        if self.operator:
            sides = [side.holds(device, negated=negated) for side in self.operands]
            return all(sides) if (self.operator == "&") != negated else any(sides)
        assert self.leaf is not None
        found = self.leaf(device)
        return found is not None and found != negated


words = st.sampled_from(["", "x", "H100", "NVIDIA H100", 'a"b\\', "1.0.0", "é\n"])
amounts = st.sampled_from(["0", "1", "512Mi", "1Gi", "1024Mi", "1.5Gi", "40Gi", "1500m", "-1"])
releases = st.sampled_from(["0.0.1", "1.0.0-rc.1", "1.0.0", "1.0.0+b", "1.0.1", "9.0.0", "10.0.0"])
ints = st.integers(-2, 3)

TEXTS = {"gpu.nvidia.com/productName": gpu.product, f"{OTHER}/name": attribute(f"{OTHER}/name")}
INTS = {
    "resource.kubernetes.io/numaNode": gpu.numa_node,
    f"{OTHER}/namespace": attribute(f"{OTHER}/namespace"),
}
BOOLS = {f"{OTHER}/flag": attribute(f"{OTHER}/flag")}
VERSIONS = {
    "gpu.nvidia.com/cudaComputeCapability": gpu.compute_capability,
    f"{OTHER}/v": version(f"{OTHER}/v"),
}
CAPACITIES = {
    "capacity:gpu.nvidia.com/memory": gpu.memory,
    f"capacity:{OTHER}/memory": capacity(f"{OTHER}/memory"),
}

devices = st.builds(
    Device,
    st.sampled_from(["gpu.nvidia.com", OTHER]),
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(TEXTS, words),
            **dict.fromkeys(INTS, ints),
            **dict.fromkeys(BOOLS, st.booleans()),
            **dict.fromkeys(VERSIONS, releases.map(Semver.parse)),
            **dict.fromkeys(CAPACITIES, amounts.map(Quantity.parse)),
        },
    ),
)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def leaf(name: str, selector: Selector, test: Callable[[Any], bool]) -> Meaning:
    return Meaning(selector, lambda device: test(device.values[name]) if name in device.values else None)


@st.composite
def comparisons(
    draw: st.DrawFn, table: Mapping[str, Any], values: st.SearchStrategy[Any], parse: Any, ordered: bool
) -> Meaning:
    name, value = draw(st.sampled_from(sorted(table))), draw(values)
    operator = draw(st.sampled_from(sorted(OPERATORS) if ordered else ["!=", "=="]))
    apply = OPERATORS[operator]
    return leaf(name, apply(table[name], value), lambda found: apply(found, parse(value)))


@st.composite
def ranges(draw: st.DrawFn, table: Mapping[str, Any], values: st.SearchStrategy[Any], parse: Any) -> Meaning:
    name = draw(st.sampled_from(sorted(table)))
    low, high = sorted((draw(values), draw(values)), key=parse)
    return leaf(name, table[name].between(low, high), lambda found: parse(low) <= found <= parse(high))


@st.composite
def text_tests(draw: st.DrawFn) -> Meaning:
    name, text = draw(st.sampled_from(sorted(TEXTS))), draw(words)
    method, test = draw(
        st.sampled_from(
            [
                ("contains", lambda found: text in found),
                ("startswith", lambda found: found.startswith(text)),
                ("endswith", lambda found: found.endswith(text)),
                ("one_of", lambda found: found in (text, "x")),
            ]
        )
    )
    arguments = (text, "x") if method == "one_of" else (text,)
    return leaf(name, getattr(TEXTS[name], method)(*arguments), test)


@st.composite
def presences(draw: st.DrawFn) -> Meaning:
    table = {**TEXTS, **INTS, **BOOLS, **VERSIONS, **CAPACITIES}
    name, exists = draw(st.sampled_from(sorted(table))), draw(st.booleans())
    selector = table[name].exists() if exists else table[name].missing()
    return Meaning(selector, lambda device: (name in device.values) == exists)


portable = st.one_of(
    text_tests(),
    presences(),
    comparisons(TEXTS, words, str, False),
    comparisons(INTS, ints, int, True),
    ranges(INTS, ints, int),
    comparisons(BOOLS, st.booleans(), bool, False),
    st.sampled_from(["gpu.nvidia.com", "x.example.com"]).map(
        lambda name: Meaning(driver(name), lambda device: device.driver == name)
    ),
)
"""What every implementation of CEL can evaluate."""
tests = portable | st.one_of(
    comparisons(VERSIONS, releases, Semver.parse, True),
    ranges(VERSIONS, releases, Semver.parse),
    comparisons(CAPACITIES, amounts, Quantity.parse, True),
    ranges(CAPACITIES, amounts, Quantity.parse),
)


def combined(inner: st.SearchStrategy[Meaning]) -> st.SearchStrategy[Meaning]:
    return st.one_of(
        inner.map(lambda one: Meaning(~one.selector, operator="~", operands=(one,))),
        st.tuples(inner, inner).map(
            lambda two: Meaning(two[0].selector & two[1].selector, operator="&", operands=two)
        ),
        st.tuples(inner, inner).map(
            lambda two: Meaning(two[0].selector | two[1].selector, operator="|", operands=two)
        ),
    )


meanings = st.recursive(tests, combined, max_leaves=8)
portable_meanings = st.recursive(portable, combined, max_leaves=6)


@settings(max_examples=400, deadline=None)
@given(meanings, st.lists(devices, min_size=1, max_size=4))
def test_a_selector_never_fails_and_means_what_it_says(meaning: Meaning, fleet: list[Device]):
    program = compile_expression(meaning.selector.expression())
    for device in fleet:
        assert program.evaluate(device.view()) == (Match() if meaning.holds(device) else NoMatch())


@settings(max_examples=200, deadline=None)
@given(meanings)
def test_a_selector_compiles_without_a_warning_and_reads_only_what_it_guards(meaning: Meaning):
    checked = check_expression(meaning.selector.expression())
    assert checked.problems == ()
    assert all(read.guarded for read in checked.reads)


@settings(max_examples=200, deadline=None)
@given(meanings, devices)
def test_a_selector_and_its_negation_are_never_both_true(meaning: Meaning, device: Device):
    view = device.view()
    verdicts = [
        compile_expression(each.expression()).evaluate(view) for each in (meaning.selector, ~meaning.selector)
    ]
    assert verdicts != [Match(), Match()]


@settings(max_examples=60, deadline=None)
@given(portable_meanings, devices)
def test_another_implementation_of_cel_agrees(meaning: Meaning, device: Device):
    domains: dict[str, dict[str, Any]] = {"gpu.nvidia.com": {}, OTHER: {}, "resource.kubernetes.io": {}}
    amounts_by_domain: dict[str, dict[str, Any]] = {"gpu.nvidia.com": {}, OTHER: {}}
    for name, value in device.values.items():
        target = amounts_by_domain if isinstance(value, Quantity) else domains
        domain, _, identifier = name.removeprefix("capacity:").partition("/")
        target[domain][identifier] = value if isinstance(value, str | int) else str(value)
    program = SECOND_OPINION.program(SECOND_OPINION.compile(meaning.selector.expression()))
    data = {"driver": device.driver, "attributes": domains, "capacity": amounts_by_domain}
    assert bool(program.evaluate({"device": celpy.json_to_cel(data)})) == meaning.holds(device)


@pytest.mark.parametrize("missing", [True, False])
def test_the_rule_on_one_device(missing: bool):
    device = Device(
        "gpu.nvidia.com", {} if missing else {"capacity:gpu.nvidia.com/memory": Quantity.parse("80Gi")}
    )
    view = device.view()
    large = gpu.memory >= "40Gi"
    small = ~(gpu.memory >= "40Gi")
    assert compile_expression(large.expression()).evaluate(view) == (NoMatch() if missing else Match())
    assert compile_expression(small.expression()).evaluate(view) == NoMatch()
