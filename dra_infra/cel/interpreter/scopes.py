"""Where names are found: the device, and the loops around an expression (folder in interpreter/interpretable.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dra_infra.cel.interpreter.maps import MAPS, MutableMap
from dra_infra.cel.interpreter.values import LISTS, MutableList, Value, items_of
from dra_infra.cel.interpreter.work import Work

Step: TypeAlias = Callable[["Scope"], Value]


class Scope:
    """The outermost scope.

    Args:
        variables: What an expression reads by name.
        order: Rearranges the keys of a map before a loop goes over them; Go's order is random.
    """

    __slots__ = ("is_unordered", "order", "root", "variables", "work")

    def __init__(
        self, variables: Mapping[str, Value], order: Callable[[list[Value]], list[Value]] | None
    ) -> None:
        self.variables = variables
        self.order = order
        self.work = Work()
        self.is_unordered = False
        self.root: Scope = self

    def resolve(self, name: str) -> Value:
        """The value of a name."""
        return self.variables[name]

    def arrange(self, keys: list[Value]) -> list[Value]:
        """The keys of a map in the order of this evaluation."""
        if len(keys) < 2:
            return keys
        self.is_unordered = True
        return self.order(keys) if self.order else keys


class Loop(Scope):
    """The scope of one loop, or of a name of cel.bind, whose value is computed when it is first used."""

    __slots__ = ("_init", "_outer", "accumulated", "is_done", "is_initialized", "names", "values")

    def __init__(self, outer: Scope, names: tuple[str, str, str], init: Step) -> None:
        self._outer = outer
        self._init = init
        self.root = outer.root
        self.names = names
        self.values: list[Any] = [None, None]
        self.accumulated: Value = None
        self.is_initialized = False
        self.is_done = False

    def resolve(self, name: str) -> Value:
        """The value of a name."""
        accumulator, first, second = self.names
        if name == accumulator:
            if not self.is_initialized:
                self.is_initialized = True
                self.accumulated = _mutable(self._init(self._outer))
            return self.accumulated
        if not self.is_done:
            if name == first:
                return self.values[0]
            if name == second:
                return self.values[1]
        return self._outer.resolve(name)

    def accumulate(self, value: Value) -> None:
        """Set the result so far."""
        self.accumulated = value
        self.is_initialized = True


def _mutable(value: Value) -> Value:
    """An empty list or map is replaced by one that adding to changes, even where cel.bind names it."""
    if type(value) in LISTS and not items_of(value):
        return MutableList([])
    if type(value) in MAPS and not len(value):
        return MutableMap()
    return value
