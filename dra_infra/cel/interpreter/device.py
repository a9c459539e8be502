"""A device as the variables of an expression (DeviceMatches in the `cel` package of DRA)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dra_infra.cel.interpreter.amounts import read_amount
from dra_infra.cel.interpreter.maps import DomainMap, NativeMap
from dra_infra.cel.interpreter.values import QuantityValue, Value
from dra_infra.model.semver import Semver

if TYPE_CHECKING:
    from dra_infra.model.resource_slice import DeviceAttribute, DeviceCapacity


def read_device(
    driver: str,
    attributes: Mapping[str, DeviceAttribute],
    capacity: Mapping[str, DeviceCapacity],
    shared: bool,  # noqa: FBT001  (a field of the device)
) -> dict[str, Value]:
    """The variables by name; every value is known to be readable."""
    fields = {
        "driver": driver,
        "allowMultipleAllocations": shared,
        "attributes": _group(driver, attributes, _attribute),
        "capacity": _group(driver, capacity, lambda each: QuantityValue(read_amount(each.value))),
    }
    return {
        "device": NativeMap.of(fields.items()),
        **{f"device.{name}": value for name, value in fields.items()},
    }


def _group(driver: str, named: Mapping[str, Any], convert: Callable[[Any], Value]) -> DomainMap:
    domains: dict[str, list[tuple[str, Value]]] = {}
    for name in sorted(named):
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, []).append((identifier, convert(named[name])))
    return DomainMap.of((domain, NativeMap.of(pairs)) for domain, pairs in domains.items())


def _attribute(attribute: DeviceAttribute) -> Value:
    for values in (attribute.ints, attribute.bools, attribute.strings):
        if values is not None:
            return list(values)
    if attribute.versions is not None:
        return [Semver.parse(text) for text in attribute.versions]
    for value in (attribute.int_, attribute.bool_, attribute.string):
        if value is not None:
            return value
    return Semver.parse(attribute.version or "")
