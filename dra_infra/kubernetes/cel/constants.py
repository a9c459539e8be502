"""Constant conversions that the server computes before any device, and refuses when they fail.

Upstream: decOptimize of cel-go's interpreter/decorators.go; numbers, durations and times are
read as Go's strconv and time packages read them. Conversions of literals are computed when Kubernetes makes a
program: maybeOptimizeConstUnary in cel-go's interpreter/planner.go; texts are read as Go's strconv reads them.
"""

from __future__ import annotations

import math
import re
from typing import Final

from dra_infra.kubernetes.cel.tree import Const

CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions that are computed ahead when their argument is a constant."""

_INT64_DIGITS: Final = 19
_DIGITS: Final = "[0-9](?:_?[0-9])*"
_HEX_DIGITS: Final = "[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?", re.ASCII
)
_HEXADECIMAL = re.compile(
    rf"[+-]?0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][+-]?{_DIGITS}", re.ASCII
)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?|nan", re.ASCII | re.IGNORECASE)


def read_digits(text: str) -> int:
    """The number that decimal digits with or without a sign are; of more digits than an int64 has, one that is none.

    Python reads no number of thousands of digits, and Go says that it is out of range.
    """
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-0")
    return sign * (int(digits or "0") if len(digits) <= _INT64_DIGITS else 10**_INT64_DIGITS)


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


_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UINT = re.compile(r"[0-9]+", re.ASCII)
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def convert_text(function: str, text: str) -> Const | None:
    """The literal that `int("12")` and its kin stand for; None when what Go would say is not known.

    Raises:
        ValueError: With cel-go's text, when the server refuses the conversion.
    """
    refusal = ValueError(f"type conversion error from 'string' to '{function}'")
    if function == "string":
        return Const("string_value", text)
    if function == "bool":
        if text not in _BOOLS:
            raise refusal
        return Const("bool_value", _BOOLS[text])
    if function == "int":
        if not _INT.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
            raise refusal
        return Const("int64_value", int(text))
    if function == "uint":
        if not _UINT.fullmatch(text) or int(text) >= 2**64:
            raise refusal
        return Const("uint64_value", int(text))
    return None
