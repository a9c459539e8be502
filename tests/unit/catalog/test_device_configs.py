"""The data is what the record says; that it is what the drivers do is held in tests/unit/specs/test_device_configs.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dra_infra.catalog.device_configs import (
    ConfigField,
    ConfigKind,
    configs_of,
    drivers_with,
    is_strict,
    lines_with,
)
from dra_infra.catalog.driver_gates import gates_of
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.vocabulary import read_data
from dra_infra.kubernetes.api import Quantity

NVIDIA = "gpu.nvidia.com"
LINES = [(name, line) for name in read_data("device_configs.yaml") for line in drivers()[name].by_line]


def fields_of(kind: ConfigKind) -> Iterator[tuple[ConfigField | ConfigKind, str, ConfigField]]:
    stack: list[ConfigKind | ConfigField] = [kind]
    while stack:
        owner = stack.pop()
        for name, field in owner.fields.items():
            yield owner, name, field
            stack.append(field)


def kinds(driver: str, line: str) -> dict[str, ConfigKind]:
    configs = configs_of(driver, line)
    assert configs is not None
    return dict(configs.kinds)


def test_drivers_of_nvidia_and_the_example_have_their_configs_and_those_of_others_are_not_judged():
    known = set(read_data("device_configs.yaml"))
    assert known == {name for name in drivers() if name.endswith((".nvidia.com", ".example.com"))}
    assert configs_of("dra.net", "1.4") is None


@pytest.mark.parametrize(("driver", "line"), LINES)
def test_a_kind_is_for_types_of_devices_that_the_line_publishes(driver, line):
    published = set(drivers()[driver].by_line[line].devices)
    for kind in kinds(driver, line).values():
        assert set(kind.devices) <= published


@pytest.mark.parametrize(("driver", "line"), LINES)
def test_fields_name_fields_values_and_gates_that_exist(driver, line):
    product = drivers()[driver].product
    gates = gates_of(line) if product == "NVIDIA DRA driver" else {}
    for kind in kinds(driver, line).values():
        assert not kind.gate or kind.gate in gates
        for owner, _, field in fields_of(kind):
            for beside, value in field.with_.items():
                assert value in owner.fields[beside].values
            assert {*field.gates, *field.excludes, *field.without_effect} <= set(field.values)
            assert (field.type == "object") == bool(field.fields)
            if isinstance(field.minimum, str):
                assert Quantity.parse(field.minimum)
            named = {*field.gates.values(), *(each for names in field.excludes.values() for each in names)}
            later = {name for name in named if name not in gates}
            # Gates came after the fields; those of a line that has none are simply not asked for.
            assert line == "25.3" or later <= {"DynamicMIG", "ConsumableShares"}


def test_kinds_and_fields_come_with_the_line_that_brought_them():
    assert "VfioDeviceConfig" not in kinds(NVIDIA, "25.8")
    assert kinds(NVIDIA, "25.12")["VfioDeviceConfig"].fields == {}
    assert "iommu" in kinds(NVIDIA, "0.4")["VfioDeviceConfig"].fields
    assert lines_with(NVIDIA, "VfioDeviceConfig") == ("25.12", "0.4", "0.5")
    assert lines_with(NVIDIA, "GpuConfig", "sharing", "mpsConfig", "multiUser") == ("0.5",)
    assert lines_with(NVIDIA, "GpuConfig", "sharing", "mpsConfig", "users") == ()
    channel = ("compute-domain.nvidia.com", "ComputeDomainChannelConfig")
    assert lines_with(*channel, "allocationMode") == ("25.8", "25.12", "0.4", "0.5")


def test_only_the_oldest_line_drops_unknown_fields():
    assert [line for line in drivers()[NVIDIA].by_line if not is_strict(NVIDIA, line)] == ["25.3"]
    assert is_strict("gpu.example.com", "0.1")


def test_an_unknown_driver_has_none_and_an_unknown_line_is_an_error():
    assert configs_of("gpu.amd.com", "1.0") is None
    with pytest.raises(KeyError, match=r"9\.9"):
        configs_of(NVIDIA, "9.9")


def test_a_kind_is_found_at_its_drivers():
    assert drivers_with("GpuConfig") == (NVIDIA, "gpu.example.com")
    assert drivers_with("Nonsense") == ()


def test_cpus_of_the_example_driver_take_no_config():
    assert kinds("cpu.example.com", "0.4") == {}
