"""Reads JSON along the shape of a record and says, in Go's words, what does not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from dra_infra.model.go_time import check_time
from dra_infra.model.quantity import Quantity, quantity_text
from dra_infra.model.record import Record
from dra_infra.model.shapes import FieldShape, JsonType, ValueShape, known_fields, shape_of

_ABSENT: Final = object()
_INDEX: Final = re.compile(r"\[\d+\]")
_ZEROS: Final[Mapping[JsonType, Any]] = {
    JsonType.TEXT: "",
    JsonType.INTEGER: 0,
    JsonType.TRUTH: False,
    JsonType.QUANTITY: "0",
}


class JsonReader:
    """Takes out of an object what the records can hold.

    Args:
        version: Version of the API, which Go's texts name.
        minor: The server's minor.
        instead: Records that stand for others in this version.

    Attributes:
        unknown_fields: Paths as the server prints them.
        errors: (path, text) of values of a wrong type.
        final_errors: The same for those that end the server's decoding: it tells the first of them and no other.
    """

    def __init__(
        self, version: str, minor: int, instead: Mapping[type[Record], type[Record]] | None = None
    ) -> None:
        self.version = version
        self.minor = minor
        self.instead = instead or {}
        self.unknown_fields: list[str] = []
        self.errors: list[tuple[str, str]] = []
        self.final_errors: list[tuple[str, str]] = []
        # Go's name of the innermost struct, and the fields down to here without indexes and keys.
        self._struct = ""
        self._trail: tuple[str, ...] = ()

    def read(self, type_: type[Record], manifest: Mapping[str, Any], path: str = "") -> dict[str, Any]:
        """The fields of *manifest* at *path* that a record of *type_* can hold; what does not fit is noted."""
        if path and not self._trail:
            self._trail = tuple(_INDEX.sub("", path).split("."))
            try:
                return self.read(type_, manifest, path)
            finally:
                self._trail = ()
        type_ = self.instead.get(type_, type_)
        fields, struct, trail = known_fields(type_, self.minor), self._struct, self._trail
        known: dict[str, Any] = {}
        for name, value in manifest.items():
            below = f"{path}.{name}" if path else str(name)
            field = fields.get(name)
            if field is None:
                self.unknown_fields.append(below)
                continue
            self._struct = shape_of(type_).struct
            self._trail = (*trail, *self._embedding(field), name)
            read = self._read_value(field.value, value, below)
            if read is not _ABSENT:
                known[name] = read
        self._struct, self._trail = struct, trail
        return known

    def _embedding(self, field: FieldShape) -> tuple[str, ...]:
        # Go's texts have the embedded struct since the decoder that came with 1.35.
        embedded = field.embedded
        return () if embedded is None or embedded.is_field or self.minor < 35 else (embedded.name,)

    def _read_value(self, shape: ValueShape, value: Any, path: str) -> Any:
        if value is None:
            return _ABSENT
        if shape.json_type is JsonType.RAW:
            return value
        if shape.json_type is JsonType.QUANTITY:
            return self._read_quantity(value, path)
        if shape.json_type is JsonType.TIME:
            return self._read_time(value, path)
        if shape.json_type is JsonType.RECORD and shape.record and isinstance(value, Mapping):
            return self.read(shape.record, value, path)
        if shape.json_type is JsonType.LIST and shape.item and isinstance(value, (list, tuple)):
            items = (
                self._read_item(shape.item, item, f"{path}[{index}]") for index, item in enumerate(value)
            )
            return list(items)
        if shape.json_type is JsonType.MAP and shape.item and isinstance(value, Mapping):
            return {
                _text(str(key)): self._read_item(shape.item, item, f"{path}.{key}")
                for key, item in value.items()
            }
        return self._read_scalar(shape, value, path)

    def _read_item(self, shape: ValueShape, value: Any, path: str) -> Any:
        # A null in a list or map, and what cannot be decoded, leaves the type's zero value there.
        read = self._read_value(shape, value, path)
        if read is not _ABSENT:
            return read
        if shape.json_type is JsonType.RECORD:
            return {}
        return _ZEROS.get(shape.json_type)

    def _read_scalar(self, shape: ValueShape, value: Any, path: str) -> Any:
        shown = _json_type(value)
        if shape.json_type is JsonType.TEXT and isinstance(value, str):
            return _text(value)
        if shape.json_type is JsonType.TRUTH and isinstance(value, bool):
            return value
        if shape.json_type is JsonType.INTEGER and shown == "number":
            if isinstance(value, int) and -(2**63) <= value < 2**63:
                return value
            shown = f"number {json.dumps(value)}"
        self.errors.append((path, self._refusal(shown, shape.go_name)))
        return _ABSENT

    def _read_quantity(self, value: Any, path: str) -> Any:
        text = quantity_text(value)
        try:
            # Go parses the text of whatever is there: that of a list is no more a quantity than "x".
            Quantity.parse("x" if text is None else text)
        except ValueError as error:
            self.final_errors.append((path, str(error)))
            return _ABSENT
        return text

    def _read_time(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            self.final_errors.append((path, self._refusal(_json_type(value), "string")))
            return _ABSENT
        if told := check_time(_text(value)):
            self.final_errors.append((path, told))
            return _ABSENT
        return value

    def _refusal(self, shown: str, go_name: str) -> str:
        place = f"{self._struct}.{'.'.join(self._trail)}"
        type_ = go_name.replace("@", self.version)
        return f"json: cannot unmarshal {shown} into Go struct field {place} of type {type_}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    return "object" if isinstance(value, Mapping) else "array"


def _text(text: str) -> str:
    # JSON can spell half of a surrogate pair; Go puts U+FFFD in its place.
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
