"""What each record is made of, in Go's terms: read from the annotations once, for decoding and writing."""

from __future__ import annotations

import types
from collections.abc import Mapping
from enum import Enum, auto
from functools import cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from dra_infra.model.field_history import is_known
from dra_infra.model.record import Embedded, GoType, Record, Special

_GO_NAMES: Final = {
    "cel": "CEL",
    "uid": "UID",
    "ips": "IPs",
    "apiGroup": "APIGroup",
    "apiVersion": "APIVersion",
}


class JsonType(Enum):
    """How Go decodes a value."""

    TEXT = auto()
    INTEGER = auto()
    TRUTH = auto()
    QUANTITY = auto()
    TIME = auto()
    RAW = auto()
    RECORD = auto()
    LIST = auto()
    MAP = auto()


class ValueShape(NamedTuple):
    """A type.

    Args:
        json_type: How it is decoded.
        go_name: Go's name of it; `@` stands for the package of the API version.
        item: The type of the items of a list or the values of a map.
        record: The record.
    """

    json_type: JsonType
    go_name: str
    item: ValueShape | None = None
    record: type[Record] | None = None


class FieldShape(NamedTuple):
    """A field.

    Args:
        name: Its name in Python.
        json_name: Its name in manifests.
        go_name: Its name in Go.
        value: Its type.
        is_pointer: Whether Go tells an absent value from an empty one by a pointer.
        written_empty: Whether Go writes it even when it is empty.
        embedded: The struct that it is in, or is, by embedding.
    """

    name: str
    json_name: str
    go_name: str
    value: ValueShape
    is_pointer: bool
    written_empty: bool
    embedded: Embedded | None


class RecordShape(NamedTuple):
    """A struct: its name in Go, with the package, and its fields by JSON name in Go's order."""

    struct: str
    go_name: str
    fields: Mapping[str, FieldShape]


@cache
def shape_of(record: type[Record]) -> RecordShape:
    """The shape of *record*."""
    hints = get_type_hints(record, include_extras=True)
    struct = record.GO_NAME or record.__name__
    fields = {}
    for name, field in record.model_fields.items():
        json_name = field.alias or name
        value, is_optional, embedded = _read(hints[name])
        fields[json_name] = FieldShape(
            name=name,
            json_name=json_name,
            go_name=_go_name(record, json_name),
            value=value,
            is_pointer=is_optional and value.json_type not in (JsonType.LIST, JsonType.MAP),
            written_empty=name in record.WRITTEN_EMPTY,
            embedded=embedded,
        )
    return RecordShape(struct, f"{record.GO_PACKAGE}.{struct}", fields)


def _go_name(record: type[Record], json_name: str) -> str:
    own = record.GO_FIELDS.get(json_name)
    return own or _GO_NAMES.get(json_name, json_name[0].upper() + json_name[1:])


@cache
def known_fields(record: type[Record], minor: int) -> Mapping[str, FieldShape]:
    """The fields of *record* that a server of *minor* has, by JSON name."""
    shape = shape_of(record)
    return {name: field for name, field in shape.fields.items() if is_known(shape.struct, name, minor)}


def _read(annotation: Any) -> tuple[ValueShape, bool, Embedded | None]:
    embedded, go_type = None, None
    while get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
        embedded = next((each for each in metadata if isinstance(each, Embedded)), embedded)
        go_type = next((each for each in metadata if isinstance(each, GoType)), go_type)
    if get_origin(annotation) in (Union, types.UnionType):
        (inner,) = (each for each in get_args(annotation) if each is not type(None))
        value, _, found = _read(inner)
        return value, True, found or embedded
    return _plain(annotation, go_type), False, embedded


def _plain(annotation: Any, go_type: GoType | None) -> ValueShape:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is list:
        item = _read(arguments[0])[0]
        return ValueShape(JsonType.LIST, f"[]{item.go_name}", item)
    if origin is dict:
        key, item = _read(arguments[0])[0], _read(arguments[1])[0]
        return ValueShape(JsonType.MAP, f"map[{key.go_name}]{item.go_name}", item)
    if origin is Literal:
        return ValueShape(JsonType.TEXT, "string")
    if isinstance(annotation, type) and issubclass(annotation, Record):
        name = annotation.GO_NAME or annotation.__name__
        return ValueShape(JsonType.RECORD, f"{annotation.GO_PACKAGE}.{name}", record=annotation)
    special = _SPECIAL.get(go_type) if go_type else None
    if special is not None and go_type is not None:
        return ValueShape(special, go_type.name)
    type_, name = _SCALARS[annotation]
    return ValueShape(type_, go_type.name if go_type else name)


_SPECIAL: Final = {
    Special.QUANTITY: JsonType.QUANTITY,
    Special.TIME: JsonType.TIME,
    Special.RAW: JsonType.RAW,
}
_SCALARS: Final[Mapping[Any, tuple[JsonType, str]]] = {
    str: (JsonType.TEXT, "string"),
    int: (JsonType.INTEGER, "int64"),
    bool: (JsonType.TRUTH, "bool"),
}
