"""Devices of a simulated driver on its node: those that the catalogue's driver would publish there."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from dra_infra.catalog.driver_gates import gates_of
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.fleets import load_node
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.errors import PluginError
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Counter, CounterSet, Device, Quantity
from dra_infra.plugin.configs import ConfigDecoder

NVIDIA: Final = "gpu.nvidia.com"

_SHARING_GATES: Final = ("TimeSlicingSettings", "MPSSupport")
"""Gates that are on in a simulated driver: a fleet's text says only those that decide what is published."""

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "sim.dra-infra")

_PCI: Final = ("resource.kubernetes.io/pciBusID", "pcieBusID")


Amounts = Mapping[str, Fraction]


@dataclass(frozen=True, kw_only=True)
class SimulatedNode:
    """A node as its driver found it.

    Args:
        driver: What the driver is called here.
        origin: Which driver of the catalogue it plays; of a driver that the catalogue does not have, its own name.
        devices: By name, in the order of publication.
        decoder: Reads configs as that release does.
    """

    name: str
    driver: str
    origin: str
    devices: Mapping[str, Device]
    counters: tuple[CounterSet, ...]
    decoder: ConfigDecoder

    def type_of(self, device: str) -> str:
        """The catalogue's type of a device: gpu, mig, vfio, nic."""
        found = self.attribute(device, "type")
        if self.origin == NVIDIA or found or self.origin not in drivers():
            return str(found or "")
        return next(iter(drivers()[self.origin].newest.devices), "")

    def attribute(self, device: str, name: str) -> Any:
        """The value of an attribute; None where the device has none of that name."""
        known = self.devices.get(device)
        found = (known.attributes or {}).get(name) if known else None
        if found is None:
            return None
        values = (found.string, found.int_, found.bool_, found.version, found.ints, found.strings)
        return next((value for value in values if value is not None), None)

    def gpu_of(self, device: str) -> str:
        """Key that all devices of one GPU share: its PCI address, or the device's own name."""
        if self.origin != NVIDIA:
            return device
        return next(
            (str(self.attribute(device, each)) for each in _PCI if self.attribute(device, each)), device
        )

    @cached_property
    def passes_through(self) -> bool:
        """True where GPUs are published a second time, to be passed through."""
        return any(self.type_of(name) == "vfio" for name in self.devices)

    def consumed(self, device: str) -> Mapping[str, Amounts]:
        """Amounts that a device takes of each counter set; none for a device that is not known."""
        if device not in self._consumed and device in self.devices:
            found = self.devices[device].consumes_counters or ()
            self._consumed[device] = {each.counter_set: _amounts(each.counters) for each in found}
        return self._consumed.get(device, {})

    def totals(self, counter_set: str) -> Amounts:
        """Amounts of each counter of a set."""
        return self._totals.get(counter_set, {})

    @cached_property
    def _totals(self) -> Mapping[str, Amounts]:
        return {each.name: _amounts(each.counters) for each in self.counters}

    @cached_property
    def _consumed(self) -> dict[str, Mapping[str, Amounts]]:
        return {}

    def made_uuid(self, device: str) -> str:
        """UUID of a MIG device that the driver makes, the same each time: NVML's is not known before it is there."""
        return f"MIG-{uuid.uuid5(_NAMESPACE, f'{self.name}/{device}')}"

    def is_made(self, device: str) -> bool:
        """True where the driver makes the device when a claim needs it: a MIG device under the gate DynamicMIG."""
        known = self.devices.get(device)
        return self.type_of(device) == "mig" and bool(known and known.consumes_counters)


def simulate_node(fleet: str | Fleet, *, node: str, driver: str | None = None) -> SimulatedNode:
    """The node of that name, or the first one under that name.

    Args:
        fleet: A fleet, or its text or file as `docs/fleets.md` has it.
        node: Name of this node.
        driver: Which of the fleet's drivers it is, or what to call the one that there is; None for the first, which is
            that of the GPUs.

    Raises:
        FleetError: As `load_fleet`.
        PluginError: `sim-no-devices`.
    """
    read = load_node(fleet, node)
    found = [slice_.spec.driver for slice_ in read.slices]
    # That of the GPUs is published first in a named fleet, and sorts behind compute-domain.nvidia.com in a file.
    origin = next((each for each in (driver, NVIDIA, *found) if each in found), "")
    called = driver or origin
    specs = [slice_.spec for slice_ in read.slices if slice_.spec.driver == origin]
    devices = [_called(each, origin, called) for spec in specs for each in spec.devices or ()]
    if not devices:
        message = f"the fleet {_said(fleet)!r} has no devices on its first node, nor on one called {node}"
        raise PluginError.of(
            path="fleet", code="sim-no-devices", message=message, hint="write --fleet hgx-h100"
        )
    return SimulatedNode(
        name=node,
        driver=called,
        origin=origin,
        devices={each.name: each for each in devices},
        counters=tuple(each for spec in specs for each in spec.shared_counters or ()),
        decoder=_decoder(origin, read.group, devices),
    )


def _amounts(counters: Mapping[str, Counter] | None) -> Amounts:
    return {name: Quantity.parse(each.value).value for name, each in (counters or {}).items()}


def _decoder(origin: str, group: NodeGroup | None, devices: Sequence[Device]) -> ConfigDecoder:
    line = group.line if group and origin in drivers() and group.line in drivers()[origin].by_line else None
    if origin != NVIDIA:
        return ConfigDecoder(origin, line=line)
    line = line or drivers()[NVIDIA].newest.line
    on = {*_SHARING_GATES, *(group.gates if group else ()), *_seen_gates(devices)} & gates_of(line).keys()
    return ConfigDecoder(origin, line=line, gates=dict.fromkeys(sorted(on), True))


def _seen_gates(devices: Sequence[Device]) -> Iterator[str]:
    """Gates without which the driver would not publish such devices."""
    if any(device.consumes_counters for device in devices):
        yield "DynamicMIG"
    if any(device.allow_multiple_allocations for device in devices):
        yield "ConsumableShares"
    types = ((device.attributes or {}).get("type") for device in devices)
    if any(type_ and type_.string == "vfio" for type_ in types):
        yield "PassthroughSupport"


def _called(device: Device, origin: str, driver: str) -> Device:
    """The device of a driver of another name: names with the driver's domain change with it."""
    capacity = device.capacity or {}
    if origin == driver or not any(name.startswith(f"{origin}/") for name in capacity):
        return device
    pattern = re.compile(f"^{re.escape(origin)}/")
    return device.changed(
        {"capacity": {pattern.sub(f"{driver}/", name): each for name, each in capacity.items()}}
    )


def _said(fleet: str | Fleet) -> str:
    return (fleet.name if isinstance(fleet, Fleet) else fleet).strip()[:80]
