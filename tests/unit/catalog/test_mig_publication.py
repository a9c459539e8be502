from __future__ import annotations

from collections import Counter
from itertools import product as combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.catalog.mig import mig_profiles_of, placements_of
from dra_infra.kubernetes.api import Quantity

A100 = "NVIDIA A100-SXM4-40GB"
H100 = "NVIDIA H100 80GB HBM3"
FULL_A100 = {
    "memory": "40320Mi",
    "multiprocessors": "98",
    "copy-engines": "7",
    "decoders": "5",
    "encoders": "0",
    "jpeg-engines": "1",
    "ofa-engines": "1",
}


def values(amounts):
    return {name: {"value": amount} for name, amount in amounts.items()}


def memory_slices(numbers):
    return {f"memory-slice-{number}": "1" for number in numbers}


def without_uuids(device):
    manifest = device.to_manifest()
    for name in ("uuid", "parentUUID"):
        manifest["attributes"].pop(name, None)
    return manifest


def devices_of(fleet):
    return {device.name: device for slice_ in fleet.slices for device in slice_.spec.devices or ()}


def test_the_device_of_the_reference_in_the_layout_of_1_35():
    """Section 14 of the reference: 3g.20gb at slice 4 of an A100 under DynamicMIG, newer driver."""
    fleet = load_fleet("a100-40gb driver=0.5 dynamic-mig")
    counters, *devices = fleet.slices
    assert [slice_.spec.pool.resource_slice_count for slice_ in fleet.slices] == [9] * 9
    assert counters.spec.devices is None
    assert [each.name for each in counters.spec.shared_counters] == [f"gpu-{n}-counter-set" for n in range(8)]
    assert counters.spec.shared_counters[0].to_manifest() == {
        "name": "gpu-0-counter-set",
        "counters": values({**FULL_A100, **memory_slices(range(8))}),
    }
    assert [len(slice_.spec.devices) for slice_ in devices] == [25] * 8
    assert all(slice_.spec.shared_counters is None for slice_ in devices)
    names = [device.name for device in devices[0].spec.devices]
    assert names == sorted(names)
    assert {name.split("-mig-")[0] for name in names} == {"gpu-0"}
    amounts = {
        "memory": "20096Mi",
        "multiprocessors": "42",
        "copyEngines": "3",
        "decoders": "2",
        "encoders": "0",
        "jpegEngines": "0",
        "ofaEngines": "0",
    }
    consumed = {
        "memory": "20096Mi",
        "multiprocessors": "42",
        "copy-engines": "3",
        "decoders": "2",
        "encoders": "0",
        "jpeg-engines": "0",
        "ofa-engines": "0",
    }
    assert without_uuids(devices_of(fleet)["gpu-0-mig-3g20gb-9-4"]) == {
        "name": "gpu-0-mig-3g20gb-9-4",
        "attributes": {
            "type": {"string": "mig"},
            "profile": {"string": "3g.20gb"},
            "productName": {"string": A100},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Ampere"},
            "cudaComputeCapability": {"version": "8.0.0"},
            "driverVersion": {"version": "580.126.20"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "addressingMode": {"string": "HMM"},
            "resource.kubernetes.io/pciBusID": {"string": "0000:07:00.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
            "resource.kubernetes.io/numaNode": {"int": 0},
        },
        "capacity": values(amounts),
        "consumesCounters": [
            {
                "counterSet": "gpu-0-counter-set",
                "counters": values({**consumed, **memory_slices(range(4, 8))}),
            }
        ],
    }


def test_counters_and_devices_are_in_one_slice_per_gpu_on_1_34():
    fleet = load_fleet("hgx-h100 driver=0.4 dynamic-mig", kubernetes="1.34")
    assert [slice_.spec.pool.resource_slice_count for slice_ in fleet.slices] == [8] * 8
    for minor, slice_ in enumerate(fleet.slices):
        (counters,) = slice_.spec.shared_counters
        assert counters.name == f"gpu-{minor}-counter-set"
        assert len(slice_.spec.devices) == 26
        assert {each.consumes_counters[0].counter_set for each in slice_.spec.devices} == {counters.name}


def test_the_whole_gpu_takes_every_counter():
    fleet = load_fleet("hgx-h100 driver=0.4 dynamic-mig")
    device = devices_of(fleet)["gpu-3"]
    counters = fleet.slices[0].spec.shared_counters[3]
    assert device.consumes_counters[0].to_manifest() == {
        "counterSet": "gpu-3-counter-set",
        "counters": counters.to_manifest()["counters"],
    }
    assert device.capacity["memory"].value == "81152Mi"
    assert {name: amount.value for name, amount in device.capacity.items()} == {
        "memory": "81152Mi",
        "multiprocessors": "132",
        "copyEngines": "8",
        "decoders": "7",
        "encoders": "0",
        "jpegEngines": "7",
        "ofaEngines": "1",
    }


@pytest.mark.parametrize(
    ("text", "per_gpu"),
    [
        ("a100-40gb driver=25.12 dynamic-mig", 26),
        ("a100-40gb driver=0.4 dynamic-mig", 25),
        ("a100-40gb dynamic-mig", 25),
        ("hgx-h200 driver=0.5 dynamic-mig", 26),
        ("hgx-b200 driver=0.5 dynamic-mig", 26),
        ("a30 driver=25.12 dynamic-mig", 14),
        ("a30 driver=0.5 dynamic-mig", 13),
        ("rtx-pro-6000 driver=0.5 dynamic-mig", 31),
    ],
)
def test_devices_per_gpu(text, per_gpu):
    _, *slices = load_fleet(text).slices
    assert {len(slice_.spec.devices) for slice_ in slices} == {per_gpu}


def test_dynamic_devices_have_no_uuid_and_no_memory_slices():
    devices = devices_of(load_fleet("hgx-h100 driver=0.5 dynamic-mig"))
    device = devices["gpu-0-mig-1g10gb-me-20-6"]
    assert "uuid" not in device.attributes
    assert device.attributes["profile"].string == "1g.10gb+me"
    assert device.attributes["parentUUID"].string == devices["gpu-0"].attributes["uuid"].string
    assert not any(name.startswith("memorySlice") for name in device.capacity)


def test_the_first_release_with_dynamic_mig_publishes_less_of_it():
    devices = devices_of(load_fleet("hgx-h100 driver=25.12 dynamic-mig"))
    mig, whole = devices["gpu-0-mig-1g10gb-19-0"], devices["gpu-0"]
    assert {"addressingMode", "resource.kubernetes.io/pcieRoot"}.isdisjoint(mig.attributes)
    assert "addressingMode" not in whole.attributes
    assert "resource.kubernetes.io/pcieRoot" in whole.attributes


def test_names_of_slices_sort_as_the_gpus_do():
    slices = [
        each.spec
        for each in load_fleet("gb200-nvl72 driver=0.5 dynamic-mig").slices
        if each.spec.node_name[-2:] == "17"
    ]
    gpus = [spec.devices for spec in slices if spec.driver == "gpu.nvidia.com"]
    assert [devices and devices[0].name for devices in gpus] == [None, "gpu-0", "gpu-1", "gpu-2", "gpu-3"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("25.3", ["gpu-0-mig-9-4-4", "gpu-0-mig-20-0-1"]),
        ("25.8", ["gpu-0-mig-9-4-4", "gpu-0-mig-20-0-1"]),
        ("25.12", ["gpu-0-mig-3g40gb-9-4", "gpu-0-mig-1g10gb-me-20-0"]),
        ("0.5", ["gpu-0-mig-3g40gb-9-4", "gpu-0-mig-1g10gb-me-20-0"]),
    ],
)
def test_names_of_static_devices_by_release(line, names):
    devices = devices_of(load_fleet(f"hgx-h100 driver={line} mig=3g.40gb+1g.10gb+me+1g.10gb*3"))
    assert set(names) <= set(devices)
    assert len(devices) == 8 * 5


def test_a_static_device_has_its_memory_slices_and_no_counters():
    (slice_,) = load_fleet("a100-80gb driver=25.3 mig=3g.40gb*2").slices
    device = slice_.spec.devices[1]
    assert device.attributes["uuid"].string.startswith("MIG-")
    assert without_uuids(device) == {
        "name": "gpu-0-mig-9-4-4",
        "attributes": {
            "type": {"string": "mig"},
            "profile": {"string": "3g.40gb"},
            "productName": {"string": "NVIDIA A100-SXM4-80GB"},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Ampere"},
            "cudaComputeCapability": {"version": "8.0.0"},
            "driverVersion": {"version": "580.126.20"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "pcieBusID": {"string": "0000:07:00.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
            "index": {"int": 1},
            "parentIndex": {"int": 0},
        },
        "capacity": values(
            {
                "memory": "40192Mi",
                "multiprocessors": "42",
                "copyEngines": "3",
                "decoders": "2",
                "encoders": "0",
                "jpegEngines": "0",
                "ofaEngines": "0",
                **{f"memorySlice{number}": "1" for number in range(4, 8)},
            }
        ),
    }
    assert slice_.spec.shared_counters is None


def test_devices_of_one_gpu_have_one_parent():
    parents = Counter(
        device.attributes["parentUUID"].string
        for device in devices_of(load_fleet("a100-80gb x 2 mig=1g.10gb*7")).values()
    )
    assert list(parents.values()) == [7] * 8
    fleet = load_fleet("a100-80gb x 2 mig=1g.10gb*7")
    uuids = {
        device.attributes[name].string
        for slice_ in fleet.slices
        for device in slice_.spec.devices
        for name in ("uuid", "parentUUID")
    }
    assert len(uuids) == 2 * 8 * 8


def test_amounts_that_are_not_known_are_told():
    (note,) = load_fleet("hgx-b200 driver=0.5 dynamic-mig").notes
    assert "NVIDIA B200" in note
    assert load_fleet("hgx-b200").notes == ()
    assert load_fleet("hgx-h100 dynamic-mig").notes == ()
    assert load_fleet("hgx-h200 mig=2g.35gb*3").notes == ()
    assert load_fleet("hgx-h200 dynamic-mig").notes == ()
    assert load_fleet("hgx-b200 mig=1g.23gb*7").notes != ()
    device = devices_of(load_fleet("hgx-b200 mig=1g.23gb*7"))["gpu-0-mig-1g23gb-19-0"]
    assert device.capacity["memory"].value == "22Gi"
    assert device.capacity["multiprocessors"].value == "0"


@st.composite
def sets_of_profiles(draw):
    fleet, product = draw(st.sampled_from([("a100-40gb", A100), ("hgx-h100", H100)]))
    names = [each.name for each in mig_profiles_of(product)]
    return fleet, product, draw(st.lists(st.sampled_from(names), max_size=4))


@given(sets_of_profiles())
@settings(max_examples=100, deadline=None)
def test_a_set_fits_a_gpu_where_the_published_counters_let_it(drawn):
    """Two ways to one answer: placements and slices, or counters as the scheduler adds them up."""
    fleet, product, names = drawn
    slices = load_fleet(f"{fleet} devices=1 driver=0.5 dynamic-mig").slices
    (counters,) = slices[0].spec.shared_counters
    available = {name: Quantity.parse(each.value).value for name, each in counters.counters.items()}
    by_profile = {}
    for device in slices[1].spec.devices:
        if "profile" in device.attributes:
            consumed = device.consumes_counters[0].counters
            by_profile.setdefault(device.attributes["profile"].string, []).append(
                (device.name, {name: Quantity.parse(each.value).value for name, each in consumed.items()})
            )
    fits = any(
        len({name for name, _ in chosen}) == len(chosen)
        and all(
            sum(consumed.get(name, 0) for _, consumed in chosen) <= amount
            for name, amount in available.items()
        )
        for chosen in combinations(*(by_profile[name] for name in names))
    )
    assert (placements_of(names, product) is not None) == fits
