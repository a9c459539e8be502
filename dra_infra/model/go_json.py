"""JSON as Go's json.Marshal writes it, for values that the API server prints in its messages.

The server prints a value either in its versioned type, with the JSON names and without empty fields, or in its
internal one, whose fields have no JSON names: Go's names then, and every field is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dra_infra.model.field_history import ANY
from dra_infra.model.go_time import canonical_time
from dra_infra.model.quantity import Quantity
from dra_infra.model.shapes import FieldShape, JsonType, ValueShape, known_fields

if TYPE_CHECKING:
    from dra_infra.model.record import Record


def go_json(value: object) -> str:
    """*value* as Go writes it: compact, and safe inside HTML; half a surrogate pair is U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    for character in "<>&\u2028\u2029":
        if character in text:
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def write_versioned(record: Record) -> str:
    """The versioned struct of *record*: fields in Go's order, empty ones left out where Go leaves them out."""
    return go_json(_versioned(record))


def write_internal(record: Record, minor: int) -> str:
    """The internal struct of *record* on a server of *minor*."""
    return go_json(_internal(record, minor))


def write_internal_list(records: Sequence[Record] | None, minor: int) -> str:
    """The same of a list; `null` of none."""
    return "null" if records is None else go_json([_internal(record, minor) for record in records])


def _versioned(record: Record) -> dict[str, Any]:
    written = {}
    for name, field in known_fields(type(record), ANY).items():
        value = getattr(record, field.name)
        if field.written_empty or not _is_empty(field, value):
            written[name] = _plain(field.value, value, _versioned)
    return written


def _is_empty(field: FieldShape, value: Any) -> bool:
    if field.is_pointer or field.value.json_type in (JsonType.RAW, JsonType.TIME):
        return value is None
    # A struct is never empty to Go.
    return field.value.json_type is not JsonType.RECORD and not value


def _internal(record: Record, minor: int) -> dict[str, Any]:
    return dict(_internal_fields(record, minor))


def _internal_fields(record: Record, minor: int) -> Iterator[tuple[str, Any]]:
    for field in known_fields(type(record), minor).values():
        value = getattr(record, field.name)
        if field.embedded is not None and field.embedded.is_field:
            # What is embedded keeps the JSON names of its versioned type.
            yield from _versioned(value).items()
        else:
            yield field.go_name, _plain(field.value, value, lambda inner: _internal(inner, minor))


def _plain(shape: ValueShape, value: Any, write: Any) -> Any:
    if value is None or shape.json_type is JsonType.RAW:
        return value
    if shape.json_type is JsonType.QUANTITY:
        return Quantity.parse(value).canonical()
    if shape.json_type is JsonType.TIME:
        return canonical_time(value)
    if shape.json_type is JsonType.LIST and shape.item:
        return [_plain(shape.item, item, write) for item in value]
    if shape.json_type is JsonType.MAP and shape.item and isinstance(value, Mapping):
        return {
            key: _plain(shape.item, value[key], write) for key in sorted(value, key=lambda key: key.encode())
        }
    return _go_record(shape, value, write)


def _go_record(shape: ValueShape, value: Any, write: Any) -> Any:
    if shape.json_type is not JsonType.RECORD:
        return value
    # The types of meta/v1 have JSON names in the internal structs as well.
    return _versioned(value) if shape.record is not None and shape.record.TAGGED_INSIDE else write(value)
