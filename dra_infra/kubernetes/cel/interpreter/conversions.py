"""Conversions between types: ConvertToType of each type in cel-go's common/types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dra_infra.kubernetes.cel.constants import convert_text, read_double
from dra_infra.kubernetes.cel.interpreter.addresses import print_address, print_prefix
from dra_infra.kubernetes.cel.interpreter.numbers import (
    format_fixed,
    format_general,
    parse_duration,
    seconds_of,
)
from dra_infra.kubernetes.cel.interpreter.times import parse_timestamp, print_timestamp
from dra_infra.kubernetes.cel.interpreter.values import (
    INT64,
    MAX_SECONDS,
    MIN_SECONDS,
    UINT64,
    Duration,
    Err,
    Overloads,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    type_name,
)

_TIMESTAMP: Final = "google.protobuf.Timestamp"
DURATION: Final = "google.protobuf.Duration"


def _same(value: Value) -> Value:
    return value


def _int_of_double(value: float) -> Value:
    if not math.isfinite(value) or not -float(2**63) < value < float(2**63):
        return Err("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> Value:
    if not math.isfinite(value) or not 0 <= value < 2**64:
        return Err("unsigned integer overflow")
    return Uint(int(value))


def _int_of_uint(value: Uint) -> Value:
    return int(value) if int(value) in INT64 else Err("integer overflow")


def _uint_of_int(value: int) -> Value:
    return Uint(value) if value in UINT64 else Err("unsigned integer overflow")


def conversion_error(found: str, wanted: str) -> Err:
    """The error for a value that is not to be converted."""
    return Err(f"type conversion error from '{found}' to '{wanted}'")


def _read(wanted: str, read: Callable[[str], Value]) -> Callable[[str], Value]:
    def convert(text: str) -> Value:
        value = read(text)
        return conversion_error("string", wanted) if value is None else value

    return convert


def _literal(function: str) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        try:
            found = convert_text(function, text)
        except ValueError:
            return None
        value: Any = None if found is None else found.value
        return Uint(value) if function == "uint" and found else value

    return _read(function, read)


def _duration_of_text(text: str) -> Value:
    nanos = parse_duration(text)
    return None if nanos is None else Duration(nanos)


def _timestamp_of_int(seconds: int) -> Value:
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        return Err("timestamp overflow")
    return Timestamp(seconds)


def _timestamp_of_text(text: str) -> Value:
    found = parse_timestamp(text)
    if found is not None and not MIN_SECONDS <= found.seconds <= MAX_SECONDS:
        return Err("timestamp overflow")
    return found


def _text_of_bytes(value: bytes) -> Value:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Err("invalid UTF-8 in bytes, cannot convert to string")


def print_duration(value: Duration) -> str:
    """A duration in seconds, `1.5s`."""
    return f"{format_fixed(seconds_of(value.nanos))}s"


def _double_of(value: Any) -> float:
    return float(value)


TO_TEXT: Final[dict[str, Callable[[Any], Value]]] = {
    "string": _same,
    "bool": lambda value: "true" if value else "false",
    "bytes": _text_of_bytes,
    "double": format_general,
    DURATION: print_duration,
    "int": str,
    _TIMESTAMP: print_timestamp,
    "uint": lambda value: str(int(value)),
    "net.IP": print_address,
    "net.CIDR": print_prefix,
}
"""The texts of values, by type."""

CONVERSIONS: Final[dict[str, Overloads]] = {
    "bool": ((("bool",), _same), (("string",), _literal("bool"))),
    "bytes": ((("bytes",), _same), (("string",), lambda text: text.encode())),
    "double": (
        (("double",), _same),
        (("int",), _double_of),
        (("string",), _read("double", read_double)),
        (("uint",), _double_of),
    ),
    "duration": (((DURATION,), _same), (("string",), _read(DURATION, _duration_of_text))),
    "int": (
        (("int",), _same),
        (("double",), _int_of_double),
        ((DURATION,), lambda value: value.nanos),
        (("string",), _literal("int")),
        ((_TIMESTAMP,), lambda value: value.seconds),
        (("uint",), _int_of_uint),
    ),
    "string": tuple(((name,), convert) for name, convert in TO_TEXT.items()),
    "timestamp": (
        ((_TIMESTAMP,), _same),
        (("int",), _timestamp_of_int),
        (("string",), _read(_TIMESTAMP, _timestamp_of_text)),
    ),
    "uint": (
        (("uint",), _same),
        (("double",), _uint_of_double),
        (("int",), _uint_of_int),
        (("string",), _literal("uint")),
    ),
    "dyn": ((("any",), _same),),
    "type": ((("any",), lambda value: TypeValue(type_name(value))),),
}
"""Functions that are also computed ahead when their argument is a constant."""
