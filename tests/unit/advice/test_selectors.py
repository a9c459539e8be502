from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.markers import SECRET

GPU = 'device.attributes["gpu.nvidia.com"]'
OWN = 'device.driver == "gpu.nvidia.com"'
MEMORY = 'device.capacity["gpu.nvidia.com"].memory'
CAPABILITY = f"{GPU}.cudaComputeCapability"
GUARD = f"has({MEMORY})"


def at_least(amount):
    return f'{GUARD} && {MEMORY}.compareTo(quantity("{amount}")) >= 0'


@pytest.mark.parametrize("expression", ["true", "1 == 1", '"a" in ["a", "b"]', 'device.driver != "" || true'])
def test_selectors_that_are_true_of_every_device(inputs, expression):
    assert inputs.codes(inputs.a_class("any", expression)) == ["selector-always-true"]


@pytest.mark.parametrize(
    "expression",
    [
        "false",
        'device.driver == "a" && device.driver == "b"',
        f'{OWN} && {GPU}.type == "gpu" && {GPU}.type == "mig"',
        f"{GUARD} && {MEMORY}.isGreaterThan(quantity('80Gi')) && {MEMORY}.isLessThan(quantity('40Gi'))",
        f"{GUARD} && {MEMORY}.compareTo(quantity('40Gi')) > 1",
        f"{OWN} && {GPU}.productName == 'NVIDIA L4' && !{GPU}.productName.startsWith('NVIDIA')",
        f"{OWN} && {CAPABILITY}.isLessThan(semver('8.0.0')) && {CAPABILITY}.compareTo(semver('8.0.0')) == 0",
    ],
)
def test_selectors_that_no_device_can_pass(inputs, expression):
    found = set(inputs.codes(inputs.a_class("none", expression)))
    assert found - {"cel-unguarded-read"} == {"selector-never-true"}


@pytest.mark.parametrize(
    "expression",
    [
        f'{GPU}.type == "mig"',
        'device.driver == "gpu.example.com"',
        f'has({GPU}.addressingMode) && {GPU}.addressingMode == "ATS" && {GPU}.addressingMode == "HMM"',
        f"!{GUARD} && false",
    ],
)
def test_selectors_that_contradict_their_class(inputs, expression):
    (problem,) = inputs.of_selector(expression)
    assert (problem.code, problem.path) == ("selector-never-true", inputs.SELECTOR)


@pytest.mark.parametrize(
    "expressions",
    [
        (OWN,),
        (f'{GPU}.type == "gpu"',),
        (f'{OWN} && {GPU}.type in ["gpu", "mig"]',),
        (at_least("40Gi"), f"{MEMORY}.compareTo(quantity('40Gi')) >= 0"),
        (at_least("40Gi"), f"{MEMORY}.isGreaterThan(quantity('20Gi'))"),
        (f'{GPU}.productName.contains("H100")', f'{GPU}.productName.contains("H100")'),
    ],
)
def test_selectors_that_their_class_or_an_earlier_one_implies(inputs, expressions):
    problems = [each for each in inputs.of_selector(*expressions) if each.code != "cel-unguarded-read"]
    assert [each.code for each in problems] == ["selector-implied"]
    assert problems[0].path.endswith(f"selectors[{len(expressions) - 1}].cel.expression")


@pytest.mark.parametrize(
    "expressions",
    [
        (f'{GPU}.productName.contains("H100")',),
        (at_least("20Gi"), at_least("40Gi")),
        (f'{OWN} && {GPU}.architecture == "Hopper"',),
        (f'{GPU}.productName.contains("A100")', f'{GPU}.productName.contains("40GB")'),
        (f'{GPU}.productName == "NVIDIA L4" || {GPU}.productName == "NVIDIA L40S"',),
    ],
)
def test_selectors_that_decide_something_pass(inputs, expressions):
    assert inputs.of_selector(*expressions) == []


def test_a_selector_of_a_class_that_is_not_known_is_not_implied(inputs):
    assert [each.code for each in inputs.of_selector(OWN, of="elsewhere")] == ["class-not-known"]


def test_what_devices_only_happen_to_hold_is_not_implied(inputs):
    model = 'device.attributes["gpu.example.com"].model == "LATEST-GPU-MODEL"'
    assert inputs.of_selector(model, of="gpu.example.com") == []


def test_what_does_not_compile_gets_no_advice(inputs):
    assert inputs.of_selector("device.attributes[") == []


def test_what_is_not_decided_here_is_passed_on(inputs):
    copies = f"{'optional.of(1)'}{'.optMap(x, x)' * 14}.hasValue()"
    (problem,) = inputs.of_selector(copies)
    assert (problem.code, problem.path) == ("cel-not-decided-here", inputs.SELECTOR)


@pytest.mark.parametrize("depth", [10, 40, 80, 160, 240])
@pytest.mark.parametrize(
    ("before", "innermost", "behind", "end"),
    [
        ("(1 - ", "1", ")", " == 1"),
        ("!(", "device.driver == 'a'", ")", ""),
        ("[", "", "]", " == []"),
        ("(device.driver == 'a' && ", "true", ")", ""),
        ("[1].exists(x, ", "true", ")", ""),
    ],
)
def test_deep_expressions_end_in_advice_or_none(inputs, depth, before, innermost, behind, end):
    problems = inputs.of_selector(before * depth + innermost + behind * depth + end, of="elsewhere")
    assert len(problems) <= 2


@pytest.mark.parametrize("marker", [UNKNOWN, SECRET])
def test_values_that_are_not_known_yet_get_no_advice(inputs, marker):
    assert inputs.of_selector(marker) == []
