from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog.charts import charts
from dra_infra.catalog.driver_gates import check_gates, driver_needs, gate_rules_of, gate_states, gates_of
from dra_infra.catalog.drivers import drivers
from dra_infra.kubernetes.api import GATES

LINES = list(drivers()["gpu.nvidia.com"].by_line)


@pytest.mark.parametrize(
    ("gate", "lines"),
    [
        ("TimeSlicingSettings", {"25.8", "25.12", "0.4", "0.5"}),
        ("DynamicMIG", {"25.12", "0.4", "0.5"}),
        ("DeviceMetadata", {"0.4", "0.5"}),
        ("DRAListTypeAttributes", {"0.5"}),
        ("FabricManagerPartitioning", {"0.5"}),
        ("AllAlpha", {"25.8", "25.12", "0.4", "0.5"}),
    ],
)
def test_gates_by_release_line(gate, lines):
    assert {line for line in LINES if gate in gates_of(line)} == lines


def test_the_gates_that_are_on_by_default():
    assert {name for name, is_on in gate_states("0.5", {}).items() if is_on} == {
        "IMEXDaemonsWithDNSNames",
        "ComputeDomainCliques",
        "CrashOnNVLinkFabricErrors",
        "ContextualLogging",
        "LoggingBetaOptions",
    }


@pytest.mark.parametrize("line", LINES)
def test_the_defaults_of_every_line_go_together(line):
    assert check_gates(line, {}) == []


@pytest.mark.parametrize(
    ("line", "gates", "path", "severity"),
    [
        ("25.12", {"DynamicMIG": True, "PassthroughSupport": True}, "DynamicMIG", "error"),
        ("0.5", {"DynamicMIG": True, "MPSSupport": True}, "DynamicMIG", "error"),
        ("0.4", {"DynamicMIG": True, "NVMLDeviceHealthCheck": True}, "DynamicMIG", "error"),
        ("0.4", {"PassthroughSupport": True, "NVMLDeviceHealthCheck": True}, "PassthroughSupport", "error"),
        ("0.4", {"DeviceMetadata": True}, "DeviceMetadata", "error"),
        ("0.5", {"IMEXDaemonsWithDNSNames": False}, "IMEXDaemonsWithDNSNames", "error"),
        ("0.5", {"MPSSupport": True, "NVMLDeviceHealthCheck": True}, "MPSSupport", "warning"),
        ("0.5", {"ConsumableShares": True, "MPSSupport": True}, "ConsumableShares", "warning"),
    ],
)
def test_gates_that_do_not_go_together_are_told(line, gates, path, severity):
    (problem,) = check_gates(line, gates)
    assert (problem.path, problem.code, problem.severity) == (path, "driver-gate-conflict", severity)
    assert "write " in problem.hint


@pytest.mark.parametrize(
    ("line", "gates"),
    [
        ("25.8", {"IMEXDaemonsWithDNSNames": False}),
        ("25.12", {"PassthroughSupport": True, "NVMLDeviceHealthCheck": True}),
        ("0.5", {"DeviceMetadata": True, "PassthroughSupport": True}),
        ("0.5", {"IMEXDaemonsWithDNSNames": False, "ComputeDomainCliques": False}),
        ("0.5", {"AllBeta": False}),
        ("0.5", {"TimeSlicingSettings": True, "MPSSupport": True}),
    ],
)
def test_gates_that_go_together_are_no_problem(line, gates):
    assert check_gates(line, gates) == []


def test_all_alpha_turns_on_what_is_not_set_itself():
    states = gate_states("0.5", {"AllAlpha": True, "DynamicMIG": False})
    assert states["MPSSupport"]
    assert not states["DynamicMIG"]
    conflicts = {(problem.path, problem.severity) for problem in check_gates("0.4", {"AllAlpha": True})}
    assert ("DynamicMIG", "error") in conflicts


@pytest.mark.parametrize(
    ("line", "gate", "hint"),
    [
        ("0.5", "DynamicMig", "did you mean DynamicMIG?"),
        ("0.5", "MPSSuport", "did you mean MPSSupport?"),
        ("0.5", "dynamicmig", "did you mean DynamicMIG?"),
        ("25.8", "DynamicMIG", "driver 25.12 is the first"),
        ("25.3", "MPSSupport", "none at all"),
        ("0.5", "DRAPartitionableDevices", "a gate of Kubernetes"),
        ("0.5", "zzz", "TimeSlicingSettings, MPSSupport"),
    ],
)
def test_gates_that_a_line_does_not_have_are_told_with_what_is_meant(line, gate, hint):
    (problem,) = check_gates(line, {gate: True})
    assert (problem.path, problem.code) == (gate, "unknown-driver-gate")
    assert hint in problem.hint


def test_a_gate_is_true_or_false():
    (problem,) = check_gates("0.5", {"DynamicMIG": "true"})  # type: ignore[dict-item]
    assert (problem.path, problem.code) == ("DynamicMIG", "wrong-type")


def test_a_line_that_is_not_known_is_refused():
    with pytest.raises(KeyError):
        check_gates("26.4", {})


@given(st.sampled_from(LINES), st.data())
def test_the_driver_starts_exactly_when_no_rule_is_broken(line, data):
    gates = data.draw(st.dictionaries(st.sampled_from(sorted(gates_of(line)) or ["none"]), st.booleans()))
    if not gates_of(line):
        return
    states = gate_states(line, gates)
    # `ValidateFeatureGates` of the driver, written out once more.
    broken = line != "25.8" and (
        (states["ComputeDomainCliques"] and not states["IMEXDaemonsWithDNSNames"])
        or (states["DynamicMIG"] and states["PassthroughSupport"])
        or (states["DynamicMIG"] and states["NVMLDeviceHealthCheck"])
        or (states["DynamicMIG"] and states["MPSSupport"])
        or (line != "25.12" and states["PassthroughSupport"] and states["NVMLDeviceHealthCheck"])
        or (line != "25.12" and states["DeviceMetadata"] and not states["PassthroughSupport"])
    )
    errors = [problem for problem in check_gates(line, gates) if problem.severity == "error"]
    assert bool(errors) == bool(broken)


def test_every_rule_and_every_gate_names_what_exists():
    for line in LINES:
        for rule in gate_rules_of(line):
            assert {rule.gate, rule.needs or rule.excludes} <= set(gates_of(line))
        for gate in gates_of(line).values():
            assert gate.since in LINES
            assert gate.kubernetes in ("", *GATES)
            assert gate.kubernetes_since in ("", *LINES)


def test_every_line_says_what_it_needs():
    assert list(driver_needs()) == LINES
    for line, needs in driver_needs().items():
        assert any(version.line == line for version in charts()[needs.chart].versions.values())
    assert driver_needs()["0.5"].kubernetes_documented == "1.34.2"
