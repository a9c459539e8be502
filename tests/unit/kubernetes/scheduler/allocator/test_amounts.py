from __future__ import annotations

import pytest

from dra_infra.kubernetes.scheduler.allocator.amounts import BINARY, NANO, read_amount


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
    amount = read_amount(text)
    assert (amount.value(), amount.milli()) == (value, milli)


def test_what_is_no_number_of_thousandths_says_so():
    assert read_amount("1u").exact_milli() is None
    assert read_amount("250m").exact_milli() == 250


@pytest.mark.parametrize(
    ("form", "text"), [(BINARY, "2000"), (read_amount("1"), "2k"), (read_amount("1e0"), "2e3")]
)
def test_a_computed_amount_is_written_in_the_format_it_was_computed_in(form, text: str):
    assert form.written_as(2000 * NANO).text == text


def test_go_compares_spellings_of_structs_and_never_two_decimals():
    assert read_amount("2").is_same(read_amount("2"))
    assert not read_amount("2k").is_same(read_amount("2000"))
    assert not read_amount("0.5Gi").is_same(read_amount("0.5Gi"))
