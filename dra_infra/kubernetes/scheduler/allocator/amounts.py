"""Amounts in the arithmetic of Go's Quantity, exact where Go is exact.

Source: k8s.io/apimachinery/pkg/api/resource. An amount is a whole number of nanos; `Value` and `MilliValue` round
away from zero, and give 0 where an amount that Go keeps in an int64 leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dra_infra.kubernetes.api.quantity import Quantity, print_amount

NANO: Final = 10**9
_MILLI: Final = 10**6
MAX_INT64: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Amount:
    """One amount, and what Go's struct equality sees of it.

    Args:
        nanos: The value in units of 10^-9.
        base: 2 with a binary suffix, else 10.
        scientific: Whether it is written with an exponent of ten.
        scale: Power of ten of Go's whole number.
        fast: Whether Go keeps it in an int64.
        text: As the server prints it.
    """

    nanos: int
    base: int
    scientific: bool
    scale: int
    fast: bool
    text: str

    def value(self) -> int:
        """`Quantity.Value`: the next whole number, away from zero."""
        return self._scaled(NANO)

    def milli(self) -> int:
        """`Quantity.MilliValue`: the next whole number of thousandths, away from zero."""
        return self._scaled(_MILLI)

    def exact_milli(self) -> int | None:
        """`safeMilliValue`: the number of thousandths, None when there is none in 64 bits."""
        milli = self.milli()
        return milli if milli * _MILLI == self.nanos else None

    def is_same(self, other: Amount) -> bool:
        """Go's `==` of two structs: an arbitrary decimal is a pointer, which equals no copy of itself."""
        return (
            self.fast
            and other.fast
            and (self.nanos, self.base, self.scientific, self.scale)
            == (other.nanos, other.base, other.scientific, other.scale)
        )

    def _scaled(self, unit: int) -> int:
        rounded = -(-abs(self.nanos) // unit)
        if rounded > MAX_INT64:
            return 0
        return rounded if self.nanos >= 0 else -rounded

    def written_as(self, nanos: int) -> Amount:
        """Another value in this format, as NewQuantity and NewMilliQuantity make one."""
        text = print_amount(Fraction(nanos, NANO), base=self.base, scientific=self.scientific)
        scale = 0 if nanos % NANO == 0 else -3
        return Amount(nanos, self.base, self.scientific, scale, fast=True, text=text)


@lru_cache(maxsize=8192)
def read_amount(text: str) -> Amount:
    """Read a quantity as it is in a manifest.

    Raises:
        ValueError: With Go's text, when *text* is no quantity.
    """
    quantity = Quantity.parse(text)
    notation = quantity.notation
    return Amount(
        nanos=quantity.nanos,
        base=notation.base,
        scientific=notation.scientific,
        scale=notation.scale,
        fast=notation.fast,
        text=quantity.canonical_text,
    )


BINARY: Final = read_amount("1Ki")
"""What is written in the format of this one has a binary suffix."""


def nanos(text: str) -> int:
    """The value of a quantity in units of 10^-9."""
    return read_amount(text).nanos
