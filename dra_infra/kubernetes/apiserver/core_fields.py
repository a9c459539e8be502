"""What API servers refuse in single fields of their own kinds: unknown and missing ones, and values of a wrong type.

The server decodes an object before it looks at anything else: a value of a wrong type is refused (400), and under strict field
validation a field that it does not know. Upstream: sigs.k8s.io/json, with the UnmarshalJSON methods of Quantity, Time, MicroTime
and IntOrString. Fields come from the server's own description (`kubernetes.apiserver.core_schemas`). What it requires, and the words
that a field can have, are checked by its validation (422); `read_core_schemas` has those to which the servers hold objects.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from dra_infra.kubernetes.api.go_time import check_time
from dra_infra.kubernetes.api.placeholders import is_placeholder
from dra_infra.kubernetes.api.quantity import Quantity, quantity_text
from dra_infra.kubernetes.apiserver.core_schemas import CoreSchemas, FieldType, read_core_schemas

_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
_MICRO: Final = re.compile(r"\.\d{6}(Z|[+-])")
_LARGEST_FLOAT: Final = 1.7976931348623157e308

Fault = Literal["unknown", "type", "missing", "choice", "twice"]


class FieldFault(NamedTuple):
    """One thing that a server refuses about one field.

    Args:
        path: Such as `spec.template.spec.containers[0].imgae`.
        fault: `unknown` for a field that the server does not have, `type` for a value that it cannot read, `missing` for a field that
            it requires, `choice` for a text that is none of those that the field can have, `twice` for an item that only
            server-side apply refuses, because another one has the same keys.
        value: What is written there; of an item that is there twice its keys.
        type: The field's type; None for an unknown field.
        around: (path, type) of the objects around an unknown field, the outermost first; empty for a wrong value.
    """

    path: str
    fault: Fault
    value: Any
    type: FieldType | None = None
    around: tuple[tuple[str, str], ...] = ()


def find_faults(manifest: Mapping[str, Any], minors: Sequence[str]) -> list[tuple[str, list[FieldFault]]]:
    """Return what the servers of *minors* refuse in the fields of an object of their own kinds, by minor.

    An object of another kind has no faults. Nearly all objects are right on all minors, and are read once.
    """
    common = read_core_schemas(*minors)
    if (type_name := common.find(manifest)) and not read_fields(manifest, type_name, common):
        return []
    schemas_by_minor = {minor: read_core_schemas(minor) for minor in minors}
    return [
        (minor, read_fields(manifest, type_name, schemas))
        for minor, schemas in schemas_by_minor.items()
        if (type_name := schemas.find(manifest))
    ]


def is_core_kind(manifest: Mapping[str, Any], minors: Sequence[str]) -> bool:
    """Return True when the server of one of *minors* itself has the object's kind in its version."""
    return any(read_core_schemas(minor).find(manifest) for minor in minors)


def read_fields(
    manifest: Mapping[str, Any], type_name: str, schemas: CoreSchemas, path: str = ""
) -> list[FieldFault]:
    """Return the faults of an object of a type, in the order of its fields."""
    reader = _Reader(schemas)
    reader.read_object(type_name, manifest, path)
    return reader.faults


class _Reader:
    def __init__(self, schemas: CoreSchemas) -> None:
        self._schemas = schemas
        self._around: list[tuple[str, str]] = []
        self.faults: list[FieldFault] = []

    def read_object(self, type_name: str, value: Mapping[str, Any], path: str) -> None:
        fields = self._schemas.fields(type_name)
        self._around.append((path, type_name))
        for name, item in value.items():
            below = f"{path}.{name}" if path else str(name)
            field = fields.get(name)
            if field is None:
                self.faults.append(FieldFault(below, "unknown", item, around=tuple(self._around)))
            elif item is not None:
                self._read(field, item, below)
        for name in self._schemas.required(type_name):
            if value.get(name) is None:
                below = f"{path}.{name}" if path else name
                self.faults.append(FieldFault(below, "missing", None, fields[name]))
        self._around.pop()

    def _read(self, type_: FieldType, value: Any, path: str) -> None:
        # A null leaves a field, an item or a value as if it were not written. A marker may be anything.
        if value is None or is_placeholder(value):
            return
        name = type_.name
        if name == "object" and isinstance(value, Mapping):
            self.read_object(type_.fields_of, value, path)
        elif name == "list" and isinstance(value, (list, tuple)):
            self._read_list(type_, value, path)
        elif name == "map" and type_.item and isinstance(value, Mapping):
            for key, item in value.items():
                self._read(type_.item, item, f"{path}.{key}")
        elif not _SCALARS.get(name, _is_nothing)(value):
            self.faults.append(FieldFault(path, "type", value, type_))
        elif type_.choices and value and value not in type_.choices:
            # Most fields with a list of words have a default, which an empty text gets as well.
            self.faults.append(FieldFault(path, "choice", value, type_))

    def _read_list(self, type_: FieldType, items: Sequence[Any], path: str) -> None:
        if type_.item is not None:
            for index, item in enumerate(items):
                self._read(type_.item, item, f"{path}[{index}]")
        if len(items) > 1 and (type_.keys or type_.is_set):
            self._compare_items(type_, items, path)

    def _compare_items(self, type_: FieldType, items: Sequence[Any], path: str) -> None:
        # Upstream: sigs.k8s.io/structured-merge-diff, typed/validate.go.
        seen: set[str] = set()
        for index, item in enumerate(items):
            keys = {"": item} if type_.is_set else _keys_of(type_, item)
            if keys is None or any(
                is_placeholder(each) or isinstance(each, (dict, list)) for each in keys.values()
            ):
                continue
            shown = ", ".join(f"{name} {json.dumps(value)}".strip() for name, value in keys.items())
            if shown in seen:
                self.faults.append(FieldFault(f"{path}[{index}]", "twice", shown, type_))
            seen.add(shown)


def _keys_of(type_: FieldType, item: Any) -> dict[str, Any] | None:
    """Return the keys of an item of a list; None where it lacks one that has no default."""
    if not isinstance(item, Mapping):
        return None
    keys = {name: item.get(name, default or None) for name, default in type_.keys}
    return None if None in keys.values() else keys


def _is_nothing(_value: Any) -> bool:
    return False


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_int32(value: Any) -> bool:
    return type(value) is int and value in _INT32


def _is_int64(value: Any) -> bool:
    return type(value) is int and value in _INT64


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= _LARGEST_FLOAT


def _is_bytes(value: Any) -> bool:
    # encoding/json takes a list of numbers for bytes, too.
    if isinstance(value, (list, tuple)):
        return all(each is None or (type(each) is int and 0 <= each < 256) for each in value)
    if not isinstance(value, str):
        return False
    text = value.replace("\r", "").replace("\n", "")
    try:
        binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    return True


def _is_quantity(value: Any) -> bool:
    text = quantity_text(value)
    try:
        Quantity.parse("x" if text is None else text)
    except ValueError:
        return False
    return True


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and not check_time(value)


def _is_micro_time(value: Any) -> bool:
    return _is_time(value) and _MICRO.search(value) is not None


def _is_int_or_string(value: Any) -> bool:
    return isinstance(value, str) or _is_int32(value)


def _is_anything(_value: Any) -> bool:
    return True


_SCALARS: Final = {
    "string": _is_text,
    "boolean": lambda value: isinstance(value, bool),
    "int32": _is_int32,
    "int64": _is_int64,
    "double": _is_number,
    "byte": _is_bytes,
    "quantity": _is_quantity,
    "time": _is_time,
    "micro-time": _is_micro_time,
    "int-or-string": _is_int_or_string,
    "any": _is_anything,
}
