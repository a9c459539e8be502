"""Property values survive the wire; secrets stay marked and out of messages."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tools.kubernetes_provider.values import (
    SIGNATURE_KEY,
    UNKNOWN,
    UNKNOWN_MARKERS,
    Secret,
    decode,
    encode,
    has_secret,
    has_unknown,
    mark_secrets,
    reveal,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**53), max_value=2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text().filter(lambda text: text not in UNKNOWN_MARKERS)
    | st.just(UNKNOWN)
)
keys = st.text().filter(lambda key: key != SIGNATURE_KEY)


def nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3) | st.builds(Secret, inner)


properties = st.dictionaries(keys, st.recursive(scalars, nest, max_leaves=12), max_size=4)


@given(properties)
def test_properties_survive_the_wire(given_properties: dict[str, Any]) -> None:
    assert decode(encode(given_properties)) == given_properties


@given(properties)
def test_what_is_revealed_has_no_secret_and_the_same_unknowns(given_properties: dict[str, Any]) -> None:
    revealed = reveal(given_properties)

    assert not has_secret(revealed)
    assert has_unknown(revealed) == has_unknown(given_properties)


@given(properties)
def test_marking_outputs_equal_to_inputs_reveals_the_same(given_properties: dict[str, Any]) -> None:
    plain = reveal(given_properties)

    marked = mark_secrets(plain, given_properties)

    assert reveal(marked) == plain
    assert has_secret(marked) == has_secret(given_properties)


def test_whole_numbers_arrive_as_integers() -> None:
    assert repr(decode(encode({"count": 2.0}))) == "{'count': 2}"


def test_only_the_secret_field_of_an_object_becomes_secret() -> None:
    live = {"data": {"open": "1", "hidden": "2"}, "metadata": {"uid": "3"}}

    marked = mark_secrets(live, {"data": {"open": "1", "hidden": Secret("2")}})

    assert marked == {"data": {"open": "1", "hidden": Secret("2")}, "metadata": {"uid": "3"}}


def test_a_list_with_one_secret_item_is_secret_as_a_whole() -> None:
    assert mark_secrets({"args": ["a", "b"]}, {"args": ["a", Secret("b")]}) == {"args": Secret(["a", "b"])}


def test_data_of_a_secret_object_is_secret_whatever_the_program_says() -> None:
    live = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"key": "aHVzaA=="}}

    assert mark_secrets(live, {})["data"] == Secret({"key": "aHVzaA=="})
    assert mark_secrets(live, {})["type"] == "Opaque"
