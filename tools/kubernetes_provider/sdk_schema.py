"""The schema of the kinds that programs in YAML use in tests, read from the types of the vendor's Python SDK.

The vendor's schema has all kinds and 20 megabytes. A program in YAML is checked against it before anything is made, so the types of
these kinds are the vendor's own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Union, get_args, get_origin

import pulumi
from pulumi import _types

_PACKAGE: Final = "pulumi_kubernetes"

KINDS: Final = (
    "apps/v1:Deployment",
    "apps/v1:StatefulSet",
    "batch/v1:CronJob",
    "batch/v1:Job",
    "core/v1:ConfigMap",
    "core/v1:Namespace",
    "core/v1:Pod",
    "resource.k8s.io/v1:DeviceClass",
    "resource.k8s.io/v1:ResourceClaim",
    "resource.k8s.io/v1:ResourceClaimTemplate",
)
"""Group, version and kind of what a program may have."""

_PLAIN: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}

Json = dict[str, Any]


def schema_text(version: str) -> str:
    """Return the schema as JSON, with the version of the provider."""
    types: dict[str, Json] = {}
    resources = {f"kubernetes:{kind}": _resource(kind, types) for kind in KINDS}
    return json.dumps({"name": "kubernetes", "version": version, "resources": resources, "types": types})


def _resource(kind: str, types: dict[str, Json]) -> Json:
    module, _, name = kind.partition(":")
    folder = module.replace(".k8s.io", "").replace("/", ".")
    arguments = getattr(import_module(f"{_PACKAGE}.{folder}.{name}"), f"{name}InitArgs")
    # Programs need not write what the type says.
    written = {"apiVersion": module.removeprefix("core/"), "kind": name}
    constants = {key: {"type": "string", "const": value} for key, value in written.items()}
    properties = {**_properties(arguments, types), **constants}
    return {"inputProperties": properties, "properties": properties}


def _properties(arguments: type, types: dict[str, Json]) -> Json:
    """Return the properties of a class of inputs; classes that they name go into *types*."""
    return {name: _property(type_, types) for name, type_ in _types.input_type_types(arguments).items()}


def _property(type_: Any, types: dict[str, Json]) -> Json:
    origin, inside = get_origin(type_), get_args(type_)
    if origin is Union:
        # An input is its own type, or an Awaitable or an Output of it.
        members = [each for each in inside if get_origin(each) not in (Awaitable, pulumi.Output)]
        plain = [each for each in members if each is not type(None)]
        if len(plain) == 1:
            return _property(plain[0], types)
        return {"oneOf": [_property(each, types) for each in plain]}
    if origin is Sequence or origin is list:
        return {"type": "array", "items": _property(inside[0], types)}
    if origin is Mapping or origin is dict:
        return {"type": "object", "additionalProperties": _property(inside[1], types)}
    if type_ in _PLAIN:
        return {"type": _PLAIN[type_]}
    if not _types.is_input_type(type_):
        return {"$ref": "pulumi.json#/Any"}
    token = _token(type_)
    if token not in types:
        # Before its properties: types may name each other in a circle.
        types[token] = {}
        types[token] = {"type": "object", "properties": _properties(type_, types)}
    return {"$ref": f"#/types/{token}"}


def _token(class_: type) -> str:
    """Return the token of a class: `kubernetes:core/v1:PodSpec` of `pulumi_kubernetes.core.v1._inputs.PodSpecArgs`."""
    group, version = class_.__module__.removeprefix(f"{_PACKAGE}.").split(".")[:2]
    return f"kubernetes:{group}/{version}:{class_.__name__.removesuffix('Args')}"


if __name__ == "__main__":
    sys.stdout.write(schema_text(sys.argv[1]))
