"""What plain YAML values and numbers become on the way to the API server.

kubectl converts YAML to JSON with sigs.k8s.io/yaml, which reads YAML 1.1 with its own additions (resolve.go of
go.yaml.in/yaml/v2), and writes numbers as Go's encoding/json does. What comes out here is what the server reads.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

_WORDS: Final[dict[str, bool | None]] = {
    **{word: True for each in ("yes", "true", "on") for word in (each, each.title(), each.upper())},
    **{word: False for each in ("no", "false", "off") for word in (each, each.title(), each.upper())},
    **dict.fromkeys(("y", "Y"), True),
    **dict.fromkeys(("n", "N"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NOT_FINITE: Final = frozenset(
    sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")
) | {".nan", ".NaN", ".NAN"}
_INTEGER: Final = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z", re.ASCII
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", re.ASCII)
_LOOSE_UNDERSCORE: Final = re.compile(r"(?<![0-9])_|_(?![0-9])", re.ASCII)
_NUMBER_STARTS: Final = frozenset("+-.0123456789")
_LONGEST_CACHED: Final = 80
_LONGEST_NUMBER: Final = 400
"""Digits; no float64 has more before its point, so longer texts are strings to Go or no JSON number of ours."""

Scalar = str | int | float | bool | None


class NotJsonError(ValueError):
    """A value that JSON cannot hold in its place."""


def resolve_plain(text: str) -> Scalar:
    """The value of *text* written without quotes and without a tag.

    Raises:
        NotJsonError: For `.inf` and `.nan`.
    """
    return _resolve_cached(text) if len(text) <= _LONGEST_CACHED else _resolve(text)


def spell_key(value: Scalar) -> str:
    """The JSON key that a plain scalar of a mapping becomes.

    Raises:
        NotJsonError: For null, which is no key.
    """
    if value is None:
        raise NotJsonError("null")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def number_as_sent(value: float) -> int | float:
    """*value* as the server reads it after Go's encoder, which writes whole numbers without a point."""
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    value = float(value)
    if value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))
    return value


def _resolve(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if text in _NOT_FINITE:
        raise NotJsonError(text)
    plain = text.replace("_", "")
    if text[0] == "." and _LOOSE_UNDERSCORE.search(text):
        return text
    if len(plain) > _LONGEST_NUMBER:
        return text
    if integer := _INTEGER.match(plain):
        sign, *forms = integer.groups()
        for digits, base in zip(forms, (16, 2, 8, 10), strict=True):
            if digits is not None:
                return _integer(text, int(f"{sign}{digits}", base), is_decimal=base == 10)
    if _FLOAT.match(plain):
        value = float(plain)
        return text if value in (float("inf"), float("-inf")) else number_as_sent(value)
    return text


def _integer(text: str, value: int, *, is_decimal: bool) -> Scalar:
    if -(2**63) <= value < 2**64:
        return number_as_sent(value)
    if not is_decimal:
        return text
    # Too wide for Go's integers: a float, or a string when it is too wide for that.
    try:
        return number_as_sent(float(value))
    except OverflowError:
        return text


_resolve_cached = lru_cache(maxsize=8192)(_resolve)
