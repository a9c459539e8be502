"""How calls are lowered that read a container: indexing, size, membership.

Attributes are dyn, so most guards ask for the type at run time; an attribute is never a quantity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_infra.cel.comparisons import COMPARISONS, may_be_opaque, receiver
from dra_infra.cel.lowering import DEFER, FALSE, Lowering, NotLoweredError, Rewrite, choose, has_type
from dra_infra.cel.tree import Call, Const, ListLiteral, MapLiteral, Node


def _index(lowering: Lowering, node: Call) -> Node:
    container, key = node.args
    is_literal = isinstance(key, Const) and isinstance(key.value, str)
    if not is_literal and lowering.type_of(key).name not in ("string", "int"):
        raise NotLoweredError
    domain = lowering.domain_of(container, key)
    if domain is None:
        return lowering.rebuild(node)
    through = domain if node.function == "_[_]" else Call("optional.of", (domain,))
    return lowering.unless_empty(
        container, through, lambda whole: Call(node.function, (whole, lowering.visit(key)))
    )


def _size(lowering: Lowering, node: Call) -> Node:
    operand = node.target if node.target is not None else node.args[0]
    value = lowering.whole(operand)
    if not may_be_opaque(lowering, operand):
        return Call("size", (value,))
    return lowering.guard(value, lambda it: Call("size", (it,)))


def _contained(lowering: Lowering, node: Call) -> Node:
    sought, container = node.args
    if container == ListLiteral(()):
        # cel-go does not even look at what is sought.
        return FALSE
    element, whole = lowering.visit(sought), lowering.whole(container)
    if not may_be_opaque(lowering, sought):
        return Call("@in", (element, whole))
    if isinstance(container, ListLiteral) and all(isinstance(item, Const) for item in container.elements):
        # cel-go turns a list of constants into a set, and a version cannot be hashed.
        return lowering.guard(element, lambda it: Call("@in", (it, whole)))
    if isinstance(container, MapLiteral):
        return lowering.guard(element, lambda it: _key_of(it, whole))
    if lowering.type_of(container).name != "map":
        return Call("@in", (element, whole))
    if not lowering.is_device_map(container):
        raise NotLoweredError
    return lowering.guard(element, lambda it: _key_of(it, whole))


def _key_of(key: Node, container: Node) -> Node:
    """`key in container`, for what can be a key; with anything else the engine fails."""
    compound = Call("_||_", (has_type(key, "list"), has_type(key, "map")))
    return choose(compound, DEFER, Call("@in", (key, container)))


def _includes(lowering: Lowering, node: Call) -> Node:
    target, sought = receiver(node), node.args[0]
    if lowering.domain_map(target) or lowering.domain_map(sought) or lowering.type_of(sought).parameters:
        raise NotLoweredError
    return lowering.let(
        lowering.visit(target),
        lambda a: lowering.let(
            lowering.visit(sought),
            lambda b: choose(has_type(a, "list"), Call("@in", (b, a)), Call("_==_", (a, b))),
        ),
    )


REWRITES: Final[Mapping[str, Rewrite]] = {
    **COMPARISONS,
    **dict.fromkeys(("_[_]", "_[?_]", "_?._"), _index),
    "size": _size,
    "@in": _contained,
    "includes": _includes,
}
"""By function; the functions of `natives.NATIVE` need none."""
