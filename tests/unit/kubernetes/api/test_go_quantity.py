from __future__ import annotations

import pytest

from dra_infra.kubernetes.api.quantity import Amount


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
