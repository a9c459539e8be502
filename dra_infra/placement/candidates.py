"""The nodes of the free fleet that can take one pod of a workload, with devices searched for when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from dra_infra.placement.demand import PodPlan
from dra_infra.placement.free_fleet import FreeFleet
from dra_infra.placement.placement import NodePlacement


class CandidateNodes(Sequence[NodePlacement]):
    """The nodes that can take one pod, in order of name; compares like a tuple.

    Args:
        free: The fleet.
        plan: The pod.
        nodes: Numbers of the nodes.
    """

    def __init__(self, free: FreeFleet, plan: PodPlan, nodes: Sequence[int]) -> None:
        self._free = free
        self._plan = plan
        self._nodes = nodes

    def __len__(self) -> int:
        return len(self._nodes)

    @overload
    def __getitem__(self, index: int) -> NodePlacement: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[NodePlacement, ...]: ...

    def __getitem__(self, index: int | slice) -> NodePlacement | tuple[NodePlacement, ...]:
        if isinstance(index, slice):
            return tuple(self._free.placement_on(node, self._plan) for node in self._nodes[index])
        return self._free.placement_on(self._nodes[index], self._plan)

    def __iter__(self) -> Iterator[NodePlacement]:
        return (self._free.placement_on(node, self._plan) for node in self._nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"CandidateNodes({len(self)} nodes)"

    @property
    def names(self) -> list[str]:
        """The names alone, for which no devices are searched."""
        return [self._free.cluster.nodes[node].name for node in self._nodes]


def name_nodes(nodes: Sequence[NodePlacement]) -> list[str]:
    """The names of candidate nodes, in their order."""
    return nodes.names if isinstance(nodes, CandidateNodes) else [each.node for each in nodes]
