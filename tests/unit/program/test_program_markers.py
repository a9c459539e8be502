"""Markers cross the borders of processes and jobs: beside the texts, so that no text is read as one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.errors import ProgramError
from dra_infra.kubernetes.api import UNKNOWN, Placeholder
from dra_infra.markers import SECRET, Secret
from dra_infra.program.program_json import program_from_json, program_to_json, write_json
from dra_infra.program_objects import Program, ProgramObject, ProgramRelease

URN = "urn:pulumi:dev::app::kubernetes:core/v1:ConfigMap::c"
LIKE_MARKERS = ["[unknown]", "[secret]", "x[secret]y", "[secret] (changed)"]
WITHIN = [UNKNOWN, SECRET, Secret("x[secret]y"), Placeholder("[unknown]-0")]
TEXTS = st.sampled_from(LIKE_MARKERS) | st.text(max_size=6)
KEYS = st.sampled_from([*LIKE_MARKERS, "0", "manifest", "markers"]) | st.text(max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS | st.sampled_from(WITHIN),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def a_program(manifest: Any, values: Any, field: Any) -> Program:
    release = ProgramRelease(urn=URN, name="r", namespace=field, chart="c", values=values)
    return Program(
        project="p", stack="s", objects=(ProgramObject(urn=URN, manifest=manifest),), releases=(release,)
    )


def typed(value: Any) -> Any:
    """*value* with the type of each text beside it: `==` of containers would do, and would not show where they differ."""
    if isinstance(value, str):
        return (type(value).__name__, value[:])
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return [*map(typed, value)] if isinstance(value, list) else value


@given(
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.dictionaries(KEYS, VALUES, max_size=4),
    TEXTS | st.sampled_from(WITHIN),
)
def test_a_program_comes_back_with_its_markers_and_no_others(manifest: Any, values: Any, field: Any):
    program = a_program(manifest, values, field)
    found = program_from_json(write_json(program_to_json(program)))
    assert typed(found.objects[0].manifest) == typed(manifest)
    assert typed(found.releases[0].values) == typed(values)
    assert typed(found.releases[0].namespace) == typed(field)
    assert found == program


def test_a_key_that_is_not_known_is_not_written():
    with pytest.raises(ValueError, match="a key of it is secret or not known"):
        program_to_json(a_program({SECRET: 1}, {}, ""))


MANIFEST = {"kind": "ConfigMap", "data": {"a": "[secret]", "b": 7, "c": ["x", "[unknown]"]}}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ([], "secret"),
        (["urn"], "secret"),
        (["component"], "secret"),
        (["place", "file"], "secret"),
        (["target"], "secret"),
        (["manifest"], "secret"),
        (["manifest", "data", "b"], "secret"),
        (["manifest", "data", "d"], "secret"),
        (["manifest", "data", "c"], "unknown"),
        (["manifest", "data", "c", "1"], "unknown"),
        (["manifest", "data", "c", 2], "unknown"),
        (["manifest", "data", "c", -1], "unknown"),
        (["manifest", "data", "c", 0], "unknown"),
        (["manifest", "data", "a", 0], "secret"),
        (["manifest", "data", "a"], "unknown"),
        (["manifest", "data", "a"], "plain"),
        (["manifest", "data", "a", "x" * 10_000], "secret"),
        (["manifest"] * 100_000, "secret"),
        ([True, "data", "a"], "secret"),
        ("manifest", "secret"),
    ],
)
def test_a_path_of_a_stranger_leads_to_a_marker_or_nowhere(path: Any, kind: str):
    data = program_to_json(a_program(MANIFEST, {}, ""))
    data["objects"][0]["markers"] = [{"path": path, "kind": kind}]
    with pytest.raises(ProgramError) as error:
        program_from_json(json.dumps(data).encode())
    assert [each.code for each in error.value.problems] == ["compiled-unreadable"]


def test_a_path_that_is_written_twice_counts_once():
    entry = {"path": ["manifest", "data", "a"], "kind": "secret"}
    data = program_to_json(a_program(MANIFEST, {}, ""))
    data["objects"][0]["markers"] = [entry, entry]
    (found,) = program_from_json(json.dumps(data).encode()).objects
    assert found.manifest["data"]["a"] == SECRET


def test_markers_are_written_in_one_order():
    manifest = {"data": {"b": SECRET, "a": UNKNOWN}}
    swapped = {"data": dict(reversed(manifest["data"].items()))}
    first, second = (
        program_to_json(a_program(each, {}, ""))["objects"][0]["markers"] for each in (manifest, swapped)
    )
    assert (
        first
        == second
        == [
            {"path": ["manifest", "data", "a"], "kind": "unknown"},
            {"path": ["manifest", "data", "b"], "kind": "secret"},
        ]
    )


def test_fields_of_a_program_stay_as_they_are_read():
    program = replace(a_program(MANIFEST, {}, ""), kubernetes="1.36", elsewhere=("a",), resources=(URN,))
    assert program_from_json(write_json(program_to_json(program))) == program
