"""Differences between inputs, and what of them needs a new object."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.kubernetes_provider.changes import Effect, find_changes, follow_drift, format_path
from tools.kubernetes_provider.values import UNKNOWN

scalars = st.booleans() | st.integers() | st.text(max_size=3)
names = st.sampled_from("abcd")


def nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)


values = st.recursive(scalars, nest, max_leaves=10)
objects = st.dictionaries(names, values, max_size=4)

CONTAINER_IMAGE = ("spec", "containers", "*", "image")
SELECTOR = ("spec", "selector")


def same(left: Any, right: Any) -> bool:
    """Compare as the API server would: true is not 1, and null is nothing."""
    return repr(left) == repr(right) if type(left) is not type(right) else _same_kind(left, right)


def _same_kind(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@given(objects, objects)
def test_there_are_changes_exactly_when_objects_differ(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert bool(find_changes(old, new, ())) == (not same(old, new))


@given(objects, objects)
def test_the_way_back_has_the_same_paths(old: dict[str, Any], new: dict[str, Any]) -> None:
    forth = {change.path for change in find_changes(old, new, ())}
    back = {change.path for change in find_changes(new, old, ())}

    assert forth == back


@pytest.mark.parametrize(
    ("old", "new", "path", "effect"),
    [
        pytest.param({}, {"a": {"b": 1}}, "a", Effect.ADD, id="whole object added"),
        pytest.param({"a": {"b": 1}}, {}, "a", Effect.DELETE, id="whole object gone"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, "a[1]", Effect.DELETE, id="last item gone"),
        pytest.param({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, "a[0].b", Effect.UPDATE, id="field of an item"),
        pytest.param({"a": 1}, {"a": True}, "a", Effect.UPDATE, id="true is not 1"),
        pytest.param({"a": {"b": 1}}, {"a": UNKNOWN}, "a", Effect.UPDATE, id="not known yet"),
        pytest.param({}, {"a": UNKNOWN}, "a", Effect.ADD, id="new and not known yet"),
    ],
)
def test_a_change_is_shown_at_its_highest_path(
    old: dict[str, Any], new: dict[str, Any], path: str, effect: Effect
) -> None:
    (change,) = find_changes(old, new, ())

    assert (change.path, change.effect) == (path, effect)


def test_null_and_missing_are_the_same() -> None:
    assert find_changes({"a": None}, {"b": None}, ()) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            {"spec": {"selector": {"matchLabels": {"app": "a"}}}},
            {"spec": {"selector": {"matchLabels": {"app": "b"}}}},
            id="below the field",
        ),
        pytest.param({"spec": {"selector": {}}}, {"spec": {}}, id="the field itself"),
        pytest.param({"spec": {}}, {"spec": {"selector": {"a": 1}}}, id="the field is new"),
        pytest.param({}, {"spec": {"selector": {"a": 1}}}, id="above the field"),
        pytest.param({"spec": {"selector": {"a": 1}}}, {"spec": UNKNOWN}, id="all unknown"),
        pytest.param(
            {"spec": {"containers": [{"image": "a"}]}},
            {"spec": {"containers": [{"image": "b"}]}},
            id="in a list",
        ),
        pytest.param(
            {"spec": {"containers": []}},
            {"spec": {"containers": [{"image": "b"}]}},
            id="in a new item of a list",
        ),
    ],
)
def test_a_change_that_touches_a_replacing_field_replaces(old: dict[str, Any], new: dict[str, Any]) -> None:
    changes = find_changes(old, new, (SELECTOR, CONTAINER_IMAGE))

    assert [change.replaces for change in changes] == [True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({"spec": {"selectors": 1}}, {"spec": {"selectors": 2}}, id="other field"),
        pytest.param(
            {"spec": {"containers": [{"name": "a"}]}},
            {"spec": {"containers": [{"name": "b"}]}},
            id="other field in a list",
        ),
        pytest.param({"spec": {"replicas": 1}}, {"spec": UNKNOWN}, id="unknown without the field before"),
    ],
)
def test_a_change_that_touches_no_replacing_field_is_in_place(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    changes = find_changes(old, new, (SELECTOR, CONTAINER_IMAGE))

    assert [change.replaces for change in changes] == [False]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("spec", "containers", 0, "image"), "spec.containers[0].image"),
        (("metadata", "labels", "app.kubernetes.io/name"), 'metadata.labels["app.kubernetes.io/name"]'),
        (("data", 'a"b'), 'data["a\\"b"]'),
    ],
)
def test_paths_are_written_as_the_engine_reads_them(path: tuple[str | int, ...], text: str) -> None:
    assert format_path(path) == text


@given(objects, objects)
def test_inputs_stay_when_the_object_stays(inputs: dict[str, Any], stored: dict[str, Any]) -> None:
    assert follow_drift(inputs, stored, stored) == inputs


@given(objects)
def test_what_others_add_is_no_drift(inputs: dict[str, Any]) -> None:
    live = {**inputs, "added": {"by": "other"}}

    assert follow_drift(inputs, inputs, live) == inputs


def test_a_spelling_that_the_server_changed_is_kept_until_the_value_changes() -> None:
    inputs = {"memory": "1024Mi"}
    stored = {"memory": "1Gi"}

    assert follow_drift(inputs, stored, {"memory": "1Gi"}) == {"memory": "1024Mi"}
    assert follow_drift(inputs, stored, {"memory": "2Gi"}) == {"memory": "2Gi"}


def test_a_field_that_somebody_removed_leaves_the_inputs() -> None:
    assert follow_drift({"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1}) == {"a": 1}


def test_a_field_that_the_server_never_returns_stays_in_the_inputs() -> None:
    live = {"data": {"key": "aHVzaA=="}}

    assert follow_drift({"stringData": {"key": "hush"}}, live, {**live, "extra": 1}) == {
        "stringData": {"key": "hush"}
    }


def test_an_item_of_a_list_is_followed_and_a_list_of_other_length_is_taken() -> None:
    stored = {"items": [{"a": 1, "default": 0}]}
    inputs = {"items": [{"a": 1}]}

    assert follow_drift(inputs, stored, {"items": [{"a": 2, "default": 0}]}) == {"items": [{"a": 2}]}
    assert follow_drift(inputs, stored, {"items": []}) == {"items": []}
