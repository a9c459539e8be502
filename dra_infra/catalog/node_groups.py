"""Groups of equal nodes of a fleet, and the patterns of devices, slices and pools that they publish.

A group has its hardware, the release and settings of its driver, its labels and taints. What its nodes publish is
kept once for all of them: devices, slices and pools without what differs per node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dra_infra.catalog.drivers import DeviceType, DriverRelease, drivers
from dra_infra.catalog.gpus import systems
from dra_infra.catalog.machines import node_kinds
from dra_infra.catalog.records import FleetKind
from dra_infra.kubernetes.api import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    NodeTaint,
    Quantity,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeGroup:
    """A group of equal nodes; `group_settings` makes it from what people write, and checks it.

    Args:
        kind_name: Name of the kind, one of `node_kinds()`.
        count: Nodes, or racks where the kind is one.
        name: What the nodes are called, before their number.
        line: Release line of the driver.
        devices: GPUs per node, or devices of the example driver.
        mig: Profiles of each GPU, in the order of the GPUs; those behind the last are not in MIG mode.
        gates: Feature gates of the driver that are on, of those that decide what it publishes.
        shares: The driver's value `consumableShares`; empty for none.
        compute_domains: Whether `compute-domain.nvidia.com` publishes too.
        dranet: Whether DRANET publishes the network interfaces too.
        partitions: The example driver's value `gpuPartitions`.
        shareable: The example driver's value `gpuAllowMultipleAllocations`.
        labels: Labels beside those that every such node has.
        taints: Taints of the nodes.
        allocatable: Resources of a node that differ from those of the kind.
    """

    kind_name: str
    count: int
    name: str
    line: str
    devices: int
    mig: tuple[tuple[str, ...], ...] = ()
    gates: frozenset[str] = frozenset()
    shares: str = ""
    compute_domains: bool = False
    dranet: bool = False
    partitions: int = 0
    shareable: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[NodeTaint, ...] = ()
    allocatable: tuple[tuple[str, str], ...] = ()

    @property
    def kind(self) -> FleetKind:
        """The facts of the kind."""
        return node_kinds()[self.kind_name]

    @property
    def release(self) -> DriverRelease:
        """The driver's release line, which says what is published."""
        return drivers()[self.kind.driver].by_line[self.line]

    @property
    def rack_nodes(self) -> int:
        """Nodes of a rack; 0 where the kind is no rack."""
        return (systems()[self.kind.system].nodes_per_rack or 0) if self.kind.system else 0

    @property
    def nodes(self) -> int:
        """How many nodes the group has."""
        return self.count * (self.rack_nodes or 1)

    def times(self, count: int) -> NodeGroup:
        """The same group with another count."""
        return replace(self, count=count)

    def __str__(self) -> str:
        """The term that reads as this group; what a text cannot say is left out."""
        kind = self.kind
        said = [f"{self.kind_name} x {self.count}"]
        if self.line != kind.line:
            said.append(f"driver={self.line}")
        if self.devices != kind.count:
            said.append(f"devices={self.devices}")
        if self.mig and len(self.mig) == self.devices and len(set(self.mig)) == 1:
            profiles = self.mig[0]
            counted = (f"{profile}*{profiles.count(profile)}" for profile in dict.fromkeys(profiles))
            said.append(f"mig={'+'.join(counted)}")
        flags = {
            "dynamic-mig": "DynamicMIG" in self.gates,
            "fabric-partitions": "FabricManagerPartitioning" in self.gates,
            "vfio": "PassthroughSupport" in self.gates,
            f"shares={self.shares}": bool(self.shares),
            "compute-domains": self.compute_domains and not kind.compute_domains,
            "dranet": self.dranet,
            f"partitions={self.partitions}": bool(self.partitions),
            "shareable": self.shareable,
        }
        return " ".join([*said, *(flag for flag, on in flags.items() if on)])


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
    """Attributes of a device: those that every such device publishes, and of the others those with a given value.

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
    """Reads capacities like attributes; their values are quantities in the API server's spelling."""
    capacity: dict[str, DeviceCapacity] = {}
    for qualified, entry in type_.capacity.items():
        name = short_name(qualified, type_)
        value = values.get(name, entry.sample or None)
        if value is not None:
            capacity[name] = value if isinstance(value, DeviceCapacity) else DeviceCapacity(value=value)
        elif not entry.absent:
            raise LookupError(f"{type_.driver} {type_.name}: no value for {qualified}")
    return capacity


def shareable_capacity(value: str, *, default: str, least: str, step: str) -> DeviceCapacity:
    """A capacity of which several claims take parts: from *least* on, in steps, and *default* where nothing is said."""
    parts = CapacityRequestPolicyRange(min=least, max=value, step=step)
    policy = CapacityRequestPolicy(default=default, valid_range=parts)
    return DeviceCapacity(value=value, request_policy=policy)


def short_name(qualified: str, type_: DeviceType) -> str:
    """The name as the driver writes it into a slice."""
    entry = type_.attributes.get(qualified) or type_.capacity.get(qualified)
    return qualified if entry and entry.is_prefixed else qualified.removeprefix(f"{type_.driver}/")


def mebibytes(amount: int) -> str:
    """An amount of memory in MiB, as the API server prints it."""
    return Quantity.parse(f"{amount}Mi").canonical()
