"""How much an evaluation may do here before it is given up, which is about as much as a server allows.

The server counts the cost of each node that it evaluates, and ends at CELSelectorExpressionMaxCost. Here loops, operands
and results are counted, about as much each, so what is given up here is what an API server refuses to store.
"""

from __future__ import annotations

from typing import Final

from dra_infra.cel.interpreter.maps import MAPS
from dra_infra.cel.interpreter.values import LISTS, OptionalValue, UndecidedError, Value, items_of
from dra_infra.cel.tree import Comprehension, ListLiteral, MapLiteral, Node, children

MAX_WORK: Final = 1_000_000
"""Nodes that loops go over, and characters and elements of operands and results."""
_LIST_COST: Final = 10
_MAP_COST: Final = 30


def weigh(node: Node) -> int:
    """What it takes to evaluate a node once, without the loops in it."""
    match node:
        case Comprehension():
            return weigh(node.accu_init) + weigh(node.iter_range) + weigh(node.result)
        case ListLiteral():
            own = _LIST_COST
        case MapLiteral():
            own = _MAP_COST
        case _:
            own = 1
    return own + sum(map(weigh, children(node)))


class Work:
    """What an evaluation has done so far."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_WORK

    def spend(self, amount: int) -> None:
        """Count an amount of work.

        Raises:
            UndecidedError: When it is too much.
        """
        self._left -= amount
        if self._left < 0:
            raise UndecidedError("more work than is done here")

    def count(self, value: Value) -> None:
        """Count an operand or a result by its size, with all that is in it: one list may hold another many times.

        Raises:
            UndecidedError: When it is too much.
        """
        kind = type(value)
        if kind is str or kind is bytes:
            self.spend(len(value))
        elif kind in LISTS:
            items = items_of(value)
            self.spend(len(items))
            for item in items:
                self.count(item)
        elif kind in MAPS:
            self.spend(len(value))
            for key, item in value.entries.values():
                self.count(key)
                self.count(item)
        elif kind is OptionalValue:
            self.count(value.value)
