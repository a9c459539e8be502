"""Labels of nodes against selectors of devices: on catalogue hardware both choose the same machines."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.api.label_selectors import matches_node_selector
from dra_infra.kubernetes.cel.device_view import DeviceView
from dra_infra.kubernetes.cel.evaluate import MATCH, NO_MATCH, compile_expression
from dra_infra.kubernetes.scheduler.fleet import Node
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


@pytest.mark.parametrize("key", ["gpu.compute.major", "cuda.driver-version.full", "gpu.product"])
def test_a_label_without_the_prefix_is_somebodys_own(key: str):
    assert read_requirements([Requirement(key, "In", ("8",))]).used == frozenset()


def test_two_labels_of_one_number_are_read_where_they_say_the_same():
    old, new = "nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver-version.major"
    same = [Requirement(key, "In", ("550",)) for key in (old, new)]
    assert read_requirements(same).used == set(same)
    apart = read_requirements([Requirement(old, "In", ("535",)), Requirement(new, "In", ("550",))])
    assert (apart.selector, apart.used) == (None, frozenset())


@pytest.mark.parametrize(
    "requirement",
    [
        Requirement("nvidia.com/gpu.count", "In", ("8",)),
        Requirement("nvidia.com/gpu.memory", "Exists"),
        Requirement("nvidia.com/gpu.memory", "In", ("many",)),
        Requirement("nvidia.com/gpu.family", "In", ("rubin",)),
        Requirement("nvidia.com/gpu.compute.minor", "In", ("0",)),
        Requirement("nvidia.com/gpu.product", "NotIn", ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",)),
        Requirement("zone", "In", ("a",)),
        Requirement("nvidia.com/cuda.driver-version.full", "In", ("r550",)),
    ],
)
def test_what_no_attribute_says_is_not_used(requirement: Requirement):
    read = read_requirements([requirement])
    assert read.selector is None
    assert read.used == frozenset()
