"""Constraints of claims while devices are picked and given back.

Source: matchAttributeConstraint and distinctAttributeConstraint of the incubating allocator: a device without the
attribute never satisfies one, versions compare as text, values of different types are different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dra_infra.simulation.branches import Branch
from dra_infra.simulation.demand import Constraint, Demand
from dra_infra.simulation.node_view import NodeView


@dataclass(slots=True)
class _Counted:
    """One constraint: which requests it covers, the node's values, and the picked devices per value."""

    distinct: bool
    requests: frozenset[int]
    values: tuple[int, ...]
    masks: dict[int, int]
    picked: dict[int, int] = field(default_factory=dict)

    def accepts(self, position: int) -> bool:
        value = self.values[position]
        if value < 0:
            return False
        if self.distinct:
            return value not in self.picked
        return not self.picked or value in self.picked

    def allowed(self, positions: int) -> int:
        if not self.distinct and self.picked:
            return positions & self.masks.get(next(iter(self.picked)), 0)
        kept = 0
        for value, mask in self.masks.items():
            if not (self.distinct and value in self.picked):
                kept |= mask
        return positions & kept


class ConstraintState:
    """All constraints of the claims of a pod on one node, during one search."""

    def __init__(self, view: NodeView, demands: Sequence[Demand]) -> None:
        self._by_request: list[list[_Counted]] = []
        self._all: list[_Counted] = []
        first = 0
        for demand in demands:
            numbers = range(first, first + len(demand.requests))
            first += len(demand.requests)
            counted = [_count(view, constraint, demand, numbers) for constraint in demand.constraints]
            self._all.extend(counted)
            self._by_request.extend(
                [entry for entry in counted if number in entry.requests] for number in numbers
            )

    def add(self, request: int, position: int) -> bool:
        """Count the device if every constraint accepts it."""
        covering = self._by_request[request]
        if not all(entry.accepts(position) for entry in covering):
            return False
        for entry in covering:
            value = entry.values[position]
            entry.picked[value] = entry.picked.get(value, 0) + 1
        return True

    def remove(self, request: int, position: int) -> None:
        """Take back what `add` counted."""
        for entry in self._by_request[request]:
            value = entry.values[position]
            entry.picked[value] -= 1
            if not entry.picked[value]:
                del entry.picked[value]

    def allowed(self, request: int, positions: int) -> int:
        """Those of the positions that the constraints accept as things stand."""
        for entry in self._by_request[request]:
            positions = entry.allowed(positions)
        return positions

    def lacks_values(self, branches: Sequence[Branch]) -> bool:
        """Whether a constraint alone proves that the rest cannot be picked."""
        return any(_lacks_values(entry, branches) for entry in self._all)


def _lacks_values(entry: _Counted, branches: Sequence[Branch]) -> bool:
    covered = [branch for branch in branches if branch.request in entry.requests]
    wanted = sum(branch.wanted for branch in covered)
    union = 0
    for branch in covered:
        union |= branch.allowed
    per_value = [(mask & union).bit_count() for mask in entry.masks.values()]
    if entry.distinct:
        return sum(count > 0 for count in per_value) < wanted
    return wanted > 0 and not any(count >= wanted for count in per_value)


def _count(view: NodeView, constraint: Constraint, demand: Demand, numbers: Sequence[int]) -> _Counted:
    values = view.values[constraint.attribute]
    masks: dict[int, int] = {}
    for position, value in enumerate(values):
        if value >= 0:
            masks[value] = masks.get(value, 0) | 1 << position
    return _Counted(
        distinct=constraint.kind == "distinct",
        requests=frozenset(
            number
            for number, request in zip(numbers, demand.requests, strict=True)
            if constraint.covers(request.name)
        ),
        values=values,
        masks=masks,
    )
