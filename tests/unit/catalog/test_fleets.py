from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.fleets import MAX_NODES
from dra_infra.catalog.records import fleet_kinds, gpu_products
from dra_infra.cel import check_expression
from dra_infra.errors import FleetError
from dra_infra.model.names import is_dns_label, is_dns_subdomain, split_qualified_name
from dra_infra.model.quantity import Quantity

NAMES = ["a100-40gb", "a100-80gb", "example", "hgx-h100"]
MEMORY_MIB = {
    "NVIDIA H100 80GB HBM3": 81559,
    "NVIDIA A100-SXM4-80GB": 81920,
    "NVIDIA A100-SXM4-40GB": 40960,
}
DRIVER_25_12_ATTRIBUTES = {
    "type",
    "uuid",
    "productName",
    "brand",
    "architecture",
    "cudaComputeCapability",
    "driverVersion",
    "cudaDriverVersion",
    "addressingMode",
    "resource.kubernetes.io/pciBusID",
    "resource.kubernetes.io/pcieRoot",
}


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
        ("zzz", "fleet-unknown", "a100-40gb, a100-80gb, example, hgx-h100"),
        ("", "fleet-unknown", "hgx-h100 x 4"),
        ("hgx-h100, ", "fleet-unknown", "hgx-h100 x 4"),
        ("4 x hgx-h100", "fleet-unknown", "a100-40gb, a100-80gb, example, hgx-h100"),
        ("hgx-h100 x 0", "fleet-count", "hgx-h100 x 4"),
        ("hgx-h100 x 00", "fleet-count", "hgx-h100 x 4"),
        ("hgx-h100 x -1", "fleet-count", "hgx-h100 x 4"),
        ("hgx-h100 x many", "fleet-count", "hgx-h100 x 4"),
        ("hgx-h100 x ٣", "fleet-count", "hgx-h100 x 4"),
        (f"hgx-h100 x {MAX_NODES + 1}", "fleet-too-large", "fewer nodes"),
        (f"hgx-h100 x {MAX_NODES}, example", "fleet-too-large", "fewer nodes"),
        (f"hgx-h100 x {'9' * 5000}", "fleet-too-large", "fewer nodes"),
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


@pytest.mark.parametrize("name", NAMES)
def test_every_named_fleet_publishes_devices_that_an_api_server_takes(name):
    fleet = load_fleet(f"{name} x 2")
    assert len(fleet.slices) == 2
    for slice_ in fleet.slices:
        assert is_dns_subdomain(slice_.metadata.name)
        assert slice_.spec.pool.name == slice_.spec.node_name
        names = [device.name for device in slice_.spec.devices]
        assert len(names) == fleet_kinds()[name].count
        assert names == sorted(names)
        assert all(is_dns_label(each) for each in names)
        for device in slice_.spec.devices:
            assert len(device.attributes) + len(device.capacity) <= 32
            for key, value in device.attributes.items():
                assert split_qualified_name(key)
                written = value.model_dump(exclude_none=True)
                assert len(written) == 1
                assert len(str(*written.values())) <= 64
            for capacity in device.capacity.values():
                assert Quantity.parse(capacity.value).canonical() == capacity.value


@pytest.mark.parametrize("name", NAMES)
def test_attributes_are_exactly_those_of_the_pinned_driver(name):
    fleet = load_fleet(name)
    kind = fleet_kinds()[name]
    published = drivers()[kind.driver].by_line[kind.line].devices["gpu"]
    for device in all_devices(fleet):
        types = {key: next(iter(value.to_manifest())) for key, value in device.attributes.items()}
        for key, type_ in types.items():
            assert published.attributes[qualified(key, kind.driver)].type == type_
        for section, names in (("attribute", types), ("capacity", device.capacity)):
            known = published.attributes if section == "attribute" else published.capacity
            always = {key for key in known if published.presence(section, key) == "always"}
            assert always <= {qualified(key, kind.driver) for key in names} <= set(known)


def qualified(name, driver):
    return name if "/" in name else f"{driver}/{name}"


@pytest.mark.parametrize("name", ["a100-40gb", "a100-80gb", "hgx-h100"])
def test_gpu_fleets_publish_what_driver_25_12_does(name):
    for device in all_devices(load_fleet(name)):
        assert set(device.attributes) == DRIVER_25_12_ATTRIBUTES
        product = device.attributes["productName"].string
        assert Quantity.parse(device.capacity["memory"].value).value == MEMORY_MIB[product] * 1024 * 1024
        assert re.fullmatch(
            r"0000:[0-9a-f]{2}:00\.0", device.attributes["resource.kubernetes.io/pciBusID"].string
        )


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


def test_memory_of_products_is_that_of_the_reference_table():
    assert {name: product.memory_mib for name, product in gpu_products().items()} == MEMORY_MIB


def test_every_fact_names_its_source_and_every_name_leads_somewhere():
    releases = [release for driver in drivers().values() for release in driver.releases]
    facts = [*gpu_products().values(), *releases, *fleet_kinds().values()]
    assert all(fact.source for fact in facts)
    for kind in fleet_kinds().values():
        assert kind.line in drivers()[kind.driver].by_line
        assert not kind.gpu or kind.gpu in gpu_products()
        assert bool(kind.gpu) == (kind.kernel_driver is not None)
        assert not kind.gpu or len(kind.invented.pci) == kind.count
    assert sorted(fleet_kinds()) == NAMES
