"""Rewrites a checked tree into one that the engine evaluates with the API server's verdict, where that is possible.

Two things differ between the two. Reading an unknown domain gives an empty map, and versions and quantities are tagged
byte strings. A tree with anything else that differs is left to the interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dra_infra.cel import natives
from dra_infra.cel.libraries import QUANTITY, SEMVER
from dra_infra.cel.lowering import Lowering, NotLoweredError
from dra_infra.cel.rewrites import REWRITES
from dra_infra.cel.tree import (
    Call,
    CelType,
    CheckedTree,
    Comprehension,
    Const,
    MapLiteral,
    Node,
    Select,
    children,
    walk,
)

_ACCESSORS: Final = frozenset({"_[_]", "_[?_]", "_?._", "@in", "_==_", "_!=_", "size", "hasValue"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A tree for the run environment.

    Args:
        root: The tree.
        variables: The per-domain variables that it reads, `@a/gpu.nvidia.com`.
    """

    root: Node
    variables: frozenset[str]


def lower(tree: CheckedTree) -> Lowered | None:
    """Rewrite *tree*; None when the engine cannot evaluate it as the server does."""
    lowering = Lowering(tree, REWRITES)
    try:
        _refuse_growth(tree)
        _refuse_whole(tree)
        root = lowering.visit(tree.root)
    except NotLoweredError:
        return None
    return Lowered(root=root, variables=frozenset(lowering.variables))


def _refuse_whole(tree: CheckedTree) -> None:
    """Refuse trees in which a byte string may be something else than it looks like, or numbers are compared inexactly."""
    for node in walk(tree.root):
        kind = tree.type_of(node)
        if (
            kind.mentions("bytes")
            or kind.mentions("double")
            or (isinstance(node, Const) and _is_unreadable(node))
        ):
            raise NotLoweredError
        if isinstance(node, MapLiteral) and node.message:
            raise NotLoweredError
        if (
            isinstance(node, Call)
            and node.function in natives.ARITHMETIC
            and kind.name not in ("int", "string")
        ):
            # NaN has an order here and an error upstream; lists and times differ in more than that.
            raise NotLoweredError
        _refuse_lost_types(tree, node, kind)


def _is_unreadable(literal: Const) -> bool:
    return isinstance(literal.value, bytes) or (isinstance(literal.value, str) and "\0" in literal.value)


def _refuse_growth(tree: CheckedTree) -> None:
    if sum(isinstance(node, Comprehension) for node in walk(tree.root)) > natives.MAX_LOOPS:
        raise NotLoweredError


def _refuse_lost_types(tree: CheckedTree, node: Node, kind: CelType) -> None:
    """Quantities must not become dyn, nor dyn values versions or quantities, for the rewrites go by static types."""
    if isinstance(node, Select | Comprehension):
        return
    if isinstance(node, Call) and node.function in natives.TYPED | _ACCESSORS:
        return
    below = children(node)
    if isinstance(node, Call) and node.function == "_?_:_":
        below = below[1:]
    for child in below:
        found = tree.type_of(child)
        if found.mentions(QUANTITY) and not kind.mentions(QUANTITY):
            raise NotLoweredError
        if found.mentions("dyn") and any(
            kind.mentions(name) and not found.mentions(name) for name in (QUANTITY, SEMVER)
        ):
            raise NotLoweredError
