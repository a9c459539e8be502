"""What the nodes of a group publish, once for all of them: devices, slices and pools without what differs per node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dra_infra.catalog.drivers import DeviceType
from dra_infra.model.device import CounterSet
from dra_infra.model.quantity import Quantity
from dra_infra.model.resource_slice import Device, DeviceAttribute, DeviceCapacity


class Seeded(NamedTuple):
    """An attribute that differs per node: a prefix and a UUID made of the node's name and *seed*."""

    attribute: str
    prefix: str
    seed: str


class DevicePattern(NamedTuple):
    """A device of every node of a group, and the attributes that each node has for itself."""

    device: Device
    seeded: tuple[Seeded, ...] = ()


class SlicePattern(NamedTuple):
    """A slice of every node of a group."""

    devices: tuple[DevicePattern, ...] = ()
    counters: tuple[CounterSet, ...] = ()


class PoolPattern(NamedTuple):
    """The slices that a driver publishes on every node of a group, in the order of publication."""

    driver: str
    slices: tuple[SlicePattern, ...]

    @property
    def device_count(self) -> int:
        """How many devices a node has of this driver."""
        return sum(len(slice_.devices) for slice_ in self.slices)


def by_name(devices: list[DevicePattern]) -> tuple[DevicePattern, ...]:
    """*devices* in the order in which the NVIDIA driver publishes them."""
    return tuple(sorted(devices, key=lambda pattern: pattern.device.name))


def attributes_of(
    type_: DeviceType, values: Mapping[str, Any], *, seeded: tuple[Seeded, ...] = ()
) -> dict[str, DeviceAttribute]:
    """What every such device publishes, with the given values, and of what only some publish that which has one.

    Args:
        type_: The type of device, of one release line.
        values: By name as the driver writes it; None for what this device does not have.
        seeded: What is added per node.

    Raises:
        LookupError: When something that every such device publishes has no value.
    """
    attributes: dict[str, DeviceAttribute] = {}
    for qualified, entry in type_.attributes.items():
        name = short_name(qualified, type_)
        value = values.get(name, entry.value if entry.value is not None else entry.sample or None)
        if value is not None:
            kind = f"{entry.type}s" if isinstance(value, list) else entry.type
            attributes[name] = DeviceAttribute.model_validate({kind: value})
        elif not entry.absent and not any(each.attribute == name for each in seeded):
            raise LookupError(f"{type_.driver} {type_.name}: no value for {qualified}")
    return attributes


def capacity_of(
    type_: DeviceType, values: Mapping[str, str | DeviceCapacity | None]
) -> dict[str, DeviceCapacity]:
    """The same for capacities, whose values are quantities in the API server's spelling."""
    capacity: dict[str, DeviceCapacity] = {}
    for qualified, entry in type_.capacity.items():
        name = short_name(qualified, type_)
        value = values.get(name, entry.sample or None)
        if value is not None:
            capacity[name] = value if isinstance(value, DeviceCapacity) else DeviceCapacity(value=value)
        elif not entry.absent:
            raise LookupError(f"{type_.driver} {type_.name}: no value for {qualified}")
    return capacity


def short_name(qualified: str, type_: DeviceType) -> str:
    """The name as the driver writes it into a slice."""
    return qualified.removeprefix(f"{type_.driver}/")


def mebibytes(amount: int) -> str:
    """An amount of memory in MiB, as the API server prints it."""
    return Quantity.parse(f"{amount}Mi").canonical()
