"""Property values as the engine sends them: JSON, plus values that are secret or not known yet.

Source of the wire forms: `sdk/go/common/resource/plugin/rpc.go` and `sdk/go/common/resource/properties.go`
of pulumi/pulumi.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from google.protobuf import struct_pb2

Value: TypeAlias = Any
"""None, bool, int, float, str, list or dict of values, `Secret`, or `UNKNOWN`."""

Object: TypeAlias = dict[str, Value]
"""The properties of one resource."""

SIGNATURE_KEY: Final = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a marker, known to everyone.
UNKNOWN_MARKERS: Final = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
UNKNOWN_STRING: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class Unknown(Enum):
    """A value that some resource has yet to produce."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


@dataclass(frozen=True)
class Secret:
    """A value that must be encrypted in state and never shown."""

    value: Value


def decode(struct: struct_pb2.Struct) -> Object:
    """Read the properties that the engine sent."""
    return {name: _decode(value) for name, value in struct.fields.items()}


def _decode(value: struct_pb2.Value) -> Value:
    match value.WhichOneof("kind"):
        case "struct_value":
            fields = value.struct_value.fields
            if SIGNATURE_KEY in fields and fields[SIGNATURE_KEY].string_value == SECRET_SIGNATURE:
                return Secret(_decode(fields["value"]))
            return decode(value.struct_value)
        case "list_value":
            return [_decode(item) for item in value.list_value.values]
        case "number_value":
            # Every number travels as a double, but the API server refuses 2.0 for an integer.
            number = value.number_value
            return int(number) if number.is_integer() else number
        case "string_value":
            return UNKNOWN if value.string_value in UNKNOWN_MARKERS else value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None


def encode(properties: Mapping[str, Value]) -> struct_pb2.Struct:
    """Write properties for the engine."""
    struct = struct_pb2.Struct()
    struct.update({name: _encode(value) for name, value in properties.items()})
    return struct


def _encode(value: Value) -> Value:
    if isinstance(value, Secret):
        return {SIGNATURE_KEY: SECRET_SIGNATURE, "value": _encode(value.value)}
    if value is UNKNOWN:
        return UNKNOWN_STRING
    if isinstance(value, dict):
        return {name: _encode(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    return value


def reveal(value: Value) -> Value:
    """Return *value* with every secret in the clear, as the API server must see it."""
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, dict):
        return {name: reveal(item) for name, item in value.items()}
    if isinstance(value, list):
        return [reveal(item) for item in value]
    return value


def has_unknown(value: Value) -> bool:
    """Tell whether anything inside *value* is not known yet."""
    if isinstance(value, Secret):
        return has_unknown(value.value)
    if isinstance(value, dict):
        return any(map(has_unknown, value.values()))
    if isinstance(value, list):
        return any(map(has_unknown, value))
    return value is UNKNOWN


def has_secret(value: Value) -> bool:
    """Tell whether anything inside *value* is secret."""
    if isinstance(value, dict):
        return any(map(has_secret, value.values()))
    if isinstance(value, list):
        return any(map(has_secret, value))
    return isinstance(value, Secret)


def mark_secrets(target: Object, source: Mapping[str, Value]) -> Object:
    """Return *target* with secret whatever is secret in *source*, field by field.

    A list becomes secret as a whole when one item is, because the server may reorder it. The data of a
    `Secret` object is always secret.
    """
    marked = dict(target)
    for name, value in source.items():
        if name not in marked:
            continue
        own = marked[name]
        if isinstance(own, dict) and isinstance(value, dict):
            marked[name] = mark_secrets(own, value)
        elif not isinstance(own, Secret) and has_secret(value):
            marked[name] = Secret(own)
    if marked.get("kind") == "Secret" and marked.get("apiVersion") == "v1":
        for name in ("data", "stringData"):
            if name in marked and not isinstance(marked[name], Secret):
                marked[name] = Secret(marked[name])
    return marked
