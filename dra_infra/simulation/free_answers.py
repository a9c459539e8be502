"""What is said of one workload on the otherwise free fleet."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_infra.simulation.outcomes import Halt


@dataclass(slots=True)
class Tally:
    """How many nodes, and the first of them."""

    count: int = 0
    first: int = -1

    def add(self, node: int) -> None:
        """Count one more node; nodes come in order."""
        self.first = node if self.first < 0 else self.first
        self.count += 1


@dataclass(slots=True)
class FreeAnswer:
    """What becomes of one pod on each node while nothing else runs.

    Args:
        candidates: Nodes that can take it, in order.
        refused: Nodes that the filters refuse, by text.
        apart: Nodes from which running pods keep it off, by text.
        short: Nodes with too little of a resource, by resource and what the node has.
        failed: Nodes without a choice of devices, by the devices that are asked for there and the shape.
        busy: Nodes that may do when less is in use, by the same and what is.
        costly: Nodes with too little for the devices that the pod would get there, by text.
        halted: Nodes at which the answer ends, by shape.
    """

    candidates: list[int] = field(default_factory=list)
    refused: dict[str, Tally] = field(default_factory=dict)
    apart: dict[str, Tally] = field(default_factory=dict)
    short: dict[tuple[str, int], Tally] = field(default_factory=dict)
    failed: dict[Hashable, Tally] = field(default_factory=dict)
    busy: dict[Hashable, Tally] = field(default_factory=dict)
    costly: dict[str, Tally] = field(default_factory=dict)
    halted: dict[Hashable, tuple[Halt, Tally]] = field(default_factory=dict)

    @property
    def eligible(self) -> int:
        """How many nodes the filters let through."""
        return (
            len(self.candidates)
            + sum(tally.count for group in self._left_out for tally in group.values())
            + sum(tally.count for _, tally in self.halted.values())
        )

    @property
    def _left_out(self) -> tuple[Mapping[Any, Tally], ...]:
        return self.apart, self.short, self.failed, self.busy, self.costly


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many equal pods fit.

    Args:
        pods: On the whole fleet, where a claim is shared on the best node.
        worst: Where a claim is shared: on the worst candidate node; else the same.
        halt: What ends the search on a node that fills up.
        before_halt: How many pods a node takes before that.
    """

    pods: int
    worst: int
    halt: Halt | None = None
    before_halt: int = 0
