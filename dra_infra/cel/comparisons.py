"""How comparisons are lowered whose operands may be versions or quantities, which are byte strings at run time.

Their methods become comparisons of bytes; what the engine does with bytes but Kubernetes does not do with versions is
guarded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_infra.cel import natives
from dra_infra.cel.libraries import QUANTITY, SEMVER
from dra_infra.cel.lowering import (
    DEFER,
    FALSE,
    TRUE,
    ZERO,
    Lowering,
    NotLoweredError,
    Rewrite,
    choose,
    has_type,
)
from dra_infra.cel.tree import Call, Const, Node
from dra_infra.cel.values import NUMBER_WIDTH, encode_quantity, encode_semver
from dra_infra.model.quantity import Quantity
from dra_infra.model.semver import Semver

_ONE: Final = Const("int64_value", 1)
_MINUS_ONE: Final = Const("int64_value", -1)
_VERSION_PARTS: Final = ("major", "minor", "patch")


def _ordering(lowering: Lowering, node: Call, operator: str = "") -> Node:
    """`a.compareTo(b)` and its kin; with an operator, `a.compareTo(b) OP 0` as one comparison."""
    first, second = receiver(node), node.args[0]
    operator = {"isGreaterThan": "_>_", "isLessThan": "_<_"}.get(node.function, operator)
    kinds = [lowering.type_of(operand).name for operand in (first, second)]
    if QUANTITY in kinds and kinds != [QUANTITY, QUANTITY]:
        raise NotLoweredError

    def compare(a: Node, b: Node) -> Node:
        below, equal = Call("_<_", (a, b)), Call("_==_", (a, b))
        body: Node = choose(below, _MINUS_ONE, choose(equal, ZERO, _ONE))
        if operator:
            body = Call(operator, (a, b))
        for value, kind in ((b, kinds[1]), (a, kinds[0])):
            if kind not in (SEMVER, QUANTITY):
                body = choose(has_type(value, "bytes"), body, DEFER)
        return body

    return lowering.let(
        lowering.visit(first), lambda a: lowering.let(lowering.visit(second), lambda b: compare(a, b))
    )


def _against_zero(lowering: Lowering, node: Call) -> Node | None:
    first, second = node.args
    if isinstance(first, Call) and first.function == "compareTo" and len(first.args) == 1 and second == ZERO:
        return _ordering(lowering, first, node.function)
    return None


def _compared(lowering: Lowering, node: Call) -> Node:
    return _against_zero(lowering, node) or _guarded(lowering, node)


def _guarded(lowering: Lowering, node: Call) -> Node:
    """`+` and the comparisons, which exist for bytes but not for versions."""
    left, right = node.args
    if not may_be_opaque(lowering, left) or not may_be_opaque(lowering, right):
        return lowering.rebuild(node)
    other = lowering.visit(right)
    return lowering.guard(lowering.visit(left), lambda it: Call(node.function, (it, other)))


def _version_part(lowering: Lowering, node: Call) -> Node:
    start = 1 + NUMBER_WIDTH * _VERSION_PARTS.index(node.function)
    bounds = (Const("int64_value", start), Const("int64_value", start + NUMBER_WIDTH))
    return lowering.let(
        lowering.visit(receiver(node)),
        lambda it: choose(
            has_type(it, "bytes"), Call("int", (Call("substring", bounds, Call("string", (it,))),)), DEFER
        ),
    )


def _from_text(_lowering: Lowering, node: Call) -> Node:
    """`quantity`, `semver` and their tests of a literal."""
    function, text, *flags = node.function, *node.args
    if not isinstance(text, Const) or not all(isinstance(flag, Const) for flag in flags):
        raise NotLoweredError
    normalized = any(isinstance(flag, Const) and flag.value for flag in flags)
    try:
        encoded = _encode(function, str(text.value), normalized=normalized)
    except ValueError:
        if function.startswith("is"):
            return FALSE
        raise NotLoweredError from None
    return TRUE if function.startswith("is") else Const("bytes_value", encoded)


def _encode(function: str, text: str, *, normalized: bool) -> bytes:
    if function in ("quantity", "isQuantity"):
        return encode_quantity(Quantity.parse(text))
    return encode_semver(Semver.parse_normalized(text) if normalized else Semver.parse(text))


def _equality(lowering: Lowering, node: Call) -> Node:
    zero = _against_zero(lowering, node)
    if zero is not None:
        return zero
    first, second = node.args
    left, right = lowering.type_of(first), lowering.type_of(second)
    if any(kind.mentions("optional_type") and not natives.is_plain(kind) for kind in (left, right)):
        raise NotLoweredError
    if left.name in natives.SCALARS or (natives.is_plain(left) and natives.is_plain(right)):
        return lowering.rebuild(node)
    if left.name == right.name and left.name in (SEMVER, QUANTITY):
        return lowering.rebuild(node)
    if QUANTITY in (left.name, right.name):
        raise NotLoweredError
    if right.name in natives.SCALARS or SEMVER in (left.name, right.name):
        return _scalar_equality(lowering, node)
    return lowering.let(
        lowering.visit(first),
        lambda a: lowering.let(lowering.visit(second), lambda b: _dynamic_equality(node.function, a, b)),
    )


def _scalar_equality(lowering: Lowering, node: Call) -> Node:
    """Equality with a scalar on the right or a version on either side.

    A version equals nothing but versions, on the left of `==` it fails with anything else, and `!=` never fails.
    """
    first, second = node.args
    right = lowering.type_of(second).name
    if node.function == "_!=_" or right in ("null_type", SEMVER):
        return lowering.rebuild(node)
    a, b = lowering.visit(first), lowering.visit(second)
    if lowering.type_of(first).name == SEMVER:
        return lowering.let(b, lambda it: choose(has_type(it, "bytes"), Call("_==_", (a, it)), DEFER))
    return lowering.guard(a, lambda it: Call("_==_", (it, b)))


def _dynamic_equality(function: str, a: Node, b: Node) -> Node:
    plain = Call(function, (a, b))
    container = Call("_||_", (has_type(a, "list"), has_type(a, "map")))
    body = choose(container, DEFER, plain)
    if function == "_!=_":
        return body
    return choose(has_type(a, "bytes"), choose(has_type(b, "bytes"), plain, DEFER), body)


def receiver(node: Call) -> Node:
    """What a method is called on.

    Raises:
        NotLoweredError: When the call is none of a method.
    """
    if node.target is None:
        raise NotLoweredError
    return node.target


def may_be_opaque(lowering: Lowering, node: Node) -> bool:
    """Whether a version or quantity may be the value."""
    return lowering.type_of(node).name in ("dyn", "any", SEMVER, QUANTITY)


COMPARISONS: Final[Mapping[str, Rewrite]] = {
    **dict.fromkeys(("compareTo", "isGreaterThan", "isLessThan"), _ordering),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _compared),
    "_+_": _guarded,
    **dict.fromkeys(("_==_", "_!=_"), _equality),
    **dict.fromkeys(_VERSION_PARTS, _version_part),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _from_text),
}
"""By function."""
