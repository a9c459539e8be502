"""JSON that is changed in place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_infra.documents.json_patch import patch_json
from dra_infra.documents.yaml_patch import NotPatchedError

SCALARS = st.none() | st.booleans() | st.integers(-9, 99) | st.text('ab\\"{}[],:# é\n', max_size=4)
KEYS = st.text('ab"\\,:', min_size=1, max_size=2)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)


@st.composite
def layouts(draw: st.DrawFn, value: Any) -> str:
    """JSON of a value with blanks and line breaks anywhere between its tokens."""
    blank = draw(st.sampled_from(["", " ", "\n", "\n  ", " \t"]))
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}{blank}:{blank}{draw(layouts(each))}" for key, each in value.items()]
        return f"{{{blank}{f',{blank}'.join(items)}{blank}}}"
    if isinstance(value, list):
        return f"[{blank}{f',{blank}'.join(draw(layouts(each)) for each in value)}{blank}]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@given(st.data(), OBJECTS, OBJECTS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_comes_out_is_what_was_asked_for(data: st.DataObject, old: Any, new: Any):
    text = f"\n{data.draw(layouts(old))}\n"
    assert json.loads(patch_json(text, old, new)) == new
    assert patch_json(text, old, old) == text


TEXT = """{
  "a": 1, "b": {"c": [1,2,  3], "d": null},
  "e": {"f": "x",
        "g": "y"}
}
"""
DATA = json.loads(TEXT)


@pytest.mark.parametrize(
    ("new", "line"),
    [
        ({**DATA, "a": 2}, '  "a": 2, "b": {"c": [1,2,  3], "d": null},'),
        ({**DATA, "b": {"c": [1, 2, 3]}}, '  "a": 1, "b": {"c": [1,2,  3]},'),
        ({**DATA, "b": {"d": None}}, '  "a": 1, "b": {"d": null},'),
        ({**DATA, "b": {"c": [1, 2, 3, 4], "d": None}}, '  "a": 1, "b": {"c": [1,2,  3, 4], "d": null},'),
        ({**DATA, "b": {"c": [1, 5, 3], "d": None}}, '  "a": 1, "b": {"c": [1,5,  3], "d": null},'),
        ({**DATA, "b": {"c": [1, 2, 3], "d": 0, "z": 1}}, '  "a": 1, "b": {"c": [1,2,  3], "d": 0, "z": 1},'),
    ],
)
def test_only_the_line_of_a_change_is_another(new: Any, line: str):
    before, after = TEXT.splitlines(), patch_json(TEXT, DATA, new).splitlines()
    assert [each for each in after if each not in before] == [line]
    assert len(after) == len(before)


def test_a_new_key_stands_on_a_line_of_its_own_where_the_last_one_does():
    new = {**DATA, "e": {**DATA["e"], "h": "z"}, "k": 1}
    assert '        "g": "y",\n        "h": "z"},\n  "k": 1\n}' in patch_json(TEXT, DATA, new)


@pytest.mark.parametrize("text", ['{"a": ', ""])
def test_what_cannot_be_changed_in_place_is_refused(text: str):
    with pytest.raises(NotPatchedError):
        patch_json(text, {"a": 2}, {"b": 1})
