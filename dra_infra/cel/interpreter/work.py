"""How much an evaluation may do here before it is given up.

A server bounds it by cost; an expression that it takes stays far below these bounds.
"""

from __future__ import annotations

from typing import Final

from dra_infra.cel.interpreter.values import LISTS, UndecidedError, Value, items_of

MAX_WORK: Final = 2_000_000
"""Steps of loops, and characters and elements of results."""
MAX_SIZE: Final = 1_000_000
"""Characters or elements of one value."""


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

    def count(self, value: Value) -> Value:
        """Count a result by its size and return it."""
        kind = type(value)
        if kind is str or kind is bytes:
            self.spend(len(value))
        elif kind in LISTS:
            self.spend(len(items_of(value)))
        return value
