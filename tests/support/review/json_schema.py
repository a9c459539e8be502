"""The part of JSON Schema that the schemas of the reports use.

No validator is among the pinned requirements, so this one is strict instead of complete: a keyword that it does not know
is an error of the schema, not something to pass over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "null": lambda value: value is None,
}
_ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description"}
_CHECKED = {
    *("type", "enum", "const", "minimum", "pattern", "minItems", "uniqueItems"),
    *("required", "properties", "additionalProperties", "items", "oneOf", "$ref"),
}


def find_violations(
    value: Any,
    schema: Mapping[str, Any],
    *,
    root: Mapping[str, Any] | None = None,
    closed: bool = False,
    path: str = "$",
) -> Iterator[str]:
    """Each place of *value* that *schema* does not allow; none is a valid value.

    Args:
        value: JSON data.
        schema: What it has to be.
        root: Where `$ref` looks; the schema itself unless said.
        closed: Whether properties that the schema does not describe count as violations everywhere.
        path: Where *value* is.

    Raises:
        ValueError: When the schema has a keyword that is not known here.
    """
    root = root if root is not None else schema
    if unknown := set(schema) - _ANNOTATIONS - _CHECKED:
        raise ValueError(f"{path}: the schema has keywords that are not checked: {sorted(unknown)}")
    if "$ref" in schema:
        target = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        yield from find_violations(value, target, root=root, closed=closed, path=path)
        return
    if "oneOf" in schema:
        tried = [
            list(find_violations(value, each, root=root, closed=closed, path=path))
            for each in schema["oneOf"]
        ]
        if sum(not found for found in tried) != 1:
            yield from min(
                (found for found in tried if found), key=len, default=[f"{path}: more than one form"]
            )
        return
    if "type" in schema and not _TYPES[schema["type"]](value):
        yield f"{path}: {value!r} is no {schema['type']}"
        return
    yield from _plain(value, schema, path)
    yield from _parts(value, schema, root, closed, path)


def _parts(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], closed: bool, path: str
) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{path}.{name}: is missing" for name in schema.get("required", ()) if name not in value)
        described, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, item in value.items():
            if name in described:
                yield from find_violations(
                    item, described[name], root=root, closed=closed, path=f"{path}.{name}"
                )
            elif isinstance(others, dict):
                yield from find_violations(item, others, root=root, closed=closed, path=f"{path}.{name}")
            elif closed or others is False:
                yield f"{path}.{name}: is not described"
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from find_violations(
                item, schema["items"], root=root, closed=closed, path=f"{path}[{number}]"
            )


def _plain(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path}: {value!r} is below {schema['minimum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match {schema['pattern']}"
    if "minItems" in schema and len(value) < schema["minItems"]:
        yield f"{path}: has fewer than {schema['minItems']} items"
    if schema.get("uniqueItems") and len({repr(item) for item in value}) < len(value):
        yield f"{path}: has an item twice"
