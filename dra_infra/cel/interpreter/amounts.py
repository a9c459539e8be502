"""Quantities as Go computes with them: whether an amount is an integer depends on how it is written.

Upstream: `k8s.io/apimachinery/pkg/api/resource/{quantity,amount}.go`, where an amount is an int64 with a power of ten as
long as it fits, and a decimal of any size else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dra_infra.model.quantity import Quantity

_SHAPE = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([^0-9.]?.*)", re.ASCII | re.DOTALL)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO: Final = -9
_INT64: Final = range(-(2**63), 2**63)
_CAP: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Amount:
    """`digits` times ten to the power of `scale`.

    Args:
        digits: The significant digits with their sign.
        scale: Power of ten.
        small: Whether Go keeps it in an int64.
    """

    digits: int
    scale: int
    small: bool

    @property
    def value(self) -> Fraction:
        """The exact value."""
        return Fraction(self.digits) * Fraction(10) ** self.scale

    def as_integer(self) -> int | None:
        """The amount as an int64, None where Go does not see that it is one (AsInt64)."""
        if not self.small or self.scale < 0:
            return None
        result = self.digits * 10**self.scale
        return result if result in _INT64 else None

    def as_float(self) -> float:
        """The nearest float but for rounding twice (AsApproximateFloat64)."""
        base = _nearest(self.digits)
        if self.scale == 0:
            return base
        power = (
            float(f"1e{self.scale}") if -400 < self.scale < 309 else (0.0 if self.scale < 0 else float("inf"))
        )
        return base * power

    def add(self, other: Amount) -> Amount:
        """The sum."""
        total = self._add_small(other.digits, other) if self.small and other.small else None
        return self._add_any(other, 1) if total is None else total

    def subtract(self, other: Amount) -> Amount:
        """The difference; the sign of the smallest int64 stays as it is, for it has no counterpart."""
        opposite = -(2**63) if other.digits == -(2**63) else -other.digits
        total = self._add_small(opposite, other) if self.small and other.small else None
        return self._add_any(other, -1) if total is None else total

    def _add_any(self, other: Amount, sign: int) -> Amount:
        scale = min(self.scale, other.scale)
        digits = self.digits * 10 ** (self.scale - scale) + sign * other.digits * 10 ** (other.scale - scale)
        return Amount(digits, scale, small=False)

    def _add_small(self, digits: int, other: Amount) -> Amount | None:
        """The sum with digits at the other's scale; None when it fits no int64."""
        if digits == 0:
            return self
        if self.digits == 0:
            return Amount(digits, other.scale, small=True)
        scale = min(self.scale, other.scale)
        parts = (self.digits * 10 ** (self.scale - scale), digits * 10 ** (other.scale - scale))
        total = sum(parts)
        if any(part not in _INT64 for part in parts) or total not in _INT64:
            return None
        return Amount(total, scale, small=True)


ZERO: Final = Amount(0, 0, small=True)


def read_amount(text: str) -> Amount:
    """Read a quantity.

    Raises:
        ValueError: With Go's text, when *text* is not a quantity.
    """
    quantity = Quantity.parse(text)
    match = _SHAPE.fullmatch(text)
    if text == "0" or match is None:
        return ZERO if text == "0" else _of_any_size(quantity)
    sign, whole, fraction, suffix = match[1], match[2] or "0", match[3] or "", match[4]
    exponent = _BINARY.get(suffix)
    if exponent is not None:
        if fraction or 14 - len(whole) - exponent * 3 // 10 < 0:
            return _of_any_size(quantity)
        digits, scale = int(whole) << exponent, 0
    else:
        scale = (_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])) - len(fraction)
        if len(whole) + len(fraction) > 18 or scale < _NANO:
            return _of_any_size(quantity)
        digits = int(whole + fraction)
    if digits not in _INT64:
        return _of_any_size(quantity)
    return Amount(-digits if sign == "-" else digits, scale, small=True)


def _of_any_size(quantity: Quantity) -> Amount:
    if abs(quantity.value) == _CAP and quantity.text.endswith("i"):
        return Amount(int(quantity.value), 0, small=False)
    return Amount(quantity.nanos, _NANO, small=False)


def of_integer(number: int) -> Amount:
    """An int as an amount."""
    return Amount(number, 0, small=True)


def _nearest(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
