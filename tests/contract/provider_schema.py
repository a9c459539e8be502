"""The schema of the package for all languages: what Pulumi infers from the declared types, and what a registry shows."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pulumi
from pulumi.provider.experimental.analyzer import Analyzer
from pulumi.provider.experimental.schema import generate_schema

from dra_infra.provider import declarations
from dra_infra.provider.construction import PACKAGE
from dra_infra.release import VERSION

PATH: Final = Path(declarations.__file__).with_name("schema.json")

_SHOWN_IN_A_REGISTRY: Final = {
    "displayName": "dra-infra",
    "description": "GPU infrastructure for Kubernetes Dynamic Resource Allocation: classes, claims, MIG, tenants and drivers.",
    "keywords": [
        "pulumi",
        "category/infrastructure",
        "kind/component",
        "kubernetes",
        "gpu",
        "dynamic-resource-allocation",
    ],
    "license": "Apache-2.0",
}


def components() -> list[type[pulumi.ComponentResource]]:
    """Return the declared components, in the order of the module."""
    return [
        each
        for each in vars(declarations).values()
        if inspect.isclass(each) and issubclass(each, pulumi.ComponentResource)
    ]


def rendered() -> str:
    """Return the text of the schema, as the declared types have it now."""
    inferred = Analyzer(PACKAGE).analyze(components())
    schema = generate_schema(
        PACKAGE, VERSION, PACKAGE, inferred["component_definitions"], inferred["type_definitions"], []
    ).to_json()
    return json.dumps({**_plain(schema), **_SHOWN_IN_A_REGISTRY}, indent=1, ensure_ascii=False) + "\n"


def _plain(value: Any, *, is_inner: bool = False) -> Any:
    """Return a part of the schema with texts in one line, without what is empty, and without the text that inner types repeat."""
    if isinstance(value, dict):
        return {
            key: _plain(item, is_inner=key in ("items", "additionalProperties"))
            for key, item in value.items()
            if item is not None and not (is_inner and key == "description")
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return "\n\n".join(" ".join(each.split()) for each in value.split("\n\n"))
    return value


def changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yield each difference of two schemas that programs can notice, with `breaks` in front of those that break them."""
    for group, inputs, required in (
        ("resources", "inputProperties", "requiredInputs"),
        ("types", "properties", "required"),
    ):
        old, new = before.get(group, {}), after.get(group, {})
        yield from (f"breaks: {name} is gone" for name in sorted(old.keys() - new.keys()))
        yield from (f"{name} is new" for name in sorted(new.keys() - old.keys()))
        for name in sorted(old.keys() & new.keys()):
            yield from _changes_of(name, old[name], new[name], inputs, required)
            if group == "resources":
                yield from _changes_of(f"{name} outputs", old[name], new[name], "properties", "")


def _changes_of(
    name: str, old: dict[str, Any], new: dict[str, Any], properties: str, required: str
) -> Iterator[str]:
    was, now = old.get(properties, {}), new.get(properties, {})
    yield from (f"breaks: {name}: {key} is gone" for key in sorted(was.keys() - now.keys()))
    must, had_to = set(new.get(required, ())), set(old.get(required, ()))
    for key in sorted(now.keys() - was.keys()):
        yield f"breaks: {name}: {key} is new and required" if key in must else f"{name}: {key} is new"
    for key in sorted(was.keys() & now.keys()):
        if key in must - had_to:
            yield f"breaks: {name}: {key} became required"
        if key in had_to - must:
            yield f"{name}: {key} is optional now"
        if (before := _type_of(was[key])) != (after := _type_of(now[key])):
            yield f"breaks: {name}: {key} was {before}, and is {after}"
    lost = {each["value"] for each in old.get("enum", ())} - {each["value"] for each in new.get("enum", ())}
    yield from (f"breaks: {name}: the value {value} is gone" for value in sorted(lost))
    won = {each["value"] for each in new.get("enum", ())} - {each["value"] for each in old.get("enum", ())}
    yield from (f"{name}: the value {value} is new" for value in sorted(won))


def _type_of(property_: Any) -> str:
    """Return the type of a property in a short text."""
    plain = "plain " if property_.get("plain") else ""
    if "$ref" in property_:
        return plain + property_["$ref"].rpartition("/")[2]
    if "items" in property_:
        return f"{plain}list of {_type_of(property_['items'])}"
    if "additionalProperties" in property_:
        return f"{plain}map of {_type_of(property_['additionalProperties'])}"
    return plain + property_["type"]
