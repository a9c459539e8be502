"""Finds the class of pulumi-kubernetes for a kind of objects, what its constructor takes, and names of its resources."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

from pulumi import _types
from pydantic.alias_generators import to_snake

from dra_infra.kubernetes.api import mapping
from dra_infra.markers import AUTONAMED, is_name_made_up

CUSTOM_RESOURCE: Final = "k8s.apiextensions.CustomResource"
ANY_RESOURCE: Final = "pulumi.CustomResource"
"""Makes what has fields beside metadata and spec."""


class TypedData(NamedTuple):
    """The type of a value: a TypedDict of pulumi-kubernetes, or several of it in a list or under keys of the user's.

    Args:
        package: Where it is: `core`.
        version: Its version: `v1`.
        name: Its name; empty under keys of the user's whose values have no fields.
        is_map: Whether the keys are the user's.
    """

    package: str
    version: str
    name: str
    is_map: bool = False


class KubernetesClass(NamedTuple):
    """A class of pulumi-kubernetes.

    Args:
        function: As a program calls it: `k8s.apps.v1.Deployment`.
        arguments: The arguments that it takes, each with the type of its data; None where that has no fields.
    """

    function: str
    arguments: Mapping[str, TypedData | None]


@cache
def find_class(api_version: str, kind: str) -> KubernetesClass | None:
    """The class of exactly this version and kind; None where there is none."""
    group, _, version = api_version.rpartition("/")
    package = group.partition(".")[0] or "core"
    if not all(part.isascii() and part.isidentifier() for part in (package, version, kind)):
        return None
    try:
        found = getattr(import_module(f"pulumi_kubernetes.{package}.{version}"), kind, None)
    except ModuleNotFoundError:
        return None
    init = getattr(found, "_internal_init", None)
    token = f"'kubernetes:{'' if '/' in api_version else 'core/'}{api_version}:{kind}'"
    # Groups of others may begin with the same word: `apps.example.com`.
    if init is None or token not in inspect.getsource(init):
        return None
    arguments = {
        name: _type_of(parameter.annotation, package, version)
        for name, parameter in inspect.signature(init).parameters.items()
        if name not in ("__self__", "opts", "__props__")
    }
    return KubernetesClass(f"k8s.{package}.{version}.{kind}", arguments)


def argument_of(field: str) -> str:
    """The argument for a field at the top of an object."""
    return to_snake(field)


def function_for(
    version: str, kind: str, fields: Mapping[str, Any]
) -> tuple[str, Mapping[str, TypedData | None]]:
    """The function that makes an object as it is, the class of its kind or one for any kind, and types of its arguments."""
    known = find_class(version, kind)
    if known is not None and {argument_of(each) for each in fields} <= known.arguments.keys():
        return known.function, known.arguments
    return CUSTOM_RESOURCE if set(fields) <= {"metadata", "spec"} else ANY_RESOURCE, {}


def is_typed(manifest: Mapping[str, Any]) -> bool:
    """Checks that an object that is written as it is would be of a class that holds its fields to types."""
    fields = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    return function_for(str(manifest["apiVersion"]), str(manifest["kind"]), fields)[0] != ANY_RESOURCE


_NESTED: Final = re.compile(r"ForwardRef\('(?:_(\w+)\.(\w+)\.)?(\w+ArgsDict)'\)")


def _type_of(annotation: Any, package: str, version: str) -> TypedData | None:
    text = repr(annotation)
    is_map = "typing.Mapping[str" in text
    if (nested := _NESTED.search(text)) is None:
        return TypedData(package, version, "", is_map=True) if is_map else None
    return TypedData(nested[1] or package, nested[2] or version, nested[3], is_map)


@cache
def fields_of(data: TypedData) -> Mapping[str, tuple[str, TypedData | None]]:
    """For each field of a TypedDict, as a manifest spells it, the key of the program and the type of its value."""
    module = import_module(f"pulumi_kubernetes.{data.package}.{data.version}._inputs")
    written = getattr(module, data.name).__annotations__
    # Spelt as the SDK spells them, which gives `clusterIP` for `cluster_ip`.
    spelt = _types.input_type_py_to_pulumi_names(getattr(module, data.name.removesuffix("Dict")))
    return {
        spelt[key]: (key, _type_of(annotation, data.package, data.version))
        for key, annotation in written.items()
        if key in spelt
    }


@cache
def _types_at_top(api_version: str, kind: str) -> Mapping[str, Any]:
    """The types of the fields at the top of an object, as far as Pulumi knows them."""
    known = find_class(api_version, kind)
    if known is None:
        return {"metadata": import_module("pulumi_kubernetes.meta.v1").ObjectMetaArgs}
    _, package, version, name = known.function.split(".")
    module = import_module(f"pulumi_kubernetes.{package}.{version}.{name}")
    return _types.input_type_types(getattr(module, f"{name}InitArgs"))


def find_misfits(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Paths at which an object has a list or an object where the class of its kind has another type, which Pulumi asserts, or a truth where that has a text."""
    types = _types_at_top(str(manifest["apiVersion"]), str(manifest["kind"]))
    for name, value in manifest.items():
        yield from _misfits(value, types.get(name, Any), name)


@cache
def _plain_type(kind: Any) -> tuple[Any, Mapping[str, Any]]:
    """A type without what may be an output of it, and the types of its fields."""
    kind = _types.unwrap_type(kind)
    return kind, _types.input_type_types(kind) if _types.is_input_type(kind) else {}


def _misfits(value: Any, kind: Any, path: str) -> Iterator[str]:
    kind, known = _plain_type(kind)
    origin = get_origin(kind)
    arguments = get_args(kind)
    if isinstance(value, list) and origin in (list, Sequence):
        for index, each in enumerate(value):
            yield from _misfits(each, arguments[0], f"{path}[{index}]")
    elif isinstance(value, Mapping) and (_types.is_input_type(kind) or origin in (dict, Mapping)):
        for name, each in value.items():
            yield from _misfits(each, known.get(name, arguments[1] if arguments else Any), f"{path}.{name}")
    elif kind is str and isinstance(value, bool):
        # No text, and no number, which a quantity may be.
        yield path
    elif isinstance(value, Mapping | list) and kind is not Any:
        # Of several types one has to take it.
        types = arguments if origin is Union else ()
        if all(any(_misfits(value, each, path)) for each in types):
            yield path


Stems = tuple[str, Sequence[str], bool]
"""The function that makes a resource, names that it may have, the best first, and whether the first is the object's own."""


def choose_names(stems: Mapping[int, Stems]) -> dict[int, str]:
    """The name of each resource: the first of its own that no other of its type would have."""
    chosen: dict[int, str] = {}
    taken: set[tuple[str, str]] = set()
    for level in range(3):
        left = {index: (each[0], each[1][level]) for index, each in stems.items() if index not in chosen}
        wanted = Counter(left.values())
        own = Counter(key for index, key in left.items() if not level and stems[index][2])
        for index, key in left.items():
            is_alone = wanted[key] == 1 or (own[key] == 1 and stems[index][2])
            if is_alone and key not in taken:
                chosen[index] = key[1]
        taken |= {(stems[index][0], name) for index, name in chosen.items()}
    numbers: Counter[tuple[str, str]] = Counter()
    for index, (function, names, _) in stems.items():
        # One object twice, or several whose names servers make up.
        while index not in chosen:
            numbers[function, names[2]] += 1
            if (key := (function, f"{names[2]}-{numbers[function, names[2]] + 1}")) not in taken:
                taken.add(key)
                chosen[index] = key[1]
    return chosen


def stem_of(manifest: Mapping[str, Any]) -> str:
    """The name of the resource of an object that has no name; empty where it has one."""
    metadata = mapping(manifest.get("metadata"))
    if is_name_made_up(manifest):
        return str(metadata["name"]).partition("-*")[0]
    start = "" if metadata.get("name") else str(metadata.get("generateName") or "")
    return start and (start.rstrip("-.") or "object")


def without_name(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an object that Pulumi names."""
    annotations = {
        key: each for key, each in mapping(metadata.get("annotations")).items() if key != AUTONAMED
    }
    rest = {key: each for key, each in metadata.items() if key not in ("name", "generateName", "annotations")}
    return {**rest, "annotations": annotations} if annotations else rest
