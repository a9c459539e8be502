"""What of a fleet is taken before anything is placed: by pods and claims that the question is not about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dra_infra.simulation.inventory import Inventory
from dra_infra.simulation.pod_resources import Amounts


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Devices and node resources that are not free.

    Args:
        devices: Allocated devices by driver, pool and name; those that the fleet does not publish are passed over.
        amounts: What running pods take of each node, by its name.
    """

    devices: frozenset[tuple[str, str, str]] = frozenset()
    amounts: Mapping[str, Amounts] = field(default_factory=dict, hash=False)

    def masks(self, inventory: Inventory) -> list[int]:
        """Per node, the positions of taken devices as a bit mask."""
        if not self.devices:
            return [0] * len(inventory.nodes)
        indices = {
            index
            for index, each in enumerate(inventory.devices)
            if (each.driver, each.pool, each.device.name) in self.devices
        }
        return [_mask(inventory.positions(node), indices) for node in range(len(inventory.nodes))]

    def left_of(self, node: str, amounts: Amounts) -> Amounts:
        """What a node with *amounts* has left; less than none counts as none."""
        taken = self.amounts.get(node)
        if not taken:
            return amounts
        return {name: max(amount - taken.get(name, 0), 0) for name, amount in amounts.items()}


NOTHING = Taken()


def _mask(positions: Iterable[int], indices: set[int]) -> int:
    return sum(1 << position for position, index in enumerate(positions) if index in indices)
