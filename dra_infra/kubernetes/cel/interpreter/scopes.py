"""Scopes in which names are found: the device, and the loops around an expression; and the limit on work.

Scopes follow folder in interpreter/interpretable.go. What an evaluation may cost is the server's limit, which the
tracker keeps. The limit on work here is about time and memory, well above what the server's limit leaves of them in
most cases: it ends evaluations whose cost says little about them, as that of a long list that another holds many times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.maps import MAPS, MutableMap, OpenMap
from dra_infra.kubernetes.cel.interpreter.tracker import Tracker
from dra_infra.kubernetes.cel.interpreter.values import (
    LISTS,
    MutableList,
    OptionalValue,
    QuantityValue,
    Uint,
    UndecidedError,
    Value,
    items_of,
)
from dra_infra.kubernetes.cel.tree import Comprehension, ListLiteral, MapLiteral, Node, children

MAX_WORK: Final = 5_000_000
"""Nodes that loops go over, and elements of operands and results; three characters count as one."""
_CHARACTERS_AT_ONCE: Final = 3
_PLAIN: Final = frozenset({bool, int, Uint, float, type(None)})
_SCALARS: Final = _PLAIN | {QuantityValue, Semver}
_PLAIN_AT_ONCE: Final = 8
"""How many elements without parts of their own count as one."""
_LIST_COST: Final = 10
_MAP_COST: Final = 30


def weigh(node: Node) -> int:
    """Cost of evaluating a node once, without the loops in it."""
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
    """Limits the work of one evaluation."""

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
            raise UndecidedError("an evaluation that takes longer than is waited for here, whatever it costs")

    def count(self, value: Value) -> None:
        """Count an operand or a result by its size, with all that is in it: one list may hold another many times.

        Raises:
            UndecidedError: When it is too much.
        """
        kind = type(value)
        if kind in _SCALARS:
            return
        if kind is str or kind is bytes:
            self.spend(len(value) // _CHARACTERS_AT_ONCE)
        elif kind in LISTS:
            items = items_of(value)
            if _PLAIN.issuperset(map(type, items)):
                self.spend(1 + len(items) // _PLAIN_AT_ONCE)
                return
            self.spend(len(items))
            for item in items:
                self.count(item)
        elif kind is OpenMap:
            self.spend(1)
        elif kind in MAPS:
            self.spend(len(value))
            for key, item in value.entries.values():
                self.count(key)
                self.count(item)
        elif kind is OptionalValue:
            self.count(value.value)


Step: TypeAlias = Callable[["Scope"], Value]


class Scope:
    """The outermost scope.

    Args:
        variables: What an expression reads by name.
        order: Rearranges the keys of a map before a loop goes over them; Go's order is random.

    Attributes:
        is_unordered: Whether a loop went over a map.
        most_gathered: How many keys the largest map had of which a loop made a list or map.
        tracker: Counts the cost, where that is counted (`counted_scope`).
    """

    __slots__ = ("is_unordered", "most_gathered", "order", "root", "tracker", "variables", "work")

    tracker: Tracker

    def __init__(
        self, variables: Mapping[str, Value], order: Callable[[list[Value]], list[Value]] | None
    ) -> None:
        self.variables = variables
        self.order = order
        self.work = Work()
        self.is_unordered = False
        self.most_gathered = 0
        self.root: Scope = self

    def resolve(self, name: str) -> Value:
        """The value of a name."""
        return self.variables[name]

    def arrange(self, keys: list[Value], *, gathers: bool) -> list[Value]:
        """The keys of a map in the order of this evaluation, for a loop that may gather something of each."""
        if len(keys) < 2:
            return keys
        self.is_unordered = True
        if gathers:
            self.most_gathered = max(self.most_gathered, len(keys))
        return self.order(keys) if self.order else keys


def counted_scope(
    variables: Mapping[str, Value], order: Callable[[list[Value]], list[Value]] | None
) -> Scope:
    """A scope with a tracker."""
    scope = Scope(variables, order)
    scope.tracker = Tracker()
    return scope


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
    if type(value) in MAPS and type(value) is not OpenMap and not len(value):
        return MutableMap()
    return value
