"""Numbers as Go prints and reads them, and quantities as Go computes with them.

Whether an amount is an integer depends on how it is written. Upstream:
`k8s.io/apimachinery/pkg/api/resource/{quantity,amount}.go`, where an amount is an int64 with a power of ten as long
as it fits, and a decimal of any size else.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from dra_infra.kubernetes.api.quantity import MAX_INT64, NANO, Quantity, print_amount
from dra_infra.kubernetes.cel.constants import read_digits

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isfinite(value):
        return ""
    return "+Inf" if value > 0 else "-Inf"


def format_general(value: float) -> str:
    """`%g` of Go: the shortest text that reads back the same, with an exponent below 1e-4 and from 1e6 on."""
    special = _special(value)
    if special:
        return special
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    point = len(digits) + int(exponent)
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    if value == 0:
        return "-0" if sign else "0"
    if -4 <= point - 1 < 6:
        return format_fixed(value)
    mantissa = shown[0] + (f".{shown[1:]}" if len(shown) > 1 else "")
    power = point - 1
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02}"


def format_fixed(value: float) -> str:
    """`%f` of Go with as many digits as it takes, 'f' and -1 for strconv."""
    special = _special(value)
    if special:
        return special
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds_of(nanos: int) -> float:
    """A span in seconds, as Duration.Seconds of Go adds it up."""
    whole = abs(nanos) // 10**9
    rest = abs(nanos) % 10**9
    sign = -1 if nanos < 0 else 1
    return float(sign * whole) + float(sign * rest) / 1e9


def parse_duration(text: str) -> int | None:
    """Nanoseconds, as time.ParseDuration of Go reads them; None when it does not."""
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, place = 0, 0
    while place < len(rest):
        part = _PART.match(rest, place)
        if part is None or not (part[1] or part[2]):
            return None
        unit = _UNITS[part[3]]
        value = read_digits(part[1] or "0") * unit
        if value > 2**63:
            return None
        if part[2]:
            value += _fraction(part[2], unit)
        total += value
        if total > 2**63:
            return None
        place = part.end()
    if not rest:
        return None
    if negative:
        return -total
    return total if total < 2**63 else None


def _fraction(digits: str, unit: int) -> int:
    """Go keeps as many digits as an int64 holds and then counts in floating point."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > (2**63 - 1) // 10 or value * 10 + int(digit) > 2**63:
            break
        value = value * 10 + int(digit)
        scale *= 10
    return int(float(value) * (float(unit) / scale))


_INT64: Final = range(-(2**63), 2**63)
_CAP: Final = MAX_INT64 * NANO


@dataclass(frozen=True, slots=True)
class Amount:
    """`digits` times ten to the power of `scale`.

    Args:
        digits: The significant digits with their sign.
        scale: Power of ten.
        small: Whether Go keeps it in an int64.
        base: 2 where it is printed with a binary suffix, else 10.
        scientific: Whether it is printed with an exponent of ten.
        written: What Go keeps of how it was written; empty for sums.
    """

    digits: int
    scale: int
    small: bool
    base: int = 10
    scientific: bool = False
    written: str = ""

    @property
    def value(self) -> Fraction:
        """The exact value."""
        return Fraction(self.digits) * Fraction(10) ** self.scale

    def compare(self, other: Amount) -> int:
        """-1, 0 or 1, as the amount is less than another, equal or greater."""
        left, right = self.digits, other.digits
        if self.scale != other.scale:
            scale = min(self.scale, other.scale)
            left = left * 10 ** (self.scale - scale)
            right = right * 10 ** (other.scale - scale)
        return (left > right) - (left < right)

    def text(self) -> str:
        """The amount as Go prints it."""
        return self.written or print_amount(self.value, base=self.base, scientific=self.scientific)

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
        if -400 < self.scale < 309:
            return base * float(f"1e{self.scale}")
        return base * (0.0 if self.scale < 0 else float("inf"))

    def add(self, other: Amount) -> Amount:
        """Adds an amount (Add)."""
        total = self._add_small(other.digits, other) if self.small and other.small else None
        return self._printed_like(other, self._add_any(other, 1) if total is None else total)

    def subtract(self, other: Amount) -> Amount:
        """Subtracts an amount (Sub); the smallest int64 keeps its sign, for it has no counterpart."""
        opposite = -(2**63) if other.digits == -(2**63) else -other.digits
        total = self._add_small(opposite, other) if self.small and other.small else None
        return self._printed_like(other, self._add_any(other, -1) if total is None else total)

    def _printed_like(self, other: Amount, total: Amount) -> Amount:
        """A sum is printed like what it is added to, unless that is zero."""
        form = self if self.digits else other
        return replace(total, base=form.base, scientific=form.scientific, written="")

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


@lru_cache(maxsize=4096)
def read_amount(text: str) -> Amount:
    """Read a quantity; the amounts of texts that come again are kept.

    Raises:
        ValueError: With Go's text, when *text* is not a quantity.
    """
    quantity = Quantity.parse(text)
    notation = quantity.notation
    form: dict[str, Any] = {
        "base": notation.base,
        "scientific": notation.scientific,
        "written": quantity.canonical(),
    }
    if notation.fast:
        digits = int(quantity.value / Fraction(10) ** notation.scale)
        return Amount(digits, notation.scale, small=True, **form)
    if abs(quantity.nanos) == _CAP and text.endswith("i"):
        return Amount(int(quantity.value), 0, small=False, **form)
    return Amount(quantity.nanos, -9, small=False, **form)


def of_integer(number: int) -> Amount:
    """An int as an amount."""
    return Amount(number, 0, small=True)


def _nearest(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
