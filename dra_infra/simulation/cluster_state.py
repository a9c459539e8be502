"""What pods placed so far have taken: devices, node resources, and claims that are shared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from dra_infra.model.metadata import ObjectRef
from dra_infra.simulation.inventory import Inventory
from dra_infra.simulation.node_groups import NodeGrouping, NodeGroups
from dra_infra.simulation.outcomes import Allocated, Impossible, Outcome
from dra_infra.simulation.placement import DeviceChoice, NodePlacement
from dra_infra.simulation.pod_resources import Amounts, find_shortage
from dra_infra.simulation.workloads import Entry, PodPlan

CONSUMERS_LIMIT = 256
"""Most pods that may share a claim: ResourceClaimReservedForMaxSize."""


@dataclass(slots=True)
class HeldClaim:
    """A claim with its allocation.

    Args:
        devices: Request and device, in the order of allocation.
        nodes: Where pods can use it.
        consumers: How many pods do.
    """

    devices: tuple[tuple[str, int], ...]
    nodes: frozenset[int]
    consumers: int = 0


class ClusterState:
    """A fleet that fills up.

    Args:
        inventory: Devices and nodes.
        grouping: Finds the groups of nodes for the claims of a pod.
        amounts: What each node offers.
        used: Per node, positions of the devices that are taken from the start, as a bit mask.
    """

    def __init__(
        self,
        inventory: Inventory,
        grouping: NodeGrouping,
        amounts: Sequence[Amounts],
        used: Sequence[int] = (),
    ) -> None:
        self._inventory = inventory
        self._grouping = grouping
        self._amounts = amounts
        self._used: dict[int, int] = defaultdict(int, {node: mask for node, mask in enumerate(used) if mask})
        self._free: dict[int, Amounts] = {}
        self._claims: dict[ObjectRef, HeldClaim] = {}
        self._users: dict[int, list[tuple[int, int]]] | None = None

    def open_groups(self, plan: PodPlan) -> NodeGroups:
        """The groups of nodes for those claims of a pod that are not allocated yet."""
        return self._grouping.group(tuple(entry.demand for entry in plan.entries if not self._held(entry)))

    def nodes_for(self, plan: PodPlan) -> frozenset[int] | None:
        """The nodes that the shared claims of a pod leave; None for all, empty when a claim has all its consumers."""
        left: frozenset[int] | None = None
        for entry in plan.entries:
            held = self._held(entry)
            if held is not None:
                nodes = held.nodes if held.consumers < CONSUMERS_LIMIT else frozenset[int]()
                left = nodes if left is None else left & nodes
        return left

    def attempt(self, plan: PodPlan, node: int, groups: NodeGroups) -> Outcome:
        """What the scheduler finds on a node for a pod that the node filters let through."""
        if find_shortage(plan.requests, self._free.get(node, self._amounts[node])):
            return Impossible()
        return groups.allocator(groups.numbers[node]).allocate(self._used[node])

    def commit(self, plan: PodPlan, node: int, outcome: Allocated) -> NodePlacement:
        """Place the pod: take its devices and resources, allocate its claims."""
        free = dict(self._free.get(node, self._amounts[node]))
        for name, amount in plan.requests.items():
            free[name] -= amount
        self._free[node] = free
        picks = iter(outcome.picks)
        positions = self._inventory.positions(node)
        choices: list[DeviceChoice] = []
        for entry in plan.entries:
            held = self._held(entry)
            if held is None:
                devices = tuple(
                    (request.name, positions[position])
                    for request in entry.demand.requests
                    for position in next(picks)
                )
                held = HeldClaim(devices, self._usable_from(node, devices))
                for _, device in devices:
                    self._take(node, device, positions)
                if entry.shared:
                    self._claims[entry.object] = held
            held.consumers += 1
            choices.extend(choose(self._inventory, entry, held.devices))
        return NodePlacement(node=self._inventory.nodes[node].name, devices=tuple(choices))

    def _held(self, entry: Entry) -> HeldClaim | None:
        return self._claims.get(entry.object) if entry.shared else None

    def _usable_from(self, node: int, devices: Sequence[tuple[str, int]]) -> frozenset[int]:
        """The node selector of the allocation: this node where a device is local, else what the slices allow."""
        if any(device not in self._inventory.shared for _, device in devices):
            return frozenset((node,))
        nodes = frozenset(range(len(self._inventory.nodes)))
        for _, device in devices:
            nodes &= self._inventory.nodes_of(device)
        return nodes

    def _take(self, node: int, device: int, positions: Sequence[int]) -> None:
        if device not in self._inventory.shared:
            self._used[node] |= 1 << positions.index(device)
            return
        if self._users is None:
            self._users = defaultdict(list)
            for number in range(len(self._inventory.nodes)):
                for position, index in enumerate(self._inventory.positions(number)):
                    if index in self._inventory.shared:
                        self._users[index].append((number, position))
        for number, position in self._users[device]:
            self._used[number] |= 1 << position


def choose(inventory: Inventory, entry: Entry, devices: Sequence[tuple[str, int]]) -> list[DeviceChoice]:
    """The devices of a claim as the answer shows them."""
    return [
        DeviceChoice(
            entry=entry.name,
            claim=entry.object.name,
            request=request,
            driver=inventory.devices[index].driver,
            pool=inventory.devices[index].pool,
            device=inventory.devices[index].device.name,
        )
        for request, index in devices
    ]
