from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import Quantity
from dra_infra.kubernetes.api.quantity import FORMAT_WRONG, NUMERIC_WRONG, SUFFIX_WRONG

CANONICAL = {
    # Values are those of resource.ParseQuantity(text).String() in k8s.io/apimachinery v0.37.1.
    "0": "0",
    "00": "0",
    "0Ki": "0",
    "Gi": "0",
    "+": "0",
    "1024Mi": "1Gi",
    "1.5Gi": "1536Mi",
    "1536Mi": "1536Mi",
    "81559Mi": "81559Mi",
    "512Ki": "512Ki",
    "0.5Ki": "512",
    "1.0001Ki": "1024102400u",
    "100m": "100m",
    "0.1": "100m",
    "1000m": "1",
    "1500M": "1500M",
    "1.5G": "1500M",
    "1.500": "1.500",
    "01": "01",
    "+1Gi": "+1Gi",
    "0100Mi": "0100Mi",
    "-1024": "-1024",
    "-1.5Ki": "-1536",
    "1e3": "1e3",
    "1000e3": "1e6",
    "12E-1": "1200e-3",
    "1e30": "1e30",
    "0.1n": "1n",
    "-0.1n": "-1n",
    "8Ei": "9223372036854775807",
    "16Ei": "9223372036854775807",
    "9223372036854775808": "9223372036854775808",
    "1000E": "1",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_a_quantity_prints_as_the_api_server_prints_it(text: str, canonical: str):
    assert Quantity.parse(text).canonical() == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", FORMAT_WRONG),
        (" 1", FORMAT_WRONG),
        ("1 ", FORMAT_WRONG),
        ("1\n", FORMAT_WRONG),
        ("1.2.3", FORMAT_WRONG),
        ("40GB", FORMAT_WRONG),
        ("four", FORMAT_WRONG),
        ("\u0661", FORMAT_WRONG),
        ("1K", SUFFIX_WRONG),
        ("1ki", SUFFIX_WRONG),
        ("1i", SUFFIX_WRONG),
        ("1e", SUFFIX_WRONG),
        (".e-10", NUMERIC_WRONG),
    ],
)
def test_a_malformed_quantity_is_refused_in_the_words_of_go(text: str, message: str):
    with pytest.raises(ValueError, match="quantit") as caught:
        Quantity.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["1" * 5000, "1e1001", "1e-2147483648", "1e99999999999999999999"])
def test_a_hostile_quantity_is_refused_before_it_takes_memory(text: str):
    with pytest.raises(ValueError, match=r"longer than 4096|beyond 1000"):
        Quantity.parse(text)


def test_equal_amounts_are_equal_in_any_spelling():
    assert Quantity.parse("1Gi") == Quantity.parse("1024Mi")
    assert hash(Quantity.parse("1Gi")) == hash(Quantity.parse("1024Mi"))
    assert Quantity.parse("1Gi").text == "1Gi"


numbers = st.builds(
    lambda sign, whole, fraction: f"{sign}{whole}{fraction}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**20),
    st.one_of(st.just(""), st.integers(0, 10**9 - 1).map(lambda digits: f".{digits:09}")),
)
SUFFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "e2": 100,
}


@given(numbers, st.sampled_from(sorted(SUFFIXES)))
def test_the_value_is_exact_up_to_the_cap_of_binary_amounts(number: str, suffix: str):
    exact = Fraction(number) * SUFFIXES[suffix]
    nanos = exact * 10**9
    away = -(-abs(nanos).numerator // abs(nanos).denominator) * (1 if exact >= 0 else -1)
    expected = Fraction(away, 10**9)
    if suffix.endswith("i"):
        expected = max(min(expected, Fraction(2**63 - 1)), Fraction(-(2**63) + 1))
    assert Quantity.parse(number + suffix).value == expected


@given(numbers, st.sampled_from(sorted(SUFFIXES)))
def test_the_canonical_text_has_the_same_value(number: str, suffix: str):
    quantity = Quantity.parse(number + suffix)
    if abs(quantity.value) < 10**20:  # Above, Go drops a suffix that it has no name for.
        assert Quantity.parse(quantity.canonical()) == quantity


@given(numbers, st.sampled_from(sorted(SUFFIXES)), numbers, st.sampled_from(sorted(SUFFIXES)))
def test_quantities_are_ordered_by_value(first: str, unit: str, second: str, other: str):
    left, right = Quantity.parse(first + unit), Quantity.parse(second + other)
    assert (left < right) == (left.value < right.value)
    assert (left == right) == (left.value == right.value)
