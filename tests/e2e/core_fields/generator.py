"""Random objects of the API server's own kinds, right ones and ones with a field that is misspelt or of another type."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from dra_infra.kubernetes.apiserver.core_schemas import CoreSchemas, FieldType

Manifest = dict[str, Any]

_DEPTH = 9

_RIGHT: dict[str, tuple[Any, ...]] = {
    "string": ("x", "", "3", "true", "é", None),
    "boolean": (True, False, None),
    "int32": (0, 3, -1, 2**31 - 1, -(2**31), None),
    "int64": (0, 30, 2**63 - 1, -(2**63), None),
    "double": (0, 1.5, -2, None),
    "byte": ("", "eA==", "eHh4", "eA==\n", None),
    "quantity": ("1", 2, "1.5Gi", "100m", None),
    "time": ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00", None),
    "micro-time": ("2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123456-07:00", None),
    "int-or-string": (3, "50%", None),
    "any": ({"a": 1}, {}, None),
}

_ODD: tuple[Any, ...] = (
    "x", "", "3", "1Gi", " 1", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1234567Z", "eA", "eA=\n=", "null",
    0, 1, -1, 300, 2**31, -(2**31) - 1, 2**63, 1.5, 1e3, 2.0, True, False, [], {}, ["x"], [1], [None], [300], {"a": "b"}, {"a": 1}, [{}], [["x"]],
)  # fmt: skip


def objects(schemas: CoreSchemas, api_version: str, kind: str, draw: random.Random) -> Iterator[Manifest]:
    """Yield an object of a kind that decodes, then the same with one mistake, then with two."""
    type_name = schemas.find({"apiVersion": api_version, "kind": kind})
    right = _object(schemas, type_name, draw, _DEPTH)
    right |= {"apiVersion": api_version, "kind": kind}
    right["metadata"] = {**(right.get("metadata") or {}), "name": "x"}
    yield right
    wrong = copy.deepcopy(right)
    for _ in range(2):
        _spoil(schemas, type_name, wrong, draw)
        yield copy.deepcopy(wrong)


def with_repeated_items(schemas: CoreSchemas, manifest: Manifest) -> Iterator[Manifest]:
    """Yield an object once for each of its lists, with the first item of that list at its end once more."""
    type_name = schemas.find(manifest)
    for number, (_, holder, fields) in enumerate(_holders(schemas, type_name, manifest)):
        for field in fields:
            if fields[field].name == "list" and holder.get(field):
                repeated = copy.deepcopy(manifest)
                items = list(_holders(schemas, type_name, repeated))[number][1][field]
                items.append(copy.deepcopy(items[0]))
                yield repeated


def _object(schemas: CoreSchemas, type_name: str, draw: random.Random, depth: int) -> Manifest:
    fields = schemas.fields(type_name)
    share = draw.choice((0.15, 0.5)) if depth > _DEPTH - 3 else 0.15
    chosen = [name for name in fields if draw.random() < share]
    if depth == _DEPTH and "spec" in fields and "spec" not in chosen:
        chosen.append("spec")
    return {
        name: _value(schemas, fields[name], draw, depth - 1)
        for name in chosen
        if depth > 0 or fields[name].name in _RIGHT
    }


def _value(schemas: CoreSchemas, type_: FieldType, draw: random.Random, depth: int) -> Any:
    if type_.name == "object":
        return _object(schemas, type_.fields_of, draw, depth) if draw.random() < 0.95 else None
    if type_.item is not None and type_.name in ("list", "map"):
        items = [_value(schemas, type_.item, draw, depth) for _ in range(draw.choice((0, 1, 1, 2)))]
        return items if type_.name == "list" else {f"k{index}": item for index, item in enumerate(items)}
    return draw.choice(_RIGHT[type_.name])


def _spoil(schemas: CoreSchemas, type_name: str, manifest: Manifest, draw: random.Random) -> None:
    """Put one mistake somewhere in an object."""
    holders = list(_holders(schemas, type_name, manifest))
    name, holder, fields = draw.choice(holders)
    if draw.random() < 0.4 or not fields:
        field = draw.choice([*fields, "spec"])
        spoilt = draw.choice(
            (field.upper(), field[:-1], f"{field}s", "imgae", field.capitalize(), f" {field}")
        )
        holder[spoilt] = copy.deepcopy(draw.choice(("x", 1, None, {}, {"a": []})))
        return
    kept = ("apiVersion", "kind") if name == type_name else ()
    field = draw.choice([each for each in fields if each not in kept])
    value = copy.deepcopy(draw.choice(_ODD))
    type_ = fields[field]
    if type_.name in ("list", "map") and draw.random() < 0.6:
        value = [value] if type_.name == "list" else {"k": value}
    holder[field] = value


def _holders(
    schemas: CoreSchemas, type_name: str, value: Any
) -> Iterator[tuple[str, dict[str, Any], dict[str, FieldType]]]:
    """Yield each part of an object that is an object of a type itself."""
    if not isinstance(value, dict):
        return
    fields = dict(schemas.fields(type_name))
    yield type_name, value, fields
    for field, item in list(value.items()):
        if field in fields:
            yield from _below(schemas, fields[field], item)


def _below(
    schemas: CoreSchemas, type_: FieldType, value: Any
) -> Iterator[tuple[str, dict[str, Any], dict[str, FieldType]]]:
    if type_.name == "object":
        yield from _holders(schemas, type_.fields_of, value)
    elif type_.item is not None and isinstance(value, (list, dict)):
        for item in value if isinstance(value, list) else value.values():
            yield from _below(schemas, type_.item, item)
