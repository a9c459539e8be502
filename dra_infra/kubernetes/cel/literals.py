"""Checks of literals that go beyond types, in one walk.

Upstream: ValidateHomogeneousAggregateLiterals, ValidateRegexLiterals, ValidateDurationLiterals and
ValidateTimestampLiterals of cel-go, on since Kubernetes 1.29, and its planner, which computes constants ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.constants import CONVERSIONS, convert_text, read_double
from dra_infra.kubernetes.cel.formatting import check_format
from dra_infra.kubernetes.cel.patterns import PatternError, refuse_pattern
from dra_infra.kubernetes.cel.tree import (
    Call,
    CelType,
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
)
from dra_infra.kubernetes.cel.unification import is_same, spell

_OLDEST: Final = 34
"""Minor version whose conversions are those of all others, and duration(int), which later checkers do not know."""

_NO_VALUES: Final = frozenset(
    {
        "duration",
        "timestamp",
        "kubernetes.DRADevice",
        *(f"kubernetes.DRADevice.{field}" for field in ("attributes", "capacity")),
        *(
            f"google.protobuf.{name}"
            for name in ("Any", "ListValue", "Struct", "Value", "BoolValue", "BytesValue")
        ),
        *(
            f"google.protobuf.{name}Value"
            for name in ("Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
        ),
    }
)
"""Names of types that the server's checker knows, and its planner does not."""

_INFINITE: Final = (math.inf, -math.inf)
_INDEXES: Final = frozenset({"_[_]", "_?._", "_[?_]"})
_PATTERNS: Final = frozenset({"find", "findAll", "matches"})
_GO_TYPES: Final = {
    "bytes": "types.Bytes",
    "bytes_value": "types.Bytes",
    "duration": "types.Duration",
    "null_value": "types.Null",
    "timestamp": "types.Timestamp",
    "type": "*types.Type",
}


@dataclass(slots=True)
class Findings:
    """The faults of the literals of a tree.

    Args:
        errors: Offset in code points and message of each compile error.
        refusal: Why the server cannot make a program of a tree that is otherwise right; empty when it can.
        panics: Whether it fails there in place of refusing the tree.
        crash: Whether the server fails over it.
        undecided: Why it is not known whether a pattern compiles; empty when it is.
    """

    errors: list[tuple[int, str]] = field(default_factory=list)
    refusal: str = ""
    panics: bool = False
    crash: bool = False
    undecided: str = ""


def inspect(tree: CheckedTree) -> Findings:
    """Walk *tree* as the server's planner does, arguments first."""
    inspection = _Inspection(tree)
    inspection.visit(tree.root)
    return inspection.findings


class _Constant(NamedTuple):
    """A constant whose value only the interpreter knows: the expression that computes it, and its type in Go."""

    node: Node
    go_type: str


_Value = Const | _Constant | None
"""The value of a node that is known ahead of evaluation; None when there is none."""


class _Inspection:
    def __init__(self, tree: CheckedTree) -> None:
        self._tree = tree
        self._variables: list[str] = []
        self.findings = Findings()

    def visit(self, node: Node, *, exempt: bool = False) -> _Value:  # noqa: C901  (one case per kind of node)
        """Inspect *node*; an exempt one stands in the arguments of format()."""
        match node:
            case Const(kind=kind, value=value):
                if kind == "double_value" and value in _INFINITE:
                    self._report(node, "invalid double literal")
                return node
            case Ident(name=name):
                if self._tree.type_of(node).name != "type":
                    return None
                if name in self._variables or name in _NO_VALUES:
                    self._refuse(f"reference to undefined type: {name}")
                return _Constant(node, "*types.Type")
            case Select(operand=operand):
                self.visit(operand, exempt=exempt)
                return None
            case Call():
                return self._call(node, exempt=exempt)
            case ListLiteral(elements=elements):
                return self._list(node, elements, exempt=exempt)
            case MapLiteral(entries=entries):
                values = [
                    self.visit(part, exempt=exempt) for entry in entries for part in (entry.key, entry.value)
                ]
                if not exempt and not node.message:
                    self._expect_one_type(((entry.key, False) for entry in entries), tells_all=True)
                    self._expect_one_type(
                        ((entry.value, entry.optional) for entry in entries), tells_all=True
                    )
                if node.message or not all(value is not None for value in values):
                    return None
                if any(_go_type(key) == "types.Bytes" for key in values[::2]):
                    # maybeBuildMapLiteral of cel-go makes the map ahead of evaluation, where nothing catches Go's panic.
                    self._refuse("runtime error: hash of unhashable type types.Bytes", panics=True)
                    return None
                return _Constant(node, "*types.baseMap")
            case Comprehension():
                self._comprehension(node, exempt=exempt)
                return None

    def _call(self, call: Call, *, exempt: bool) -> _Value:
        function = call.function
        inside = exempt or function == "format"
        target = self.visit(call.target, exempt=inside) if call.target is not None else None
        values = [self.visit(argument, exempt=inside) for argument in call.args]
        if function in CONVERSIONS:
            return self._convert(call, values) if call.target is None and len(values) == 1 else None
        if function in _PATTERNS:
            self._check_pattern(call, values if call.target is None else [target, *values])
        elif function in _INDEXES:
            self._check_index(values[1])
        elif function == "format" and call.target is not None:
            wrong = check_format(self._tree, call)
            if wrong:
                self._report(*wrong)
        return None

    def _convert(self, call: Call, values: list[_Value]) -> _Value:
        (value,) = values
        (argument,) = call.args
        if value is None:
            return None
        node = value if isinstance(value, Const) else value.node
        refusal = refuse_constant(self._tree, Call(call.function, (node,)))
        if refusal and call.function in ("duration", "timestamp") and isinstance(argument, Const):
            self._report(argument, f"invalid {call.function} argument")
        if refusal:
            self._refuse(refusal)
            return None
        return _converted(call.function, value)

    def _check_pattern(self, call: Call, values: list[_Value]) -> None:
        first = call.args[0] if call.args else None
        is_literal = call.function == "matches" and isinstance(first, Const) and isinstance(first.value, str)
        # In the global form the first argument is the text, but the server does not mind.
        pattern = values[1] if len(values) > 1 else None
        try:
            if is_literal and isinstance(first, Const) and refuse_pattern(str(first.value)):
                self._report(first, "invalid matches argument")
            if isinstance(pattern, Const) and isinstance(pattern.value, str):
                self._refuse(refuse_pattern(pattern.value))
        except PatternError as error:
            self.findings.undecided = str(error)

    def _check_index(self, key: _Value) -> None:
        if kind := _go_type(key):
            self._refuse(f"invalid qualifier type: {kind}")

    def _list(self, node: ListLiteral, elements: tuple[Node, ...], *, exempt: bool) -> _Value:
        values = [self.visit(element, exempt=exempt) for element in elements]
        if not exempt:
            optional = frozenset(node.optional_indices)
            self._expect_one_type((element, index in optional) for index, element in enumerate(elements))
        return _Constant(node, "*types.baseList") if all(value is not None for value in values) else None

    def _comprehension(self, loop: Comprehension, *, exempt: bool) -> None:
        # A macro makes empty lists of its own, whose type its step gives.
        made = loop.iter_range if is_bind(loop) else loop.accu_init
        for part in (loop.accu_init, loop.iter_range):
            if part is not made or children(part) or not isinstance(part, ListLiteral | MapLiteral):
                self.visit(part, exempt=exempt)
        names = (loop.iter_var, loop.iter_var2, loop.accu_var)
        self._variables.extend(names)
        for part in (loop.condition, loop.step, loop.result):
            self.visit(part, exempt=exempt)
        del self._variables[-len(names) :]

    def _expect_one_type(self, items: Iterable[tuple[Node, bool]], *, tells_all: bool = False) -> None:
        """The first decides; of a list only the first that differs is reported, of a map every one."""
        first: CelType | None = None
        for node, optional in items:
            found = self._tree.type_of(node)
            if optional and not found.parameters:
                self.findings.crash = True
                return
            if optional:
                found = found.parameters[0]
            first = first or found
            if not is_same(found, first):
                self._report(node, _mismatch(first, found))
                if not tells_all:
                    return

    def _report(self, node: Node, message: str) -> None:
        self.findings.errors.append((self._tree.positions.get(node.id, 0), message))

    def _refuse(self, reason: str, *, panics: bool = False) -> None:
        if reason and not self.findings.refusal:
            self.findings.refusal = reason
            self.findings.panics = panics


def _go_type(value: _Value) -> str:
    """The type in Go of a constant that is no plain text, number or truth value; empty for what is, or is not known."""
    if isinstance(value, _Constant):
        return value.go_type
    return _GO_TYPES.get(value.kind, "") if value else ""


def _mismatch(first: CelType, found: CelType) -> str:
    return f"expected type '{spell(first)}' but found '{spell(found)}'"


def _converted(function: str, value: Const | _Constant) -> _Value:
    if isinstance(value, Const) and isinstance(value.value, str):
        if function == "double":
            return Const("double_value", read_double(value.value))
        if function in ("bool", "int", "uint"):
            return convert_text(function, value.value)
    if isinstance(value, Const) and function == "string" and isinstance(value.value, str):
        return value
    if function == "dyn":
        return value
    node = value if isinstance(value, Const) else value.node
    return _Constant(Call(function, (node,)), _GO_TYPES.get(function, ""))


def refuse_constant(tree: CheckedTree, node: Node) -> str:
    """Why the server cannot compute a constant of the tree, in its words; empty when it can."""
    # The interpreter takes 45 ms to load, and hardly any expression holds such a constant.
    from dra_infra.kubernetes.cel.interpreter import Interpreter
    from dra_infra.kubernetes.cel.interpreter.values import Err

    value = Interpreter(CheckedTree(root=node, types=tree.types, positions={}), _OLDEST).evaluate({})
    return value.text if isinstance(value, Err) else ""
