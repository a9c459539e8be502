"""Selectors as fields: the bytes that selectors in Python have."""

from __future__ import annotations

from typing import Any

import pytest

import dra_infra as dra
from dra_infra.provider.selector_fields import FIELDS, selector_of

SAME: dict[str, tuple[Any, dra.Selector]] = {
    "driver": ("gpu.example.com", dra.driver("gpu.example.com")),
    "product": ("H100", dra.gpu.product.contains("H100")),
    "architecture": ("Hopper", dra.gpu.architecture == "Hopper"),
    "brand": ("Nvidia", dra.gpu.brand == "Nvidia"),
    "type": ("mig", dra.gpu.type == "mig"),
    "profile": ("1g.10gb", dra.gpu.profile == "1g.10gb"),
    "uuid": ("GPU-1", dra.gpu.uuid == "GPU-1"),
    "memory_at_least": ("79Gi", dra.gpu.memory >= "79Gi"),
    "compute_capability_at_least": ("9.0.0", dra.gpu.compute_capability >= "9.0.0"),
    "driver_version_at_least": ("580.126.20", dra.gpu.driver_version >= "580.126.20"),
    "cuda_version_at_least": ("13.0.0", dra.gpu.cuda_version >= "13.0.0"),
    "numa_node": (1, dra.gpu.numa_node == 1),
    "attributes": ({"a.b/index": 1}, dra.attribute("a.b/index") == 1),
    "capacity_at_least": ({"a.b/memory": "1Gi"}, dra.capacity("a.b/memory") >= "1Gi"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_is_the_test_that_python_writes(name: str):
    value, in_python = SAME[name]

    selector, problems = selector_of({name: value})

    assert problems == []
    assert selector is not None
    assert selector.expression() == in_python.expression()
    assert selector.problems() == ()


def test_the_order_of_fields_decides_the_bytes_and_the_order_of_a_program_does_not():
    one, _ = selector_of(
        {"memory_at_least": "79Gi", "product": "H100", "attributes": {"b.c/d": 1, "a.b/c": 2}}
    )
    other, _ = selector_of(
        {"attributes": {"a.b/c": 2, "b.c/d": 1}, "product": "H100", "memory_at_least": "79Gi"}
    )

    in_python = (
        dra.gpu.product.contains("H100")
        & (dra.gpu.memory >= "79Gi")
        & (dra.attribute("a.b/c") == 2)
        & (dra.attribute("b.c/d") == 1)
    )
    assert one is not None
    assert other is not None
    assert one.expression() == other.expression() == in_python.expression()


def test_no_field_is_no_selector():
    assert selector_of({}) == (None, [])


def test_all_fields_that_are_wrong_are_problems():
    _, problems = selector_of({"product": 4, "memory_at_least": "fourty", "attributes": {"index": 1}})

    assert [(each.path, each.code) for each in problems] == [
        ("product", "selector-type"),
        ("memory_at_least", "selector-invalid-value"),
        ("attributes['index']", "selector-invalid-value"),
    ]
