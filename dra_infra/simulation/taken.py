"""What of a fleet is taken before anything is placed: by pods and claims that the question is not about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dra_infra.simulation.allocation import AllocatedState, DeviceID
from dra_infra.simulation.pod_resources import Amounts
from dra_infra.simulation.pod_shapes import PodShape
from dra_infra.simulation.quotas import Use

Device: TypeAlias = tuple[str, str, str]
"""Driver, pool and name."""
Share: TypeAlias = tuple[Device, Mapping[str, str] | None]
"""A device, and what a share takes of it by capacity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Devices and node resources that are not free.

    Args:
        devices: Devices that one claim has to itself, by driver, pool and name; those that the fleet does not publish
            are passed over.
        shares: Devices of which claims have shares, in the same way, each with what a share takes by capacity.
        amounts: What running pods take of each node, by its name.
        pods: Running pods with the names of their nodes; None when it is not known which run.
        policies: Namespaces, LimitRanges, ResourceQuotas, RuntimeClasses and DeviceTaintRules.
        made: What others' claims and pods count for in quotas, by namespace.
    """

    devices: frozenset[Device] = frozenset()
    shares: tuple[Share, ...] = field(default=(), hash=False)
    amounts: Mapping[str, Amounts] = field(default_factory=dict, hash=False)
    pods: tuple[tuple[str, PodShape], ...] | None = None
    policies: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    made: Mapping[str, Use] = field(default_factory=dict, hash=False)

    @property
    def state(self) -> AllocatedState:
        """What the allocator has to go round."""
        whole = AllocatedState(DeviceID(*each) for each in sorted(self.devices))
        return whole.with_devices((DeviceID(*each), consumed, True) for each, consumed in self.shares)

    def left_of(self, node: str, amounts: Amounts) -> Amounts:
        """What a node with *amounts* has left; less than none counts as none."""
        taken = self.amounts.get(node)
        if not taken:
            return amounts
        return {name: max(amount - taken.get(name, 0), 0) for name, amount in amounts.items()}


NOTHING = Taken()
