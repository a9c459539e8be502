"""Objects as lines: written, read back, and told apart from other YAML."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.documents.json_texts import are_lines, read_lines, write_lines
from dra_infra.documents.yaml import read_manifests
from dra_infra.documents.yaml_events import RefusedYamlError

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcx-", max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text("abcdef", min_size=1, max_size=6), values, min_size=1, max_size=4)


@given(st.lists(objects, min_size=1, max_size=4))
def test_what_is_written_is_read_back_by_us_and_by_any_yaml_reader(manifests):
    text = write_lines(manifests, header="# one\n# two\n")
    assert are_lines(text)
    assert [value for _, value in read_lines(text)] == manifests
    assert list(yaml.safe_load_all(text)) == manifests


def test_lists_in_lines_are_opened():
    text = write_lines([{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Node"}, {"kind": "Pod"}]}])
    assert [each["kind"] for each in read_manifests(text)] == ["Node", "Pod"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kind: Pod\n",
        "# only a comment\n",
        '{"kind": "Pod"\n}\n',
        '{"kind": "Pod"}\nkind: Node\n',
        "a: {b: c}\n",
    ],
)
def test_other_texts_are_not_taken_for_lines(text):
    assert not are_lines(text)


@pytest.mark.parametrize(
    ("second", "code"),
    [
        ('{"kind": "Pod", "kind": "Node"}', "yaml-duplicate-key"),
        ('{"kind": ', "yaml-syntax"),
        ("kind: Pod", "yaml-syntax"),
        ('{"a": 1} {"b": 2}', "yaml-syntax"),
        ('{"a": ' + "[" * 2000 + "]" * 2000 + "}", "yaml-too-large"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_with_its_number(second, code):
    with pytest.raises(RefusedYamlError) as error:
        list(read_lines(f'---\n{{"kind": "Pod"}}\n---\n{second}\n'))
    assert (error.value.code, error.value.line) == (code, 4)
