"""Counting arguments: proofs that no choice of devices can satisfy what is left of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Branch:
    """What is left of one request: how many devices, out of which positions (a bit mask)."""

    request: int
    wanted: int
    allowed: int


def holds_no_answer(branches: Sequence[Branch]) -> bool:
    """Whether the requests cannot all get different devices, whatever else holds; false proves nothing."""
    if any(branch.allowed.bit_count() < branch.wanted for branch in branches):
        return True
    union, disjoint = 0, True
    for branch in branches:
        disjoint = disjoint and not union & branch.allowed
        union |= branch.allowed
    if disjoint:
        return False
    if union.bit_count() < sum(branch.wanted for branch in branches):
        return True
    return not _Assignment(branches).is_complete()


class _Assignment:
    """Gives every wanted device a position of its own by augmenting paths (bipartite matching)."""

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._branches = branches
        self._owners: dict[int, int] = {}
        self._taken = 0
        self._visited = 0

    def is_complete(self) -> bool:
        for number, branch in enumerate(self._branches):
            for _ in range(branch.wanted):
                self._visited = 0
                if not self._augment(number):
                    return False
        return True

    def _augment(self, number: int) -> bool:
        allowed = self._branches[number].allowed
        free = allowed & ~self._taken
        if free:
            self._give(free & -free, number)
            return True
        while candidates := allowed & ~self._visited:
            bit = candidates & -candidates
            self._visited |= bit
            if self._augment(self._owners[bit]):
                self._owners[bit] = number
                return True
        return False

    def _give(self, bit: int, number: int) -> None:
        self._owners[bit] = number
        self._taken |= bit
