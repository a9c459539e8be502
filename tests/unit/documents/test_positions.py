"""Fields stand where their key does, in YAML and in JSON alike."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dra_infra.documents.yaml_stream import find_json_positions, find_positions

# Keys of more than 1,024 characters, and some control characters, are JSON and no YAML.
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 1, 2]), st.integers(0, 3))
def test_json_has_the_places_that_it_has_as_yaml(value, indent, first_line):
    text = json.dumps(value, indent=indent)
    assert find_json_positions(text, first_line=first_line) == find_positions(text, first_line=first_line)


def test_a_field_stands_where_its_key_does():
    text = '{"a": [\n  {"b": 1}]}'
    expected = {"": (1, 1), "a": (1, 2), "a[0]": (2, 3), "a[0].b": (2, 4)}
    assert find_json_positions(text) == expected
    assert find_positions("a:\n  - b: 1\n") == {"": (1, 1), "a": (1, 1), "a[0]": (2, 5), "a[0].b": (2, 5)}


def test_a_value_that_begins_in_its_line_has_the_columns_of_the_line():
    expected = {"": (4, 8), "a": (4, 9), "b": (5, 4)}
    assert find_json_positions('{"a":\n1, "b": 2}', first_line=3, first_column=7) == expected


def test_json_with_tabs_has_places():
    assert find_json_positions('{\n\t"a":\t1}')["a"] == (2, 2)


def test_a_key_with_escapes_is_the_name_that_it_stands_for():
    assert find_json_positions('{"\\u0061": {"b": 1}}')["a.b"] == (1, 13)
