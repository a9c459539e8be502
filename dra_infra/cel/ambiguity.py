"""Types that only the server's order of overloads decides: of elements that nothing names, as in `[].map(x, -x)`.

cel-go takes the first overload that fits and so gives `x` a type for the rest of the expression; the engine leaves it
open. What is not known here is not guessed.
"""

from __future__ import annotations

from typing import Final

from dra_infra.cel.tree import (
    Call,
    CheckedTree,
    Comprehension,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    children,
    is_bind,
    walk,
)

_OVERLOADED: Final = frozenset(
    {
        *("_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_<_", "_<=_", "_>_", "_>=_"),
        *("bool", "bytes", "double", "duration", "int", "size", "string", "timestamp", "uint"),
    }
)
_OVER_ELEMENTS: Final = frozenset({"@sortByAssociatedKeys", "isSorted", "max", "min", "sort", "sum"})
_JOINING: Final = frozenset({"_?_:_", "_+_", "or", "orValue"})
_POLYMORPHIC: Final = frozenset(
    {
        *("_-_", "_*_", "_/_", "_%_", "-_", "_[_]", "_[?_]", "_?._"),
        *(
            "@sortByAssociatedKeys",
            "distinct",
            "first",
            "flatten",
            "last",
            "max",
            "min",
            "reverse",
            "slice",
            "sort",
        ),
        *("sum", "optional.of", "optional.ofNonZeroValue", "optional.unwrap", "unwrapOpt", "value"),
        *("cel.@mapInsert", "type"),
    }
)
"""Functions whose result has a type that their arguments give."""

_SORTED: Final = "@__sortBy_input__"
"""The list in what the macro sortBy() expands to."""

_KNOWN: Final = frozenset({"list", "map", "optional_type"})


def is_ambiguous(tree: CheckedTree) -> bool:
    """Whether an overloaded function is called on nothing but values without a type."""
    search = _Search(tree)
    search.is_open(tree.root, frozenset())
    return search.found


def has_open_variable(tree: CheckedTree) -> bool:
    """Whether a variable is used whose type nothing names, so that an error about types may not be the server's."""
    search = _Search(tree)
    search.is_open(tree.root, frozenset())
    return search.used


def is_empty(node: Node) -> bool:
    """Whether *node* is a literal whose elements nothing names."""
    match node:
        case ListLiteral(elements=()) | MapLiteral(entries=(), message=""):
            return True
        case Call(function="optional.none"):
            return True
    return False


class _Search:
    def __init__(self, tree: CheckedTree) -> None:
        self._tree = tree
        self.found = False
        self.used = False

    def is_open(self, node: Node, names: frozenset[str]) -> bool:
        """Whether the type of *node* comes from an empty value; *names* are the variables whose type does."""
        match node:
            case Ident(name=name):
                self.used |= name in names and not name.startswith("@")
                return name in names
            case Comprehension():
                return self._is_open_loop(node, names)
        parts = [(part, self.is_open(part, names)) for part in children(node)]
        if isinstance(node, Call) and any(is_open for _, is_open in parts):
            self.found |= self._is_undirected(node, parts, names)
        return is_empty(node) or self._stays_open(node, [is_open for _, is_open in parts])

    def _stays_open(self, node: Node, parts: list[bool]) -> bool:
        if self._tree.type_of(node).name in ("bool", "string"):
            return False
        match node:
            case Call(function=function) if function in _JOINING:
                # One alternative with a type gives it to all.
                return all(parts[-2:])
            case Call(function=function):
                return function in _POLYMORPHIC and any(parts)
            case ListLiteral():
                return all(parts)
        return any(parts)

    def _is_open_loop(self, loop: Comprehension, names: frozenset[str]) -> bool:
        outer = names - {loop.accu_var, loop.iter_var, loop.iter_var2}
        if is_bind(loop):
            own = {loop.accu_var} if self.is_open(loop.accu_init, names) else set()
            return self.is_open(loop.result, outer | own)
        own = {loop.iter_var, loop.iter_var2} if self.is_open(loop.iter_range, names) else set()
        self.is_open(loop.condition, outer | own)
        # What a macro gathers is as open as what it adds.
        made = self.is_open(loop.step, outer | own | ({loop.accu_var} if own else set()))
        return self.is_open(loop.result, outer | own) or made

    def _is_undirected(self, call: Call, parts: list[tuple[Node, bool]], names: frozenset[str]) -> bool:
        if call.function in _OVER_ELEMENTS:
            found = {node.name for part, _ in parts for node in walk(part) if isinstance(node, Ident)}
            return not names.isdisjoint(found - {_SORTED})
        if call.function not in _OVERLOADED:
            return False
        return all(
            isinstance(part, Ident) or self._tree.type_of(part).name not in _KNOWN
            if is_open
            else self._is_dyn(part)
            for part, is_open in parts
        )

    def _is_dyn(self, node: Node) -> bool:
        return self._tree.type_of(node).name in ("dyn", "any")
