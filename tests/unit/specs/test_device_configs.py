"""Configs of devices: what they compile to, and what is refused where.

`recorded_device_configs.json` holds what the drivers' own Go code said of random parameters: the API packages and the
decoding, normalizing and validating of the NVIDIA DRA driver v25.3.2, v25.8.1, v25.12.0, v0.4.1 and main at 95932046,
and of the example driver v0.1.0 and v0.4.0, with k8s.io/apimachinery v0.35.8 and two devices, GPU-0 and GPU-1.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog.config_parameters import check_parameters
from dra_infra.catalog.device_configs import lines_with
from dra_infra.catalog.drivers import drivers, newest, read_pins
from dra_infra.program_objects import UNKNOWN
from dra_infra.specs.config_checks import check_claim_configs, check_class_configs
from dra_infra.specs.config_matching import ConfiguredRequest, compile_claim_configs, compile_class_configs
from dra_infra.specs.device_configs import (
    ComputeDomainChannelConfig,
    DeviceConfig,
    ExampleGpuConfig,
    GpuConfig,
    MigDeviceConfig,
    Mps,
    OpaqueConfig,
    SpacePartitioning,
    TimeSlicing,
    VfioDeviceConfig,
)

RECORDED = json.loads((Path(__file__).parent / "recorded_device_configs.json").read_text())
STRICTER = {
    # The driver takes any text, and whatever is not All is Single.
    ("allocationMode", "config-value"),
    # Decoding does not ask for the gate; without it there are no such devices.
    ("kind", "config-needs-gate"),
}
UID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
NVIDIA = drivers()["gpu.nvidia.com"].newest.devices
GPU, MIG, VFIO = NVIDIA["gpu"], NVIDIA["mig"], NVIDIA["vfio"]
CHANNEL = drivers()["compute-domain.nvidia.com"].newest.devices["channel"]
ON = {"TimeSlicingSettings": True, "MPSSupport": True}


def ignores_mps(parameters):
    """Whether the driver looks at no value of `mpsConfig`, and we do."""
    sharing = parameters.get("sharing")
    return (
        parameters["kind"] == "MigDeviceConfig"
        and isinstance(sharing, dict)
        and sharing["strategy"] == "TimeSlicing"
    )


class Output:
    """Looks like Pulumi's."""


Output.__module__ = "pulumi.output"


def asked(*devices, name="gpu", count=1, class_configs=()):
    return ConfiguredRequest(
        name=name, devices=devices or None, count=count, class_configs=tuple(class_configs)
    )


def check(*configs, requests=(), driver="newest", gates=None):
    return check_claim_configs(list(configs), requests or [asked(GPU)], pins=read_pins(driver), gates=gates)


def told(problems):
    return [(problem.path, problem.code) for problem in problems]


@pytest.mark.parametrize("row", RECORDED, ids=range(len(RECORDED)))
def test_parameters_are_judged_as_the_drivers_code_judges_them(row):
    gates = {
        gate: gate in row["gates"] for gate in ("TimeSlicingSettings", "MPSSupport", "PassthroughSupport")
    }
    pins = read_pins(f"{row['driver']}={row['line']}")
    faults = [
        fault
        for fault in check_parameters(row["driver"], row["parameters"], pins, gates)
        if fault.severity == "error"
    ]
    if row["said"]:
        assert faults, row["said"]
    elif not ignores_mps(row["parameters"]):
        assert {(fault.fields[-1], fault.code) for fault in faults} <= STRICTER


EXACT = {
    "time-slicing": (
        GpuConfig(sharing=TimeSlicing(interval="Long")),
        {"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}},
    ),
    "time-slicing of the default length": (
        GpuConfig(sharing=TimeSlicing()),
        {"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Default"}}},
    ),
    "untouched": (GpuConfig(), {}),
    "MPS": (GpuConfig(sharing=Mps()), {"sharing": {"strategy": "MPS"}}),
    "MPS with limits": (
        MigDeviceConfig(
            sharing=Mps(
                active_thread_percentage=50,
                pinned_device_memory_limit="10Gi",
                per_device_pinned_memory_limit={0: "5Gi"},
                multi_user=False,
            )
        ),
        {
            "sharing": {
                "strategy": "MPS",
                "mpsConfig": {
                    "defaultActiveThreadPercentage": 50,
                    "defaultPinnedDeviceMemoryLimit": "10Gi",
                    "defaultPerDevicePinnedMemoryLimit": {"0": "5Gi"},
                    "multiUser": False,
                },
            }
        },
    ),
    "VFIO": (
        VfioDeviceConfig(backend_policy="PreferIommuFD", enable_api_device=True),
        {"iommu": {"backendPolicy": "PreferIommuFD", "enableAPIDevice": True}},
    ),
    "VFIO as it is": (VfioDeviceConfig(), {}),
    "channel": (
        ComputeDomainChannelConfig(domain_id=UID, allocation_mode="All"),
        {"domainID": UID, "allocationMode": "All"},
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_typed_config_compiles_to_the_fields_of_the_driver(name):
    config, fields = EXACT[name]
    (compiled,) = compile_claim_configs([config])
    assert compiled.to_manifest() == {
        "opaque": {
            "driver": config.driver,
            "parameters": {
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": type(config).__name__,
                **fields,
            },
        }
    }


def test_the_example_drivers_config_has_its_own_group():
    config = ExampleGpuConfig(
        driver="gpu.other.example", sharing=SpacePartitioning(partition_count=10), requests=["a", "b"]
    )
    (compiled,) = compile_claim_configs([config])
    assert compiled.to_manifest() == {
        "requests": ["a", "b"],
        "opaque": {
            "driver": "gpu.other.example",
            "parameters": {
                "apiVersion": "gpu.resource.example.com/v1alpha1",
                "kind": "GpuConfig",
                "sharing": {
                    "strategy": "SpacePartitioning",
                    "spacePartitioningConfig": {"partitionCount": 10},
                },
            },
        },
    }


def test_parameters_of_an_unknown_driver_go_through_as_they_are():
    config = OpaqueConfig(driver="nic.example.com", parameters={"kind": "Nic", "ports": (1, 2)})
    assert check(config, requests=[asked()]) == []
    (compiled,) = compile_class_configs([config])
    assert compiled.to_manifest() == {
        "opaque": {"driver": "nic.example.com", "parameters": {"kind": "Nic", "ports": [1, 2]}}
    }


def test_an_output_stands_as_unknown_and_is_not_judged():
    config = ComputeDomainChannelConfig(domain_id=Output())
    assert check(config, requests=[asked(CHANNEL)]) == []
    (compiled,) = compile_claim_configs([config])
    assert compiled.to_manifest()["opaque"]["parameters"]["domainID"] == UNKNOWN
    assert isinstance(config.to_parameters()["domainID"], Output)


amounts = st.one_of(st.none(), st.integers(1, 2**40).map("{}Mi".format), st.sampled_from(["1Gi", "10G"]))
mps = st.builds(
    Mps,
    active_thread_percentage=st.one_of(st.none(), st.integers(0, 100)),
    pinned_device_memory_limit=amounts,
    per_device_pinned_memory_limit=st.one_of(
        st.none(), st.dictionaries(st.integers(0, 1) | st.just(f"GPU-{UID}"), amounts.filter(bool))
    ),
    multi_user=st.one_of(st.none(), st.booleans()),
)
slicing = st.builds(TimeSlicing, interval=st.sampled_from(["Default", "Short", "Medium", "Long"]))
configs = st.one_of(
    st.builds(GpuConfig, sharing=st.one_of(st.none(), mps, slicing)),
    st.builds(MigDeviceConfig, sharing=st.one_of(st.none(), mps)),
    st.builds(
        VfioDeviceConfig,
        backend_policy=st.sampled_from([None, "LegacyOnly", "PreferIommuFD"]),
        enable_api_device=st.one_of(st.none(), st.booleans()),
    ),
    st.builds(
        ComputeDomainChannelConfig,
        domain_id=st.uuids().map(str),
        allocation_mode=st.sampled_from([None, "Single", "All"]),
    ),
    st.builds(
        ExampleGpuConfig,
        sharing=st.one_of(
            st.none(), slicing, st.builds(SpacePartitioning, partition_count=st.integers(0, 64))
        ),
    ),
)


@given(configs)
def test_every_typed_config_is_taken_by_the_newest_release(config: DeviceConfig):
    (compiled,) = compile_claim_configs([config])
    assert compiled.opaque is not None
    gates = dict.fromkeys(("TimeSlicingSettings", "MPSSupport", "PassthroughSupport"), True)
    assert check_parameters(config.driver, compiled.opaque.parameters, newest(), gates) == []


@given(configs, st.data())
def test_every_line_that_has_the_kind_and_fields_takes_it_too(config: DeviceConfig, data: st.DataObject):
    parameters = compile_claim_configs([config])[0].opaque.parameters
    line = data.draw(st.sampled_from(lines_with(config.driver, config.kind)))
    faults = check_parameters(config.driver, parameters, read_pins(f"{config.driver}={line}"))
    newer = {"multiUser", "iommu", "allocationMode"}
    named = {fault.fields[-1] for fault in faults}
    # MIG devices without sharing are what driver 25.3 refuses.
    assert named <= newer | ({"sharing"} if line == "25.3" else set())


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "MPS", "TimeSlicing", "1Gi"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["strategy", "mpsConfig", "timeSlicingConfig", "interval", "multiUser", "iommu", "x", ""]
            )
            | st.just("defaultPerDevicePinnedMemoryLimit"),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from(sorted(drivers())), json_values, json_values, st.booleans())
def test_no_parameters_whatever_break_the_check(driver, kind, fields, known_kind):
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig" if known_kind else kind,
        "sharing": fields,
        "domainID": fields,
    }
    for given_parameters in (parameters, fields):
        config = OpaqueConfig(driver=driver, parameters=given_parameters)
        for problem in check(config, requests=[asked()], gates={}):
            assert problem.path.startswith("configs[0]")
            assert problem.message


WRONG = {
    "percentage above 100": (GpuConfig(sharing=Mps(active_thread_percentage=150)), "sharing.active_thread_percentage"),
    "percentage below 0": (GpuConfig(sharing=Mps(active_thread_percentage=-1)), "sharing.active_thread_percentage"),
    "percentage as a text": (GpuConfig(sharing=Mps(active_thread_percentage="50")), "sharing.active_thread_percentage"),
    "percentage as truth": (GpuConfig(sharing=Mps(active_thread_percentage=True)), "sharing.active_thread_percentage"),
    "limit below 1Mi": (GpuConfig(sharing=Mps(pinned_device_memory_limit="512Ki")), "sharing.pinned_device_memory_limit"),
    "limit without a number": (GpuConfig(sharing=Mps(pinned_device_memory_limit="ten")), "sharing.pinned_device_memory_limit"),
    "limit of a device below 1Mi": (
        GpuConfig(sharing=Mps(per_device_pinned_memory_limit={0: "1Ki"})),
        "sharing.per_device_pinned_memory_limit['0']",
    ),
    "limit of no device": (
        GpuConfig(sharing=Mps(per_device_pinned_memory_limit={"first": "1Gi"})),
        "sharing.per_device_pinned_memory_limit['first']",
    ),
    "limit of a device that is not there": (
        GpuConfig(sharing=Mps(per_device_pinned_memory_limit={1: "1Gi"})),
        "sharing.per_device_pinned_memory_limit['1']",
    ),
    "interval misspelt": (GpuConfig(sharing=TimeSlicing(interval="long")), "sharing.interval"),
    "text for truth": (GpuConfig(sharing=Mps(multi_user="yes")), "sharing.multi_user"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_value_that_the_driver_does_not_take_is_refused_at_its_argument(name):
    config, path = WRONG[name]
    assert told(check(config)) == [(f"configs[0].{path}", "config-value")]


def test_the_hint_shows_the_argument_to_write():
    (problem,) = check(GpuConfig(sharing=TimeSlicing(interval="long")))
    assert problem.hint == "write interval='Long'"
    (problem,) = check(VfioDeviceConfig(backend_policy="IOMMUFD"), requests=[asked(VFIO)])
    assert problem.path == "configs[0].backend_policy"


def test_the_name_of_a_compute_domain_is_no_uid():
    (problem,) = check(ComputeDomainChannelConfig(domain_id="ring"), requests=[asked(CHANNEL)])
    assert (problem.path, problem.code) == ("configs[0].domain_id", "config-value")
    assert "metadata.uid" in problem.hint


def test_sharing_is_of_a_kind_that_the_config_has():
    mig = check(MigDeviceConfig(sharing=TimeSlicing()), requests=[asked(MIG)])
    assert told(mig) == [("configs[0].sharing", "wrong-type")]
    assert mig[0].hint == "write sharing=dra.Mps(...)"
    assert told(check(GpuConfig(sharing="MPS"))) == [("configs[0].sharing", "wrong-type")]


def test_what_a_newer_release_brought_is_refused_for_an_older_one():
    (problem,) = check(GpuConfig(sharing=Mps(multi_user=True)), driver="0.4")
    assert (problem.path, problem.code) == ("configs[0].sharing.multi_user", "config-field-not-known")
    assert problem.hint.startswith("0.5 is the first")
    (problem,) = check(VfioDeviceConfig(), driver="25.8")
    assert (problem.path, problem.code) == ("configs[0]", "config-kind-not-known")
    assert problem.hint.startswith("25.12 is the first")
    vfio = check(VfioDeviceConfig(enable_api_device=True), requests=[asked(VFIO)], driver="25.12")
    assert told(vfio) == [("configs[0].enable_api_device", "config-field-not-known")]


def raw(kind="GpuConfig", driver="gpu.nvidia.com", version="resource.nvidia.com/v1beta1", **fields):
    return OpaqueConfig(driver=driver, parameters={"apiVersion": version, "kind": kind, **fields})


HAND_WRITTEN = {
    "kind misspelt": (raw("GPUConfig"), "kind", "config-kind-not-known", "write kind: GpuConfig"),
    "group misspelt": (
        raw(version="gpu.nvidia.com/v1beta1"),
        "apiVersion",
        "config-kind-not-known",
        'write apiVersion: "resource.nvidia.com/v1beta1"',
    ),
    "kind of another driver": (
        raw("NetConfig"),
        "kind",
        "config-kind-not-known",
        "it is a config of net.example.com: write driver: net.example.com",
    ),
    "field misspelt": (raw(Sharing={}), "Sharing", "config-field-not-known", "did you mean sharing?"),
    "field at another place": (
        raw(sharing={"strategy": "TimeSlicing", "interval": "Long"}),
        "sharing.interval",
        "config-field-not-known",
        "it belongs into sharing.timeSlicingConfig",
    ),
    "strategy without gate's spelling": (
        raw(sharing={"strategy": "Mps"}),
        "sharing.strategy",
        "config-value",
        'write strategy: "MPS"',
    ),
    "no strategy": (
        raw(sharing={}),
        "sharing.strategy",
        "config-value",
        "it is one of TimeSlicing, MPS",
    ),
    "no interval, on which the plugin crashes": (
        raw(sharing={"strategy": "TimeSlicing", "timeSlicingConfig": {}}),
        "sharing.timeSlicingConfig.interval",
        "config-value",
        "it is one of Default, Short, Medium, Long",
    ),
    "block of the other strategy": (
        raw(sharing={"strategy": "TimeSlicing", "mpsConfig": {}}),
        "sharing.mpsConfig",
        "config-conflict",
        "leave mpsConfig out, or write strategy: MPS",
    ),
    "no object": (raw(sharing=[]), "sharing", "config-value", "its fields are strategy, timeSlicingConfig, mpsConfig"),
}  # fmt: skip


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_hand_written_parameters_are_decoded_strictly(name):
    config, field, code, hint = HAND_WRITTEN[name]
    (problem,) = check(config)
    assert (problem.path, problem.code) == (f"configs[0].parameters.{field}", code)
    assert problem.hint == hint


def test_the_oldest_release_drops_unknown_fields_silently_which_is_a_warning():
    (problem,) = check(raw(foo=1), driver="25.3")
    assert (problem.code, problem.severity) == ("config-field-not-known", "warning")


def test_parameters_that_no_server_takes_are_refused():
    assert told(check(OpaqueConfig(driver="nic.example.com", parameters=["x"]), requests=[asked()])) == [
        ("configs[0].parameters", "invalid-parameters")
    ]
    assert told(check(OpaqueConfig(driver="nic.example.com", parameters={"x": {1}}), requests=[asked()])) == [
        ("configs[0].parameters", "invalid-parameters")
    ]
    long = OpaqueConfig(driver="nic.example.com", parameters={"x": "é" * 5120})
    assert told(check(long, requests=[asked()])) == [("configs[0].parameters", "value-too-long")]


def test_slices_of_time_do_nothing_for_mig_devices():
    (problem,) = check(raw("MigDeviceConfig", sharing={"strategy": "TimeSlicing"}), requests=[asked(MIG)])
    assert (problem.code, problem.severity) == ("config-not-applied", "warning")


def test_a_strategy_needs_its_gate_which_is_off_by_default():
    (problem,) = check(GpuConfig(sharing=TimeSlicing()), gates={})
    assert (problem.path, problem.code) == ("configs[0].sharing", "config-needs-gate")
    assert problem.hint == "give the driver featureGates: {TimeSlicingSettings: true}"
    assert told(check(GpuConfig(sharing=Mps()), gates={})) == [("configs[0].sharing", "config-needs-gate")]
    vfio = check(VfioDeviceConfig(), requests=[asked(VFIO)], gates={})
    assert told(vfio) == [("configs[0]", "config-needs-gate")]
    assert check(GpuConfig(sharing=Mps()), gates=ON) == []
    assert (
        check(
            GpuConfig(sharing=Mps()), gates={"AllAlpha": True, "DynamicMIG": False, "ConsumableShares": False}
        )
        == []
    )


def test_nothing_is_said_of_gates_that_are_not_known_or_did_not_exist():
    assert check(GpuConfig(sharing=TimeSlicing())) == []
    assert check(GpuConfig(sharing=TimeSlicing()), gates={}, driver="25.3") == []


@pytest.mark.parametrize("gate", ["DynamicMIG", "ConsumableShares"])
def test_mps_fails_beside_some_gates(gate):
    found = check(GpuConfig(sharing=Mps()), gates={**ON, gate: True})
    assert told(found) == [("configs[0].sharing", "driver-gate-conflict")]


def test_a_config_fits_the_type_of_device_that_the_named_request_gets():
    slice_ = asked(MIG, name="slice")
    (problem,) = check(GpuConfig(requests=["slice"]), requests=[asked(GPU), slice_])
    assert (problem.path, problem.code) == ("configs[0].requests", "config-device-type")
    assert problem.hint == "write dra.MigDeviceConfig(...)"
    assert check(MigDeviceConfig(requests=["slice"]), requests=[asked(GPU), slice_]) == []


def test_a_config_without_requests_must_fit_some_device():
    assert told(check(MigDeviceConfig())) == [("configs[0]", "config-device-type")]
    assert check(MigDeviceConfig(), requests=[asked(GPU), asked(MIG, name="slice")]) == []
    assert told(check(ComputeDomainChannelConfig(domain_id=UID))) == [("configs[0]", "config-device-type")]


def test_a_named_request_that_may_get_another_type_is_refused_and_an_unnamed_one_is_not():
    either = asked(GPU, MIG)
    (problem,) = check(GpuConfig(requests=["gpu"]), requests=[either])
    assert (problem.path, problem.code) == ("configs[0].requests", "config-device-type")
    assert problem.hint.startswith("leave requests out")
    assert check(GpuConfig(), requests=[either]) == []


def test_nothing_is_said_of_devices_that_are_not_known():
    assert check(MigDeviceConfig(requests=["gpu"]), requests=[asked()]) == []
    assert check(MigDeviceConfig(), requests=[asked(), asked(GPU, name="b")]) == []


def test_requests_are_named_as_they_are():
    (problem,) = check(GpuConfig(requests=["gpus"]))
    assert (problem.path, problem.code) == ("configs[0].requests[0]", "unknown-request")
    assert problem.hint == "did you mean 'gpu'?"
    assert told(check(GpuConfig(requests=["gpu", "gpu"]))) == [("configs[0].requests[1]", "duplicate-item")]
    assert told(check(GpuConfig(requests="gpu"))) == [("configs[0].requests", "wrong-type")]


def test_a_prioritized_request_is_named_by_its_alternatives():
    ladder = [asked(GPU, name="gpu/h100"), asked(GPU, name="gpu/a100")]
    (problem,) = check(GpuConfig(requests=["gpu"]), requests=ladder)
    assert (problem.path, problem.code) == ("configs[0].requests[0]", "config-not-applied")
    assert problem.hint == "write requests=['gpu/h100', 'gpu/a100'], or leave requests out"
    # The allocator of 1.37 names none where all are named.
    assert problem.message.startswith("before Kubernetes 1.37 gpu.nvidia.com")
    (problem,) = check(GpuConfig(requests=["gpu"]), requests=[*ladder, asked(GPU, name="other")])
    assert problem.message.startswith("gpu.nvidia.com")
    assert check(GpuConfig(requests=["gpu/h100"]), requests=ladder) == []


def test_an_earlier_config_that_never_counts_is_named():
    two = [asked(GPU, name="a"), asked(GPU, name="b")]
    (problem,) = check(GpuConfig(sharing=Mps(), requests=["a"]), GpuConfig(), requests=two)
    assert (problem.path, problem.code, problem.severity) == ("configs[0]", "config-overridden", "warning")
    assert "configs[1]" in problem.message
    assert check(GpuConfig(), GpuConfig(sharing=Mps(), requests=["a"]), requests=two) == []


def test_configs_for_different_types_do_not_meet():
    two = [asked(GPU, name="a"), asked(MIG, name="b")]
    assert check(GpuConfig(), MigDeviceConfig(), requests=two) == []


def test_what_a_class_says_is_lost_when_the_claims_config_does_not_repeat_it():
    of_class = GpuConfig(sharing=Mps(active_thread_percentage=50))
    (problem,) = check(
        GpuConfig(sharing=Mps(pinned_device_memory_limit="1Gi")),
        requests=[asked(GPU, class_configs=[of_class])],
    )
    assert (problem.path, problem.code, problem.severity) == ("configs[0]", "config-overridden", "warning")
    assert "defaultActiveThreadPercentage 50" in problem.message


@pytest.mark.parametrize(
    "own", [GpuConfig(sharing=Mps(active_thread_percentage=20)), GpuConfig(sharing=TimeSlicing())]
)
def test_a_claim_may_override_a_class_knowingly(own):
    of_class = GpuConfig(sharing=Mps(active_thread_percentage=50))
    assert check(own, requests=[asked(GPU, class_configs=[of_class])]) == []


def test_vfio_devices_of_a_claim_come_under_one_config():
    two = [asked(VFIO, name="a"), asked(VFIO, name="b")]
    (problem,) = check(VfioDeviceConfig(requests=["a"]), requests=two)
    assert (problem.path, problem.code) == ("configs[0]", "config-conflict")
    assert check(VfioDeviceConfig(), requests=two) == []
    assert check(requests=two) == []


def test_a_class_with_a_vfio_config_serves_one_request_of_a_claim():
    two = [asked(VFIO, name=name, class_configs=[VfioDeviceConfig()]) for name in ("a", "b")]
    assert told(check(requests=two)) == [("configs", "config-conflict")]
    assert check(requests=two[:1]) == []
    assert check(VfioDeviceConfig(), requests=two) == []


def test_indexes_count_the_devices_of_all_requests_of_the_config():
    limits = GpuConfig(sharing=Mps(per_device_pinned_memory_limit={3: "1Gi"}))
    two = [asked(GPU, name="a", count=2), asked(GPU, name="b", count=2)]
    assert check(limits, requests=two) == []
    assert check(limits, requests=[asked(GPU, count=None)]) == []
    assert told(check(limits, requests=[asked(GPU, count=3)])) == [
        ("configs[0].sharing.per_device_pinned_memory_limit['3']", "config-value")
    ]


def test_a_config_of_a_class_fits_all_that_the_class_selects():
    def on_class(*configs, devices=(GPU,)):
        return check_class_configs(list(configs), devices, pins=newest(), gates=ON)

    assert on_class(GpuConfig(sharing=Mps())) == []
    assert told(on_class(GpuConfig(), devices=(GPU, MIG))) == [("configs[0]", "config-device-type")]
    assert told(on_class(MigDeviceConfig())) == [("configs[0]", "config-device-type")]
    assert told(on_class(GpuConfig(requests=["gpu"]))) == [("configs[0].requests", "field-not-allowed")]
    assert told(on_class(GpuConfig(), GpuConfig())) == [("configs[0]", "config-overridden")]
    assert check_class_configs([MigDeviceConfig()], None, pins=newest()) == []


def test_all_problems_come_at_once():
    found = check(
        GpuConfig(
            sharing=Mps(active_thread_percentage=101, pinned_device_memory_limit="1Ki"), requests=["x"]
        ),
        "MPS",
        OpaqueConfig(driver="not a driver", parameters={}),
    )
    assert told(found) == [
        ("configs[0].sharing.active_thread_percentage", "config-value"),
        ("configs[0].sharing.pinned_device_memory_limit", "config-value"),
        ("configs[1]", "wrong-type"),
        ("configs[2].driver", "invalid-name"),
        ("configs[0].requests[0]", "unknown-request"),
    ]
    assert told(check_claim_configs("MPS", [], pins=newest())) == [("configs", "wrong-type")]


def test_lists_are_as_long_as_the_server_takes():
    assert told(check(*[GpuConfig(requests=["gpu"])] * 33))[0] == ("configs", "too-many-items")
    requests = [asked(GPU, name=f"r{index}") for index in range(33)]
    found = check(GpuConfig(requests=[each.name for each in requests]), requests=requests)
    assert told(found) == [("configs[0].requests", "too-many-items")]


def test_the_guide_counts_what_was_recorded():
    guide = Path(__file__).parents[3] / "docs" / "device-configs.md"
    assert f"{len(RECORDED)} random configs" in guide.read_text()
