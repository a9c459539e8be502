from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import NANO, Quantity
from dra_infra.kubernetes.api.quantity import BINARY, Amount
from dra_infra.kubernetes.cel.interpreter.numbers import read_amount


@pytest.mark.parametrize(
    ("text", "whole", "milli"),
    [
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1Ki", 1024, 1024000),
        ("1n", 1, 1),
        ("10E", 0, 0),
        ("1.5Ki", 1536, 1536000),
    ],
)
def test_amounts_round_away_from_zero_and_what_does_not_fit_is_nothing(text, whole, milli):
    assert (Amount(text).whole, Amount(text).milli) == (whole, milli)


def test_comparison_with_a_decimal_makes_a_negative_amount_round_up():
    amount = Amount("-1500m")
    assert amount.whole == -2
    amount.compare(Amount("1.5Ki"))
    assert amount.whole == 0


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [("1Gi", "1024Mi", "2Gi"), ("0", "1Gi", "1Gi"), ("1", "500m", "1500m"), ("1e3", "1", "1001")],
)
def test_sum_is_printed_in_the_format_of_the_first_unless_that_is_zero(one, other, told):
    assert Amount(one).plus(Amount(other)) == told


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1Ki", 1024, 1024000),
        ("1u", 1, 1),
        ("10E", 0, 0),
        ("0", 0, 0),
    ],
)
def test_amounts_are_rounded_away_from_zero_and_lost_beyond_64_bits(text: str, value: int, milli: int):
    amount = Quantity.parse(text)
    assert (amount.whole, amount.milli) == (value, milli)


@pytest.mark.parametrize(
    ("form", "text"), [(BINARY, "2000"), (Quantity.parse("1"), "2k"), (Quantity.parse("1e0"), "2e3")]
)
def test_a_computed_amount_is_written_in_the_format_it_was_computed_in(form, text: str):
    assert form.written_as(2000 * NANO).canonical() == text


def test_go_compares_spellings_of_structs_and_never_two_decimals():
    assert Quantity.parse("2").is_same(Quantity.parse("2"))
    assert not Quantity.parse("2k").is_same(Quantity.parse("2000"))
    assert not Quantity.parse("0.5Gi").is_same(Quantity.parse("0.5Gi"))


def test_what_is_no_number_of_thousandths_says_so():
    assert Quantity.parse("1u").exact_milli() is None
    assert Quantity.parse("250m").exact_milli() == 250


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", 2),
        ("1e3", 1000),
        ("2000m", 2),
        ("0.5", None),
        ("1E", 10**18),
        ("10E", None),
        ("1234567890123456789", None),
        ("9223372036854775808", None),
        ("1Ti", 2**40),
        ("1Pi", None),
    ],
)
def test_a_client_reads_whole_numbers_back_that_the_server_prints_short(text: str, number: int | None):
    stored = Quantity.parse(text)
    assert stored.stored_int64() == number
    # AsInt64 is CEL's asInteger, too, which the parity tests compare with the server's.
    assert read_amount(stored.canonical()).as_integer() == number


AMOUNTS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.integers(0, 10**20),
    st.sampled_from(["", "n", "m", "k", "Ki", "Gi", "E", "e3", "e-7"]),
)


@given(AMOUNTS, AMOUNTS)
def test_amounts_of_expressions_are_ordered_by_their_exact_values(one: str, other: str):
    left, right = read_amount(one), read_amount(other)
    assert left.compare(right) == (left.value > right.value) - (left.value < right.value)
