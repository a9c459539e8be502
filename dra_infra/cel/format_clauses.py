"""What the server checks ahead about `"...".format([...])`: the clauses of a literal text beside a literal list.

Upstream: stringFormatValidator and parseFormatString of cel-go's ext/formatting.go.
"""

from __future__ import annotations

import re
from typing import Final

from dra_infra.cel.tree import Call, CheckedTree, Const, ListLiteral, MapLiteral, Node

_ALLOWED: Final[dict[str, tuple[frozenset[str], str]]] = {
    "d": (frozenset({"int", "uint"}), "decimal clause can only be used on integers"),
    "f": (frozenset({"double", "string"}), "fixed-point clause can only be used on doubles"),
    "e": (frozenset({"double", "string"}), "scientific clause can only be used on doubles"),
    "b": (frozenset({"int", "uint", "bool"}), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset({"int", "uint", "string", "bytes"}),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset({"int", "uint"}), "octal clause can only be used on integers"),
    "s": (
        frozenset(
            [
                "list",
                "map",
                "int",
                "uint",
                "double",
                "bool",
                "string",
                "timestamp",
                "bytes",
                "duration",
                "type",
                "null_type",
                "null",
            ]
        ),
        (
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
            "and timestamps"
        ),
    ),
}
_PRECISION = re.compile(rb"\.([0-9]*)")


def check_format(tree: CheckedTree, call: Call) -> tuple[Node, str] | None:
    """The node to blame and the server's message; None when all is right, or only known when it runs."""
    if not isinstance(call.target, Const) or not isinstance(call.target.value, str):
        return None
    if len(call.args) != 1 or not isinstance(call.args[0], ListLiteral):
        return None
    text, arguments = call.target.value.encode(), call.args[0].elements
    place, used = 0, 0
    while (place := text.find(b"%", place)) >= 0:
        if text[place + 1 : place + 2] == b"%":
            place += 2
            continue
        if place + 1 >= len(text):
            return call, "unexpected end of string"
        if used >= len(arguments):
            return call, f"index {used} out of range"
        clause, place, refusal = _read_clause(text, place + 1)
        if refusal:
            return call, f"could not parse formatting clause: {refusal}"
        allowed, message = _ALLOWED[clause]
        wrong = _find_wrong(tree, arguments[used], allowed, deep=clause == "s")
        if wrong is not None:
            return wrong, f"error during formatting: {message}, was given {_type_name(tree, wrong)}"
        used += 1
    if len(arguments) > used:
        found = len(arguments)
        return call, f"too many arguments supplied to string.format (expected {used}, got {found})"
    return None


def _read_clause(text: bytes, place: int) -> tuple[str, int, str]:
    """The letter, where the text goes on, and what is wrong."""
    precision = _PRECISION.match(text, place)
    if precision:
        place = precision.end()
        if place >= len(text):
            return "", place, "error while parsing precision: could not find end of precision specifier"
        digits = precision[1].decode()
        if not digits or int(digits) >= 2**63:
            problem = "value out of range" if digits else "invalid syntax"
            wrong = (
                f'error while converting precision to integer: strconv.Atoi: parsing "{digits}": {problem}'
            )
            return "", place, f"error while parsing precision: {wrong}"
    letter = chr(text[place])
    if letter not in "sdfebxXo":
        return "", place, f'unrecognized formatting clause "{letter}"'
    return letter.lower(), place + 1, ""


def _find_wrong(tree: CheckedTree, node: Node, allowed: frozenset[str], *, deep: bool) -> Node | None:
    name = tree.type_of(node).name
    if name != "dyn" and name not in allowed:
        return node
    if not deep:
        return None
    parts: tuple[Node, ...] = ()
    if isinstance(node, ListLiteral):
        parts = node.elements
    elif isinstance(node, MapLiteral) and not node.message:
        parts = tuple(part for entry in node.entries for part in (entry.key, entry.value))
    return next(
        (found for part in parts if (found := _find_wrong(tree, part, allowed, deep=True)) is not None), None
    )


def _type_name(tree: CheckedTree, node: Node) -> str:
    name = tree.type_of(node).name
    return {
        "any": "google.protobuf.Any",
        "duration": "google.protobuf.Duration",
        "timestamp": "google.protobuf.Timestamp",
    }.get(name, name)
