"""Clauses of `"...".format([...])`: how they are read, and what values they take.

Of a literal text beside a literal list the server checks them ahead: stringFormatValidator and parseFormatString of
cel-go's ext/formatting.go.
"""

from __future__ import annotations

import re
from typing import Final

from dra_infra.kubernetes.cel.constants import read_digits
from dra_infra.kubernetes.cel.diagnostics import runtime_name
from dra_infra.kubernetes.cel.tree import Call, CelType, CheckedTree, Const, ListLiteral, MapLiteral, Node

DEFAULT_PRECISION: Final = 6
_PRECISION = re.compile(r"\.([0-9]*)", re.ASCII)
CLAUSES: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
"""The server's refusal of other values, by the letter of the clause."""

_ALLOWED: Final[dict[str, frozenset[str]]] = {
    "s": frozenset(
        {
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
        }
    ),
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}


class FormatError(Exception):
    """Why a text cannot be filled in, in the server's words."""


def read_clause(text: str, place: int) -> tuple[str, int, int]:
    """The letter of the clause behind a `%`, its precision, and where the text goes on.

    Raises:
        FormatError: When it is no clause.
    """
    told = "could not parse formatting clause: "
    precision = DEFAULT_PRECISION
    match = _PRECISION.match(text, place)
    if match:
        place = match.end()
        told_precision = f"{told}error while parsing precision: "
        if place >= len(text):
            raise FormatError(f"{told_precision}could not find end of precision specifier")
        digits = match[1]
        precision = read_digits(digits or "0")
        if not digits or precision >= 2**63:
            problem = "value out of range" if digits else "invalid syntax"
            raise FormatError(
                f"{told_precision}error while converting precision to integer: "
                f'strconv.Atoi: parsing "{digits}": {problem}'
            )
    letter = text[place]
    if letter not in "sdfebxXo":
        # The server looks at the first byte.
        raise FormatError(f'{told}unrecognized formatting clause "{chr(letter.encode()[0])}"')
    return letter, precision, place + 1


def check_format(tree: CheckedTree, call: Call) -> tuple[Node, str] | None:
    """The node to blame and the server's message; None when all is right, or only known when it runs."""
    if not isinstance(call.target, Const) or not isinstance(call.target.value, str):
        return None
    if len(call.args) != 1 or not isinstance(call.args[0], ListLiteral):
        return None
    text = call.target.value
    arguments = call.args[0].elements
    place, used = 0, 0
    while (place := text.find("%", place)) >= 0:
        if text[place + 1 : place + 2] == "%":
            place += 2
            continue
        if place + 1 >= len(text):
            return call, "unexpected end of string"
        if used >= len(arguments):
            return call, f"index {used} out of range"
        try:
            letter, _, place = read_clause(text, place + 1)
        except FormatError as error:
            return call, str(error)
        clause = letter.lower()
        wrong = _find_wrong(tree, arguments[used], _ALLOWED[clause], deep=clause == "s")
        if wrong is not None:
            shown = runtime_name(CelType(_formatted(tree, wrong).name))
            return wrong, f"error during formatting: {CLAUSES[clause]}, was given {shown}"
        used += 1
    if len(arguments) > used:
        found = len(arguments)
        return call, f"too many arguments supplied to string.format (expected {used}, got {found})"
    return None


def _formatted(tree: CheckedTree, node: Node) -> CelType:
    """The type as which a node is formatted: of a wrapper what is in it."""
    kind = tree.type_of(node)
    return kind.parameters[0] if kind.name == "wrapper" else kind


def _find_wrong(tree: CheckedTree, node: Node, allowed: frozenset[str], *, deep: bool) -> Node | None:
    name = _formatted(tree, node).name
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
