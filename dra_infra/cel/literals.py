"""What Kubernetes checks about literals beyond the engine's type checker.

Upstream: ValidateHomogeneousAggregateLiterals, ValidateRegexLiterals, ValidateDurationLiterals and
ValidateTimestampLiterals of cel-go, on since Kubernetes 1.29.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dra_infra.cel.conversions import CONVERSIONS, convert_text
from dra_infra.cel.declare import run_environment
from dra_infra.cel.messages import translate
from dra_infra.cel.tree import (
    Call,
    CelType,
    CheckedTree,
    Comprehension,
    Const,
    ListLiteral,
    MapLiteral,
    Node,
    children,
    is_bind,
    walk,
)
from dra_infra.cel.wire import encode_parsed

_PARSED: Final = {"duration": 1, "timestamp": 1}


def check_literals(tree: CheckedTree) -> Iterator[tuple[int, str]]:
    """Offset in code points and message of each literal that the server refuses."""
    for node in _without_format_arguments(tree.root):
        if isinstance(node, ListLiteral):
            optional = set(node.optional_indices)
            yield from _check_types(
                tree, [(item, index in optional) for index, item in enumerate(node.elements)]
            )
        elif isinstance(node, MapLiteral) and not node.message:
            yield from _check_types(tree, [(entry.key, False) for entry in node.entries])
            yield from _check_types(tree, [(entry.value, entry.optional) for entry in node.entries])
        elif isinstance(node, Call):
            yield from _check_text(tree, node)


def check_instantiation(tree: CheckedTree) -> str:
    """Why the server cannot make a program of a tree that is otherwise right; empty when it can."""
    for node in walk(tree.root):
        if not isinstance(node, Call):
            continue
        if node.function == "_[_]" and _is_null(node.args[1]):
            return "invalid qualifier type: types.Null"
        if not node.args or not isinstance(node.args[0], Const):
            continue
        literal = node.args[0]
        if node.function in ("find", "findAll") and _fails(
            Call("matches", (literal,), Const("string_value", ""))
        ):
            return f"error parsing regexp: {literal.value!s}"
        if node.function in CONVERSIONS and node.target is None and len(node.args) == 1:
            refusal = _refuse_conversion(node, literal)
            if refusal:
                return refusal
    return ""


def _is_null(node: Node) -> bool:
    while isinstance(node, Call) and node.function == "dyn":
        node = node.args[0]
    return isinstance(node, Const) and node.value is None


def _refuse_conversion(call: Call, literal: Const) -> str:
    if not isinstance(literal.value, str):
        return _error(call)
    try:
        convert_text(call.function, literal.value)
    except ValueError as error:
        return str(error)
    return ""


def find_undecided(tree: CheckedTree) -> str:
    """Why the verdict of the server's checker on *tree* is not known, empty when it is."""
    for node in walk(tree.root):
        if isinstance(node, Call) and node.function == "format" and node.target is not None:
            return "the arguments of format() are not checked"
        if isinstance(node, Call) and _is_unusual_double(node):
            return "a number has an unusual spelling"
        if isinstance(node, Comprehension):
            if "device" in (node.iter_var, node.iter_var2, node.accu_var):
                return "a variable is named device"
            if (
                not is_bind(node)
                and isinstance(node.iter_range, ListLiteral)
                and not node.iter_range.elements
            ):
                return "a macro goes over an empty list"
    return ""


def _without_format_arguments(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        below = children(node)
        if isinstance(node, Call) and node.function == "format" and node.target is not None:
            below = (node.target, *(part for argument in node.args for part in children(argument)))
        waiting.extend(reversed(below))


def _check_types(tree: CheckedTree, items: Iterable[tuple[Node, bool]]) -> Iterator[tuple[int, str]]:
    """The first decides; only the first that differs is reported."""
    first: CelType | None = None
    for node, optional in items:
        found = tree.type_of(node)
        if optional and found.name == "optional_type":
            found = found.parameters[0]
        first = first or found
        if found != first:
            yield tree.positions.get(node.id, 0), f"expected type '{first}' but found '{found}'"
            return


def _check_text(tree: CheckedTree, call: Call) -> Iterator[tuple[int, str]]:
    if not call.args or not isinstance(call.args[0], Const) or not isinstance(call.args[0].value, str):
        return
    literal = call.args[0]
    if call.function == "matches" and call.target is not None:
        invalid = _fails(Call("matches", (literal,), Const("string_value", "")))
    elif call.function in _PARSED and call.target is None:
        invalid = _fails(Call(call.function, (literal,)))
    else:
        return
    if invalid:
        yield tree.positions.get(literal.id, 0), f"invalid {call.function} argument"


def _fails(call: Call) -> bool:
    return bool(_error(call))


def _error(call: Call) -> str:
    """Why the engine, whose regular expressions and times are the server's, cannot run *call*; empty when it can."""
    value = run_environment().deserialize(encode_parsed(call)).eval(data={})
    return translate(str(value.value())) if value.type().name() == "ERROR" else ""


def _is_unusual_double(call: Call) -> bool:
    if call.function != "double" or not call.args or not isinstance(call.args[0], Const):
        return False
    text = call.args[0].value
    try:
        return isinstance(text, str) and convert_text("double", text) is None
    except ValueError:
        return False
