"""From the JSON of an object to its record, with what the API server's decoder says about it.

The server refuses values of a wrong type (400). A field that it does not know is refused as well under strict field
validation, and dropped with a warning otherwise. Both are found here with their paths, in the shape of the version
that the object is written in. Upstream: sigs.k8s.io/json and the UnmarshalJSON methods of Quantity, Time, RawExtension.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from dra_infra.model.device_class import API_VERSION
from dra_infra.model.field_history import NEWEST, is_known
from dra_infra.model.json_reader import JsonReader
from dra_infra.model.record import KubernetesObject, Record
from dra_infra.model.shapes import JsonType, ValueShape, shape_of

GROUP: Final = "resource.k8s.io"
KINDS: Final[Mapping[str, str]] = {
    "DeviceClass": "device_class",
    "ResourceClaim": "resource_claim",
    "ResourceClaimTemplate": "resource_claim",
    "ResourceSlice": "resource_slice",
    "DeviceTaintRule": "device_taint_rule",
}
"""The kinds that are decoded, each with the module of its record."""

_MAX_UNKNOWN: Final = 100
"""The server's decoder collects no more."""

VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
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
    """Whether *manifest* says that it is of a kind and version that `decode` reads."""
    group, _, version = str(manifest.get("apiVersion")).rpartition("/")
    kind = manifest.get("kind")
    return group == GROUP and ((version in VERSIONS and kind in KINDS) or (version, kind) in _ALPHAS)


@cache
def record_of(kind: str) -> type[KubernetesObject]:
    """The record of a kind in `KINDS`; it is loaded when it is asked for, for most inputs hold one or two kinds."""
    found: type[KubernetesObject] = getattr(import_module(f"dra_infra.model.{KINDS[kind]}"), kind)
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
        # Few objects are written in it.
        from dra_infra.model import v1beta1

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
