"""Rewrites a checked tree into one that the run environment evaluates with the API server's verdict.

Three things differ between the two. Reading an unknown domain gives an empty map. Versions and quantities are tagged
byte strings. And what is not known to give the server's verdict becomes an error that says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from dra_infra.cel import natives
from dra_infra.cel.libraries import QUANTITY, SEMVER
from dra_infra.cel.lowering import Lowering, UndecidedError, fail
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
from dra_infra.cel.values import UNDECIDED

_ARITHMETIC: Final = frozenset({"_+_", "_-_", "_*_", "_/_"})
_ACCESSORS: Final = frozenset({"_[_]", "_[?_]", "_?._", "@in", "_==_", "_!=_", "size", "hasValue"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A tree for the run environment.

    Args:
        root: The tree.
        variables: The per-domain variables that it reads, `@a/gpu.nvidia.com`.
        undecided: Whether an operand of `||`, `&&` or a macro may stand for 'unknown', so that an error of another
            one proves nothing.
        panics: Whether evaluating it may end in a failure that nothing absorbs.
    """

    root: Node
    variables: frozenset[str]
    undecided: bool
    panics: bool = False


def lower(tree: CheckedTree) -> Lowered:
    """Rewrite *tree*."""
    lowering = Lowering(tree, REWRITES)
    try:
        _refuse_growth(tree)
        _refuse_whole(tree)
        root = lowering.visit(tree.root)
    except UndecidedError as error:
        return Lowered(root=fail(UNDECIDED + str(error)), variables=frozenset(), undecided=True)
    return Lowered(
        root=root,
        variables=frozenset(lowering.variables),
        undecided=lowering.undecided,
        panics=lowering.panics,
    )


def _refuse_whole(tree: CheckedTree) -> None:
    """Refuse trees in which a byte string may be something else than it looks like."""
    for node in walk(tree.root):
        kind = tree.type_of(node)
        if kind.mentions("bytes") or (isinstance(node, Const) and isinstance(node.value, bytes)):
            raise UndecidedError("bytes")
        if isinstance(node, MapLiteral) and node.message:
            raise UndecidedError(f"a {node.message}")
        if isinstance(node, Call) and node.function == "distinct":
            # cel-go 0.29.2 breaks off the whole evaluation where an element is an error.
            raise UndecidedError("distinct()")
        if isinstance(node, Call) and node.function in _ARITHMETIC and kind.name == "double":
            # NaN, which can come of it, has an order here and an error upstream.
            raise UndecidedError("arithmetic of floating point numbers")
        _refuse_lost_types(tree, node, kind)


def _refuse_growth(tree: CheckedTree) -> None:
    nodes = list(walk(tree.root))
    if sum(isinstance(node, Comprehension) for node in nodes) > natives.MAX_LOOPS:
        raise UndecidedError(f"more than {natives.MAX_LOOPS} macros and names")
    calls = Counter(node.function for node in nodes if isinstance(node, Call))
    for function, limit in natives.GROWING.items():
        if calls[function] > limit:
            raise UndecidedError(f"more than {limit} calls of {function}()")


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
            raise UndecidedError("a quantity whose type is only known at run time")
        if found.mentions("dyn") and any(
            kind.mentions(name) and not found.mentions(name) for name in (QUANTITY, SEMVER)
        ):
            raise UndecidedError("a version or quantity whose type is only known at run time")
