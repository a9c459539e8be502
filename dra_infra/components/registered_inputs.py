"""The inputs of components in the state: the arguments as they were given, for previews, policies and `pulumi stack export`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import pulumi
from pydantic.alias_generators import to_camel

from dra_infra.selectors.attributes import Attribute
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import is_text
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.requests import NamedClass, class_name_of

_NOT_REGISTERED: Final = frozenset({"opts", "target"})
"""Arguments that say how a component is made, and nothing of what it makes."""

_LEFT_OUT: Final = object()


def inputs_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs to register for *arguments*.

    Keys are in camel case, as in the state of every other resource. Selectors are CEL texts, classes their names,
    records their fields. Outputs stay Outputs, and secrets stay secrets. What is of no type that the engine knows is
    left out; where an argument has a wrong type, its component reports that.

    Args:
        arguments: Arguments by name, without those that were not given.
    """
    registered = {
        _camel_case(name): _input_of(value)
        for name, value in arguments.items()
        if name not in _NOT_REGISTERED
    }
    return {name: value for name, value in registered.items() if value is not _LEFT_OUT}


_camel_case: Final = lru_cache(maxsize=1024)(to_camel)
"""The arguments of a thousand components have few names."""


def _input_of(value: Any) -> Any:
    plain = value if isinstance(value, (str, int)) else _plain(value)
    if isinstance(plain, (bool, int, float, pulumi.Output)):
        return plain
    if isinstance(plain, str):
        return plain if is_text(plain) else _LEFT_OUT
    if isinstance(plain, Mapping):
        entries = ((_plain(key), _input_of(item)) for key, item in plain.items())
        return {key: item for key, item in entries if _is_key(key) and item is not _LEFT_OUT}
    if isinstance(plain, (list, tuple)):
        items = (_input_of(item) for item in plain)
        return [item for item in items if item is not _LEFT_OUT]
    return _LEFT_OUT


def _plain(value: Any) -> Any:
    """Return what stands for a value of our own types; *value* itself for any other."""
    match value:
        case Selector():
            return value.expression()
        case Attribute():
            return value.qualified_name
        case NamedClass():
            return class_name_of(value)
        case DeviceConfig():
            return value.to_parameters()
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {_camel_case(name): getattr(value, name) for name in _given_fields(value)}
        case _:
            return value


def _given_fields(record: Any) -> list[str]:
    """Return the names of the fields of *record* that differ from their defaults."""

    def is_default(each: dataclasses.Field[Any]) -> bool:
        value = getattr(record, each.name)
        if each.default_factory is not dataclasses.MISSING:
            return bool(value == each.default_factory())
        return value is each.default

    return [each.name for each in dataclasses.fields(record) if not is_default(each)]


def _is_key(key: object) -> bool:
    return isinstance(key, str) and is_text(key)
