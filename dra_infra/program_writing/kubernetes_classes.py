"""Finds the class of pulumi-kubernetes for a kind of objects, and what its constructor takes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

from pulumi import _types
from pydantic.alias_generators import to_snake


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
    origin, arguments = get_origin(kind), get_args(kind)
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
