"""Macros of CEL: calls that stand for other expressions, as the server's parser expands them.

Upstream: `parser/macro.go`, `cel/library.go`, `ext/bindings.go`, `ext/comprehensions.go` and `ext/lists.go` of cel-go.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from dra_infra.kubernetes.cel.tree import (
    Call,
    Comprehension,
    Const,
    Entry,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
)

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
SORTED: Final = "@__sortBy_input__"
"""The variable of the list in what sortBy() expands to."""

_RESERVED: Final = frozenset({ACCUMULATOR, "__result__"})
_NO_NAME: Final = "argument must be a simple name"
_OVERWRITES: Final = "iteration variable overwrites accumulator variable"


class MacroError(Exception):
    """An argument of a macro is wrong: its node, and what the server says."""

    def __init__(self, node: Node, message: str) -> None:
        super().__init__(message)
        self.node = node
        self.message = message


class Maker(Protocol):
    """Gives numbers to the nodes of an expansion."""

    def number(self) -> int:
        """A new number, at the place of the macro's call."""

    def number_like(self, node: Node) -> int:
        """A new number, at the place of *node*."""


Expand: TypeAlias = Callable[["Expansion", Node, tuple[Node, ...]], Node]


class Expansion:
    """Makes the nodes of one expansion; the shapes of loops are its methods."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker

    def ident(self, name: str) -> Ident:
        """A variable."""
        return Ident(name, self._maker.number())

    def result(self) -> Ident:
        """The variable in which a loop gathers."""
        return self.ident(ACCUMULATOR)

    def truth(self, *, value: bool) -> Const:
        """`true` or `false`."""
        return Const("bool_value", value, self._maker.number())

    def whole(self, value: int) -> Const:
        """A whole number."""
        return Const("int64_value", value, self._maker.number())

    def call(self, function: str, *args: Node) -> Call:
        """A call of a function."""
        return Call(function, args, None, self._maker.number())

    def method(self, function: str, target: Node, *args: Node) -> Call:
        """A call of a method."""
        return Call(function, args, target, self._maker.number())

    def list(self, *elements: Node) -> ListLiteral:
        """A list literal."""
        return ListLiteral(elements, (), self._maker.number())

    def map(self) -> MapLiteral:
        """An empty map."""
        return MapLiteral((), "", self._maker.number())

    def copy(self, node: Node) -> Node:
        """Copies an expression, whose nodes get numbers of their own."""
        number = self._maker.number_like(node)
        match node:
            case Select():
                return Select(self.copy(node.operand), node.field, node.test_only, number)
            case Call():
                args = tuple(map(self.copy, node.args))
                return Call(node.function, args, node.target and self.copy(node.target), number)
            case ListLiteral():
                return ListLiteral(tuple(map(self.copy, node.elements)), node.optional_indices, number)
            case MapLiteral():
                return MapLiteral(tuple(map(self._copy_entry, node.entries)), node.message, number)
            case Comprehension():
                return dataclasses.replace(
                    node,
                    iter_range=self.copy(node.iter_range),
                    accu_init=self.copy(node.accu_init),
                    condition=self.copy(node.condition),
                    step=self.copy(node.step),
                    result=self.copy(node.result),
                    id=number,
                )
        return dataclasses.replace(node, id=number)

    def _copy_entry(self, entry: Entry) -> Entry:
        key = self.copy(entry.key) if entry.key.id else entry.key
        number = self._maker.number_like(entry.value)
        return Entry(key, self.copy(entry.value), entry.optional, number)

    def bind(self, name: Ident, value: Node, result: Node) -> Comprehension:
        """*result* with a variable that has a value: a loop over nothing."""
        return Comprehension(
            iter_var=UNUSED,
            iter_var2="",
            iter_range=self.list(),
            accu_var=name.name,
            accu_init=value,
            condition=self.truth(value=False),
            step=self.copy(name),
            result=result,
            id=self._maker.number(),
        )

    def loop(
        self, names: tuple[str, str], over: Node, start: Node, condition: Node, step: Node
    ) -> Comprehension:
        """A loop whose result is what it gathers."""
        return Comprehension(
            iter_var=names[0],
            iter_var2=names[1],
            iter_range=over,
            accu_var=ACCUMULATOR,
            accu_init=start,
            condition=condition,
            step=step,
            result=self.result(),
            id=self._maker.number(),
        )

    def every(self, names: tuple[str, str], over: Node, test: Node) -> Comprehension:
        """`all`."""
        condition = self.call("@not_strictly_false", self.result())
        return self.loop(
            names, over, self.truth(value=True), condition, self.call("_&&_", self.result(), test)
        )

    def some(self, names: tuple[str, str], over: Node, test: Node) -> Comprehension:
        """`exists`."""
        condition = self.call("@not_strictly_false", self.call("!_", self.result()))
        return self.loop(
            names, over, self.truth(value=False), condition, self.call("_||_", self.result(), test)
        )

    def one(self, names: tuple[str, str], over: Node, test: Node) -> Comprehension:
        """`existsOne`: it counts, and compares the count with one."""
        counted = self.call("_+_", self.result(), self.whole(1))
        step = self.call("_?_:_", test, counted, self.result())
        found = self.loop(names, over, self.whole(0), self.truth(value=True), step)
        return dataclasses.replace(found, result=self.call("_==_", found.result, self.whole(1)))

    def gather(
        self, names: tuple[str, str], over: Node, start: Node, step: Node, test: Node | None
    ) -> Comprehension:
        """A loop that gathers in each *step*, of those that pass the test where there is one."""
        if test is not None:
            step = self.call("_?_:_", test, step, self.result())
        return self.loop(names, over, start, self.truth(value=True), step)

    def gather_list(
        self, names: tuple[str, str], over: Node, value: Node, test: Node | None
    ) -> Comprehension:
        """A loop that makes a list."""
        return self.gather(names, over, self.list(), self.call("_+_", self.result(), self.list(value)), test)


def _ident_of(node: Node, message: str) -> Ident:
    if not isinstance(node, Ident):
        raise MacroError(node, message)
    return node


def _name_of(node: Node, message: str) -> str:
    return _ident_of(node, message).name


def _one_name(node: Node, message: str) -> tuple[str, str]:
    name = _name_of(node, message)
    if name in _RESERVED:
        raise MacroError(node, _OVERWRITES)
    return name, ""


def _two_names(first: Node, second: Node) -> tuple[str, str]:
    names = _name_of(first, _NO_NAME), _name_of(second, _NO_NAME)
    if names[0] == names[1]:
        raise MacroError(second, f"duplicate variable name: {names[0]}")
    for node, name in ((first, names[0]), (second, names[1])):
        if name in _RESERVED:
            raise MacroError(node, _OVERWRITES)
    return names


def _quantifier(shape: Callable[[Expansion, tuple[str, str], Node, Node], Node]) -> Expand:
    def expand(made: Expansion, target: Node, args: tuple[Node, ...]) -> Node:
        names = _one_name(args[0], _NO_NAME) if len(args) == 2 else _two_names(args[0], args[1])
        return shape(made, names, target, args[-1])

    return expand


def _map(made: Expansion, target: Node, args: tuple[Node, ...]) -> Node:
    names = _one_name(args[0], "argument is not an identifier")
    return made.gather_list(names, target, args[-1], args[1] if len(args) == 3 else None)


def _filter(made: Expansion, target: Node, args: tuple[Node, ...]) -> Node:
    names = _one_name(args[0], "argument is not an identifier")
    return made.gather_list(names, target, args[0], args[1])


def _transform_list(made: Expansion, target: Node, args: tuple[Node, ...]) -> Node:
    names = _two_names(args[0], args[1])
    return made.gather_list(names, target, args[-1], args[2] if len(args) == 4 else None)


def _transform_map(made: Expansion, target: Node, args: tuple[Node, ...]) -> Node:
    names = _two_names(args[0], args[1])
    step = made.call("cel.@mapInsert", made.result(), made.ident(names[0]), args[-1])
    return made.gather(names, target, made.map(), step, args[2] if len(args) == 4 else None)


def _transform_map_entry(made: Expansion, target: Node, args: tuple[Node, ...]) -> Node:
    names = _two_names(args[0], args[1])
    step = made.call("cel.@mapInsert", made.result(), args[-1])
    return made.gather(names, target, made.map(), step, args[2] if len(args) == 4 else None)


def _opt_map(made: Expansion, target: Node, args: tuple[Node, ...]) -> Node:
    return _mapped(made, target, args, "optMap", lambda bound: made.call("optional.of", bound))


def _opt_flat_map(made: Expansion, target: Node, args: tuple[Node, ...]) -> Node:
    return _mapped(made, target, args, "optFlatMap", lambda bound: bound)


def _mapped(
    made: Expansion, target: Node, args: tuple[Node, ...], macro: str, wrap: Callable[[Node], Node]
) -> Node:
    name = _ident_of(args[0], f"{macro}() variable name must be a simple identifier")
    value = made.method("value", made.copy(target))
    # The place of the variable is the macro's, as of cel.bind.
    bound = wrap(made.bind(made.ident(name.name), value, args[1]))
    return made.call("_?_:_", made.method("hasValue", target), bound, made.call("optional.none"))


def _bind(made: Expansion, _target: Node, args: tuple[Node, ...]) -> Node:
    name = _ident_of(args[0], "cel.bind() variable names must be simple identifiers")
    # Its place is the macro's.
    return made.bind(made.ident(name.name), args[1], args[2])


def _sort_by(made: Expansion, target: Node, args: tuple[Node, ...]) -> Node:
    if isinstance(target, (Const, MapLiteral)):
        kinds = "a list, identifier, comprehension, call or select expression"
        raise MacroError(target, f"sortBy can only be applied to {kinds}")
    names = _one_name(args[0], "argument is not an identifier")
    keys = made.gather_list(names, made.ident(SORTED), args[1], None)
    return made.bind(
        made.ident(SORTED), target, made.method("@sortByAssociatedKeys", made.ident(SORTED), keys)
    )


_QUANTIFIERS: Final = {
    "all": _quantifier(Expansion.every),
    "exists": _quantifier(Expansion.some),
    "exists_one": _quantifier(Expansion.one),
}

METHODS: Final[dict[tuple[str, int], Expand]] = {
    **{(name, count): expand for name, expand in _QUANTIFIERS.items() for count in (2, 3)},
    # The newer spelling takes two variables only.
    ("existsOne", 3): _QUANTIFIERS["exists_one"],
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
    **{("transformList", count): _transform_list for count in (3, 4)},
    **{("transformMap", count): _transform_map for count in (3, 4)},
    **{("transformMapEntry", count): _transform_map_entry for count in (3, 4)},
}
"""Macros that are called on something, by name and number of arguments; all but `bind` of `cel`."""

BIND: Final = ("bind", 3, _bind)
"""The macro of `cel`, which is no macro of anything else."""
