"""Labels of nodes against selectors of devices: on catalogue hardware both choose the same machines."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.vocabulary import read_data
from dra_infra.kubernetes.api import DeviceAttribute, Node, matches_node_selector
from dra_infra.kubernetes.cel import DeviceView, compile_expression
from dra_infra.kubernetes.cel.evaluate import MATCH, NO_MATCH
from dra_infra.migration.node_labels import Meaning, Requirement, any_of, read_requirements

MACHINES = (
    "hgx-h100",
    "hgx-h200",
    "hgx-b200",
    "a100-80gb",
    "a100-40gb",
    "l40s",
    "l4",
    "a10g",
    "v100-32gb",
    "t4",
    "a30",
)


@functools.cache
def machines() -> tuple[tuple[Node, DeviceView], ...]:
    """A node of each kind, and one of its GPUs."""
    found = []
    for name in MACHINES:
        fleet = load_fleet(f"{name} x 1")
        device = (fleet.slices[0].spec.devices or [])[0]
        view = DeviceView("gpu.nvidia.com", device.attributes, device.capacity)
        found.append((fleet.nodes[0], view))
    return tuple(found)


def term(requirements: Sequence[Requirement]) -> dict[str, Any]:
    return {
        "matchExpressions": [
            {"key": each.key, "operator": each.operator}
            | ({"values": list(each.values)} if each.values else {})
            for each in requirements
        ]
    }


def chosen_by_labels(terms: Sequence[Sequence[Requirement]]) -> list[bool]:
    selector = {"nodeSelectorTerms": [term(each) for each in terms]}
    return [matches_node_selector(selector, node.labels, node.name) for node, _ in machines()]


def chosen_by_selector(meanings: Sequence[Meaning]) -> list[bool]:
    selector = any_of(meanings)
    if selector is None:
        return [True] * len(machines())
    program = compile_expression(selector.expression())
    verdicts = [program.evaluate(view) for _, view in machines()]
    assert all(each in (MATCH, NO_MATCH) for each in verdicts)
    return [each == MATCH for each in verdicts]


def values_of(key: str) -> st.SearchStrategy[str]:
    seen = sorted({node.labels[key] for node, _ in machines() if key in node.labels})
    return st.sampled_from(seen)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    name = draw(
        st.sampled_from(["gpu.product", "gpu.family", "gpu.memory", "gpu.compute.major", "gpu.present"])
    )
    key = f"nvidia.com/{name}"
    operators = {"gpu.memory": ["In", "NotIn", "Gt", "Lt"], "gpu.compute.major": ["In", "NotIn", "Gt", "Lt"]}
    if name == "gpu.present":
        return draw(st.sampled_from([Requirement(key, "Exists"), Requirement(key, "In", ("true",))]))
    operator = draw(st.sampled_from(operators.get(name, ["In", "NotIn"])))
    most = 1 if operator in ("Gt", "Lt") else 3
    return Requirement(
        key, operator, tuple(draw(st.lists(values_of(key), min_size=1, max_size=most, unique=True)))
    )


@given(
    st.lists(
        st.lists(requirements(), min_size=1, max_size=3, unique_by=lambda each: each.key),
        min_size=1,
        max_size=3,
    )
)
def test_terms_of_an_affinity_choose_the_machines_that_their_selector_chooses(terms: list[list[Requirement]]):
    meanings = [read_requirements(each) for each in terms]
    assert all(meaning.used == set(each) for meaning, each in zip(meanings, terms, strict=True))
    assert chosen_by_selector(meanings) == chosen_by_labels(terms)


@pytest.mark.parametrize("kind", range(len(MACHINES)), ids=MACHINES)
def test_every_label_of_a_node_that_is_read_chooses_its_own_gpus(kind: int):
    node, view = machines()[kind]
    read = read_requirements([Requirement(key, "In", (value,)) for key, value in node.labels.items()])
    assert {each.key.removeprefix("nvidia.com/") for each in read.used} == {
        *("gpu.product", "gpu.family", "gpu.memory", "gpu.present"),
        *("gpu.compute.major", "gpu.compute.minor", "cuda.driver-version.full"),
    }
    assert read.selector is not None
    assert compile_expression(read.selector.expression()).evaluate(view) == MATCH


def test_a_product_that_is_not_known_matches_blanks_and_dashes():
    read = read_requirements([Requirement("nvidia.com/gpu.product", "In", ("NVIDIA-X-9",))])
    assert read.selector is not None
    assert '.matches("^NVIDIA[ -]X[ -]9$")' in read.selector.expression()


def test_a_product_that_is_left_out_shared_and_not_shared_is_left_out():
    product = Requirement("nvidia.com/gpu.product", "NotIn", ("Tesla-T4-SHARED", "Tesla-T4"))
    read = read_requirements([product])
    assert read.used == {product}
    assert read.selector is not None
    assert '"gpu.nvidia.com"].productName != "Tesla T4"' in read.selector.expression()


@pytest.mark.parametrize("key", ["gpu.compute.major", "cuda.driver-version.full", "gpu.product"])
def test_a_label_without_the_prefix_is_somebodys_own(key: str):
    assert read_requirements([Requirement(key, "In", ("8",))]).used == frozenset()


def test_two_labels_of_one_number_are_read_where_they_say_the_same():
    old, new = "nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver-version.major"
    same = [Requirement(key, "In", ("550",)) for key in (old, new)]
    assert read_requirements(same).used == set(same)
    apart = [Requirement(old, "In", ("535",)), Requirement(new, "In", ("550",))]
    read = read_requirements(apart)
    assert read.used == set(apart)
    assert chosen_by_selector([read]) == [False] * len(MACHINES)


@pytest.mark.parametrize("end", ["compute.major", "memory"])
def test_two_bounds_on_one_label_are_read_whole(end: str):
    values = sorted({int(node.labels[f"nvidia.com/gpu.{end}"]) for node, _ in machines()})
    bounds = [
        Requirement(f"nvidia.com/gpu.{end}", operator, (str(value),))
        for operator, value in (("Gt", values[0]), ("Lt", values[-1]))
    ]
    read = read_requirements(bounds)
    assert read.used == set(bounds)
    assert chosen_by_selector([read]) == chosen_by_labels([bounds])
    assert 0 < sum(chosen_by_labels([bounds])) < len(MACHINES)


def test_a_version_beside_a_bound_on_its_part_is_read_whole():
    full = Requirement("nvidia.com/cuda.driver-version.full", "In", ("570.86.15",))
    bound = Requirement("nvidia.com/cuda.driver.major", "Gt", ("550",))
    read = read_requirements([full, bound])
    assert read.used == {full, bound}
    assert read.selector is not None
    assert '"570.86.15"' in read.selector.expression()
    assert '"551.0.0")) >= 0' in read.selector.expression()
    odd = Requirement("nvidia.com/cuda.driver.minor", "Gt", ("8",))
    assert read_requirements([full, bound, odd]).used == frozenset()


@pytest.mark.parametrize("name", ["driver-version", "driver", "runtime-version", "runtime"])
def test_both_parts_of_a_version_are_one_test(name: str):
    major = Requirement(f"nvidia.com/cuda.{name}.major", "In", ("570",))
    minor = Requirement(f"nvidia.com/cuda.{name}.minor", "In", ("086",))
    read = read_requirements([major, minor])
    assert read.used == {major, minor}
    assert read.selector is not None
    # A driver has a third number, and what runs on it has none.
    test = ">= 0" if name.startswith("driver") else "== 0"
    assert f'semver("570.86.0")) {test}' in read.selector.expression()
    assert ('("570.87.0")) < 0' in read.selector.expression()) == name.startswith("driver")
    assert read_requirements([major, minor._replace(values=("many",))]).used == frozenset()


@pytest.mark.parametrize(
    "requirement",
    [
        Requirement("nvidia.com/gpu.count", "In", ("8",)),
        Requirement("nvidia.com/gpu.memory", "Exists"),
        Requirement("nvidia.com/gpu.memory", "In", ("many",)),
        Requirement("nvidia.com/gpu.family", "In", ("rubin",)),
        Requirement("nvidia.com/gpu.compute.minor", "In", ("0",)),
        Requirement("nvidia.com/gpu.product", "NotIn", ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",)),
        Requirement("nvidia.com/gpu.product", "NotIn", ("NVIDIA-L4", "Tesla-T4-SHARED")),
        Requirement("zone", "In", ("a",)),
        Requirement("nvidia.com/cuda.driver-version.full", "In", ("r550",)),
    ],
)
def test_what_no_attribute_says_is_not_used(requirement: Requirement):
    read = read_requirements([requirement])
    assert read.selector is None
    assert read.used == frozenset()


def test_every_kind_of_fact_about_labels_names_its_source():
    facts = read_data("node_labels.yaml")
    assert {kind: len(each) >= 10 for kind, each in facts.pop("sources").items()} == dict.fromkeys(
        facts, True
    )


@pytest.mark.parametrize("label", read_data("node_labels.yaml")["selectors"])
def test_what_a_label_is_a_selector_on_is_published_by_every_release_that_is_known(label: str):
    known = read_data("node_labels.yaml")["selectors"][label]
    for release in drivers()[known["name"].partition("/")[0]].releases:
        device = release.devices["gpu"]
        published = {**device.attributes, **device.capacity}[known["name"]]
        assert published.type == known["type"]
        # The labeller gives that label to no node whose GPUs cannot be partitioned.
        is_partition = label == "amd.com/gpu.compute-memory-partition" and release.line != "0.1"
        assert published.absent == ("on GPUs that cannot be partitioned" if is_partition else "")


def intel(model: str, family: str, pci: str) -> DeviceView:
    published = {"model": model, "family": family, "pciId": pci}
    return DeviceView(
        "gpu.intel.com",
        {name: DeviceAttribute.from_manifest({"string": each}) for name, each in published.items()},
    )


def mi300x() -> DeviceView:
    device = (load_fleet("mi300x x 1").slices[0].spec.devices or [])[0]
    return DeviceView("gpu.amd.com", device.attributes, device.capacity)


FLEX, MAX = (
    intel("Flex 170", "Data Center Flex", "0x56c0"),
    intel("Max 1550", "Data Center Max", "0x0bd5"),
)


@pytest.mark.parametrize(
    ("key", "value", "other", "device"),
    [
        ("amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM", "AMD_Instinct_MI210", mi300x()),
        ("amd.com/gpu.vram", "192G", "191G", mi300x()),
        ("beta.amd.com/gpu.vram", "192G", "193G", mi300x()),
        ("amd.com/gpu.cu-count", "304", "228", mi300x()),
        ("beta.amd.com/gpu.simd-count", "1216", "912", mi300x()),
        ("amd.com/gpu.driver-version", "6.12.12", "6.12.11", mi300x()),
        ("amd.com/gpu.compute-memory-partition", "spx_nps1", "spx_nps4", mi300x()),
        ("gpu.intel.com/product", "Flex_170", "Max_1550", FLEX),
        ("gpu.intel.com/product", "Max_1550", "Max_1100", MAX),
        ("gpu.intel.com/family", "Flex_Series", "Max_Series", FLEX),
    ],
)
def test_labels_of_amd_and_intel_choose_the_devices_of_their_nodes(
    key: str, value: str, other: str, device: DeviceView
):
    for operator, chosen in (("In", True), ("NotIn", False)):
        for each, is_match in ((value, chosen), (other, not chosen)):
            read = read_requirements([Requirement(key, operator, (each,))])
            assert read.selector is not None
            verdict = compile_expression(read.selector.expression()).evaluate(device)
            assert verdict == (MATCH if is_match else NO_MATCH)
    both = read_requirements([Requirement(key, "In", (other, value))]).selector
    assert both is not None
    assert compile_expression(both.expression()).evaluate(device) == MATCH
    # A device without all of it passes neither the test nor its negation, and stops no allocation.
    assert compile_expression(both.expression()).evaluate(DeviceView("gpu.example.com")) == NO_MATCH


@pytest.mark.parametrize(
    ("key", "operator", "values", "device"),
    [
        ("beta.amd.com/gpu.vram.192G", "Exists", (), mi300x()),
        ("amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM", "Exists", (), mi300x()),
        ("gpu.intel.com/device-id.0380-56c0.present", "In", ("true",), FLEX),
        ("gpu.intel.com/device-id.0300-0bd5.present", "Exists", (), MAX),
    ],
)
def test_a_label_with_the_value_in_its_name_is_read_where_a_node_has_such_a_gpu(
    key: str, operator: str, values: tuple[str, ...], device: DeviceView
):
    read = read_requirements([Requirement(key, operator, values)])
    assert read.selector is not None
    assert compile_expression(read.selector.expression()).evaluate(device) == MATCH


@pytest.mark.parametrize(
    "requirement",
    [
        # What the first releases of AMD's driver published and later ones do not, or said in another way.
        Requirement("amd.com/gpu.family", "In", ("AI",)),
        Requirement("amd.com/gpu.device-id", "In", ("74a1",)),
        Requirement("amd.com/gpu.driver-src-version", "In", ("7AA72EC2C8F513519BE86FD",)),
        # The driver has no name of a card that the kernel has none of.
        Requirement("amd.com/gpu.product-name", "In", ("Navi_31_Radeon_RX_7900_XT",)),
        # The last number of four is that of a build, which is no part of a version.
        Requirement("amd.com/gpu.driver-version", "In", ("6.19.14.31400000",)),
        Requirement("amd.com/gpu.driver-version", "In", ("6.02.14",)),
        Requirement("amd.com/gpu.vram", "In", ("192G", "much")),
        Requirement("amd.com/gpu.vram", "Exists"),
        Requirement("amd.com/gpu.vram", "In"),
        Requirement("amd.com/gpu.cu-count", "Gt", ("300",)),
        Requirement("beta.amd.com/gpu.vram.192G", "In", ("8",)),
        Requirement("beta.amd.com/gpu.vram.192G", "DoesNotExist"),
        Requirement("amd.com/gpu.compute-partitioning-supported", "In", ("true",)),
        # Its driver has several names for the family, by release and by card.
        Requirement("gpu.intel.com/family", "In", ("A_Series",)),
        Requirement("gpu.intel.com/product", "In", ("B60",)),
        Requirement("gpu.intel.com/device.count", "In", ("2",)),
        Requirement("gpu.intel.com/device-id.0380-56c0.count", "In", ("2",)),
        Requirement("gpu.intel.com/device-id.0380-56c0.present", "NotIn", ("true",)),
        Requirement("gpu.intel.com/memory.max", "Gt", ("16000000000",)),
        Requirement("accelerator", "In", ("nvidia",)),
    ],
)
def test_what_drivers_of_amd_and_intel_do_not_publish_is_not_used(requirement: Requirement):
    read = read_requirements([requirement])
    assert (read.selector, read.used) == (None, frozenset())
