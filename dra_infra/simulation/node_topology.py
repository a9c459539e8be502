"""The places that labels of nodes make: nodes with one value of a label are one place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from dra_infra.model.fleet import Node


class Places:
    """The nodes of a fleet by one label.

    Args:
        nodes: All nodes, in order.
        key: Name of the label.
    """

    def __init__(self, nodes: Sequence[Node], key: str) -> None:
        self.key = key
        seen: dict[str, int] = {}
        self.of: list[int] = []
        """The place of each node; -1 for one without the label."""
        for node in nodes:
            value = node.labels.get(key)
            self.of.append(-1 if value is None else seen.setdefault(value, len(seen)))
        self.names: tuple[str, ...] = tuple(seen)

    @cached_property
    def nodes(self) -> list[list[int]]:
        """The nodes of each place."""
        found: list[list[int]] = [[] for _ in self.names]
        for node, place in enumerate(self.of):
            if place >= 0:
                found[place].append(node)
        return found


class NodeTopology:
    """The places of all labels that are asked for."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._places: dict[str, Places] = {}

    def places(self, key: str) -> Places:
        """The places of a label."""
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = Places(self.nodes, key)
        return places
