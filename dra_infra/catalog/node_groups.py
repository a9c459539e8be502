"""A group of equal nodes of a fleet: its hardware, the release and settings of its driver, its labels and taints."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dra_infra.catalog.drivers import DriverRelease, drivers
from dra_infra.catalog.fleet_kinds import FleetKind, fleet_kinds
from dra_infra.catalog.systems import systems
from dra_infra.model.fleet import NodeTaint


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeGroup:
    """A group of equal nodes; `group_settings` makes it from what people write, and checks it.

    Args:
        kind_name: Name of the kind, one of `fleet_kinds()`.
        count: Nodes, or racks where the kind is one.
        name: What the nodes are called, before their number.
        line: Release line of the driver.
        devices: GPUs per node, or devices of the example driver.
        mig: Profiles of each GPU, in the order of the GPUs; those behind the last are not in MIG mode.
        gates: Feature gates of the driver that are on, of those that decide what it publishes.
        shares: The driver's value `consumableShares`; empty for none.
        compute_domains: Whether `compute-domain.nvidia.com` publishes too.
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
    partitions: int = 0
    shareable: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[NodeTaint, ...] = ()
    allocatable: tuple[tuple[str, str], ...] = ()

    @property
    def kind(self) -> FleetKind:
        """The facts of the kind."""
        return fleet_kinds()[self.kind_name]

    @property
    def release(self) -> DriverRelease:
        """What the driver publishes in this line."""
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
        """As it is written in a text; what a text cannot say is left out."""
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
            f"partitions={self.partitions}": bool(self.partitions),
            "shareable": self.shareable,
        }
        return " ".join([*said, *(flag for flag, on in flags.items() if on)])
