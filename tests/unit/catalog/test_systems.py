from __future__ import annotations

import pytest

from dra_infra.catalog.gpus import System, systems, systems_with
from dra_infra.catalog.records import gpu_products

BY_NVLINK = {
    "board": {"count"},
    "rack": {"count", "compute-domain"},
    "mesh": {"none"},
    "bridge": {"none"},
    "chip": {"none"},
    "none": {"none"},
}


@pytest.mark.parametrize("name", systems())
def test_a_system_agrees_with_its_products(name):
    system = systems()[name]
    for product in system.gpus:
        assert system.promise in BY_NVLINK[str(gpu_products()[product].nvlink)]
    assert system.gpus_per_node is None or system.joined <= system.gpus_per_node


@pytest.mark.parametrize(
    ("name", "count", "promise"),
    [
        ("hgx-h100", 1, "count"),
        ("hgx-h100", 3, "count"),
        ("hgx-h100", 8, "count"),
        ("hgx-h100", 9, "none"),
        ("gb200-nvl72", 4, "count"),
        ("gb200-nvl72", 5, "compute-domain"),
        ("gb200-nvl72", 72, "compute-domain"),
        ("gb200-nvl72", 73, "none"),
        ("h100-nvl", 2, "none"),
        ("l40s", 1, "count"),
        ("l40s", 2, "none"),
    ],
)
def test_how_gpus_joined_by_nvlink_are_promised(name, count, promise):
    assert systems()[name].promise_of(count) == promise


def test_a_refusal_says_why():
    assert "NVLink" in systems()["l40s"].why
    assert "bridge" in systems()["h100-nvl"].why


def test_a_rack_is_one_domain_of_72():
    assert systems()["gb300-nvl72"].gpus_per_rack == 72
    assert systems()["hgx-h100"].gpus_per_rack is None


def test_systems_by_product():
    assert set(systems_with("NVIDIA H100 80GB HBM3")) == {"hgx-h100", "hgx-h100-4gpu"}
    assert systems_with("NVIDIA H1000") == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"promise": "none"}, "says why"),
        ({"why": "because"}, "says why"),
        ({"promise": "compute-domain"}, "nodes of a rack"),
        ({"uncertain": ("colour",)}, "not all fields"),
        ({"colour": "green"}, "Extra inputs"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(change, message):
    fields = {"title": "x", "gpus": ("x",), "joined": 1, "promise": "count", "source": "a test of the record"}
    assert System(**fields)
    with pytest.raises(ValueError, match=message):
        System(**(fields | change))
