"""Nodes that are the same to the claims of a pod, so that each kind of node is searched once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from dra_infra.simulation.allocator import NodeAllocator
from dra_infra.simulation.demand import Demand
from dra_infra.simulation.dependencies import Dependencies
from dra_infra.simulation.inventory import Inventory
from dra_infra.simulation.matching import DeviceMatching
from dra_infra.simulation.node_view import NodeView, number_values, view_node


class NodeGroups:
    """The groups of nodes for one list of claims.

    Args:
        numbers: Number of the group by node.
        examples: First node of each group.
    """

    def __init__(
        self,
        inventory: Inventory,
        matching: DeviceMatching,
        demands: Sequence[Demand],
        numbers: Sequence[int],
        examples: Sequence[int],
    ) -> None:
        self.demands = tuple(demands)
        self.numbers = numbers
        self.examples = examples
        self._inventory = inventory
        self._matching = matching
        self._views: dict[int, NodeView] = {}
        self._allocators: dict[int, NodeAllocator] = {}

    def view(self, group: int) -> NodeView:
        """The devices of the group's first node."""
        view = self._views.get(group)
        if view is None:
            view = view_node(self._inventory, self.examples[group], self.demands, self._matching)
            self._views[group] = view
        return view

    def allocator(self, group: int) -> NodeAllocator:
        """The search on a node of the group; positions mean the same on all of them."""
        allocator = self._allocators.get(group)
        if allocator is None:
            allocator = self._allocators[group] = NodeAllocator(self.view(group), self.demands)
        return allocator


class NodeGrouping:
    """Groups the nodes of an inventory for any list of claims; equal lists share their groups."""

    def __init__(self, inventory: Inventory, matching: DeviceMatching) -> None:
        self._inventory = inventory
        self._matching = matching
        self._groups: dict[tuple[Demand, ...], NodeGroups] = {}
        self._numberings: dict[tuple[Dependencies, tuple[str, ...]], tuple[list[int], list[int]]] = {}

    def group(self, demands: tuple[Demand, ...]) -> NodeGroups:
        """The groups for the claims that are still to be allocated."""
        groups = self._groups.get(demands)
        if groups is None:
            selectors = [
                selector
                for demand in demands
                for request in demand.requests
                for selector in request.selectors
            ]
            attributes = sorted({each.attribute for demand in demands for each in demand.constraints})
            numbers, examples = self._number(self._matching.reads(selectors), tuple(attributes))
            groups = NodeGroups(self._inventory, self._matching, demands, numbers, examples)
            self._groups[demands] = groups
        return groups

    def _number(self, reads: Dependencies, attributes: tuple[str, ...]) -> tuple[list[int], list[int]]:
        known = self._numberings.get((reads, attributes))
        if known is not None:
            return known
        kinds = self._matching.kinds(reads)
        seen: dict[Hashable, int] = {}
        numbers: list[int] = []
        examples: list[int] = []
        for node, pools in enumerate(self._inventory.pools):
            devices = [self._inventory.devices[index] for index in self._inventory.positions(node)]
            key = (
                tuple((pool.state, tuple(kinds[index] for index in pool.devices)) for pool in pools),
                tuple(number_values(devices, attribute) for attribute in attributes),
            )
            number = seen.setdefault(key, len(seen))
            if number == len(examples):
                examples.append(node)
            numbers.append(number)
        self._numberings[reads, attributes] = (numbers, examples)
        return numbers, examples
