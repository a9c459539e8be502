"""Literals of protobuf messages, `google.protobuf.Int32Value{value: 1}`, which are values of other types once they are made.

Upstream: NewValue and msgSetField in common/types/provider.go of cel-go, unwrapDynamic in common/types/pb/type.go, and
ConvertToNative of each type, in whose texts a type is one of Go.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.addresses import print_address, print_prefix
from dra_infra.kubernetes.cel.interpreter.conversions import print_duration
from dra_infra.kubernetes.cel.interpreter.maps import MAPS, NativeMap, print_value
from dra_infra.kubernetes.cel.interpreter.scopes import Scope, Step
from dra_infra.kubernetes.cel.interpreter.times import print_timestamp
from dra_infra.kubernetes.cel.interpreter.urls import URL
from dra_infra.kubernetes.cel.interpreter.values import (
    CIDR,
    INT64,
    IP,
    LISTS,
    MAX_SECONDS,
    MIN_SECONDS,
    NONE,
    ConcatList,
    Duration,
    EmptyMessage,
    Err,
    Format,
    OptionalValue,
    QuantityValue,
    Timestamp,
    TypeValue,
    Uint,
    UndecidedError,
    Value,
    items_of,
    type_name,
)

_PROTOBUF: Final = "google.protobuf."
_SAFE: Final = 2**53 - 1
"""The largest whole number that JSON keeps as a number."""
_JSON: Final = "*structpb.Value"


class _ConversionError(Exception):
    """A value is not to be converted to what a field holds."""


class _RepeatedError(Exception):
    """A field of several values gets one that is no list, or no map."""


_REASONS: Final[dict[type, str]] = {
    int: "unsupported type conversion from 'int' to {}",
    Uint: "unsupported type conversion from 'uint' to {}",
    float: "type conversion error from Double to '{}'",
    bool: "type conversion error from bool to '{}'",
    str: "unsupported native conversion from string to '{}'",
    bytes: "type conversion error from Bytes to '{}'",
    type(None): "type conversion error from 'null_type' to '{}'",
    Duration: "type conversion error from 'Duration' to '{}'",
    Timestamp: "type conversion error from 'Timestamp' to '{}'",
    TypeValue: "type conversion not supported for 'type'",
    Semver: "type conversion error from 'Semver' to '{}'",
    QuantityValue: "type conversion error from 'Quantity' to '{}'",
    IP: "type conversion error from 'IP' to '{}'",
    CIDR: "type conversion error from 'CIDR' to '{}'",
    URL: "type conversion error from 'URL' to '{}'",
    Format: "type conversion error from 'Format' to '{}'",
    EmptyMessage: "type conversion error from '*dynamicpb.Message' to '{}'",
    **dict.fromkeys(LISTS, "type conversion error from list to '{}'"),
    **dict.fromkeys(MAPS, "type conversion error from map to '{}'"),
}


def refuse_conversion(value: Value, wanted: str) -> str:
    """Says in the server's words that a value is not to be converted to a type of Go."""
    return _REASONS[type(value)].format(wanted)


def _expect_optional(value: Value) -> Value:
    """The value within an optional one, or what is none."""
    while type(value) is OptionalValue:
        if value is NONE:
            raise _ConversionError("optional.none() dereference")
        value = value.value
    return value


def _int(value: int, size: int) -> int:
    if not -(2 ** (size - 1)) <= value < 2 ** (size - 1):
        raise _ConversionError("integer overflow")
    return value


def _uint(value: int, size: int) -> Uint:
    if value >= 2**size:
        raise _ConversionError("unsigned integer overflow")
    return Uint(value)


def _float(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


Setter: TypeAlias = Callable[[Value], Value]


def _scalar(go_type: str, kind: type, convert: Setter) -> Setter:
    def set_field(value: Value) -> Value:
        inner = _expect_optional(value)
        if type(inner) is not kind:
            if go_type == "string" and type(inner) in _TEXTS:
                return _TEXTS[type(inner)](inner)
            raise _ConversionError(refuse_conversion(inner, go_type))
        return convert(inner)

    return set_field


_TEXTS: Final[dict[type, Setter]] = {
    Semver: str,
    IP: print_address,
    CIDR: print_prefix,
    URL: lambda url: url.text(),
    QuantityValue: lambda quantity: quantity.amount.text(),
}
"""Types of Kubernetes, which become texts where a text is wanted."""


def _bytes(value: Value) -> Value:
    inner = _expect_optional(value)
    if type(inner) in LISTS:
        return bytes(_byte(_expect_optional(item)) for item in items_of(inner))
    if type(inner) is not bytes:
        raise _ConversionError(refuse_conversion(inner, "[]uint8"))
    return inner


def _byte(value: Value) -> int:
    if type(value) is not Uint:
        raise _ConversionError(refuse_conversion(value, "uint8"))
    return _uint(value, 8)


def _json(value: Value) -> Value:
    """The value as one of JSON (structpb.Value)."""
    inner = _expect_optional(value)
    kind = type(inner)
    if kind in (bool, float, str, type(None)):
        return inner
    if kind in (int, Uint):
        return float(inner) if abs(inner) <= _SAFE else str(int(inner))
    if kind is bytes:
        return b64encode(inner).decode()
    if kind is Duration:
        return print_duration(inner)
    if kind is Timestamp:
        return print_timestamp(inner)
    if kind in LISTS:
        return [_json(item) for item in items_of(inner)]
    if kind in MAPS:
        return NativeMap.of((_key(key), _json(item)) for key, item in inner.entries.values())
    if kind is EmptyMessage:
        return NativeMap()
    raise _ConversionError(refuse_conversion(inner, _JSON))


_key: Final = _scalar("string", str, lambda value: value)


def _json_values(value: Value) -> Value:
    if type(value) not in LISTS:
        raise _RepeatedError
    return _json(value)


def _json_fields(value: Value) -> Value:
    if type(value) not in MAPS:
        raise _RepeatedError
    return _json(value)


def _json_map(value: Value) -> Value:
    inner = _expect_optional(value)
    if type(inner) not in MAPS:
        raise _ConversionError(refuse_conversion(inner, "*structpb.Struct"))
    return _json(inner)


def _json_list(value: Value) -> Value:
    inner = _expect_optional(value)
    if type(inner) in MAPS and not len(inner):
        return []
    if type(inner) in MAPS:
        raise UndecidedError("a map for a google.protobuf.ListValue")
    if type(inner) not in LISTS:
        raise _ConversionError(refuse_conversion(inner, "*structpb.ListValue"))
    return _json(inner)


def _null(value: int) -> None:
    _int(value, 32)


_INT64: Final = _scalar("int64", int, lambda value: value)
_INT32: Final = _scalar("int32", int, lambda value: _int(value, 32))
_FIELDS: Final[dict[str, dict[str, Setter]]] = {
    "Any": {"type_url": _key, "value": _bytes},
    "BoolValue": {"value": _scalar("bool", bool, lambda value: value)},
    "BytesValue": {"value": _bytes},
    "DoubleValue": {"value": _scalar("float64", float, lambda value: value)},
    "Duration": {"seconds": _INT64, "nanos": _INT32},
    "Empty": {},
    "FloatValue": {"value": _scalar("float32", float, _float)},
    "Int32Value": {"value": _INT32},
    "Int64Value": {"value": _INT64},
    "ListValue": {"values": _json_values},
    "StringValue": {"value": _key},
    "Struct": {"fields": _json_fields},
    "Timestamp": {"seconds": _INT64, "nanos": _INT32},
    "UInt32Value": {"value": _scalar("uint32", Uint, lambda value: _uint(value, 32))},
    "UInt64Value": {"value": _scalar("uint64", Uint, lambda value: value)},
    "Value": {
        "null_value": _scalar("protoreflect.EnumNumber", int, _null),
        "number_value": _scalar("float64", float, lambda value: value),
        "string_value": _key,
        "bool_value": _scalar("bool", bool, lambda value: value),
        "struct_value": _json_map,
        "list_value": _json_list,
    },
}
"""Setters of each field of each message."""

_ZEROS: Final[dict[str, Value]] = {
    "BoolValue": False,
    "BytesValue": b"",
    "DoubleValue": 0.0,
    "FloatValue": 0.0,
    "Int32Value": 0,
    "Int64Value": 0,
    "StringValue": "",
    "UInt32Value": Uint(0),
    "UInt64Value": Uint(0),
}
"""Values of messages of one field that is not set."""


def make(message: str, fields: Mapping[str, Value]) -> Value:
    """The value of a message with some fields, or an error.

    Raises:
        UndecidedError: When it depends on the order of the fields, which is random, or on what the server has linked.
    """
    name = message.removeprefix(_PROTOBUF)
    if name not in _FIELDS:
        return Err(f"unknown type '{message}'")
    found: dict[str, Value] = {}
    for field, value in fields.items():
        try:
            found[field] = _FIELDS[name][field](value)
        except _RepeatedError:
            return Err(f"unsupported field type for {message}.{field}: {_print_type(value)}")
        except _ConversionError as error:
            return Err(f"field type conversion error for {message}.{field} value type: {error}")
    return _unwrap(name, found)


def _print_type(value: Value) -> str:
    if type(value) in LISTS:
        return "list(dyn)"
    return "map(dyn, dyn)" if type(value) in MAPS else type_name(value)


def _unwrap(name: str, fields: Mapping[str, Value]) -> Value:
    if name in _ZEROS:
        return fields.get("value", _ZEROS[name])
    if name == "ListValue":
        return fields.get("values", [])
    if name == "Struct":
        return fields.get("fields", NativeMap())
    if name == "Value":
        if len(fields) > 1:
            raise UndecidedError("a google.protobuf.Value of several fields, of which any counts")
        return next(iter(fields.values()), None)
    if name in ("Duration", "Timestamp"):
        make_time = _duration if name == "Duration" else _timestamp
        return make_time(fields.get("seconds", 0), fields.get("nanos", 0))
    if name == "Any":
        if any(fields.values()):
            raise UndecidedError(
                "a google.protobuf.Any, which holds any message that is linked into the server"
            )
        return Err("unsupported conversion to ref.Val: (*dynamicpb.Message)")
    return EmptyMessage()


def _duration(seconds: int, nanos: int) -> Value:
    # AsDuration: what does not fit becomes the smallest or the largest.
    total = seconds * 10**9 + nanos
    if seconds * 10**9 not in INT64 or total not in INT64:
        return Duration(-(2**63) if seconds < 0 else 2**63 - 1)
    return Duration(total)


def _timestamp(seconds: int, nanos: int) -> Value:
    carried, rest = divmod(nanos, 10**9)
    if not MIN_SECONDS <= seconds + carried <= MAX_SECONDS:
        raise UndecidedError("a timestamp outside the years 1 to 9999")
    return Timestamp(seconds + carried, rest)


def plan_message(message: str, fields: list[tuple[str, Step, bool]]) -> Step:
    """A literal of a message."""

    def evaluate(scope: Scope) -> Value:
        found: dict[str, Any] = {}
        for field, step, optional in fields:
            value = step(scope)
            if type(value) is Err:
                return value
            if optional:
                if type(value) is not OptionalValue:
                    told = f"cannot initialize optional entry '{field}' from non-optional value"
                    return Err(f"{told} {print_value(value)}")
                if value is NONE:
                    found.pop(field, None)
                    continue
                value = value.value
            found[field] = value
        return make(message, found)

    return evaluate


_PRINTED: Final[dict[type, tuple[str, Callable[[Any], str]]]] = {
    QuantityValue: ("*resource.Quantity", lambda value: value.amount.text()),
    Semver: ("semver.Version", str),
    URL: ("*url.URL", lambda url: url.text()),
    IP: ("netip.Addr", print_address),
    CIDR: ("netip.Prefix", print_prefix),
}


def reread(value: Value) -> Value:
    """A value as it is when it is made again of what Go holds of it, which types of Kubernetes cannot be.

    Before 0.29, cel-go does so with what is in an optional value, wherever one is a variable or a branch of a choice.
    """
    kind = type(value)
    if kind in _PRINTED:
        name, write = _PRINTED[kind]
        return Err(f"unsupported conversion to ref.Val: ({name}){write(value)}")
    if kind is TypeValue:
        return value.name
    if kind is OptionalValue:
        return None if value is NONE else reread(value.value)
    if kind is ConcatList:
        return [reread(item) for item in value.items]
    return value
