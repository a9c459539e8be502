"""What the server computes ahead of every device, and refuses when it cannot: conversions and patterns of constants.

Upstream: decOptimize and decRegexOptimizer of cel-go's interpreter/decorators.go; numbers, durations and times are read
as Go's strconv and time packages read them.
"""

from __future__ import annotations

import math
import re
from datetime import date
from functools import lru_cache
from typing import Final

from dra_infra.cel.conversions import convert_text
from dra_infra.cel.declare import run_environment
from dra_infra.cel.tree import Call, Const, Node
from dra_infra.cel.wire import encode_parsed

CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions that are computed ahead when their argument is a constant."""

_DIGITS: Final = "[0-9](?:_?[0-9])*"
_HEX_DIGITS: Final = "[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?", re.ASCII
)
_HEXADECIMAL = re.compile(
    rf"[+-]?0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][+-]?{_DIGITS}", re.ASCII
)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?|nan", re.ASCII | re.IGNORECASE)
_UNITS: Final = {"ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": 10**9}
_UNITS_IN_NANOSECONDS: Final = {**_UNITS, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]+)?(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_TIME_RANGE: Final = range(-62135596800, 253402300800)
_PATTERN_ERRORS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


def refuse_conversion(function: str, literal: Const) -> str:
    """Why the server cannot convert a literal; empty when it can."""
    value = literal.value
    if function in ("dyn", "type"):
        return ""
    if value is None:
        return f"type conversion error from 'null_type' to '{function}'"
    if isinstance(value, str):
        return _refuse_text(function, value)
    if isinstance(value, bytes):
        return _refuse_bytes(function, value)
    if isinstance(value, bool):
        return "" if function in ("bool", "string") else "no such overload"
    return _refuse_number(function, literal.kind, value)


def _refuse_text(function: str, text: str) -> str:
    if function == "bytes":
        return ""
    if function == "double":
        right = read_double(text) is not None
    elif function == "duration":
        right = is_duration(text)
    elif function == "timestamp":
        right = is_timestamp(text)
    else:
        try:
            convert_text(function, text)
        except ValueError:
            right = False
        else:
            right = True
    return "" if right else conversion_error(function)


def conversion_error(function: str, source: str = "string") -> str:
    """What cel-go says of a value that it cannot convert."""
    wanted = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
    return f"type conversion error from '{source}' to '{wanted.get(function, function)}'"


def _refuse_bytes(function: str, value: bytes) -> str:
    if function == "bytes":
        return ""
    if function != "string":
        return "no such overload"
    try:
        value.decode()
    except UnicodeDecodeError:
        return "invalid UTF-8 in bytes, cannot convert to string"
    return ""


def _refuse_number(function: str, kind: str, value: float) -> str:
    if function in ("double", "string"):
        return ""
    if function == "int":
        fits = -(2.0**63) < value < 2.0**63 if kind == "double_value" else value < 2**63
        return "" if fits else "integer overflow"
    if function == "uint":
        fits = 0 <= value < 2**64
        return "" if fits else "unsigned integer overflow"
    if function == "timestamp" and kind == "int64_value":
        return "" if value in _TIME_RANGE else "timestamp overflow"
    if function == "duration" and kind == "int64_value":
        return conversion_error(function, "int")
    return "no such overload"


def read_double(text: str) -> float | None:
    """*text* as Go's ParseFloat reads it; None when it does not."""
    plain = text.replace("_", "")
    if _INFINITE.fullmatch(text):
        return float(text)
    if _DECIMAL.fullmatch(text):
        value = float(plain)
    elif _HEXADECIMAL.fullmatch(text):
        try:
            value = float.fromhex(plain)
        except OverflowError:
            return None
    else:
        return None
    return value if math.isfinite(value) else None


def is_duration(text: str) -> bool:
    """Whether Go's ParseDuration takes *text*."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return True
    total, place = 0, 0
    while place < len(unsigned):
        part = _PART.match(unsigned, place)
        if part is None or not (part[1] or part[2]):
            return False
        unit = _UNITS_IN_NANOSECONDS[part[3]]
        total += int(part[1] or "0") * unit
        if part[2]:
            total += int(part[2]) * unit // 10 ** len(part[2])
        place = part.end()
    return bool(unsigned) and total <= 2**63 - (0 if text[0] == "-" else 1)


def is_timestamp(text: str) -> bool:
    """Whether Go's time.Parse with RFC 3339 takes *text*, in the years 1 to 9999 of UTC."""
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    sign, hours, minutes = match[7], int(match[8] or 0), int(match[9] or 0)
    if hour > 23 or minute > 59 or second > 59 or hours > 24 or minutes > 59:
        return False
    try:
        days = date(year, month, day).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError:
        return False
    offset = (hours * 3600 + minutes * 60) * (-1 if sign == "-" else 1)
    return days * 86400 + hour * 3600 + minute * 60 + second - offset in _TIME_RANGE


@lru_cache(maxsize=1024)
def refuse_pattern(pattern: str) -> str:
    """Why a regular expression does not compile in Go, in its words; empty when it does."""
    error = evaluate_error(Call("matches", (Const("string_value", pattern),), Const("string_value", "")))
    if not error:
        # The engine's dialect knows one escape more.
        return "error parsing regexp: invalid escape sequence: `\\C`" if _ANY_BYTE.search(pattern) else ""
    reason = error.partition("invalid regular expression: ")[2]
    if reason.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    name, _, place = reason.partition(": ")
    return f"error parsing regexp: {_PATTERN_ERRORS.get(name, name)}: `{place}`"


def evaluate_error(node: Node) -> str:
    """The engine's error for an expression without variables; empty when it has a value."""
    value = run_environment().deserialize(encode_parsed(node)).eval(data={})
    return str(value.value()) if value.type().name() == "ERROR" else ""
