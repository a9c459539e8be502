"""Tests of one attribute, capacity or the driver against literals, in any spelling.

`0 < x.compareTo(quantity("1Gi"))`, `x.isGreaterThan(quantity("1Gi"))` and `!(x.compareTo(quantity("1Gi")) <= 0)` are
one test.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from dra_infra.advice.findings import Names, Place, find_place
from dra_infra.kubernetes.api import Quantity, Semver
from dra_infra.kubernetes.cel.tree import Call, Const, Ident, ListLiteral, Node

DRIVER_PLACE: Final = Place("attribute", "device", "driver")
"""Stands for `device.driver`, which is no attribute."""

_OPERATORS: Final = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_METHODS: Final = {"isGreaterThan": ">", "isLessThan": "<"}
_FLIPPED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED: Final = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "in": "not in",
    "not in": "in",
    "never": "always",
    "always": "never",
    "contains": "not contains",
    "startsWith": "not startsWith",
    "endsWith": "not endsWith",
}
_ORDERS: Final = {
    frozenset[int](): "never",
    frozenset({-1}): "<",
    frozenset({0}): "==",
    frozenset({1}): ">",
    frozenset({-1, 0}): "<=",
    frozenset({0, 1}): ">=",
    frozenset({-1, 1}): "!=",
    frozenset({-1, 0, 1}): "always",
}
_KINDS: Final = {
    "string_value": "string",
    "int64_value": "int",
    "uint64_value": "int",
    "double_value": "int",
    "bool_value": "bool",
}
TEXT_TESTS: Final = frozenset({"contains", "startsWith", "endsWith", "matches"})

TESTING: Final = frozenset({*_OPERATORS, *TEXT_TESTS, "@in", "isGreaterThan", "isLessThan"})
"""Functions of which a test is made; `!` around one is not counted."""


class Literal(NamedTuple):
    """A value that is written in the expression; `kind` is the type of attribute that it fits."""

    kind: str
    value: Any
    text: str


class Test(NamedTuple):
    """A test of what is at a place.

    Args:
        place: What is read.
        operator: `==` and the like, `in`, `never`, `always`, one of `TEXT_TESTS`, or `not` with one of them.
        literals: What it is compared with; exactly one unless the operator is `in` or `not in`.
        kind: The type of attribute that the literals fit.
    """

    place: Place
    operator: str
    literals: tuple[Literal, ...]
    kind: str

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the literals."""
        return tuple(literal.value for literal in self.literals)


def find_test(node: Node, names: Names) -> Test | None:
    """The test that *node* is, None when it is none."""
    if not isinstance(node, Call):
        return None
    function, args = node.function, node.args
    if function in _OPERATORS:
        return _compared(args[0], _OPERATORS[function], args[1], names)
    if function == "!_":
        test = find_test(args[0], names)
        negated = NEGATED.get(test.operator) if test else None
        return test._replace(operator=negated) if test and negated else None
    if function == "@in" and isinstance(args[1], ListLiteral):
        return _listed(find_subject(args[0], names), [read_literal(each) for each in args[1].elements])
    if node.target is None or len(args) != 1:
        return None
    if function in _METHODS:
        return _compared(node.target, _METHODS[function], args[0], names)
    if function in TEXT_TESTS:
        literal = read_literal(args[0])
        subject = find_subject(node.target, names)
        if subject and literal and literal.kind == "string":
            return Test(subject, function, (literal,), "string")
    return None


def find_subject(node: Node, names: Names) -> Place | None:
    """The attribute, capacity or driver that *node* reads, also where specialising put a stand-in."""
    if isinstance(node, Ident):
        if node.name == "device.driver":
            return DRIVER_PLACE
        section, blank, name = node.name.partition(" ")
        if blank:
            domain, _, identifier = name.partition("/")
            return Place("capacity" if section == "capacity" else "attribute", domain, identifier)
    place = find_place(node, names)
    return place if place is not None and place.identifier else None


def read_literal(node: Node) -> Literal | None:
    """The value of a literal, `quantity(...)` or `semver(...)`."""
    if isinstance(node, Const):
        return Literal(_KINDS[node.kind], node.value, str(node.value)) if node.kind in _KINDS else None
    if isinstance(node, Call) and node.function in ("quantity", "semver") and node.args:
        text = node.args[0]
        if isinstance(text, Const) and isinstance(text.value, str):
            return _parsed(node.function, text.value, normalized=len(node.args) > 1)
    return None


def conjuncts(root: Node) -> tuple[Node, ...]:
    """The parts that must all be true."""
    found: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.function == "_&&_":
            waiting.extend(reversed(node.args))
        else:
            found.append(node)
    return tuple(found)


@lru_cache(maxsize=1024)
def _parsed(function: str, text: str, *, normalized: bool) -> Literal | None:
    try:
        if function == "quantity":
            return Literal("quantity", Quantity.parse(text).value, text)
        return Literal("version", Semver.parse_normalized(text) if normalized else Semver.parse(text), text)
    except ValueError:
        return None


def _listed(subject: Place | None, literals: Iterable[Literal | None]) -> Test | None:
    known = tuple(literal for literal in literals if literal is not None)
    if (
        subject is None
        or not known
        or len(known) != len(list(literals))
        or len({each.kind for each in known}) > 1
    ):
        return None
    return Test(subject, "in", known, known[0].kind)


def _compared(left: Node, operator: str, right: Node, names: Names) -> Test | None:
    order = _ordered(left, operator, right, names) or _ordered(right, _FLIPPED[operator], left, names)
    if order is not None:
        return order
    for subject_node, sign, literal_node in ((left, operator, right), (right, _FLIPPED[operator], left)):
        subject = find_subject(subject_node, names)
        literal = read_literal(literal_node)
        if subject is not None and literal is not None:
            return Test(subject, sign, (literal,), literal.kind)
    return None


def _ordered(compared: Node, operator: str, bound: Node, names: Names) -> Test | None:
    """`x.compareTo(y) >= 0` as `x >= y`."""
    if not (isinstance(compared, Call) and compared.function == "compareTo" and compared.target is not None):
        return None
    if not (isinstance(bound, Const) and bound.kind == "int64_value" and isinstance(bound.value, int)):
        return None
    target = compared.target
    argument = compared.args[0]
    order = _order(operator, bound.value)
    if order not in ("never", "always"):
        return _compared(target, order, argument, names)
    subject = find_subject(target, names) or find_subject(argument, names)
    literal = read_literal(argument) or read_literal(target)
    return Test(subject, order, (literal,), literal.kind) if subject and literal else None


@lru_cache(maxsize=64)
def _order(operator: str, number: int) -> str:
    return _ORDERS[frozenset(sign for sign in (-1, 0, 1) if _holds(sign, operator, number))]


def _holds(left: Any, operator: str, right: Any) -> bool:
    match operator:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
    return bool(left >= right)


def passes(value: Any, test: Test) -> bool:
    """True when *value*, of the kind of the test, passes it; `matches` is taken to."""
    match test.operator:
        case "in":
            return value in test.values
        case "not in":
            return value not in test.values
        case "contains" | "not contains":
            return (test.values[0] in value) == (test.operator == "contains")
        case "startsWith" | "not startsWith":
            return bool(value.startswith(test.values[0])) == (test.operator == "startsWith")
        case "endsWith" | "not endsWith":
            return bool(value.endswith(test.values[0])) == (test.operator == "endsWith")
        case "matches" | "always":
            return True
        case "never":
            return False
    return _holds(value, test.operator, test.values[0])
