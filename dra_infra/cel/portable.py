"""Expressions that mean the same to every supported server: what most selectors are.

They use nothing but the fields of `device` that all releases have, comparison, the older string functions, quantities
and versions, and no list, macro or message, on whose types releases differ. One compilation then answers for all; that
it does is held against compilation in every environment (tests/unit/cel/test_portable.py).
"""

from __future__ import annotations

from typing import Final

from dra_infra.cel.tree import Call, CelType, CheckedTree, Const, Ident, Node, Select, children

_VARIABLES: Final = frozenset({"device.driver", "device.attributes", "device.capacity"})
_FUNCTIONS: Final = frozenset(
    {
        *("_&&_", "_||_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_[_]", "@in"),
        *("quantity", "semver", "compareTo", "isGreaterThan", "isLessThan"),
        *("contains", "startsWith", "endsWith", "lowerAscii", "upperAscii"),
    }
)
_BOOL: Final = CelType("bool")


def is_portable(tree: CheckedTree) -> bool:
    """Whether every supported server says the same of the expression: that it is a test, and what it costs.

    Args:
        tree: What it compiles to. Names in backticks, which older parsers refuse, do not show in it.
    """
    return tree.type_of(tree.root) == _BOOL and _is_portable(tree.root)


def _is_portable(node: Node) -> bool:
    if isinstance(node, Const):
        return True
    if isinstance(node, Ident):
        return node.name in _VARIABLES
    if isinstance(node, Select) or (isinstance(node, Call) and node.function in _FUNCTIONS):
        return all(map(_is_portable, children(node)))
    return False
