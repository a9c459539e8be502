"""Counts what an evaluation costs as the server counts it, and ends it above the server's limit.

The server pushes each value that it computes on a stack, with the id of its node. A call takes the values of its
arguments from there, so that its cost can depend on their sizes. What short-circuits leaves values behind, which later
calls drop with their own: costs depend on that, so the stack is kept in the same way here.

Upstream: CostTracker and refValStack in interpreter/runtimecost.go of cel-go. The limit is that of
dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_infra.kubernetes.api.limits import MAX_COST
from dra_infra.kubernetes.cel.interpreter.values import PanicError, Value

EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
"""The error of an evaluation that costs too much, which neither `||` nor `&&` absorbs."""


class Tracker:
    """The cost of one evaluation so far, and the values from which the cost of calls is computed."""

    __slots__ = ("_held", "_identities", "_values", "cost")

    def __init__(self) -> None:
        self.cost = 0
        self._identities: list[int] = []
        self._values: list[Value] = []
        self._held: dict[int, int] = {}
        """How many values of each node are on the stack, most often none of the one that is looked for."""

    def push(self, identity: int, value: Value) -> None:
        """Keep the value of a node.

        Raises:
            PanicError: When the evaluation has cost more than the server allows.
        """
        self._identities.append(identity)
        self._values.append(value)
        self._held[identity] = self._held.get(identity, 0) + 1
        if self.cost > MAX_COST:
            raise PanicError(EXCEEDED)

    def foresee(self, cost: int) -> None:
        """End the evaluation ahead of what is certain to cost too much, as that can take long.

        Raises:
            PanicError: When the evaluation is going to have cost more than the server allows.
        """
        if self.cost + cost > MAX_COST:
            self.cost += cost
            raise PanicError(EXCEEDED)

    def drop(self, identities: Sequence[int]) -> None:
        """Remove the newest value of each node, and all that are above it."""
        for identity in identities:
            if self._held.get(identity):
                self._remove(identity)

    def take(self, identities: Sequence[int]) -> list[Value] | None:
        """Remove and return the values of nodes, the last of which is on top; None when one was not computed."""
        found: list[Value] = []
        for identity in reversed(identities):
            if not self._held.get(identity):
                return None
            found.append(self._remove(identity))
        found.reverse()
        return found

    def _remove(self, identity: int) -> Value:
        while True:
            top = self._identities.pop()
            value = self._values.pop()
            self._held[top] -= 1
            if top == identity:
                return value
