"""Tells expressions that no device makes as expensive as the server's limit, so that their cost need not be counted.

The estimate of the server is no such bound: it is too low for `join`, `validate`, `strings.quote` of a text of unknown
length, `startsWith` and `endsWith` before 1.37, for what is indexed or selected in the result of a call, and for
`includes` of a map. This bound is coarse and takes the tree alone. All texts are at most as long as those written in
the expression and those of a device together, and so are all lists, as long as nothing in a loop makes them grow.
"""

from __future__ import annotations

from typing import Final

from dra_infra.kubernetes.api.limits import MAX_COST
from dra_infra.kubernetes.cel.tree import (
    Call,
    CheckedTree,
    Comprehension,
    Const,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    children,
    is_bind,
    walk,
)

MAX_SIZE: Final = 64
"""Characters of any text of a device, elements of any list and entries of any map."""
_NUMBER: Final = 40
"""Characters of any number or time."""
_LITERAL: Final = 40
_SELECTION: Final = 2
_BYTES: Final = 4
"""Of a character."""
_NAMED_PATTERN: Final = 1103
_GROWING: Final = frozenset(
    {
        "replace",
        "join",
        "format",
        "strings.quote",
        "lists.range",
        "flatten",
        "check",
        "fieldSelector",
        "labelSelector",
    }
)
_MATCHING: Final = frozenset({"matches", "find", "findAll", "contains", "validate"})
_COMPARING: Final = frozenset(
    {"distinct", "sort", "@sortByAssociatedKeys", "sets.contains", "sets.equivalent", "sets.intersects"}
)
_NUMBERS: Final = frozenset({"int", "uint", "double", "duration", "timestamp"})


def is_cheap(tree: CheckedTree) -> bool:
    """Checks that evaluating a tree on a device of the size that the API allows costs less than the server's limit."""
    bound = _Bound(tree)
    return not bound.grows(tree.root, ()) and bound.cost(tree.root) < MAX_COST


class _Bound:
    def __init__(self, tree: CheckedTree) -> None:
        self._tree = tree
        self._text = self._length = 1
        for node in walk(tree.root):
            match node:
                case Const(value=str() | bytes() as value):
                    self._text += len(value)
                case Ident():
                    self._text += MAX_SIZE
                    self._length += MAX_SIZE
                case Call():
                    self._text += _NUMBER
                case ListLiteral(elements=parts) | MapLiteral(entries=parts):
                    self._length += len(parts)
        self._length += self._text

    def grows(self, node: Node, gathered: tuple[str, ...]) -> bool:
        """Checks for values longer than what they are made of, within the loops that gather results in some names."""
        match node:
            case Call(function=function) if function in _GROWING:
                return True
            case Call(function="_+_", args=(left, _)) if gathered and not self._is_number(node):
                if not (
                    isinstance(left, Ident)
                    and left.name in gathered
                    and isinstance(node.args[1], ListLiteral)
                ):
                    return True
            case Comprehension():
                gathered = (*gathered, node.accu_var)
        return any(self.grows(part, gathered) for part in children(node))

    def _is_number(self, node: Node) -> bool:
        return self._tree.type_of(node).name.removeprefix("google.protobuf.").lower() in _NUMBERS

    def cost(self, node: Node) -> int:
        """The most that the evaluation of a node may cost."""
        match node:
            case Comprehension() if not is_bind(node):
                over = node.iter_range
                count = self._count(over)
                outside = self.cost(over) + self.cost(node.accu_init) + self.cost(node.result)
                return outside + count * (self.cost(node.condition) + self.cost(node.step))
            case ListLiteral() | MapLiteral():
                own = _LITERAL
            case Call(function=function):
                own = self._call(function)
            case _:
                own = _SELECTION
        return own + sum(map(self.cost, children(node)))

    def _count(self, node: Node) -> int:
        """How many elements a list or map has at most."""
        match node:
            case ListLiteral(elements=elements):
                return len(elements)
            case Ident(name=name) if name.startswith("device"):
                return MAX_SIZE
            case Select(operand=operand) | Call(function="_[_]", args=(operand, _)) if _is_of_device(operand):
                return MAX_SIZE
        return self._length

    def _call(self, function: str) -> int:
        if function in _MATCHING:
            return (2 + self._text // 10) * (1 + max(self._text, _NAMED_PATTERN) // 4)
        if function in _COMPARING:
            return 3 * self._length**2 + 12
        if function in ("includes", "isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"):
            return self._length * (1 + self._text * _BYTES // 10)
        if function in ("@in", "slice", "reverse"):
            return 12 + self._length
        return 3 + (self._text + self._length) // 5


def _is_of_device(node: Node) -> bool:
    """Checks that a node selects something in the device."""
    match node:
        case Ident(name=name):
            return name.startswith("device")
        case Select(operand=operand) | Call(function="_[_]", args=(operand, _)):
            return _is_of_device(operand)
    return False
