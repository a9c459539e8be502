"""Fields of the kinds that the API server itself has, by minor: pods, Deployments, Services and all others.

Source: /openapi/v3 of the real servers, kept in `data/` by `make core-schemas` (tools/core_schemas.py). The kinds of
resource.k8s.io have records of their own, and are not among these. A file is read when an object of such a kind is met.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

DATA: Final = "data"

PREFIXES: Final = ("io.k8s.api.", "io.k8s.")
"""What names of types are written without."""

REQUIRED: Final = "!"
"""How the text of a type ends that servers refuse an object without."""

SET: Final = "="
"""What stands between the brackets of a list that is a set: `[=]string`. Of a list with keys it is `[containerPort,protocol=TCP]`."""

CHOICE: Final = "|"
"""What stands before each text that a field can have."""

Manifest = Mapping[str, Any]


def file_name(minor: str) -> str:
    """Return the name of a minor's file in `DATA`."""
    return f"core-schemas-{minor}.json.gz"


class FieldType(NamedTuple):
    """Type of one field, item or value.

    Args:
        name: `string`, `boolean`, `int32`, `int64`, `double`, `byte`, `quantity`, `time`, `micro-time`, `int-or-string`, `any`,
            `list`, `map` or `object`.
        item: Type of the items of a list or the values of a map.
        fields_of: Type of an object, as `CoreSchemas.fields` takes it.
        choices: The texts that the field can have; empty where servers take any.
        required: Whether servers refuse an object without the field.
        keys: Fields, each with its default, by which server-side apply tells the items of a list apart.
        is_set: Whether server-side apply takes each item of a list once only.
    """

    name: str
    item: FieldType | None = None
    fields_of: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    keys: tuple[tuple[str, str], ...] = ()
    is_set: bool = False


Fields = Mapping[str, FieldType]


class CoreSchemas:
    """What several minors agree on, or all that one minor has.

    Args:
        minors: Such as `1.34`; of several, only fields count that have the same type in each.
    """

    def __init__(self, minors: Sequence[str]) -> None:
        self._described = [_load(minor) for minor in minors]
        self._fields: dict[str, Fields] = {}
        self._required: dict[str, tuple[str, ...]] = {}

    def find(self, manifest: Manifest) -> str:
        """Return the type of an object; empty where a minor does not have its kind in its version."""
        api_version = str(manifest.get("apiVersion"))
        kind = str(manifest.get("kind"))
        types = {each["kinds"].get(api_version, {}).get(kind, "") for each in self._described}
        return types.pop() if len(types) == 1 else ""

    @property
    def kinds(self) -> Mapping[str, Mapping[str, str]]:
        """The kinds of the first minor, each with its type, by version such as `apps/v1`."""
        kinds: Mapping[str, Mapping[str, str]] = self._described[0]["kinds"]
        return kinds

    def fields(self, type_name: str) -> Fields:
        """Return the fields of a type by name."""
        known = self._fields.get(type_name)
        if known is None:
            first, *others = [each["types"].get(type_name, {}) for each in self._described]
            texts = {name: {text, *(each.get(name, "") for each in others)} for name, text in first.items()}
            # What one minor requires counts as required, so that the minors are asked one by one where it is missing.
            known = self._fields[type_name] = {
                name: _read_type(max(each, key=len))
                for name, each in texts.items()
                if len({text.removesuffix(REQUIRED) for text in each}) == 1
            }
        return known

    def required(self, type_name: str) -> tuple[str, ...]:
        """Return the names of the fields without which servers refuse an object of a type."""
        known = self._required.get(type_name)
        if known is None:
            fields = self.fields(type_name).items()
            known = self._required[type_name] = tuple(name for name, field in fields if field.required)
        return known


@cache
def read_core_schemas(*minors: str) -> CoreSchemas:
    """Return the fields of Kubernetes' own kinds that all *minors* have alike."""
    return CoreSchemas(minors)


@cache
def _load(minor: str) -> Mapping[str, Any]:
    packed = resources.files("dra_infra.kubernetes.apiserver").joinpath(DATA, file_name(minor)).read_bytes()
    # 31 stands for gzip; the module of that name takes longer to load than the file to unpack.
    described: Mapping[str, Any] = json.loads(zlib.decompress(packed, wbits=31))
    return described


@cache
def _read_type(text: str) -> FieldType:
    if text.endswith(REQUIRED):
        return _read_type(text[:-1])._replace(required=True)
    if text.startswith("["):
        keys, _, item = text[1:].partition("]")
        named = [key.partition("=") for key in keys.split(",") if key.strip("=")]
        return FieldType(
            "list",
            item=_read_type(item),
            keys=tuple((name, default) for name, _, default in named),
            is_set=keys == SET,
        )
    if text.startswith("{}"):
        return FieldType("map", item=_read_type(text[2:]))
    if text.startswith("#"):
        return FieldType("object", fields_of=text[1:])
    name, *choices = text.split(CHOICE)
    return FieldType(name, choices=tuple(choices))
