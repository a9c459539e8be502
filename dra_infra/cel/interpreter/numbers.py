"""Numbers as Go prints and reads them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
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
    return "" if math.isfinite(value) else "+Inf" if value > 0 else "-Inf"


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


def quote(text: str) -> str:
    """`%q` of Go, strconv.Quote."""
    return '"' + "".join(map(_quoted, text)) + '"'


def _quoted(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if character == " " or (character.isprintable() and character != "\x7f"):
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


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
        value = int(part[1] or "0") * unit
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
