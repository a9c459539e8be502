from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import names
from dra_infra.specs.object_names import check_component_name, hash_spec, name_by_content

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def test_the_hash_of_a_spec_is_pinned():
    # Another value here renames, and so rolls over, every claim of every user.
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "h100", "count": 4}}]}}
    assert name_by_content("trainer", spec) == "trainer-19f627d6"


@given(st.dictionaries(st.text(), JSON))
def test_the_order_of_keys_does_not_change_the_hash(spec: dict[str, object]):
    assert hash_spec(spec) == hash_spec(dict(reversed(spec.items())))


@given(st.integers(1, 31), st.integers(1, 31))
def test_another_count_is_another_name(one: int, other: int):
    assert (name_by_content("a", {"count": one}) == name_by_content("a", {"count": other})) == (one == other)


@pytest.mark.parametrize("name", ["Trainer", "a_b", "", "-a", "a.b", "x" * 64, "ä"])
def test_names_that_pods_cannot_carry_are_refused_with_one_that_they_can(name: str):
    (problem,) = check_component_name(name)
    assert problem.code == "invalid-name"
    suggested = problem.hint.rpartition("such as ")[2].strip("'")
    assert names.is_dns_label(suggested)


def test_a_dns_label_is_taken():
    assert not list(check_component_name("trainer-2"))
