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
_SORTED: Final = "@__sortBy_input__"
"""The list in what the macro sortBy() expands to."""

_KNOWN: Final = frozenset({"list", "map", "optional_type"})


def is_ambiguous(tree: CheckedTree) -> bool:
    """Whether an overloaded function is called on nothing but values without a type."""
    search = _Search(tree)
    search.is_open(tree.root, frozenset())
    return search.found


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

    def is_open(self, node: Node, names: frozenset[str]) -> bool:
        """Whether the type of *node* comes from an empty value; *names* are the variables whose type does."""
        match node:
            case Ident(name=name):
                return name in names
            case Comprehension():
                return self._is_open_loop(node, names)
        parts = [(part, self.is_open(part, names)) for part in children(node)]
        if isinstance(node, Call) and any(is_open for _, is_open in parts):
            self.found |= self._is_undirected(node, parts, names)
        kind = self._tree.type_of(node).name
        return kind not in ("bool", "string") and (is_empty(node) or any(is_open for _, is_open in parts))

    def _is_open_loop(self, loop: Comprehension, names: frozenset[str]) -> bool:
        own = set()
        if is_bind(loop):
            if self.is_open(loop.accu_init, names):
                own.add(loop.accu_var)
        elif self.is_open(loop.iter_range, names):
            own |= {loop.iter_var, loop.iter_var2}
        inner = (names - {loop.accu_var, loop.iter_var, loop.iter_var2}) | own
        self.is_open(loop.condition, inner)
        made = self.is_open(loop.step, inner)
        return self.is_open(loop.result, inner) or (made and not is_bind(loop))

    def _is_undirected(self, call: Call, parts: list[tuple[Node, bool]], names: frozenset[str]) -> bool:
        if call.function in _OVER_ELEMENTS:
            found = {node.name for part, _ in parts for node in walk(part) if isinstance(node, Ident)}
            return not names.isdisjoint(found - {_SORTED})
        if call.function not in _OVERLOADED:
            return False
        return all(
            self._tree.type_of(part).name not in _KNOWN if is_open else self._is_dyn(part)
            for part, is_open in parts
        )

    def _is_dyn(self, node: Node) -> bool:
        return self._tree.type_of(node).name in ("dyn", "any")
