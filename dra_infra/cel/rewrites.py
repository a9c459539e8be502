"""How calls are lowered whose operands may be versions or quantities, which are byte strings at run time.

Their methods become comparisons; whatever the engine does with bytes but Kubernetes does not do with versions is
guarded. Attributes are dyn, so most guards ask for the type at run time. An attribute is never a quantity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_infra.cel import natives
from dra_infra.cel.conversions import CONVERSIONS, convert_text
from dra_infra.cel.libraries import QUANTITY, SEMVER
from dra_infra.cel.lowering import (
    FALSE,
    NO_SUCH_OVERLOAD,
    TRUE,
    ZERO,
    Lowering,
    Rewrite,
    UndecidedError,
    choose,
    fail,
    has_type,
)
from dra_infra.cel.tree import Call, Const, ListLiteral, MapLiteral, Node, children
from dra_infra.cel.values import NUMBER_WIDTH, encode_quantity, encode_semver
from dra_infra.model.quantity import Quantity
from dra_infra.model.semver import Semver

_ONE: Final = Const("int64_value", 1)
_MINUS_ONE: Final = Const("int64_value", -1)
_UNHASHABLE: Final = "internal error: runtime error: hash of unhashable type cel.Semver"
_VERSION_PARTS: Final = ("major", "minor", "patch")


def _logical(lowering: Lowering, node: Call) -> Node:
    return lowering.absorbing(lambda: lowering.rebuild(node))


def _index(lowering: Lowering, node: Call) -> Node:
    container, key = node.args
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
    if not _may_be_opaque(lowering, operand):
        return Call("size", (value,))
    return lowering.guard(value, fail(f"{NO_SUCH_OVERLOAD}: size"), lambda it: Call("size", (it,)))


def _contained(lowering: Lowering, node: Call) -> Node:
    sought, container = node.args
    if container == ListLiteral(()):
        # cel-go does not even look at what is sought.
        return FALSE
    element, whole = lowering.visit(sought), lowering.whole(container)
    if not _may_be_opaque(lowering, sought):
        return Call("@in", (element, whole))
    if isinstance(container, ListLiteral) and all(isinstance(item, Const) for item in container.elements):
        # cel-go turns a list of constants into a set, and a version cannot be hashed.
        return lowering.guard(element, lowering.panic(_UNHASHABLE), lambda it: Call("@in", (it, whole)))
    if isinstance(container, MapLiteral):
        return lowering.guard(element, lowering.panic(_UNHASHABLE), lambda it: _key_of(it, whole))
    if lowering.type_of(container).name != "map":
        return Call("@in", (element, whole))
    if not lowering.is_device_map(container):
        raise UndecidedError("whether a map holds a key that is only known at run time")
    return lowering.guard(element, FALSE, lambda it: _key_of(it, whole))


def _key_of(key: Node, container: Node) -> Node:
    """`key in container`, false for what cannot be a key, where the engine fails."""
    compound = Call("_||_", (has_type(key, "list"), has_type(key, "map")))
    return choose(compound, FALSE, Call("@in", (key, container)))


def _ordering(lowering: Lowering, node: Call, operator: str = "") -> Node:
    """`a.compareTo(b)` and its kin; with an operator, `a.compareTo(b) OP 0` as one comparison."""
    first, second = _receiver(node), node.args[0]
    operator = {"isGreaterThan": "_>_", "isLessThan": "_<_"}.get(node.function, operator)
    kinds = [lowering.type_of(operand).name for operand in (first, second)]

    def compare(a: Node, b: Node) -> Node:
        below, equal = Call("_<_", (a, b)), Call("_==_", (a, b))
        body: Node = choose(below, _MINUS_ONE, choose(equal, ZERO, _ONE))
        if operator:
            body = Call(operator, (a, b))
        if kinds in ([QUANTITY, QUANTITY], [SEMVER, SEMVER]):
            return body
        mismatch = lowering.no_such_overload(node.function, a, b)
        if QUANTITY in kinds:
            return mismatch
        # The receiver's test goes outermost, for its error is the one that the server reports.
        for value, kind in ((b, kinds[1]), (a, kinds[0])):
            if kind != SEMVER:
                body = choose(has_type(value, "bytes"), body, mismatch)
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
    if not _may_be_opaque(lowering, left) or not _may_be_opaque(lowering, right):
        return lowering.rebuild(node)
    other = lowering.visit(right)
    return lowering.guard(
        lowering.visit(left),
        fail(f"{NO_SUCH_OVERLOAD}: {node.function}"),
        lambda it: Call(node.function, (it, other)),
    )


def _version_part(lowering: Lowering, node: Call) -> Node:
    start = 1 + NUMBER_WIDTH * _VERSION_PARTS.index(node.function)
    bounds = (Const("int64_value", start), Const("int64_value", start + NUMBER_WIDTH))
    return lowering.let(
        lowering.visit(_receiver(node)),
        lambda it: choose(
            has_type(it, "bytes"),
            Call("int", (Call("substring", bounds, Call("string", (it,))),)),
            lowering.no_such_overload(node.function, it),
        ),
    )


def _sign(lowering: Lowering, node: Call) -> Node:
    value = lowering.visit(node.args[0])
    if lowering.type_of(node.args[0]).name != QUANTITY:
        return lowering.no_such_overload("sign", value)
    zero = Const("bytes_value", encode_quantity(Quantity.parse("0")))
    return lowering.let(
        value,
        lambda it: choose(Call("_<_", (it, zero)), _MINUS_ONE, choose(Call("_==_", (it, zero)), ZERO, _ONE)),
    )


def _from_text(lowering: Lowering, node: Call) -> Node:
    """`quantity`, `semver` and their tests: computed here for a literal, in Python at run time for other text."""
    function, text = node.function, node.args[0]
    normalized = False
    if len(node.args) == 2:
        flag = node.args[1]
        if not isinstance(flag, Const):
            raise UndecidedError(f"{function}() with a computed second argument")
        normalized = bool(flag.value)
    if not isinstance(text, Const) or not isinstance(text.value, str):
        name = {"isQuantity": "@is_quantity", "isSemver": "@is_semver"}.get(function, f"@{function}")
        return lowering.python(f"{name}_normalized" if normalized else name, lowering.visit(text))
    try:
        encoded = _encode(function, text.value, normalized=normalized)
    except ValueError as error:
        return FALSE if function.startswith("is") else fail(str(error))
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
    if lowering.domain_map(first) or lowering.domain_map(second):
        raise UndecidedError("equality of all domains")
    if any(kind.mentions("optional_type") and not natives.is_plain(kind) for kind in (left, right)):
        raise UndecidedError("equality of optional values")
    if left.name in natives.SCALARS or (natives.is_plain(left) and natives.is_plain(right)):
        return lowering.rebuild(node)
    if left.name == right.name and left.name in (SEMVER, QUANTITY):
        return lowering.rebuild(node)
    if QUANTITY in (left.name, right.name):
        raise UndecidedError("equality of a quantity and something else")
    if right.name in natives.SCALARS or SEMVER in (left.name, right.name):
        return _scalar_equality(lowering, node)
    return lowering.let(
        lowering.visit(first),
        lambda a: lowering.let(
            lowering.visit(second), lambda b: _dynamic_equality(lowering, node.function, a, b)
        ),
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
        return lowering.let(
            b, lambda it: choose(has_type(it, "bytes"), Call("_==_", (a, it)), fail(NO_SUCH_OVERLOAD))
        )
    return lowering.guard(a, fail(NO_SUCH_OVERLOAD), lambda it: Call("_==_", (it, b)))


def _dynamic_equality(lowering: Lowering, function: str, a: Node, b: Node) -> Node:
    plain = Call(function, (a, b))
    container = Call("_||_", (has_type(a, "list"), has_type(a, "map")))
    mixed = lowering.python("@mixed", ListLiteral((a, b)))
    lists = choose(mixed, lowering.unknown("equality of lists of versions and other values"), plain)
    body = choose(container, lists, plain)
    if function == "_!=_":
        return body
    opaque = choose(has_type(b, "bytes"), plain, fail(NO_SUCH_OVERLOAD))
    return choose(has_type(a, "bytes"), opaque, body)


def _includes(lowering: Lowering, node: Call) -> Node:
    target, sought = _receiver(node), node.args[0]
    if lowering.domain_map(target) or lowering.domain_map(sought) or lowering.type_of(sought).parameters:
        raise UndecidedError("includes() of a list or map")
    return lowering.let(
        lowering.visit(target),
        lambda a: lowering.let(
            lowering.visit(sought),
            lambda b: choose(has_type(a, "list"), Call("@in", (b, a)), Call("_==_", (a, b))),
        ),
    )


def _type(lowering: Lowering, node: Call) -> Node:
    if lowering.type_of(node.args[0]).name not in natives.SCALARS:
        raise UndecidedError("type() of a value that is only known at run time")
    return lowering.rebuild(node)


def _conversion(lowering: Lowering, node: Call) -> Node:
    function, literal = node.function, node.args[0]
    if isinstance(literal, Const) and isinstance(literal.value, str) and function in CONVERSIONS:
        converted = convert_text(function, literal.value)
        if converted is None:
            raise UndecidedError(f"{function}({literal.value!r})")
        return converted
    kind = lowering.type_of(literal).name
    value = lowering.visit(literal)
    if kind in natives.SCALARS - {"string"} or (kind == function == "string"):
        return Call(function, (value,))
    if function == "string":
        return lowering.guard(
            value,
            fail(f"{NO_SUCH_OVERLOAD}: string(kubernetes.Semver)"),
            lambda it: Call("string", (it,)),
        )
    # The two implementations differ about blanks, signs and exponents in the text of a number.
    if function != "bool" and kind == "bool":
        raise UndecidedError(f"{function}() of true or false")
    usual = (Const("string_value", natives.USUAL_TEXTS[function]),)
    return lowering.let(
        value,
        lambda it: choose(
            Call("_&&_", (has_type(it, "string"), Call("!_", (Call("matches", usual, it),)))),
            lowering.unknown(f"{function}() of an unusual text"),
            _without_bool(function, it),
        ),
    )


def _without_bool(function: str, value: Node) -> Node:
    """The conversion, which Kubernetes has from bool to bool and string only."""
    if function == "bool":
        return Call(function, (value,))
    refused = fail(f"{NO_SUCH_OVERLOAD}: {function}(bool)")
    return choose(has_type(value, "bool"), refused, Call(function, (value,)))


def _strings_only(lowering: Lowering, node: Call) -> Node:
    """Functions that exist for strings and for lists, of which only the former are native."""
    target = _receiver(node)
    if len(node.args) > 1:
        # Beyond the end of the text the two disagree about what is an error.
        raise UndecidedError(f"{node.function}() with an offset")
    if lowering.type_of(target).name == "string":
        return lowering.rebuild(node)
    arguments = tuple(map(lowering.visit, node.args))
    return lowering.let(
        lowering.visit(target),
        lambda it: choose(
            has_type(it, "list"),
            lowering.unknown(f"{node.function}() of a list"),
            Call(node.function, arguments, it),
        ),
    )


def _plain_lists(lowering: Lowering, node: Call) -> Node:
    """List functions that compare elements: the same as upstream's unless versions are among them."""
    operands = [child for child in children(node) if not natives.is_plain(lowering.type_of(child))]
    if not operands:
        return lowering.rebuild(node)
    if any(lowering.type_of(it).mentions("optional_type") or lowering.domain_map(it) for it in operands):
        raise UndecidedError(f"{node.function}() of such values")
    versions = lowering.python("@have_opaque", ListLiteral(tuple(map(lowering.visit, operands))))
    return choose(versions, lowering.unknown(f"{node.function}() of versions"), lowering.rebuild(node))


def _receiver(node: Call) -> Node:
    if node.target is None:
        raise UndecidedError(f"{node.function}()")
    return node.target


def _may_be_opaque(lowering: Lowering, node: Node) -> bool:
    return lowering.type_of(node).name in ("dyn", "any", SEMVER, QUANTITY)


REWRITES: Final[Mapping[str, Rewrite]] = {
    **dict.fromkeys(("_&&_", "_||_"), _logical),
    **dict.fromkeys(("_[_]", "_[?_]", "_?._"), _index),
    "size": _size,
    "@in": _contained,
    **dict.fromkeys(("compareTo", "isGreaterThan", "isLessThan"), _ordering),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _compared),
    "_+_": _guarded,
    **dict.fromkeys(("_==_", "_!=_"), _equality),
    **dict.fromkeys(_VERSION_PARTS, _version_part),
    "sign": _sign,
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _from_text),
    "includes": _includes,
    "type": _type,
    **dict.fromkeys(("string", "int", "uint", "double", "bool"), _conversion),
    **dict.fromkeys(("indexOf", "lastIndexOf"), _strings_only),
    **dict.fromkeys(natives.PLAIN_LISTS, _plain_lists),
}
"""By function; the functions of `natives.NATIVE` need none."""
