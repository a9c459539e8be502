from __future__ import annotations

import itertools
import re
import uuid

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.records import fleet_kinds
from dra_infra.kubernetes.api import Quantity, Semver
from dra_infra.kubernetes.api.names import is_dns_label, is_dns_subdomain, split_qualified_name

GPU = "gpu.nvidia.com"
LINES = list(drivers()[GPU].by_line)
PLAIN = [
    f"{name} driver={release.line}"
    for name, kind in fleet_kinds().items()
    for release in drivers()[kind.driver].releases
    if kind.driver not in kind.published or release.line == kind.line
]
SET = [
    "hgx-h100 mig=1g.10gb*7",
    "hgx-h100 driver=25.3 mig=3g.40gb*1+1g.10gb+me*1+1g.10gb*3",
    "a30 driver=25.8 mig=2g.12gb*2",
    "gb200-nvl72 driver=0.5 mig=1g.23gb*7",
    "hgx-h100 dynamic-mig",
    "a100-80gb dynamic-mig",
    "a100-40gb driver=0.4 dynamic-mig",
    "a30 driver=0.5 dynamic-mig",
    "hgx-b200 driver=0.5 dynamic-mig shares=unlimited",
    "rtx-pro-6000 driver=0.5 dynamic-mig",
    "gh200 driver=0.4 dynamic-mig compute-domains",
    "l40s vfio",
    "hgx-h200 driver=0.4 vfio",
    "hgx-h100 driver=0.5 vfio fabric-partitions",
    "hgx-b200 driver=0.5 fabric-partitions",
    "l4 driver=0.5 shares=memory",
    "hgx-h100 driver=0.5 shares=4 mig=1g.10gb*7",
    "t4 driver=0.5 shares=unlimited devices=1",
    "hgx-h100 driver=0.5 compute-domains",
    "example partitions=2",
    "example driver=0.3 partitions=7",
    "example shareable partitions=4",
    "mi300x devices=3",
    "gaudi2",
    "tpu-v6e-8",
]


def qualified(name, driver):
    return name if "/" in name else f"{driver}/{name}"


def type_of(slice_, device):
    (type_,) = [
        each
        for each in drivers()[slice_.spec.driver].newest.devices
        if re.fullmatch(
            {
                "gpu": r"gpu-\d+(-\d+|-full|-partition-\d+)?",
                "mig": r"gpu-\d+-mig-.*",
                "vfio": r"gpu-vfio-\d+",
                "channel": "channel-0",
                "daemon": "daemon-0",
                "nic": r"nic-\d+",
                "numa": r"numa-\d+",
                "accelerator": r"0000-[0-9a-f]{2}-00-0-0x\d+",
                "tpu": r"\d+",
                "interface": r"pci-.*",
            }[each],
            device.name,
        )
    ]
    return type_


def line_of(text, driver):
    name, *options = text.split()
    kind = fleet_kinds()[name]
    asked = [option.removeprefix("driver=") for option in options if option.startswith("driver=")]
    return (asked or [kind.line])[0]


@pytest.mark.parametrize("text", [*PLAIN, *SET])
def test_attributes_are_exactly_those_of_the_release(text):
    for slice_ in load_fleet(text).slices:
        driver = slice_.spec.driver
        types = drivers()[driver].by_line[line_of(text, driver)].devices
        for device in slice_.spec.devices or ():
            type_ = types[type_of(slice_, device)]
            written = {
                qualified(key, driver): value.to_manifest()
                for key, value in (device.attributes or {}).items()
            }
            for key, value in written.items():
                ((kind, content),) = value.items()
                entry = type_.attributes[key]
                assert entry.type == kind
                assert entry.value in (None, content)
                assert not entry.values or content in entry.values
            capacity = {qualified(key, driver) for key in device.capacity or ()}
            for section, names in (("attribute", set(written)), ("capacity", capacity)):
                known = type_.attributes if section == "attribute" else type_.capacity
                always = {key for key in known if type_.presence(section, key) == "always"}
                assert always <= names <= set(known)


@pytest.mark.parametrize(
    ("text", "kubernetes"),
    [
        (text, kubernetes)
        for text in SET
        for kubernetes in ("1.34", None)
        if kubernetes is None or "example" not in text
    ],
)
def test_slices_are_such_that_an_api_server_takes_them(text, kubernetes):
    fleet = load_fleet(text, kubernetes=kubernetes)
    assert [slice_.metadata.name for slice_ in fleet.slices] == sorted(
        {slice_.metadata.name for slice_ in fleet.slices}
    )
    pools = itertools.groupby(
        sorted(fleet.slices, key=lambda each: (each.spec.driver, each.spec.pool.name)),
        key=lambda each: (each.spec.driver, each.spec.pool.name),
    )
    for (driver, pool), group in pools:
        slices = list(group)
        assert is_dns_subdomain(pool)
        check_pool(driver, slices, separate=kubernetes != "1.34")


def check_pool(driver, slices, *, separate):
    names = []
    sets = {}
    for slice_ in slices:
        spec = slice_.spec
        assert is_dns_subdomain(slice_.metadata.name)
        assert (spec.pool.resource_slice_count, spec.pool.generation) == (len(slices), 1)
        assert spec.node_name == spec.pool.name
        assert bool(spec.devices) or bool(spec.shared_counters)
        assert len(spec.shared_counters or ()) <= 8
        if separate:
            assert spec.devices is None or spec.shared_counters is None
        for each in spec.shared_counters or ():
            assert is_dns_label(each.name)
            assert each.name not in sets
            assert 1 <= len(each.counters) <= 32
            sets[each.name] = {
                name: Quantity.parse(counter.value).value for name, counter in each.counters.items()
            }
        consuming = [device for device in spec.devices or () if device.consumes_counters]
        assert len(spec.devices or ()) <= (64 if consuming else 128)
        names += [device.name for device in spec.devices or ()]
    assert len(names) == len(set(names))
    for device in (device for slice_ in slices for device in slice_.spec.devices or ()):
        check_device(device)
        for consumption in device.consumes_counters or ():
            for name, counter in consumption.counters.items():
                assert is_dns_label(name)
                assert 0 <= Quantity.parse(counter.value).value <= sets[consumption.counter_set][name]


def check_device(device):
    assert is_dns_label(device.name)
    assert len(device.attributes) + len(device.capacity or {}) <= 32
    for key, value in device.attributes.items():
        assert split_qualified_name(key)
        ((kind, content),) = value.to_manifest().items()
        assert len(str(content)) <= 64
        assert kind != "version" or Semver.parse(content)
    for capacity in (device.capacity or {}).values():
        whole = Quantity.parse(capacity.value)
        assert whole.canonical() == capacity.value
        policy = capacity.request_policy
        assert policy is None or device.allow_multiple_allocations
        if policy and policy.valid_range:
            default = Quantity.parse(policy.default).value
            least, most, step = (
                Quantity.parse(getattr(policy.valid_range, name)).value for name in ("min", "max", "step")
            )
            assert least <= default <= most <= whole.value
            assert step > 0
            assert least + step <= whole.value
            assert (default - least) % step == 0
            assert (most - least) % step == 0


def devices_of(text, **options):
    return {
        device.name: device
        for slice_ in load_fleet(text, **options).slices
        for device in slice_.spec.devices or ()
    }


@pytest.mark.parametrize(
    ("line", "attributes"),
    [
        ("25.3", {"index": {"int": 2}, "minor": {"int": 2}, "pcieBusID": {"string": "0000:52:00.0"}}),
        ("25.8", {"pcieBusID": {"string": "0000:52:00.0"}}),
        (
            "25.12",
            {
                "addressingMode": {"string": "HMM"},
                "resource.kubernetes.io/pciBusID": {"string": "0000:52:00.0"},
            },
        ),
        (
            "0.5",
            {
                "addressingMode": {"string": "HMM"},
                "resource.kubernetes.io/numaNode": {"int": 0},
                "resource.kubernetes.io/pciBusID": {"string": "0000:52:00.0"},
            },
        ),
    ],
)
def test_a_whole_gpu_of_each_release(line, attributes):
    device = devices_of(f"hgx-h100 driver={line}")["gpu-2"].to_manifest()
    uuid_ = device["attributes"].pop("uuid")["string"]
    assert re.fullmatch(r"GPU-[0-9a-f-]{36}", uuid_)
    assert device == {
        "name": "gpu-2",
        "attributes": {
            "type": {"string": "gpu"},
            "productName": {"string": "NVIDIA H100 80GB HBM3"},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Hopper"},
            "cudaComputeCapability": {"version": "9.0.0"},
            "driverVersion": {"version": "580.126.20"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:4b"},
            **attributes,
        },
        "capacity": {"memory": {"value": "81559Mi"}},
    }


def test_a_device_that_is_passed_through():
    device = devices_of("hgx-h100 driver=0.4 vfio")["gpu-vfio-4"].to_manifest()
    assert device == {
        "name": "gpu-vfio-4",
        "attributes": {
            "type": {"string": "vfio"},
            "uuid": {"string": str(uuid.uuid5(uuid.NAMESPACE_DNS, "0000:9d:00.0"))},
            "deviceID": {"string": "0x2330"},
            "vendorID": {"string": "0x10de"},
            "productName": {"string": "GH100 [H100 SXM5 80GB]"},
            "iommuFDEnabled": {"bool": True},
            "numa": {"int": 1},
            "resource.kubernetes.io/pciBusID": {"string": "0000:9d:00.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:97"},
        },
        "capacity": {"addressableMemory": {"value": "128Gi"}},
    }


def test_gpus_that_are_passed_through_are_published_twice_and_those_in_mig_mode_once():
    assert sorted(devices_of("t4 vfio")) == [
        *(f"gpu-{n}" for n in range(4)),
        *(f"gpu-vfio-{n}" for n in range(4)),
    ]
    assert not any("vfio" in name for name in devices_of("a30 vfio mig=4g.24gb*1"))
    assert not any("vfio" in name for name in devices_of("t4"))


def test_partitions_of_the_fabric_are_attributes_of_the_gpus_of_one_partition():
    devices = devices_of("hgx-h100 driver=0.5 fabric-partitions")
    for size in (1, 2, 4, 8):
        members = {}
        for name, device in devices.items():
            members.setdefault(device.attributes[f"partition{size}"].int_, []).append(name)
        assert [len(each) for each in members.values()] == [size] * (8 // size)
    ids = {
        (size, device.attributes[f"partition{size}"].int_)
        for device in devices.values()
        for size in (1, 2, 4, 8)
    }
    assert len({id_ for _, id_ in ids}) == len(ids) == 15
    assert sorted(device.attributes["gpuModuleID"].int_ for device in devices.values()) == list(range(1, 9))


@pytest.mark.parametrize(
    ("shares", "memory", "added"),
    [
        ("memory", ("81559Mi", "1Mi"), None),
        ("unlimited", ("0", "0"), None),
        (
            "4",
            ("0", "0"),
            {
                "value": "4",
                "requestPolicy": {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}},
            },
        ),
    ],
)
def test_shares_are_policies_of_capacities(shares, memory, added):
    default, least = memory
    device = devices_of(f"hgx-h100 driver=0.5 shares={shares}")["gpu-0"].to_manifest()
    assert device["allowMultipleAllocations"] is True
    assert device["capacity"]["memory"] == {
        "value": "81559Mi",
        "requestPolicy": {
            "default": default,
            "validRange": {"min": least, "max": "81559Mi", "step": "1Mi"},
        },
    }
    assert device["capacity"].get("shares") == added


def test_devices_are_exclusive_without_shares():
    for text in ("hgx-h100 driver=0.5", "hgx-h100 driver=0.5 shares=disabled"):
        device = devices_of(text)["gpu-0"]
        assert device.allow_multiple_allocations is None
        assert device.capacity["memory"].request_policy is None


def test_devices_that_are_passed_through_are_never_shared():
    devices = devices_of("hgx-h100 driver=0.5 shares=memory vfio")
    assert devices["gpu-0"].allow_multiple_allocations is True
    assert devices["gpu-vfio-0"].allow_multiple_allocations is None


def test_compute_domains_are_one_channel_and_one_daemon_per_node():
    fleet = load_fleet("gb200-nvl72")
    slices = [each for each in fleet.slices if each.spec.driver == "compute-domain.nvidia.com"]
    assert len(slices) == 18
    assert slices[0].spec.to_manifest() == {
        "driver": "compute-domain.nvidia.com",
        "pool": {"name": "gb200-nvl72-00", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "gb200-nvl72-00",
        "devices": [
            {"name": "channel-0", "attributes": {"type": {"string": "channel"}, "id": {"int": 0}}},
            {"name": "daemon-0", "attributes": {"type": {"string": "daemon"}, "id": {"int": 0}}},
        ],
    }
    names = {class_.metadata.name for class_ in fleet.classes}
    assert {"compute-domain-daemon.nvidia.com", "compute-domain-default-channel.nvidia.com"} <= names
    assert not any("compute-domain" in each.spec.driver for each in load_fleet("hgx-h100").slices)


def test_racks_are_nodes_with_one_clique_label():
    nodes = load_fleet("gb200-nvl72 x 2, gh200").nodes
    racks = {}
    for node in nodes:
        racks.setdefault(node.labels.get("nvidia.com/gpu.clique"), []).append(node.name)
    assert racks.pop(None) == ["gh200-0"]
    assert [len(rack) for rack in racks.values()] == [18, 18]
    assert all(re.fullmatch(r"[0-9a-f-]{36}\.\d+", clique) for clique in racks)
    assert {node.labels["kubernetes.io/arch"] for node in nodes} == {"arm64"}


def test_partitions_of_the_example_driver_draw_on_counters_in_a_slice_of_their_own():
    counters, devices = load_fleet("example devices=1 partitions=3").slices
    assert counters.spec.to_manifest()["sharedCounters"] == [
        {"name": "gpu-0-counters", "counters": {"memory": {"value": "80Gi"}, "compute": {"value": "100"}}}
    ]
    assert [device.name for device in devices.spec.devices] == [
        "gpu-0-partition-0",
        "gpu-0-partition-1",
        "gpu-0-partition-2",
        "gpu-0-full",
    ]
    part = devices.spec.devices[1].to_manifest()
    third = {"memory": {"value": "28633115306"}, "compute": {"value": "33"}}
    assert part["capacity"] == third
    assert part["consumesCounters"] == [{"counterSet": "gpu-0-counters", "counters": third}]
    assert part["attributes"]["partition"] == {"int": 1}
    assert part["attributes"]["partitionable"] == {"bool": True}
    whole = devices.spec.devices[3].to_manifest()
    assert whole["attributes"]["full"] == {"bool": True}
    assert whole["attributes"]["uuid"] == part["attributes"]["uuid"]
    assert whole["capacity"]["memory"] == {"value": "80Gi"}


def test_shareable_devices_of_the_example_driver():
    device = devices_of("example shareable partitions=2")["gpu-0-partition-0"].to_manifest()
    assert device["allowMultipleAllocations"] is True
    assert device["capacity"]["memory"] == {
        "value": "40Gi",
        "requestPolicy": {"default": "40Gi", "validRange": {"min": "1Gi", "max": "40Gi", "step": "1Gi"}},
    }
    assert device["capacity"]["compute"]["requestPolicy"]["validRange"] == {
        "min": "1",
        "max": "50",
        "step": "1",
    }


def test_network_cards_and_cpus_of_the_example_driver():
    nic = devices_of("example-net")["nic-7"].to_manifest()
    assert nic["allowMultipleAllocations"] is True
    assert nic["attributes"]["model"] == {"string": "LATEST-NET-MODEL"}
    assert nic["capacity"]["vfs"] == {"value": "100", "requestPolicy": {"default": "1", "validValues": ["1"]}}
    assert nic["capacity"]["egressBandwidth"] == {
        "value": "100G",
        "requestPolicy": {"default": "1G", "validRange": {"min": "100M", "max": "100G", "step": "1M"}},
    }
    assert devices_of("example-cpu")["numa-0"].to_manifest() == {
        "name": "numa-0",
        "attributes": {"numaNodeID": {"int": 0}},
        "capacity": {"cpu.example.com/cpu": {"value": "4"}},
        "allowMultipleAllocations": True,
    }
