"""All functions that are called by the types of their arguments, by minor version of the server."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from dra_infra.kubernetes.cel.interpreter.addresses import NETWORK
from dra_infra.kubernetes.cel.interpreter.conversions import CONVERSIONS, DURATION, conversion_error
from dra_infra.kubernetes.cel.interpreter.lists import BEFORE_37, LISTS_LIBRARY
from dra_infra.kubernetes.cel.interpreter.maps import Map, MutableMap, NativeMap
from dra_infra.kubernetes.cel.interpreter.opaque import (
    FORMATS,
    FORMATS_OF_34,
    FORMATS_OF_35,
    OPAQUE,
    URLS_BEFORE_36,
    named_formats,
)
from dra_infra.kubernetes.cel.interpreter.text import REGEX, TEXT
from dra_infra.kubernetes.cel.interpreter.times import TIMES
from dra_infra.kubernetes.cel.interpreter.values import (
    ABSENT,
    LISTS,
    MIN_SECONDS,
    NONE,
    Duration,
    EmptyMessage,
    Err,
    OptionalValue,
    Overloads,
    Timestamp,
    Uint,
    Value,
    items_of,
)

_ZEROS: Final[dict[type, Any]] = {
    bool: False,
    int: 0,
    Uint: 0,
    float: 0.0,
    str: "",
    bytes: b"",
    Duration: Duration(0),
}


def _value(optional: OptionalValue) -> Value:
    return Err("optional.none() dereference") if optional.value is ABSENT else optional.value


def _is_zero(value: Value) -> bool:
    kind = type(value)
    if value is None or kind is EmptyMessage:
        return True
    if kind in _ZEROS:
        return bool(value == _ZEROS[kind])
    if kind is Timestamp:
        return (value.seconds, value.nanos) == (MIN_SECONDS, 0)
    if kind in (Map, MutableMap, NativeMap):
        return not len(value)
    return kind in LISTS and not items_of(value)


def _end(index: int) -> Any:
    def end(values: Any) -> OptionalValue:
        items = items_of(values)
        return OptionalValue(items[index]) if items else NONE

    return end


_OPTIONALS: Final[dict[str, Overloads]] = {
    "optional.of": ((("any",), OptionalValue),),
    "optional.ofNonZeroValue": ((("any",), lambda value: NONE if _is_zero(value) else OptionalValue(value)),),
    "optional.none": (((), lambda: NONE),),
    "value": ((("optional_type",), _value),),
    "hasValue": ((("optional_type",), lambda optional: optional is not NONE),),
    "first": ((("list<any>",), _end(0)),),
    "last": ((("list<any>",), _end(-1)),),
}


@lru_cache(maxsize=8)
def functions_of(minor: int) -> dict[str, Overloads]:
    """The overloads of each function."""
    known = {
        **CONVERSIONS,
        **TIMES,
        **TEXT,
        **LISTS_LIBRARY,
        **NETWORK,
        **OPAQUE,
        **REGEX,
        **_OPTIONALS,
        **named_formats({34: FORMATS_OF_34, 35: FORMATS_OF_35}.get(minor, FORMATS)),
    }
    if minor < 36:
        known |= URLS_BEFORE_36
    if minor < 37:
        known |= BEFORE_37
        known["duration"] = (*known["duration"], (("int",), lambda _value: conversion_error("int", DURATION)))
    return known
