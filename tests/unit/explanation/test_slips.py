"""Slips of selectors beside the devices that are there."""

from __future__ import annotations

import pytest

from dra_infra.explanation.slips import Names, find_slips
from dra_infra.kubernetes.api import ResourceSlice
from dra_infra.kubernetes.scheduler.allocator.identity import published_devices
from tests.support.allocator.known import a_slice

DEVICE = {
    "name": "d0",
    "attributes": {
        "index": {"int": 0},
        "model": {"string": "7"},
        "release": {"version": "1.2.3"},
        "shared": {"bool": True},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0"},
    },
    "capacity": {"memory": {"value": "80Gi"}},
}
NAMES = Names.of(published_devices(ResourceSlice.from_manifest(a_slice(DEVICE, driver="gpu.nvidia.com"))))
READ = "device.attributes['gpu.nvidia.com']"
MEMORY = "device.capacity['gpu.nvidia.com'].memory"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"{READ}.index == '0'", f"{READ}.index == 0"),
        (f'{READ}.index >= "2" && true', f"{READ}.index >= 2 && true"),
        (f"{READ}.model == 7", f'{READ}.model == "7"'),
        (f"{READ}.shared == 'true'", f"{READ}.shared == true"),
        (f"{READ}.release >= '1.0.0'", f"{READ}.release.compareTo(semver('1.0.0')) >= 0"),
        (f"{MEMORY} >= quantity('40Gi')", f"{MEMORY}.compareTo(quantity('40Gi')) >= 0"),
        (f"{MEMORY} >= '40Gi'", f'{MEMORY}.compareTo(quantity("40Gi")) >= 0'),
        (f"{MEMORY} > 40", f'{MEMORY}.compareTo(quantity("40")) > 0'),
        ("device.attributes['nvidia.com'].index == 0", 'device.attributes["gpu.nvidia.com"].index == 0'),
        (f"{READ}.modle == '7' || {READ}.modle == '8'", f"{READ}.model == '7' || {READ}.model == '8'"),
        (f"{READ}.relaese.major() == 1", f"{READ}.release.major() == 1"),
        ("device.capacity['gpu.nvidia'].memory == x", 'device.capacity["gpu.nvidia.com"].memory == x'),
    ],
)
def test_a_slip_is_written_as_it_is_meant(written: str, meant: str):
    slip, *others = find_slips(written, NAMES)
    assert (slip.expression, {*others} - {slip}) == (meant, set())
    assert slip.code in ("attribute-wrong-domain", "attribute-not-known", "cel-value-type", "cel-type")


@pytest.mark.parametrize(
    "written",
    [
        f"{READ}.index == 0",
        f"{READ}.index == 'first'",
        f"{READ}.model == '7'",
        f"{READ}.other == 7",
        f"has({READ}.modle) && {READ}.modle == '7'",
        f"{MEMORY}.compareTo(quantity('40Gi')) >= 0",
        "device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0'",
        "device.attributes['fpga.example.org'].index == 0",
    ],
)
def test_what_is_no_slip_is_left_alone(written: str):
    assert list(find_slips(written, NAMES)) == []
