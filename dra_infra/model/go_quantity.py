"""Arithmetic of amounts as Go's resource.Quantity does it, with its rounding and its overflows.

Go holds an amount in an int64 and a power of ten where it can, and in an arbitrary decimal otherwise; a comparison
turns its left side into a decimal when either side is one. Which it is shows in how it rounds. Upstream: ScaledValue
in k8s.io/apimachinery/pkg/api/resource/quantity.go, scale_int.go and amount.go.
"""

from __future__ import annotations

from fractions import Fraction

from dra_infra.model.quantity import Quantity, print_amount

MAX_INT64 = 2**63 - 1
_UNIT, _MILLI = 0, -3


class Amount:
    """One amount while a server works with it."""

    def __init__(self, text: str) -> None:
        quantity = Quantity.parse(text)
        self.value: Fraction = quantity.value
        self.text = quantity.canonical()
        self.notation = quantity.notation
        self.is_decimal = not quantity.notation.fast

    def __str__(self) -> str:
        """As the server prints it."""
        return self.text

    def compare(self, other: Amount) -> int:
        """Below zero, zero or above it (Cmp)."""
        self.is_decimal = self.is_decimal or other.is_decimal
        return (self.value > other.value) - (self.value < other.value)

    @property
    def whole(self) -> int:
        """Go's Value(): rounded up to a whole number, in 64 bits."""
        return self._scaled(_UNIT)

    @property
    def milli(self) -> int:
        """Go's MilliValue(): the same in thousandths."""
        return self._scaled(_MILLI)

    @property
    def places(self) -> int:
        """Digits behind the point of Go's decimal."""
        return max(0, -self.notation.scale)

    @property
    def is_fractional(self) -> bool:
        """Whether it is no whole number."""
        return self.value.denominator != 1

    def plus(self, other: Amount) -> str:
        """The sum of both as the server prints it: in the format of this one, unless this one is zero."""
        notation = other.notation if self.value == 0 else self.notation
        return print_amount(self.value + other.value, base=notation.base, scientific=notation.scientific)

    def _scaled(self, scale: int) -> int:
        exact = self.value / Fraction(10) ** scale
        nearer = abs(exact.numerator) // exact.denominator
        is_exact = exact.denominator == 1
        if not self.is_decimal:
            # Rounds away from zero; what does not fit is nothing.
            found = nearer + (not is_exact)
            return 0 if found > MAX_INT64 else (found if exact >= 0 else -found)
        if is_exact:
            return wrapped(int(exact))
        # Cuts towards zero and then goes up, also below zero.
        return wrapped((nearer if exact >= 0 else -nearer) + 1)


def wrapped(number: int) -> int:
    """*number* in 64 bits with a sign."""
    return (number + 2**63) % 2**64 - 2**63
