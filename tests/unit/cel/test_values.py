from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dra_infra.cel.values import encode_quantity, encode_semver
from dra_infra.model.quantity import Quantity
from dra_infra.model.semver import Semver

quantities = st.builds(
    lambda sign, digits, suffix: Quantity.parse(f"{sign}{digits}{suffix}"),
    st.sampled_from(["", "-"]),
    st.integers(0, 10**6) | st.integers(0, 10**30),
    st.sampled_from(["", "n", "u", "m", "k", "Ki", "Gi", "e20"]),
)
numbers = st.integers(0, 12) | st.integers(0, 2**64 - 1)
parts = numbers.map(str) | st.text("0az-A", min_size=1, max_size=3).filter(lambda text: not text.isdigit())
versions = st.builds(
    lambda core, before: Semver.parse(".".join(map(str, core)) + ("-" + ".".join(before) if before else "")),
    st.tuples(numbers, numbers, numbers),
    st.lists(parts, max_size=3),
)


@given(quantities, quantities)
def test_the_bytes_of_quantities_are_ordered_as_their_values(left: Quantity, right: Quantity):
    assert (encode_quantity(left) < encode_quantity(right)) == (left.value < right.value)
    assert (encode_quantity(left) == encode_quantity(right)) == (left.value == right.value)


@given(versions, versions)
def test_the_bytes_of_versions_are_ordered_as_their_precedence(left: Semver, right: Semver):
    assert (encode_semver(left) < encode_semver(right)) == (left < right)
    assert (encode_semver(left) == encode_semver(right)) == (left == right)


@given(quantities, versions)
def test_no_encoding_holds_nul(quantity: Quantity, version: Semver):
    # The engine cuts a byte string at its first NUL.
    assert b"\0" not in encode_quantity(quantity) + encode_semver(version)


@given(quantities, versions)
def test_no_quantity_is_taken_for_a_version(quantity: Quantity, version: Semver):
    assert encode_quantity(quantity)[:1] != encode_semver(version)[:1]
