"""Opaque parameters, decoded when a claim is prepared as the drivers' releases do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.claims import Claim, ClaimDevice
from dra_infra.plugin.configs import ConfigDecoder, EffectiveConfig
from tests.unit.plugin.faults import codes, uid_of

NVIDIA = "gpu.nvidia.com"
EXAMPLE = "gpu.example.com"
GATES = {"TimeSlicingSettings": True, "MPSSupport": True}


def text(kind: str = "GpuConfig", version: str = "resource.nvidia.com/v1beta1", **fields: object) -> str:
    return json.dumps({"apiVersion": version, "kind": kind, **fields})


def example(**fields: object) -> str:
    return text(version="gpu.resource.example.com/v1alpha1", **fields)


def slicing(interval: str = "Long") -> dict[str, Any]:
    return {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": interval}}


def mps(**limits: object) -> dict[str, Any]:
    return {"strategy": "MPS", "mpsConfig": limits}


def claim_of(*devices: tuple[str, tuple[str, ...]], named: bool | None = None) -> Claim:
    return Claim(
        uid=uid_of(1),
        namespace="ml",
        name="trainer",
        devices=tuple(
            ClaimDevice(
                pool="node-1",
                device=name,
                request="gpu",
                configs=configs,
                named=() if named is None else (named,) * len(configs),
            )
            for name, configs in devices
        ),
    )


def type_of(device: str) -> str:
    return device.partition("-")[0]


def decode(
    *configs: str,
    device: str = "gpu-0",
    driver: str = NVIDIA,
    line: str | None = None,
    gates: Mapping[str, bool] | None = GATES,
    named: bool | None = None,
) -> EffectiveConfig:
    decoder = ConfigDecoder(driver, line=line, gates=gates)
    return decoder.decode(claim_of((device, configs), named=named), type_of)[0]


def refusal(*configs: str, **arguments: Any) -> PluginError:
    with pytest.raises(PluginError) as caught:
        decode(*configs, **arguments)
    return caught.value


def test_the_last_config_counts_and_counts_whole():
    found = decode(text(sharing=mps(defaultActiveThreadPercentage=50)), text(sharing=slicing("Short")))
    assert (found.strategy, found.interval, found.mps) == ("TimeSlicing", "Short", {})


def test_a_config_that_is_for_other_devices_is_passed_over_where_it_names_no_request():
    configs = (text(sharing=slicing()), text("MigDeviceConfig", sharing=mps()))
    assert decode(*configs).interval == "Long"
    assert decode(*configs, device="mig-0").strategy == "MPS"
    assert decode(configs[1], line="0.5") == EffectiveConfig(kind="GpuConfig")


def test_a_config_of_the_class_that_is_for_other_devices_fails_the_claim():
    refused = refusal(text(sharing=slicing()), device="mig-0", named=True)
    assert codes(refused) == ["config-device-type"]
    assert refused.problems[0].path == "ResourceClaim ml/trainer: device mig-0: GpuConfig"
    # A claim's config decides before anybody looks at that of the class.
    own = text("MigDeviceConfig", sharing=mps())
    assert decode(text(sharing=slicing()), own, device="mig-0", named=True).strategy == "MPS"


@pytest.mark.parametrize(
    ("line", "gates", "interval"),
    [
        ("25.3", {}, "Default"),
        ("25.8", GATES, "Default"),
        ("25.12", GATES, "Default"),
        ("25.12", {}, ""),
        ("0.4", GATES, ""),
        ("0.5", GATES, ""),
    ],
)
@pytest.mark.parametrize("configs", [(), (text(),)])
def test_without_a_config_old_releases_set_slices_of_time_and_new_ones_nothing(
    line: str, gates: dict[str, bool], interval: str, configs: tuple[str, ...]
):
    found = decode(*configs, line=line, gates=gates)
    assert (found.kind, found.interval) == ("GpuConfig", interval)
    assert found.strategy == ("TimeSlicing" if interval else "")


def test_what_is_not_said_has_the_drivers_default():
    assert decode(text(sharing={"strategy": "TimeSlicing"})).interval == "Default"
    assert decode(text(sharing={"strategy": "MPS", "mpsConfig": None})).strategy == "MPS"
    vfio = decode(text("VfioDeviceConfig"), device="vfio-0", line="0.5", gates={"PassthroughSupport": True})
    assert vfio.values == {"iommu": {"backendPolicy": "LegacyOnly", "enableAPIDevice": False}}
    older = decode(
        text("VfioDeviceConfig"), device="vfio-0", line="25.12", gates={"PassthroughSupport": True}
    )
    assert older.values == {}
    assert decode(driver=EXAMPLE).interval == "Default"
    parts = decode(example(sharing={"strategy": "SpacePartitioning"}), driver=EXAMPLE)
    assert (parts.partition_count, parts.interval) == (1, "")


@pytest.mark.parametrize(
    ("config", "arguments", "code", "field"),
    [
        (text(sharing={"strategy": "Slices"}), {}, "config-value", "GpuConfig.sharing.strategy"),
        (
            text(sharing={**slicing(), "timeSlicingConfig": {}}),
            {},
            "config-value",
            "GpuConfig.sharing.timeSlicingConfig.interval",
        ),
        (text(sharring=slicing()), {}, "config-field-not-known", "GpuConfig.sharring"),
        (
            text(sharing=mps(multiUser=True)),
            {"line": "0.4"},
            "config-field-not-known",
            "GpuConfig.sharing.mpsConfig.multiUser",
        ),
        (text("GPUConfig"), {}, "config-kind-not-known", "GPUConfig.kind"),
        (text(version="v1"), {}, "config-kind-not-known", "GpuConfig.apiVersion"),
        (
            text(sharing={**mps(), "timeSlicingConfig": {"interval": "Long"}}),
            {},
            "config-conflict",
            "GpuConfig.sharing.timeSlicingConfig",
        ),
        (
            text(sharing=mps()),
            {"line": "0.5", "gates": {}},
            "config-needs-gate",
            "GpuConfig.sharing.strategy",
        ),
        (
            text(sharing=mps()),
            {"line": "0.5", "gates": {**GATES, "DynamicMIG": True}},
            "driver-gate-conflict",
            "GpuConfig.sharing.strategy",
        ),
        (
            text(sharing=mps(defaultPerDevicePinnedMemoryLimit={"1": "1Gi"})),
            {},
            "config-value",
            "GpuConfig.sharing.mpsConfig.defaultPerDevicePinnedMemoryLimit",
        ),
        (
            example(sharing={"strategy": "TimeSlicing", "interval": "Long"}),
            {"driver": EXAMPLE},
            "config-field-not-known",
            "GpuConfig.sharing.interval",
        ),
        ("[]", {}, "invalid-parameters", "config"),
        ("{", {}, "invalid-parameters", "config"),
        (text()[:-1] + ', "kind": "GpuConfig"}', {}, "invalid-parameters", "GpuConfig"),
    ],
)
def test_what_the_driver_refuses_is_told_by_code_and_field(
    config: str, arguments: dict[str, Any], code: str, field: str
):
    refused = refusal(config, **arguments)
    assert codes(refused) == [code]
    assert refused.problems[0].path.endswith(f": {field}")
    # It has come: nobody needs to read what pods would do.
    assert "pods" not in refused.problems[0].message


def test_old_releases_drop_fields_that_they_do_not_know():
    assert decode(text(sharing=slicing(), sharring=1), line="25.3").interval == "Long"


def test_a_config_that_does_not_count_has_to_be_readable_and_no_more():
    assert decode(text(sharing={"strategy": "Slices"}), text(sharing=slicing())).interval == "Long"
    assert codes(refusal(text(sharring=1), text(sharing=slicing()))) == ["config-field-not-known"]


def test_all_that_is_wrong_with_a_claim_is_told_at_once():
    decoder = ConfigDecoder(NVIDIA, gates=GATES)
    claim = claim_of(("gpu-0", (text(sharring=1),)), ("gpu-1", (text(sharing={"strategy": "x"}),)))
    with pytest.raises(PluginError) as caught:
        decoder.decode(claim, type_of)
    assert codes(caught.value) == ["config-field-not-known", "config-value"]


def test_indexes_count_the_devices_that_share_a_config():
    limits = text(sharing=mps(defaultPerDevicePinnedMemoryLimit={"1": "1Gi"}))
    decoder = ConfigDecoder(NVIDIA, gates=GATES)
    both = decoder.decode(claim_of(("gpu-0", (limits,)), ("gpu-1", (limits,))), type_of)
    assert both[0].mps["defaultPerDevicePinnedMemoryLimit"] == {"1": "1Gi"}


def test_devices_that_are_passed_through_have_one_config_in_a_claim():
    first = text("VfioDeviceConfig", iommu={"enableAPIDevice": True})
    second = text("VfioDeviceConfig")
    decoder = ConfigDecoder(NVIDIA, line="0.5", gates={"PassthroughSupport": True})
    decoder.decode(claim_of(("vfio-0", (first,)), ("vfio-1", (first,))), type_of)
    with pytest.raises(PluginError) as caught:
        decoder.decode(claim_of(("vfio-0", (first,)), ("vfio-1", (second,))), type_of)
    assert codes(caught.value) == ["config-conflict"]


def test_of_a_driver_that_the_catalogue_does_not_have_every_object_counts():
    found = decode('{"anything": 1}', driver="dra.acme.example")
    assert found.values == {"anything": 1}
