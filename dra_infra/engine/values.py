"""Protobuf values of the resource monitor as plain data, with markers for what is not to be had."""

from __future__ import annotations

from typing import Any

from google.protobuf import struct_pb2

from dra_infra.engine.project import UNDECRYPTABLE
from dra_infra.model.program import SECRET, UNKNOWN

# Wire facts of the Pulumi SDK (sdk/python/lib/pulumi/runtime/rpc.py): special structs carry a signature key.
SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
_SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  (a wire constant)
_OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e"
UNKNOWN_VALUE = UNDECRYPTABLE
"""The engine's text for a value that is not known in a preview."""


def to_plain(value: struct_pb2.Value, *, nulls: bool = False) -> Any:
    """Plain JSON data; whole numbers become int, secrets `SECRET`, unknown values `UNKNOWN`.

    Args:
        value: Of the wire.
        nulls: Keep fields that are null: in the values of a chart they take defaults away.
    """
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _struct_to_plain(value.struct_value, nulls=nulls)
    if kind == "list_value":
        return [to_plain(item, nulls=nulls) for item in value.list_value.values]
    if kind == "string_value":
        return _text_to_plain(value.string_value)
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    return None


def fields_to_plain(struct: struct_pb2.Struct, *, nulls: bool = False) -> dict[str, Any]:
    """The fields of a resource, without those that are not set; *nulls* keeps those inside that are null."""
    plain = {key: to_plain(value, nulls=nulls) for key, value in struct.fields.items()}
    return {key: value for key, value in plain.items() if value is not None}


def _text_to_plain(text: str) -> str:
    if text == UNKNOWN_VALUE:
        return UNKNOWN
    # A program may have put an undecryptable setting into a longer text; the setting is a secret.
    return text.replace(UNKNOWN_VALUE, SECRET) if UNKNOWN_VALUE in text else text


def _struct_to_plain(struct: struct_pb2.Struct, *, nulls: bool) -> Any:
    if SIGNATURE_KEY not in struct.fields:
        found = {key: to_plain(value, nulls=nulls) for key, value in struct.fields.items()}
        return {key: plain for key, plain in found.items() if nulls or plain is not None}
    signature = struct.fields[SIGNATURE_KEY].string_value
    if signature == _SECRET_SIGNATURE:
        return SECRET
    if signature == _OUTPUT_SIGNATURE:
        if struct.fields["secret"].bool_value:
            return SECRET
        return to_plain(struct.fields["value"], nulls=nulls) if "value" in struct.fields else UNKNOWN
    if signature == _RESOURCE_SIGNATURE:
        return struct.fields["urn"].string_value
    # Assets and archives: their content is not part of a Kubernetes object.
    return UNKNOWN
