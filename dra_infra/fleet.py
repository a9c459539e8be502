"""A fleet: the nodes, the ResourceSlices published for them, and the classes that come with their drivers.

The scheduler knows these. Node pools that may grow, their prices and the limits that they share are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Literal

from dra_infra.kubernetes.api import Device, DeviceClass, Node, ResourceSlice

ANNOTATED: Final = "annotations"
"""Name of the machine of a pool that annotations describe and no label names."""
_MOST_NAMED: Final = 8
"""Pools that the name of a fleet that has grown tells."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Billing:
    """What prices of node pools are in, and whose costs are told apart.

    Args:
        currency: A label, such as `USD`; empty for none.
        per: The time that a price is for: `hour`.
        team_label: Label of workloads, or of their pods, that names their team, which pays; empty, or not there, the namespace pays.
    """

    currency: str = ""
    per: str = "hour"
    team_label: str = "team"

    def show(self, amount: Decimal) -> str:
        """`196.64 USD an hour`: with two decimals, or as many as were given."""
        exponent = amount.as_tuple().exponent
        digits = max(2, -exponent if isinstance(exponent, int) else 2)
        return f"{amount:,.{digits}f} {self.unit}"

    @property
    def unit(self) -> str:
        """`USD an hour`."""
        currency = f"{self.currency} " if self.currency else ""
        return f"{currency}{'an' if self.per == 'hour' else 'a'} {self.per}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """Hardware to place pods on; every device and node in it is free.

    Args:
        name: What the user called it: `hgx-h100 x 4`, or the path of the file.
        nodes: The nodes, sorted by name.
        slices: The published devices, sorted by name of the slice object.
        classes: The device classes that the drivers of the fleet ship, sorted by name.
        notes: What was in the source and is not part of the answer, in the user's words.
        pools: The node pools that may grow; what they have now is among the nodes.
        limits: What several of them may have together.
        billing: What their prices are in.
        driver_releases: Names of the releases of drivers that publish the devices, as far as they are known.
        is_partial: Whether its cluster may have other nodes too: hardware by name stands for the nodes with devices alone, and
            nodes that an autoscaler adds may have other labels.
    """

    name: str
    nodes: tuple[Node, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    notes: tuple[str, ...] = ()
    pools: tuple[NodePool, ...] = ()
    limits: tuple[SharedLimit, ...] = ()
    billing: Billing = field(default_factory=Billing)
    driver_releases: tuple[str, ...] = field(default=(), compare=False)
    is_partial: bool = field(default=False, compare=False)

    @property
    def device_count(self) -> int:
        """How many devices the slices hold, whatever their pool's state."""
        return sum(len(slice_.spec.devices or ()) for slice_ in self.slices)

    @property
    def at_limits(self) -> Fleet:
        """The fleet with each pool as large as it alone may be, even where not all may at once, under the same name."""
        return replace(self.grown([len(pool.spare) for pool in self.pools]), name=self.name)

    def allows(self, added: Sequence[int]) -> bool:
        """True where shared limits leave room for so many more nodes of each pool, or of the first of them."""
        return all(limit.leaves(added) >= 0 for limit in self.limits)

    def with_classes(self, classes: Iterable[DeviceClass]) -> Fleet:
        """The fleet with these classes too; one that it has under the same name stays as it is."""
        known = {each.metadata.name for each in self.classes}
        more = tuple(each for each in classes if each.metadata.name not in known)
        if not more:
            return self
        return replace(
            self, classes=tuple(sorted((*self.classes, *more), key=lambda each: each.metadata.name or ""))
        )

    def grown(self, added: Sequence[int]) -> Fleet:
        """The fleet with so many more nodes, or racks, of each of its pools."""
        more = [each for pool, number in zip(self.pools, added, strict=True) for each in pool.spare[:number]]
        if not more:
            return self
        nodes = (*self.nodes, *(node for each in more for node in each.nodes))
        slices = (*self.slices, *(slice_ for each in more for slice_ in each.slices))
        sizes = [
            f"{pool.name} x {pool.now + number}"
            for pool, number in zip(self.pools, added, strict=True)
            if number
        ]
        if len(sizes) > _MOST_NAMED:
            sizes = [*sizes[:_MOST_NAMED], "..."]
        return replace(
            self,
            name=f"{self.name} with {', '.join(sizes)}",
            nodes=tuple(sorted(nodes, key=lambda node: node.name)),
            slices=tuple(sorted(slices, key=lambda slice_: slice_.metadata.name or "")),
        )

    def to_manifests(self) -> tuple[dict[str, Any], ...]:
        """The fleet as Kubernetes objects: classes, then nodes, then slices."""
        return (
            *(class_.to_manifest() for class_ in self.classes),
            *(node.to_manifest() for node in self.nodes),
            *(slice_.to_manifest() for slice_ in self.slices),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedLimit:
    """Bounds what further nodes of several pools may have of one thing together: a NodePool that takes several machines is such pools.

    Args:
        pool: The user's name of them together.
        what: A resource, or `nodes`.
        left: How much of it further nodes may have, in whole units, of CPU in thousandths.
        takes: How much one more node of each of the fleet's pools takes, in their order and in the same unit.
    """

    pool: str
    what: str
    left: int
    takes: tuple[int, ...]

    def leaves(self, added: Sequence[int]) -> int:
        """Returns what is left of it with so many more nodes of each pool, or of the first of them; below zero where it is too little."""
        return self.left - sum(each * number for each, number in zip(self.takes, added, strict=False))


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolScaler:
    """The autoscaler of a node pool, and what is known of it.

    Args:
        autoscaler: Its name, as in the catalogue.
        version: Its version; empty if it is not known.
        counts_claims: Whether its setting lets claims count; None where nobody said, and then it is as it comes.
        lines: Lines that it may need and that the pool has.
        annotated: The driver and the number of devices that annotations of the pool describe; None where they do not.
    """

    autoscaler: str
    version: str = ""
    counts_claims: bool | None = None
    lines: frozenset[str] = frozenset()
    annotated: tuple[str, int] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePool:
    """Equal nodes of which an autoscaler adds as many as pods need, up to a limit.

    Args:
        name: What the user calls it.
        machine: The hardware of one node, as the user names it.
        now: How many nodes, or racks, the fleet has of it.
        nodes: The names of these nodes.
        spare: What each further node, or rack, brings, in the order in which they come.
        racks: Whether it grows by racks.
        price: Of one node, or rack, as the user gave it; None where nobody said.
        is_cut: Whether it may have more nodes than are looked at.
        scaler: Its autoscaler; None where the file names none and says itself that the pool grows.
    """

    name: str
    machine: str
    now: int
    nodes: tuple[str, ...] = field(default=(), repr=False)
    spare: tuple[Fleet, ...] = field(default=(), repr=False)
    racks: bool = False
    price: Decimal | None = None
    is_cut: bool = False
    scaler: PoolScaler | None = None

    @property
    def is_annotated(self) -> bool:
        """Whether annotations alone say what devices its nodes have."""
        return self.machine == ANNOTATED

    @property
    def unit(self) -> Literal["node", "rack"]:
        """What it grows by."""
        return "rack" if self.racks else "node"

    @property
    def most(self) -> int:
        """How many nodes, or racks, it may have."""
        return self.now + len(self.spare)


def renamed_node(node: Node, name: str) -> Node:
    """The node under another name, which its labels have too."""
    if name == node.name:
        return node
    labels = {key: name if value == node.name else value for key, value in node.labels.items()}
    return replace(node, name=name, labels=labels)


def renamed_slice(slice_: ResourceSlice, names: Mapping[str, str]) -> ResourceSlice:
    """The slice of a node that *names* gives another name; others as they are."""
    spec = slice_.spec
    name = names.get(spec.node_name or "")
    if name is None or name == spec.node_name:
        return slice_
    # Drivers call pool and slice after the node.
    pool = spec.pool.changed({"name": name}) if spec.pool.name == spec.node_name else spec.pool
    metadata = slice_.metadata.changed(
        {"name": (slice_.metadata.name or "").replace(spec.node_name or "", name)}
    )
    return slice_.changed({"metadata": metadata, "spec": spec.changed({"node_name": name, "pool": pool})})


def whole_of(device: Device) -> str:
    """What a device is a part of: the counters of its GPU for a partition, else the device itself."""
    consumed = device.consumes_counters or ()
    return f"counters {consumed[0].counter_set}" if consumed else device.name
