"""Nodes of a CEL syntax tree with macros expanded, and the checked tree that the passes read.

Nodes are frozen; a pass that rewrites builds new ones. `id` joins a node to its type and position in the checked
tree and plays no part in equality.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeAlias, TypeGuard, TypeVar

Scalar: TypeAlias = bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class CelType:
    """A type as the checker found it, `map` with two parameters for example; prints as cel-go prints it."""

    name: str
    parameters: tuple[CelType, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


DYN = CelType("dyn")


@dataclass(frozen=True, slots=True)
class Const:
    """A literal; `kind` is the field of cel.expr.Constant, such as `int64_value`."""

    kind: str
    value: Scalar
    id: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Ident:
    """A variable, dotted where the declared name is: `device.attributes`."""

    name: str
    id: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or `has(operand.field)` when it only tests."""

    operand: Node
    field: str
    test_only: bool = False
    id: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator: `_&&_`, `_[_]`, `size`; a method has a target."""

    function: str
    args: tuple[Node, ...]
    target: Node | None = None
    id: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, ?b]`; the indices name the elements that are optional."""

    elements: tuple[Node, ...]
    optional_indices: tuple[int, ...] = ()
    id: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """`key: value` of a map literal, or `field: value` of a message, whose key is a string constant."""

    key: Node
    value: Node
    optional: bool = False
    id: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """`{key: value}`, or a message when it has a name."""

    entries: tuple[Entry, ...]
    message: str = ""
    id: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A loop, into which the macros expand; `cel.bind` is one over an empty list."""

    iter_var: str
    iter_var2: str
    iter_range: Node
    accu_var: str
    accu_init: Node
    condition: Node
    step: Node
    result: Node
    id: int = dataclasses.field(default=0, compare=False)


Node: TypeAlias = Const | Ident | Select | Call | ListLiteral | MapLiteral | Comprehension


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedTree:
    """An expression with the checker's findings. Two are equal when they are one object.

    Args:
        root: The syntax tree.
        types: Type by node id.
        positions: Offset in code points by node id; of an operator, that of its sign.
        references: Overload ids by node id, of calls; several where only a device tells which it is.
    """

    root: Node
    types: Mapping[int, CelType]
    positions: Mapping[int, int]
    references: Mapping[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many nodes have a type: all but the fields of messages."""
        return len(self.types)

    def type_of(self, node: Node) -> CelType:
        """The static type; dyn where the checker gave none."""
        return self.types.get(node.id, DYN)


def children(node: Node) -> tuple[Node, ...]:
    """The direct children in the order written."""
    match node:
        case Select(operand=operand):
            return (operand,)
        case Call(target=None, args=args):
            return args
        case Call(target=target, args=args) if target is not None:
            return (target, *args)
        case ListLiteral(elements=elements):
            return elements
        case MapLiteral(entries=entries):
            return tuple(part for entry in entries for part in (entry.key, entry.value))
        case Comprehension():
            return (node.iter_range, node.accu_init, node.condition, node.step, node.result)
    return ()


def with_constants(node: Node, values: Mapping[int, Scalar]) -> Node:
    """The same tree with other values of literals, by id."""
    if isinstance(node, Const):
        value = values.get(node.id)
        return node if value is None else Const(node.kind, value, node.id)
    if isinstance(node, Ident):
        return node
    return _changed(node, lambda part: with_constants(part, values), node.id)


def renumbered(node: Node, by: int) -> Node:
    """The same tree with *by* added to every id; a key that is no expression has none, and stays 0."""
    return _changed(node, lambda part: renumbered(part, by), node.id + by if node.id else 0)


def _changed(node: Node, change: Callable[[Node], Node], identity: int) -> Node:
    """The node with another id, and with its direct children changed."""
    match node:
        case Select(operand=operand):
            return Select(change(operand), node.field, node.test_only, identity)
        case Call(target=target):
            args = tuple([change(argument) for argument in node.args])
            return Call(node.function, args, target and change(target), identity)
        case ListLiteral(elements=elements):
            parts = tuple([change(element) for element in elements])
            return ListLiteral(parts, node.optional_indices, identity)
        case MapLiteral(entries=entries):
            changed = [
                Entry(change(each.key), change(each.value), each.optional, each.id) for each in entries
            ]
            return MapLiteral(tuple(changed), node.message, identity)
        case Comprehension():
            return dataclasses.replace(
                node,
                iter_range=change(node.iter_range),
                accu_init=change(node.accu_init),
                condition=change(node.condition),
                step=change(node.step),
                result=change(node.result),
                id=identity,
            )
    return dataclasses.replace(node, id=identity)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(children(found)))


def height(node: Node) -> int:
    """How many nodes stand in each other at most."""
    found = 0
    level = [node]
    while level:
        found += 1
        level = [below for each in level for below in children(each)]
    return found


_DEEPEST: Final = 40_000
"""Calls that stand in each other when the deepest tree that the server's parser takes is parsed, checked or evaluated, and more."""
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def call_deeply(
    function: Callable[_Arguments, _Result], *arguments: _Arguments.args, **options: _Arguments.kwargs
) -> _Result:
    """Calls a function that goes down a tree, with room for trees deeper than Python's limit on calls allows.

    Raises:
        RecursionError: When the tree is deeper than that, too.
    """
    with _room:
        return function(*arguments, **options)


class _Room:
    """Raises Python's limit on calls, which all threads share, until the last that needs it is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = self._limit = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._limit = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._limit, _DEEPEST))
            self._users += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setrecursionlimit(self._limit)


_room: Final = _Room()


def is_bind(node: Node) -> TypeGuard[Comprehension]:
    """Checks that the node is `cel.bind(name, init, result)` as the macro expands it."""
    return (
        isinstance(node, Comprehension)
        and isinstance(node.iter_range, ListLiteral)
        and not node.iter_range.elements
        and node.condition == Const("bool_value", value=False)
    )
