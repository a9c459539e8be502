from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.fleet_terms import KEYS, MAX_NODES, OPTIONS
from dra_infra.catalog.fleets import load_node
from dra_infra.catalog.gpus import systems
from dra_infra.catalog.machines import node_kinds
from dra_infra.catalog.records import fleet_kinds, fleet_names, gpu_products
from dra_infra.errors import FleetError
from dra_infra.kubernetes.api import Quantity
from dra_infra.kubernetes.cel import check_expression

NAMES = [
    "a10",
    "a100-40gb",
    "a100-80gb",
    "a100-80gb-pcie",
    "a10g",
    "a30",
    "a40",
    "example",
    "example-cpu",
    "example-net",
    "gaudi2",
    "gaudi3",
    "gb200-nvl72",
    "gb300-nvl72",
    "gh200",
    "h100-nvl",
    "hgx-b200",
    "hgx-b300",
    "hgx-h100",
    "hgx-h20",
    "hgx-h200",
    "l4",
    "l40",
    "l40s",
    "mi300x",
    "rtx-pro-6000",
    "t4",
    "tpu-v6e-8",
    "v100-16gb",
    "v100-32gb",
]


def refused(text):
    with pytest.raises(FleetError) as caught:
        load_fleet(text)
    return caught.value.problems


def all_devices(fleet):
    return [device for slice_ in fleet.slices for device in slice_.spec.devices]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("hgx-h100", ["hgx-h100-0"]),
        ("hgx-h100 x 2", ["hgx-h100-0", "hgx-h100-1"]),
        ("  hgx-h100   x2 ", ["hgx-h100-0", "hgx-h100-1"]),
        ("a100-80gb x 1, a100-40gb x 2", ["a100-40gb-0", "a100-40gb-1", "a100-80gb-0"]),
        ("hgx-h100, hgx-h100 x 2", ["hgx-h100-0", "hgx-h100-1", "hgx-h100-2"]),
    ],
)
def test_names_and_counts_give_nodes(text, nodes):
    assert [node.name for node in load_fleet(text).nodes] == nodes


def test_name_of_a_fleet_is_its_shortest_spelling():
    assert load_fleet("hgx-h100,  hgx-h100 x 2,example").name == "hgx-h100 x 3, example x 1"


def test_node_names_are_padded_so_that_they_sort_by_number():
    names = [node.name for node in load_fleet("example x 101").nodes]
    assert names[:2] == ["example-000", "example-001"]
    assert names == sorted(names, key=lambda name: int(name.rpartition("-")[2]))


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("hgx-h10 x 4", "fleet-unknown", "did you mean hgx-h100?"),
        ("HGX-H100", "fleet-unknown", "did you mean hgx-h100?"),
        ("hgx-h100x4", "fleet-unknown", "write hgx-h100 x 4"),
        ("zzz", "fleet-unknown", "a10, a100-40gb, a100-80gb, a100-80gb-pcie, a10g, a30, a40, example"),
        ("", "fleet-unknown", "hgx-h100 x 4"),
        ("hgx-h100, ", "fleet-unknown", "hgx-h100 x 4"),
        (
            "4 x hgx-h100",
            "fleet-unknown",
            "a10, a100-40gb, a100-80gb, a100-80gb-pcie, a10g, a30, a40, example",
        ),
        ("hgx-h100 x 0", "fleet-count", "hgx-h100 x 4"),
        ("hgx-h100 x 00", "fleet-count", "hgx-h100 x 4"),
        ("hgx-h100 x -1", "fleet-count", "hgx-h100 x 4"),
        ("hgx-h100 x many", "fleet-count", "hgx-h100 x 4"),
        ("hgx-h100 x ٣", "fleet-count", "hgx-h100 x 4"),
        (f"hgx-h100 x {MAX_NODES + 1}", "fleet-too-large", "fewer nodes"),
        (f"hgx-h100 x {MAX_NODES}, example", "fleet-too-large", "fewer nodes"),
        (f"hgx-h100 x {'9' * 5000}", "fleet-too-large", "fewer nodes"),
        ("gb200-nvl72 x 6000", "fleet-too-large", "fewer nodes"),
    ],
)
def test_fleet_that_cannot_be_is_refused_with_what_to_write(text, code, hint):
    problem = refused(text)[0]
    assert problem.code == code
    assert hint in problem.hint
    assert problem.path.startswith('fleet "')


def test_all_problems_of_a_fleet_are_told_at_once():
    codes = [problem.code for problem in refused("hgx-h10 x 2, a100-80gb x 0")]
    assert sorted(codes) == ["fleet-count", "fleet-unknown"]


@given(st.text(max_size=40).filter(lambda text: "/" not in text))
def test_any_text_gives_a_fleet_or_problems(text):
    try:
        nodes = load_fleet(text).nodes
    except FleetError as refusal:
        nodes = refusal.problems
    assert nodes


def test_h100_facts_are_those_of_a_real_card():
    (device, *others) = all_devices(load_fleet("hgx-h100"))
    assert len(others) == 7
    assert device.attributes["productName"].string == "NVIDIA H100 80GB HBM3"
    assert device.attributes["architecture"].string == "Hopper"
    assert device.attributes["cudaComputeCapability"].version == "9.0.0"
    assert device.capacity["memory"].value == "81559Mi"


def test_example_fleet_is_what_the_example_driver_publishes():
    fleet = load_fleet("example")
    (slice_,) = fleet.slices
    device = slice_.spec.devices[3].to_manifest()
    uuid = device["attributes"].pop("uuid")
    assert slice_.spec.driver == "gpu.example.com"
    assert re.fullmatch(r"gpu-[0-9a-f-]{36}", uuid["string"])
    assert device == {
        "name": "gpu-3",
        "attributes": {
            "index": {"int": 3},
            "model": {"string": "LATEST-GPU-MODEL"},
            "driverVersion": {"version": "1.0.0"},
        },
        "capacity": {"memory": {"value": "80Gi"}, "compute": {"value": "100"}},
    }


def test_uuids_are_unique_and_the_same_each_time():
    uuids = [
        device.attributes["uuid"].string for device in all_devices(load_fleet("hgx-h100 x 20, a100-80gb x 3"))
    ]
    assert len(set(uuids)) == len(uuids) == 23 * 8
    assert uuids == [
        device.attributes["uuid"].string for device in all_devices(load_fleet("a100-80gb x 3, hgx-h100 x 20"))
    ]


def test_growing_a_fleet_within_its_digits_keeps_its_devices():
    few, more = load_fleet("hgx-h100 x 3"), load_fleet("hgx-h100 x 9")
    assert more.slices[:3] == few.slices


def test_classes_are_those_that_the_drivers_ship():
    names = [class_.metadata.name for class_ in load_fleet("hgx-h100, a100-80gb, example").classes]
    assert names == ["gpu.example.com", "gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"]


@pytest.mark.parametrize("name", NAMES)
def test_shipped_class_expressions_compile(name):
    for class_ in load_fleet(name).classes:
        for selector in class_.spec.selectors:
            assert check_expression(selector.cel.expression).errors == ()


def test_manifests_are_whole_objects():
    classes_nodes_slices = load_fleet("hgx-h100").to_manifests()
    kinds = [manifest["kind"] for manifest in classes_nodes_slices]
    assert kinds == ["DeviceClass"] * 3 + ["Node", "ResourceSlice"]
    node = classes_nodes_slices[3]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"] == "hgx-h100-0"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
        assert {"cpu", "memory", "pods"} <= set(amounts)
        assert all(Quantity.parse(amount).value > 0 for amount in amounts.values())
    (condition,) = node["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_nodes_are_legal(name):
    for node in load_fleet(name).nodes:
        for key, value in node.labels.items():
            assert re.fullmatch(r"([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", key)
            assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value)


def test_every_kind_of_fleet_names_its_source_and_every_name_leads_somewhere():
    for kind in fleet_kinds().values():
        assert kind.line in drivers()[kind.driver].by_line
        assert bool(kind.gpu) == bool(kind.system) == bool(kind.pci_name) == (kind.kernel_driver is not None)
    assert sorted(fleet_kinds()) == NAMES
    others = [name for kind in fleet_kinds().values() for name in kind.also]
    assert len({*others, *NAMES}) == len(others) + len(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if fleet_kinds()[name].gpu])
def test_kinds_of_fleets_agree_with_products_and_systems(name):
    kind = fleet_kinds()[name]
    product = gpu_products()[kind.gpu]
    system = systems()[kind.system]
    assert kind.gpu in system.gpus
    assert system.gpus_per_node in (None, kind.count)
    assert bool(system.nodes_per_rack) == kind.compute_domains == (kind.invented.clique is not None)
    assert bool(product.brand) != bool(kind.invented.brand)
    assert product.memory_mib
    assert product.device_id
    assert len(kind.invented.pci) == len({bus for bus, _, _ in kind.invented.pci}) == kind.count
    assert [bus for bus, _, _ in kind.invented.pci] == sorted(bus for bus, _, _ in kind.invented.pci)
    assert bool(kind.invented.fabric) == bool(system.partitions)
    assert len(kind.invented.fabric) in (0, kind.count)


def test_other_names_lead_to_the_fleet():
    assert load_fleet("hgx-a100-80gb x 2, dgx-h100").name == "a100-80gb x 2, hgx-h100 x 1"
    for name in ("hgx-a100", "hgx-a100-40gb", "dgx-a100", "dgx-b200"):
        assert load_fleet(name).nodes


def test_more_than_a_million_devices_are_refused():
    with pytest.raises(FleetError) as caught:
        load_fleet("hgx-h100 x 5000 driver=0.5 dynamic-mig")
    (problem,) = caught.value.problems
    assert (problem.code, "1,040,000 devices" in problem.message) == ("fleet-too-large", True)


def test_every_name_and_option_is_in_the_documentation():
    text = (Path(__file__).parents[3] / "docs" / "fleets.md").read_text()
    written = {name.partition("=")[0] for name in re.findall(r"`([a-z0-9-]+(?:=[^`]*)?)`", text)}
    assert set(fleet_names()) <= written
    assert {option.removesuffix("=") for option in OPTIONS} <= written
    assert set(KEYS) <= set(re.findall(r"\b[a-z][A-Za-z]+\b", text))


def test_a_node_on_its_own_is_that_of_its_name_or_the_first_under_its_name():
    text = "hgx-h100 x 3, a100-80gb x 12 driver=0.5"
    fleet = load_fleet(text)
    own = [each for each in fleet.slices if each.spec.node_name == "a100-80gb-07"]
    assert load_node(text, "a100-80gb-07").slices == tuple(own)
    assert load_node(fleet, "a100-80gb-07").slices == tuple(own)
    first = load_node(text, "node-1")
    assert first.group
    assert first.group.kind_name == "hgx-h100"
    assert {(each.spec.node_name, each.spec.pool.name) for each in first.slices} == {("node-1", "node-1")}
    # What was published is not made anew: it is the same hardware under another name.
    published = load_node(fleet, "node-1")
    assert published.group is None
    (first_node,) = {each.spec.node_name for each in fleet.slices if each.spec.node_name == "a100-80gb-00"}
    its_own = [each.spec.devices for each in fleet.slices if each.spec.node_name == first_node]
    assert [each.spec.devices for each in published.slices] == its_own


def test_devices_that_are_listed_are_what_the_newest_release_publishes():
    listed = [kind.published for kind in node_kinds().values() if kind.published]
    assert len(listed) > 4
    for driver, devices in (pair for each in listed for pair in each.items()):
        (type_,) = drivers()[driver].newest.devices.values()
        own = {name for device in devices.devices.values() for name in device}
        for name in {*devices.attributes, *own}:
            assert (name if "/" in name else f"{driver}/{name}") in type_.attributes


def test_amd_gpus_are_what_the_documentation_of_their_driver_shows():
    device = all_devices(load_fleet("mi300x"))[0].to_manifest()
    assert device["attributes"]["productName"] == {"string": "AMD_Instinct_MI300X_OAM"}
    assert device["attributes"]["driverVersion"] == {"version": "6.12.12"}
    assert device["attributes"]["numaNode"] == {"int": 0}
    assert {name: amount["value"] for name, amount in device["capacity"].items()} == {
        "memory": "196592Mi",
        "computeUnits": "304",
        "simdUnits": "1216",
    }


def test_devices_that_are_listed_are_of_one_release():
    assert "1.0 publishes them, and not 0.1" in refused("mi300x driver=0.1")[0].message
    assert load_fleet("mi300x driver=1.0") == load_fleet("mi300x")


@pytest.mark.parametrize(
    ("driver", "nvidia", "example"),
    [
        ("newest", "", ""),
        ("25.8", " driver=25.8", ""),
        ("gpu.example.com=0.2", "", " driver=0.2"),
        ("25.8, gpu.example.com=0.2, gpu.amd.com=0.1", " driver=25.8", " driver=0.2"),
    ],
)
def test_a_release_counts_for_the_hardware_of_its_driver_that_names_none(driver, nvidia, example):
    fleet = load_fleet("hgx-h100, l4 driver=0.4, mi300x, example", driver=driver)
    assert fleet.name == f"hgx-h100 x 1{nvidia}, l4 x 1 driver=0.4, mi300x x 1, example x 1{example}"


def test_settings_of_gpus_are_refused_on_devices_of_other_drivers():
    assert "gpu.amd.com has none" in refused("mi300x mig=1g.10gb*7")[0].message
    assert "known of p4d.24xlarge" in refused("hgx-h100 dranet")[0].hint
