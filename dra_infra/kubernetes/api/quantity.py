"""Quantity: an amount such as `40Gi`, exact, with the API server's spelling.

The rules are those of `k8s.io/apimachinery/pkg/api/resource/quantity.go`, quirks included: an amount below one nano
is rounded away from zero, one with a binary suffix is capped at 2^63-1, and a text that Go takes for canonical is
printed as it was written.

Arithmetic is as Go's resource.Quantity does it, with its rounding and its overflows. Go holds an amount in an int64
and a power of ten where it can, and in an arbitrary decimal otherwise; a comparison turns its left side into a
decimal when either side is one. Which it is shows in how it rounds. Upstream: ScaledValue in
k8s.io/apimachinery/pkg/api/resource/quantity.go, scale_int.go and amount.go.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

FORMAT_WRONG: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMERIC_WRONG: Final = "unable to parse numeric part of quantity"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"

_SHAPE = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES: Final = {exponent // 10: suffix for suffix, exponent in _BINARY.items()}
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+", re.ASCII)

_SPACES: Final = (
    " \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
"""Characters that Go trims and JSON does not have to escape."""

NANO: Final = 10**9
"""Nanos, the smallest amounts that quantities have, in one whole unit."""
MILLI: Final = 10**6
"""Nanos of one unit, and of one thousandth."""

MAX_INT64: Final = 2**63 - 1
"""The largest whole number of Go's int64, at which amounts end."""
_CAP: Final = Fraction(MAX_INT64)
_FAST_DIGITS: Final = 18
"""Go keeps an amount of this many digits in an int64 and everything else in an arbitrary decimal."""
MAX_LENGTH: Final = 4096
MAX_EXPONENT: Final = 1000
"""Bounds of memory for hostile input; Go has none, and nothing real comes near."""


class Notation(NamedTuple):
    """How Go holds an amount.

    Args:
        base: 2 with a binary suffix, else 10.
        scientific: Whether it is written with an exponent of ten.
        scale: Power of ten of Go's whole number: -3 for thousandths.
        fast: Whether Go keeps it in an int64, and not in an arbitrary decimal.
    """

    base: int
    scientific: bool
    scale: int
    fast: bool


@dataclass(frozen=True, order=True, slots=True)
class Quantity:
    """An amount; two quantities are equal when their values are, whatever their spelling.

    Args:
        nanos: The value in units of 10^-9: Go knows nothing smaller.
        text: As it was written.
        canonical_text: As the API server prints it.
        notation: What Go keeps of the spelling.
    """

    nanos: int
    text: str = field(compare=False)
    canonical_text: str = field(compare=False, repr=False)
    notation: Notation = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity.

        Raises:
            ValueError: With Go's text, when *text* is not a quantity.
        """
        return _parse(text)

    @property
    def value(self) -> Fraction:
        """The exact value, a multiple of one nano."""
        return Fraction(self.nanos, NANO)

    @property
    def whole(self) -> int:
        """Go's Value(): the next whole number away from zero, 0 beyond 64 bits."""
        return self.rounded(NANO)

    @property
    def milli(self) -> int:
        """Go's MilliValue(): the next whole number of thousandths away from zero, 0 beyond 64 bits."""
        return self.rounded(MILLI)

    def exact_milli(self) -> int | None:
        """The number of thousandths, None when there is none in 64 bits (safeMilliValue)."""
        milli = self.milli
        return milli if milli * MILLI == self.nanos else None

    def stored_int64(self) -> int | None:
        """Go's AsInt64 of what a client reads back from the server: None for fractions and for an arbitrary decimal."""
        # The server prints it, and the client parses that: `1e3` comes back as `1k`, `0.1k` as `100`.
        stored = _parse(self.canonical_text)
        is_whole = stored.nanos % NANO == 0 and stored.notation.scale >= 0
        if not stored.notation.fast or not is_whole or abs(stored.nanos) > MAX_INT64 * NANO:
            return None
        return stored.nanos // NANO

    def rounded(self, unit: int, *, is_decimal: bool = False) -> int:
        """The value in units of *unit* nanos, as Go rounds it into an int64 (ScaledValue).

        Args:
            unit: `NANO` for whole numbers, `MILLI` for thousandths.
            is_decimal: Whether Go holds the amount in an arbitrary decimal by now, which it rounds otherwise.
        """
        size, rest = divmod(abs(self.nanos), unit)
        if is_decimal:
            # Cuts towards zero and then goes up, also below zero; what does not fit loses its upper bits.
            return wrapped((size if self.nanos >= 0 else -size) + (rest != 0))
        size += rest != 0
        if size > MAX_INT64:
            return 0
        return size if self.nanos >= 0 else -size

    def is_same(self, other: Quantity) -> bool:
        """Go's `==` of two structs: an arbitrary decimal is a pointer, which equals no copy of itself."""
        return self.notation.fast and self.nanos == other.nanos and self.notation == other.notation

    def written_as(self, nanos: int) -> Quantity:
        """Another value in this format, as NewQuantity and NewMilliQuantity make one."""
        base, scientific, *_ = self.notation
        text = print_amount(Fraction(nanos, NANO), base=base, scientific=scientific)
        scale = 0 if nanos % NANO == 0 else -3
        return Quantity(nanos, text, text, Notation(base, scientific, scale, fast=True))

    def canonical(self) -> str:
        """As the API server prints it: `1024Mi` is `1Gi`, `1.5Gi` is `1536Mi`."""
        return self.canonical_text

    def __str__(self) -> str:
        return self.text


def nanos(text: str) -> int:
    """The value of a quantity in units of 10^-9."""
    return _parse(text).nanos


def quantity_text(value: object) -> str | None:
    """The text that Go's decoder parses for a JSON string or number, spaces around it removed; None for the rest.

    Upstream: Quantity.UnmarshalJSON, which looks at the bytes of the JSON.
    """
    if isinstance(value, str):
        return value.strip(_SPACES)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return json.dumps(value)
    return None


@lru_cache(maxsize=8192)
def _parse(text: str) -> Quantity:
    if len(text) > MAX_LENGTH:
        raise ValueError(f"quantity of {len(text)} characters is longer than {MAX_LENGTH}")
    match = _SHAPE.fullmatch(text)
    if not text or match is None:
        raise ValueError(FORMAT_WRONG)
    sign = match[1]
    zeros = match[2]
    whole = match[3]
    fraction = match[4] or ""
    suffix = match[5]
    base, exponent, scientific = _interpret(suffix)
    # Go counts a missing whole part as one digit: `.5Gi`, and even `Gi` alone, which is zero.
    digits = (whole or "0") + fraction
    if base == 2:
        fast = not fraction and 14 - len(whole or "0") - exponent * 3 // 10 >= 0
        scale = -len(fraction)
        value = Fraction(int(digits) << exponent, 10 ** len(fraction))
    else:
        scale = exponent - len(fraction)
        fast = _FAST_DIGITS - len(digits) >= 0 and scale >= -9
        value = _scaled(int(digits), scale)
    if not fast and not zeros + whole + fraction:
        raise ValueError(NUMERIC_WRONG)
    value = _rounded(value)
    is_capped = base == 2 and value > _CAP
    if is_capped:
        value = _CAP
    if fast and _is_kept(base, exponent - len(fraction), digits):
        canonical = text
    else:
        canonical = print_amount(-value if sign == "-" else value, base=base, scientific=scientific)
    return Quantity(
        nanos=int(-value * NANO if sign == "-" else value * NANO),
        text=text,
        canonical_text=canonical,
        notation=Notation(base, scientific, _go_scale(scale, value, fast=fast, is_capped=is_capped), fast),
    )


def _go_scale(scale: int, value: Fraction, *, fast: bool, is_capped: bool) -> int:
    if fast:
        return scale
    if is_capped:
        return 0
    # Go rounds every other decimal to nanos, and then it has nine places.
    return -9 if value else scale


def _interpret(suffix: str) -> tuple[int, int, bool]:
    """Base, exponent, and whether the amount is written with an exponent of ten."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], False
    if suffix in _BINARY:
        return 2, _BINARY[suffix], False
    if _EXPONENT.fullmatch(suffix):
        exponent = int(suffix[1:])
        if abs(exponent) > MAX_EXPONENT:
            raise ValueError(f"exponent {exponent} is beyond {MAX_EXPONENT}")
        return 10, exponent, True
    raise ValueError(SUFFIX_WRONG)


def _scaled(digits: int, scale: int) -> Fraction:
    return Fraction(digits * 10**scale) if scale >= 0 else Fraction(digits, 10**-scale)


def _rounded(value: Fraction) -> Fraction:
    """The next multiple of one nano, away from zero; *value* is not negative."""
    nanos = value * NANO
    return value if nanos.denominator == 1 else Fraction(-(-nanos.numerator // nanos.denominator), NANO)


def _is_kept(base: int, scale: int, digits: str) -> bool:
    """Go keeps the text as written, and does not print the value anew."""
    if base == 2:
        return int(digits) & 7 != 0
    return scale % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")


def print_amount(value: Fraction, *, base: int, scientific: bool) -> str:
    """*value* as Go writes it in a format: binary suffixes for base 2, an exponent when *scientific*."""
    if not value:
        return "0"
    if base == 2 and abs(value) >= 1024 and value.denominator == 1:
        number = value.numerator
        power = 0
        while number % 1024 == 0:
            number = number // 1024
            power = power + 1
        return f"{number}{_BINARY_SUFFIXES.get(power, '')}"
    number = int(value * NANO)
    exponent = -9
    while number % 10 == 0:
        number = number // 10
        exponent = exponent + 1
    number = number * 10 ** (exponent % 3)
    exponent = exponent - exponent % 3
    if scientific:
        return f"{number}e{exponent}" if exponent else str(number)
    # Go has no suffix above E and then prints none at all; the server does store that.
    return f"{number}{_DECIMAL_SUFFIXES.get(exponent, '')}"


BINARY: Final = _parse("1Ki")
"""Amounts that are written in the format of this one have binary suffixes."""


class Amount:
    """One amount while a server works with it."""

    def __init__(self, text: str) -> None:
        quantity = _parse(text)
        self.quantity = quantity
        self.value: Fraction = quantity.value
        self.is_decimal = not quantity.notation.fast

    def __str__(self) -> str:
        """As the server prints it."""
        return self.quantity.canonical_text

    def compare(self, other: Amount) -> int:
        """Below zero, zero or above it (Cmp)."""
        self.is_decimal = self.is_decimal or other.is_decimal
        return (self.value > other.value) - (self.value < other.value)

    @property
    def whole(self) -> int:
        """Go's Value(): rounded up to a whole number, in 64 bits."""
        return self.quantity.rounded(NANO, is_decimal=self.is_decimal)

    @property
    def milli(self) -> int:
        """Go's MilliValue(): the same in thousandths."""
        return self.quantity.rounded(MILLI, is_decimal=self.is_decimal)

    @property
    def places(self) -> int:
        """Digits behind the point of Go's decimal."""
        return max(0, -self.quantity.notation.scale)

    @property
    def is_fractional(self) -> bool:
        """It is no whole number."""
        return self.value.denominator != 1

    def plus(self, other: Amount) -> str:
        """The sum of both as the server prints it: in the format of this one, unless this one is zero."""
        base, scientific, *_ = (other if self.value == 0 else self).quantity.notation
        return print_amount(self.value + other.value, base=base, scientific=scientific)


def wrapped(number: int) -> int:
    """*number* in 64 bits with a sign."""
    return (number + 2**63) % 2**64 - 2**63
