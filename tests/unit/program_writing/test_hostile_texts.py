"""Objects with anything in any place: texts come out as literals, and nothing of them is code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.program_writing.program import write_program
from dra_infra.program_writing.python_text import write
from tests.support.migration.program_cases import made_by, names_read, rows, sorted_objects
from tests.unit.migration.test_old_dra_hostile import JSON, places, put

ROWS = [each for each in rows().values() if each]
KNOWN = {"dra", "k8s", "pulumi", "json", "float", "version"}
ATTACKS = (
    '"); import os; os.system("x") #', "'''", '"""', '\\"', "{x}", "\n__import__('os')\n", "\u202e", "\u2028", "x\\", "class",
    "dra", "k8s", "None", "a" * 300, "ml.metadata", "0", "", "-", "é", "\0", "\r", "\ud800",
)  # fmt: skip
TEXTS = st.text(max_size=20) | st.sampled_from(ATTACKS)


@st.composite
def damaged(draw: st.DrawFn) -> list[Any]:
    """The objects of a row, or of two, with anything in one place or two."""
    found: Any = [
        each for row in draw(st.lists(st.sampled_from(ROWS), min_size=1, max_size=2)) for each in row
    ]
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.sampled_from([each for each in places(found) if len(each) > 1]))
        found = put(found, at, draw(JSON | TEXTS))
    return [{**each, "apiVersion": str(each["apiVersion"]), "kind": str(each["kind"])} for each in found]


@given(damaged())
@settings(max_examples=300)
def test_anything_in_any_place_is_data_in_the_program(found: list[Any]):
    text = write_program(found).text
    assert names_read(text) <= KNOWN


@given(st.recursive(TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
       lambda inner: st.lists(inner, max_size=40) | st.dictionaries(TEXTS, inner, max_size=4)))  # fmt: skip
def test_data_comes_back_as_it_was_whatever_is_in_it(value: Any):
    assert eval(write(value), {"__builtins__": {"float": float}}) == value  # noqa: S307


@given(
    st.fixed_dictionaries({"labels": st.dictionaries(TEXTS, TEXTS, max_size=2), "name": TEXTS}),
    st.dictionaries(st.text(max_size=8), st.text(max_size=60), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_hostile_names_and_texts_reach_the_object_as_they_are(metadata: Any, data: Mapping[str, str]):
    found = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "name": f"a{metadata['name']}"},
        "data": data,
    }
    if any("\ud800" <= letter <= "\udfff" for letter in str(found)) or "\\ud800" in repr(found):
        # Half of a surrogate pair is no text in a file; reading refuses it.
        return
    assert made_by(write_program([found]).text) == sorted_objects([found])
