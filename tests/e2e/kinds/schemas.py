"""What the schemas of definitions say about pods: where a PodSpec is, and what is at a path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.workload_crds import Manifest

Path = tuple[str, ...]
"""Steps from the root of an object; `*` is every item of a list and every value of a map."""

ANY = "*"


@dataclass(frozen=True)
class Served:
    """One version of a kind that an API server serves; one of them is the form in which objects are stored."""

    group: str
    version: str
    kind: str
    is_stored: bool
    schema: Manifest = field(repr=False, hash=False)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}/{self.kind}"


def served_versions(definitions: Iterable[Manifest]) -> Iterator[Served]:
    """All versions that *definitions* serve."""
    for definition in definitions:
        spec = definition["spec"]
        for version in spec["versions"]:
            if version["served"]:
                schema = version.get("schema", {}).get("openAPIV3Schema", {})
                kind = spec["names"]["kind"]
                is_stored = version["storage"]
                yield Served(spec["group"], version["name"], kind, is_stored, schema)


def find_pod_specs(schema: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """Paths of everything with a list of containers, outside of the status."""
    if (schema.get("properties", {}).get("containers") or {}).get("type") == "array":
        yield path
    yield from _below(schema, path, find_pod_specs)


def find_containers(schema: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """Paths of everything with an image and resources that is not in a pod spec, outside of the status."""
    properties = schema.get("properties", {})
    if "containers" in properties and "nodeSelector" in properties:
        return
    if {"image", "resources"} <= properties.keys():
        yield path
    yield from _below(schema, path, find_containers)


def _below(schema: Mapping[str, Any], path: Path, find: Any) -> Iterator[Path]:
    for name, value in schema.get("properties", {}).items():
        if (*path, name) != ("status",):
            yield from find(value, (*path, name))
    for value in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(value, Mapping):
            yield from find(value, (*path, ANY))


def descend(schema: Mapping[str, Any], path: Path) -> tuple[Mapping[str, Any], Path] | None:
    """The schema at *path* and the path as `find_pod_specs` writes it: keys of a map are `*` there.

    None where no field has that name. Below a place that keeps whatever it is given there is no schema to look into: an
    empty one then.
    """
    found: Path = ()
    for step in path:
        if is_open(schema):
            return {}, path
        fields = schema.get("properties", {})
        below = fields[step] if step in fields else _each(schema)
        if not isinstance(below, Mapping) or (step not in fields and "items" in schema and step != ANY):
            return None
        found = (*found, step if step in fields else ANY)
        schema = below
    return schema, found


def is_open(schema: Mapping[str, Any]) -> bool:
    """Checks that a place keeps whatever it is given, and that nothing is said about it."""
    return bool(schema.get("x-kubernetes-preserve-unknown-fields")) and not schema.get("properties")


def object_with(served: Served, path: Path, value: Any) -> Manifest:
    """An object that has *value* at *path*, and nothing else but what names the items of lists on the way."""
    body = _wrap(served.schema, path, value)
    metadata = {"name": "held"}
    return {
        "apiVersion": f"{served.group}/{served.version}",
        "kind": served.kind,
        "metadata": metadata,
        **body,
    }


def _wrap(schema: Mapping[str, Any], path: Path, value: Any) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    fields = schema.get("properties", {})
    if step in fields or step != ANY:
        return {step: _wrap(fields.get(step) or _each(schema) or {}, rest, value)}
    inner = _wrap(_each(schema) or {}, rest, value)
    if schema.get("type") == "array":
        return [{**dict.fromkeys(schema.get("x-kubernetes-list-map-keys", ()), "held"), **inner}]
    return {"held": inner}


def asking_for_pods_alone(definition: Manifest, paths: Iterable[Path]) -> Manifest:
    """The definition without what it asks of an object on the way to *paths*; what it keeps and drops is the same.

    Nor has it descriptions, which are most of it: a server writes all of them anew for each definition that comes.
    """
    changed: Manifest = _without_descriptions(definition)
    for version in changed["spec"]["versions"]:
        for path in paths:
            schema = version["schema"]["openAPIV3Schema"]
            keys = []
            for step in (*path, None):
                schema.pop("x-kubernetes-validations", None)
                schema.pop("required", None)
                # The keys of a list are asked for by every server.
                if keys:
                    schema["required"] = keys
                keys = schema.get("x-kubernetes-list-map-keys", [])
                below = schema.get("properties", {}).get(step) or _each(schema)
                if not isinstance(below, dict):
                    break
                schema = below
    return changed


def _without_descriptions(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_descriptions(each) for each in value]
    if not isinstance(value, dict):
        return value
    # A field may have that name too; its value is a schema.
    return {
        key: _without_descriptions(each)
        for key, each in value.items()
        if key != "description" or isinstance(each, dict)
    }


def _each(schema: Mapping[str, Any]) -> Any:
    items = schema.get("items")
    return items if items is not None else schema.get("additionalProperties")
