"""Objects with anything in any place: a migration answers, or leaves them, and never raises."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.markers import SECRET
from dra_infra.migration.old_dra.conversion import migrate_old_dra
from tests.support.migration.old_dra_cases import cases, objects_after

WORDS = (
    "exactly", "basic", "spec", "devices", "requests", "selectors", "source", "metadata", "name", "kind", "GpuClaimParameters",
    "resource.k8s.io/v1", "resource.k8s.io/v1alpha2", "gpu.resource.nvidia.com", "gpu.nvidia.com", "resourceClassName",
    "parametersRef", "resourceClaims", "claims", "cel", "expression", "card", "40Gi", "1g.5gb", "MPS", "[secret]", "[unknown]", "\0", "\ud800", "a" * 300,
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6) | st.sampled_from(WORDS), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in *value*."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, (*at, key))


def put(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    """*value* with something else at a place."""
    if not at:
        return new
    changed = copy.copy(value)
    changed[at[0]] = put(value[at[0]], at[1:], new)
    return changed


@st.composite
def damaged(draw: st.DrawFn) -> list[Any]:
    """The objects of a row, or of two, with anything in one place or two."""
    objects: Any = [
        each
        for case in draw(st.lists(st.sampled_from(cases()), min_size=1, max_size=2))
        for each in case.input
    ]
    for _ in range(draw(st.integers(1, 2))):
        found = list(places(objects))[1:]
        objects = put(objects, draw(st.sampled_from(found)), draw(JSON | st.sampled_from((SECRET, UNKNOWN))))
    return list(objects)


def same(one: Any, other: Any) -> bool:
    # Not a number is no value that JSON has, and differs from itself.
    return repr(one) == repr(other)


@given(damaged())
def test_anything_in_any_place_is_answered_and_stays_so(objects):
    found = migrate_old_dra(objects)
    assert set(found) <= set(range(len(objects)))
    for index, each in found.items():
        assert each.remarks or each.added or each.manifest is not objects[index]
    once = objects_after(objects, found)
    assert same(objects_after(once, migrate_old_dra(once)), once)


@pytest.mark.parametrize("name", ["a" * 600, "\ud800", "A B"])
def test_a_name_that_no_driver_can_have_is_to_decide(name: str):
    alpha = "resource.k8s.io/v1alpha2"
    requests = [{"namedResources": {"selector": 'attributes.string["model"] == "a"'}}]
    reference = {"apiGroup": "resource.k8s.io", "kind": "ResourceClaimParameters", "name": "p"}
    objects: list[dict[str, Any]] = [
        {"kind": "ResourceClass", "metadata": {"name": "c"}, "driverName": name},
        {
            "kind": "ResourceClaimParameters",
            "metadata": {"name": "p"},
            "driverRequests": [{"driverName": name, "requests": requests}],
        },
        {
            "kind": "ResourceClaim",
            "metadata": {"name": "one"},
            "spec": {"resourceClassName": "gpu.nvidia.com", "parametersRef": reference},
        },
    ]
    objects = [{"apiVersion": alpha, **each} for each in objects]
    found = migrate_old_dra(objects)
    assert [(index, each.path, each.outcome) for index in found for each in found[index].remarks] == [
        (0, "driverName", "decide"),
        (1, "driverRequests", "decide"),
    ]
    assert objects_after(objects, found) == objects


@pytest.mark.parametrize(
    ("namespace", "is_meant"), [("x", True), (None, True), ("other", False), (True, False), (7, False)]
)
def test_parameters_of_another_namespace_are_not_those_of_a_claim(namespace: Any, is_meant: bool):
    """YAML reads `namespace: y` as true, which is not the namespace of the claim, and is not left open."""
    group = "gpu.resource.nvidia.com"
    reference = {"apiGroup": group, "kind": "GpuClaimParameters", "name": "one"}
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "resource.k8s.io/v1alpha2",
            "kind": "ResourceClaim",
            "metadata": {"name": "a", "namespace": "x"},
            "spec": {"resourceClassName": "gpu.nvidia.com", "parametersRef": reference},
        },
        {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "GpuClaimParameters",
            "metadata": {"name": "one", "namespace": namespace},
            "spec": {"count": 2},
        },
    ]
    found = migrate_old_dra(objects)
    expected = ["classic-shape"] if is_meant else ["parameters-not-known"]
    assert [each.code for each in found[0].remarks] == expected
    assert (found[1].manifest is None) == is_meant


@given(st.lists(JSON, max_size=3))
def test_what_is_no_object_at_all_is_left(objects):
    found = migrate_old_dra(objects)
    assert all(isinstance(objects[index], dict) for index in found)
