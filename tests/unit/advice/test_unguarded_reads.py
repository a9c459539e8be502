from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dra_infra as dra
from dra_infra.advice.findings import clauses

GPU = "device.attributes['gpu.nvidia.com']"
ARCHITECTURE = f"{GPU}.architecture == 'Hopper'"
MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"
ROOT = "device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:64'"
OWN = "device.driver == 'gpu.nvidia.com'"


def unguarded(problems):
    return [problem for problem in problems if problem.code == "cel-unguarded-read"]


@pytest.mark.parametrize(
    "expression",
    [
        ARCHITECTURE,
        f"{GPU}.cudaComputeCapability.isGreaterThan(semver('8.0.0'))",
        f"has(device.capacity['gpu.nvidia.com'].memory) && {MEMORY}",
        f"{GPU}.?profile.orValue('') == '1g.10gb' || {ARCHITECTURE}",
        f"cel.bind(g, {GPU}, g.architecture == 'Hopper')",
        f"{GPU}['architecture'] in ['Hopper', 'Blackwell']",
    ],
)
def test_what_every_device_of_the_class_has_may_be_read_freely(inputs, expression):
    assert unguarded(inputs.of_selector(expression)) == []


@pytest.mark.parametrize(
    ("expression", "driver", "reason"),
    [
        (ROOT, "newest", "whole GPUs have none where the PCIe root cannot be found"),
        (MEMORY, "newest", "whole GPUs have none where memory is unified"),
        (f"{GPU}.addressingMode == 'ATS'", "25.12", "whole GPUs have none where the kernel driver"),
        (f"!has({GPU}.addressingMode) && {GPU}.addressingMode == 'ATS'", "0.5", "whole GPUs have none"),
    ],
)
def test_what_some_devices_of_the_class_lack_needs_a_guard(inputs, expression, driver, reason):
    (problem,) = unguarded(inputs.of_selector(expression, driver=driver))
    assert problem.path == inputs.SELECTOR
    assert problem.severity == "warning"
    assert reason in problem.message
    assert problem.hint.startswith("write has(")


@pytest.mark.parametrize(("expression", "driver"), [(ROOT, "25.3"), (MEMORY, "25.12")])
def test_what_a_release_always_publishes_needs_none(inputs, expression, driver):
    assert unguarded(inputs.of_selector(expression, driver=driver)) == []


@pytest.mark.parametrize("expression", [f"{OWN} && {ARCHITECTURE}", f"{ARCHITECTURE} && {OWN}"])
def test_the_driver_alone_does_not_tell_the_type_of_device(inputs, expression):
    (problem,) = unguarded(inputs.advice_on(inputs.a_class("any", expression)))
    assert "VFIO devices have none" in problem.message
    assert "GPUs" not in problem.message


@pytest.mark.parametrize(
    "expression",
    [
        f"{OWN} && {GPU}.type == 'gpu' && {ARCHITECTURE}",
        f"{OWN} && {GPU}.type in ['gpu', 'mig'] && {ARCHITECTURE}",
        f"{OWN} ? {GPU}.type != 'vfio' && {ARCHITECTURE} : false",
        f"!({OWN}) || {GPU}.productName.contains('H100')",
    ],
)
def test_a_test_of_driver_and_type_is_a_guard(inputs, expression):
    assert unguarded(inputs.advice_on(inputs.a_class("any", expression))) == []


def test_an_earlier_selector_is_a_guard_and_a_later_one_is_not(inputs):
    good = inputs.a_class("good", OWN, f"{GPU}.productName.contains('H100')")
    bad = inputs.a_class("bad", f"{GPU}.productName.contains('H100')", OWN)
    assert unguarded(inputs.advice_on(good)) == []
    (problem,) = unguarded(inputs.advice_on(bad))
    assert problem.path == "spec.selectors[0].cel.expression"
    assert "nothing before it says whose devices come here" in problem.message


@pytest.mark.parametrize(
    "earlier", [f"has({ROOT.partition(' ')[0]})", f"has({ROOT.partition(' ')[0]}) && {ROOT}"]
)
def test_what_an_earlier_selector_makes_sure_of_may_be_read_freely(inputs, earlier):
    later = ROOT.replace("pci0000:64", "pci0000:65").replace("==", "!=")
    assert unguarded(inputs.of_selector(earlier, later)) == []


def test_a_class_of_the_input_guards_its_requests(inputs):
    own = inputs.a_class("own", f"{OWN} && {GPU}.type == 'gpu'")
    assert unguarded(inputs.of_selector(ARCHITECTURE, of="own", classes=[own])) == []


def test_a_class_of_the_input_counts_before_a_shipped_one(inputs):
    wide = inputs.a_class("gpu.nvidia.com", OWN)
    (problem,) = unguarded(inputs.of_selector(ARCHITECTURE, classes=[wide]))
    assert "VFIO devices have none" in problem.message


def test_nothing_is_said_for_a_class_that_is_not_known(inputs):
    assert len(unguarded(inputs.of_selector(ARCHITECTURE, of="elsewhere"))) == 1


def test_reads_of_drivers_that_are_not_known_need_a_guard(inputs):
    nic = inputs.a_class("nic", "device.driver == 'nic.example.org'")
    plain = inputs.of_selector("device.attributes['nic.example.org'].rdma == true", of="nic", classes=[nic])
    guarded = inputs.of_selector(
        "has(device.attributes['nic.example.org'].rdma) && device.attributes['nic.example.org'].rdma",
        of="nic",
        classes=[nic],
    )
    assert [problem.code for problem in plain] == ["cel-unguarded-read"]
    assert "what devices of 'nic.example.org' have is not known here" in plain[0].message
    assert guarded == []


@pytest.mark.parametrize("before", [dra.gpu.product.exists(), dra.driver("gpu.nvidia.com")], ids=repr)
def test_a_selector_in_python_says_whose_devices_come_here(inputs, before):
    for texts in (
        (before.expression(), ARCHITECTURE),
        ((before & dra.cel(ARCHITECTURE)).expression(),),
    ):
        (problem,) = unguarded(inputs.of_selector(*texts, of="elsewhere"))
        assert "nothing before it" not in problem.message
        assert "VFIO devices have none" in problem.message


def test_another_attribute_of_a_driver_that_is_not_known_is_no_guard(inputs):
    read = "device.attributes['nic.example.org'].rdma"
    found = inputs.of_selector(
        "has(device.attributes['nic.example.org'].speed)", f"{read} == true", of="elsewhere"
    )
    assert [each.path for each in unguarded(found)] == [
        inputs.SELECTOR.replace("selectors[0]", "selectors[1]")
    ]


def test_the_hint_shows_the_clause_with_its_guard(inputs):
    (problem,) = unguarded(inputs.of_selector(f"{ARCHITECTURE} && {ROOT}"))
    assert problem.hint == f"write has(device.attributes['resource.kubernetes.io'].pcieRoot) && {ROOT}"


H100 = f"{GPU}.productName == 'NVIDIA H100 80GB HBM3'"
GUARD = 'has(device.capacity["gpu.nvidia.com"].memory)'
TESTS = st.sampled_from(
    [MEMORY, ARCHITECTURE, H100, "true", f"{GUARD} && {H100}", f"{GPU}[?'profile'].hasValue()"]
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 0) -> str:
    form = draw(st.sampled_from(["test", "&&", "||", "?", "!", "()"])) if depth < 3 else "test"
    if form == "test":
        return draw(TESTS)
    one, other = draw(expressions(depth + 1)), draw(expressions(depth + 1))
    return {
        "?": f"({other}) ? {one} : {other}",
        "!": f"!({one})",
        "()": f"({one})",
    }.get(form, f"{one} {form} {other}")


@settings(
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(expressions())
@example(f"{H100} || {MEMORY}")
@example(f"{GUARD} && {H100} || {MEMORY}")
@example(f"{MEMORY} ? {MEMORY} : {H100}")
def test_what_the_hint_says_is_written_passes(inputs, expression):
    for problem in unguarded(inputs.of_selector(expression)):
        verb, _, written = problem.hint.partition(" ")
        if verb == "write":
            parts = clauses(expression)
            place = next(index for index, each in enumerate(parts) if "memory" in each)
            expression = " && ".join([*parts[:place], written, *parts[place + 1 :]])
    assert not [each for each in unguarded(inputs.of_selector(expression)) if each.hint.startswith("write")]


def test_a_guard_stands_in_the_alternative_that_reads(inputs):
    (problem,) = unguarded(inputs.of_selector(f"{GUARD} && {H100} || {MEMORY}"))
    assert problem.hint == f"write {GUARD} && {H100} || {GUARD} && {MEMORY}"


def test_derived_attributes_are_read_after_the_selectors(inputs):
    derived = [
        {"name": "example.com/root", "expression": "device.attributes['resource.kubernetes.io'].pcieRoot"}
    ]
    claim = inputs.a_claim(
        inputs.a_request(derivedAttributes=derived), constraints=[{"matchAttribute": "example.com/root"}]
    )
    (problem,) = inputs.advice_on(claim)
    assert problem.code == "cel-unguarded-read"
    assert problem.path == "spec.devices.requests[0].exactly.derivedAttributes[0].expression"
