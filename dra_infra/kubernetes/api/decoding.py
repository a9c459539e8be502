"""Decodes the JSON of an object to its record, with what the API server's decoder says about it.

The server refuses values of a wrong type (400). A field that it does not know is refused as well under strict field
validation, and dropped with a warning otherwise. Both are found here with their paths, in the shape of the version
that the object is written in, and told in Go's words. Upstream: sigs.k8s.io/json and the UnmarshalJSON methods of
Quantity, Time, RawExtension.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from dra_infra.kubernetes.api.device_class import API_VERSION
from dra_infra.kubernetes.api.gates import NEWEST, is_known
from dra_infra.kubernetes.api.go_time import check_time
from dra_infra.kubernetes.api.placeholders import as_placeholder
from dra_infra.kubernetes.api.quantity import Quantity, quantity_text
from dra_infra.kubernetes.api.record import (
    FieldShape,
    JsonType,
    KubernetesObject,
    Record,
    ValueShape,
    known_fields,
    shape_of,
)

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
        fields = known_fields(type_, self.minor)
        struct = self._struct
        trail = self._trail
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
        self._struct = struct
        self._trail = trail
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
        shown = json_type(value)
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
            self.final_errors.append((path, self._refusal(json_type(value), "string")))
            return _ABSENT
        if told := check_time(_text(value)):
            self.final_errors.append((path, told))
            return _ABSENT
        return value

    def _refusal(self, shown: str, go_name: str) -> str:
        place = f"{self._struct}.{'.'.join(self._trail)}"
        type_ = go_name.replace("@", self.version)
        return f"json: cannot unmarshal {shown} into Go struct field {place} of type {type_}"


def json_type(value: Any) -> str:
    """Returns the name that Go's decoder has for the type of a value."""
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
    return as_placeholder(text, text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


GROUP: Final = "resource.k8s.io"
"""The API group of claims, classes and slices."""
KINDS: Final[Mapping[str, str]] = {
    "DeviceClass": "device_class",
    "ResourceClaim": "resource_claim",
    "ResourceClaimTemplate": "resource_claim",
    "ResourceSlice": "resource_slice",
    "DeviceTaintRule": "device_taints",
}
"""The kinds that are decoded, each with the module of its record."""

_MAX_UNKNOWN: Final = 100
"""The server's decoder collects no more."""

VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
"""Versions in which servers have the group, from the newest to the oldest."""
_ALPHAS: Final = (("v1alpha3", "DeviceTaintRule"),)
"""Kinds that a supported minor has in an alpha version, arranged as in v1."""


class Decoded(NamedTuple):
    """An object as a server decodes it.

    Args:
        record: In the shape of v1, without the fields that the server does not know or cannot decode.
        version: The version that the object is written in: `v1`, `v1beta2`, `v1beta1` or `v1alpha3`.
        unknown_fields: Paths as the server prints them, in the order of the object: `spec.devices.request`.
        type_errors: (path, text) of what cannot be decoded. The server prints the first one's text and no other.
    """

    record: KubernetesObject
    version: str
    unknown_fields: tuple[str, ...] = ()
    type_errors: tuple[tuple[str, str], ...] = ()


def can_decode(manifest: Mapping[str, Any]) -> bool:
    """Checks that *manifest* says it is of a kind and version that `decode` reads."""
    group, _, version = str(manifest.get("apiVersion")).rpartition("/")
    kind = manifest.get("kind")
    return group == GROUP and ((version in VERSIONS and kind in KINDS) or (version, kind) in _ALPHAS)


@cache
def record_of(kind: str) -> type[KubernetesObject]:
    """The record of a kind in `KINDS`; it is loaded when it is asked for, for most inputs hold one or two kinds."""
    found: type[KubernetesObject] = getattr(import_module(f"dra_infra.kubernetes.api.{KINDS[kind]}"), kind)
    return found


def decode(manifest: Mapping[str, Any], *, minor: int = NEWEST) -> Decoded:
    """Decode *manifest* as a server of *minor* (37 for 1.37) does.

    Raises:
        ValueError: When it is of another kind or version: `can_decode` says so.
    """
    if not can_decode(manifest):
        shown = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
        raise ValueError(f"{shown} is no kind and version of {GROUP} that is decoded")
    version = str(manifest["apiVersion"]).rpartition("/")[2]
    type_ = record_of(str(manifest["kind"]))
    if version != "v1beta1":
        try:
            record = type_.from_known({**manifest, "apiVersion": API_VERSION})
        except ValidationError:
            pass
        else:
            if not _has_unknown(record, _unknown_to(type_, minor)):
                return Decoded(record, version)
    return _decode_slowly(manifest, type_, version, minor)


def _decode_slowly(
    manifest: Mapping[str, Any], type_: type[KubernetesObject], version: str, minor: int
) -> Decoded:
    if version == "v1beta1":
        # Few objects are written in that version, whose records take 31 ms to load.
        from dra_infra.kubernetes.api import v1beta1

        reader = JsonReader(version, minor, v1beta1.SHAPES)
        known = v1beta1.to_hub(reader.read(type_, manifest))
    else:
        reader = JsonReader(version, minor, {})
        known = reader.read(type_, manifest)
    return Decoded(
        record=type_.from_known({**known, "apiVersion": API_VERSION}),
        version=version,
        unknown_fields=tuple(reader.unknown_fields[:_MAX_UNKNOWN]),
        type_errors=(*reader.final_errors, *reader.errors),
    )


@cache
def field_names() -> frozenset[str]:
    """Every field that records of `KINDS` have, as manifests spell it."""
    found: set[str] = set()
    seen: set[type[Record]] = set()
    left: list[type[Record]] = [record_of(kind) for kind in KINDS]
    while left:
        if (type_ := left.pop()) in seen:
            continue
        seen.add(type_)
        for json_name, field in shape_of(type_).fields.items():
            found.add(json_name)
            if record := _innermost(field.value):
                left.append(record)
    return frozenset(found)


_Unknown = tuple[tuple[str, "_Unknown | None"], ...]
"""Fields, with what is below them or None for those that a minor does not know."""


@cache
def _unknown_to(type_: type[Record], minor: int) -> _Unknown:
    shape = shape_of(type_)
    found: list[tuple[str, _Unknown | None]] = []
    for json_name, field in shape.fields.items():
        if not is_known(shape.struct, json_name, minor):
            found.append((field.name, None))
        elif (record := _innermost(field.value)) and (below := _unknown_to(record, minor)):
            found.append((field.name, below))
    return tuple(found)


def _innermost(value: ValueShape) -> type[Record] | None:
    while value.json_type in (JsonType.LIST, JsonType.MAP) and value.item is not None:
        value = value.item
    return value.record


def _has_unknown(record: Record, unknown: _Unknown) -> bool:
    for name, below in unknown:
        if below is None:
            if name in record.model_fields_set:
                return True
            continue
        value = getattr(record, name)
        if value is None:
            continue
        if isinstance(value, Record):
            if _has_unknown(value, below):
                return True
        else:
            for item in value.values() if isinstance(value, dict) else value:
                if _has_unknown(item, below):
                    return True
    return False
