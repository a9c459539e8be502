"""The engine's compile errors in the API server's words.

The syntax tree of an expression that does not check says where in it an error lies.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Final

from dra_infra.kubernetes.cel.diagnostics import Diagnostic, diagnose, has_open_variable, in_order
from dra_infra.kubernetes.cel.environment import (
    Environment,
    check_environment,
    device_fields,
    function_names,
    wording_environment,
)
from dra_infra.kubernetes.cel.source_text import respell, restore_bytes, restore_text, stand_in
from dra_infra.kubernetes.cel.tree import Call, CheckedTree, Const, Ident, MapLiteral, Node, Select, walk
from dra_infra.kubernetes.cel.wire import decode_parsed


@lru_cache(maxsize=16)
def parse_expression(text: str, environment: Environment) -> CheckedTree | None:
    """The tree without types; None when the text does not even parse."""
    try:
        parsed = check_environment(environment).compile(respell(text, environment), disable_check=True)
    except RuntimeError:
        return None
    return decode_parsed(restore_bytes(parsed.serialize()))


_ERROR = re.compile(r"ERROR: <input>:(?P<line>-?\d+):(?P<column>-?\d+): (?P<message>.*)")
_ECHO: Final = " | "
_WARNING: Final = "WARNING: "
_PREFIX: Final = "INVALID_ARGUMENT: "
_SUFFIX: Final = " [INVALID_ARGUMENT]"
_CRASH = re.compile(r"expected type 'optional_type\((?:dyn|any)\)' but found ")
_DOUBT = re.compile(r"(?:type|expression of type) '(?:\*error\*|T%[0-9]+|dyn)' ")
_NAMES_TYPES = re.compile(r"found no|expected type|expression of|type '")
_TYPE_NAMES = re.compile(r"google\.protobuf\.(?:Any|Duration|Timestamp)|\bnull_type\b|\bT%[0-9]+|\*error\*")
_CHOICE = re.compile(r"(.*'_\?_:_' applied to ')\((.+)\)'")
_SPELLED: Final = {
    "google.protobuf.Any": "any",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "null_type": "null",
    "T%": "dyn",
    "*error*": "!error!",
}


NULL: Final = Const("null_value", None)
_METHODS: Final = frozenset({"@sortByAssociatedKeys"})
"""Calls of macros that are functions in the engine, and methods in cel-go."""


class Report:
    """The engine's report about an expression.

    Attributes:
        diagnostics: What the server says too; empty when it might find nothing wrong.
        is_crash: Whether something is in it that makes the server's own check panic.
        doubt: What the engine cannot express, and the server might take.
    """

    doubt = ""

    def __init__(self, report: str, text: str, environment: Environment) -> None:
        self._text = text
        self._environment = environment
        found = _split(report.removeprefix(_PREFIX).removesuffix(_SUFFIX))
        self.is_crash = any(_CRASH.match(each.message) for each in found)
        # The server does not say what follows from another error, or is about a type that it finds out later.
        said = [each for each in found if not _DOUBT.match(each.message) and not _CRASH.match(each.message)]
        if any(each.is_syntax for each in said):
            said = [each for each in said if each.is_syntax]
        self.diagnostics = in_order(better for each in said for better in self.reword(each))

    def reword(self, diagnostic: Diagnostic) -> Iterator[Diagnostic]:
        """Rewrites an error of the engine in the server's words."""
        if _NAMES_TYPES.match(diagnostic.message):
            spelled = _TYPE_NAMES.sub(_spell, _complete(diagnostic.message))
            diagnostic = diagnostic._replace(message=spelled)
        if not self._text and diagnostic.is_syntax:
            diagnostic = diagnostic._replace(column=0)
        for pattern, rewrite in _REWRITES:
            match = pattern.fullmatch(diagnostic.message)
            if match:
                yield from rewrite(self, diagnostic, match)
                return
        yield diagnostic

    def nodes_at(self, diagnostic: Diagnostic) -> list[Node]:
        """The nodes where an error is reported; none when the text does not parse."""
        return self._places[self._offset(diagnostic)]

    def moved(self, diagnostic: Diagnostic, pattern: str) -> Diagnostic:
        """The same error at the last character of what matches *pattern* there."""
        match = re.compile(pattern).match(self._text, self._offset(diagnostic))
        return diagnose(self._text, match.end() - 1, diagnostic.message) if match else diagnostic

    def quote(self, diagnostic: Diagnostic, length: int) -> str:
        """Quotes the user's text at a diagnostic."""
        offset = self._offset(diagnostic)
        return self._text[offset : offset + length]

    def _offset(self, diagnostic: Diagnostic) -> int:
        lines = self._text.split("\n")
        return sum(len(line) + 1 for line in lines[: diagnostic.line - 1]) + diagnostic.column - 1

    def at(self, node: Node, message: str) -> Diagnostic:
        """An error at *node*."""
        return diagnose(self._text, self._positions.get(node.id, 0), message)

    @cached_property
    def overloads(self) -> dict[tuple[int, int], str]:
        """Line and column of calls that the server knows by name, and what it says about their arguments."""
        try:
            wording_environment(self._environment).compile(respell(self._text, self._environment))
        except RuntimeError as error:
            report = restore_text(str(error)).removeprefix(_PREFIX).removesuffix(_SUFFIX)
            return {
                (each.line, each.column): each.message
                for each in _split(report)
                if each.message.startswith("found no matching overload")
            }
        return {}

    def has_field(self, name: str) -> bool:
        """Checks that `device` has a field of that name."""
        return name in device_fields(self._environment)

    def knows(self, function: str) -> bool:
        """Checks that a function of that name is declared."""
        return stand_in(function) in function_names(self._environment)

    @property
    def is_open(self) -> bool:
        """A variable is used whose type only the server's order of overloads decides."""
        if not any(each.message.startswith(("found no", "expected type")) for each in self.diagnostics):
            return False
        tree = parse_expression(self._text, self._environment)
        return tree is not None and has_open_variable(tree)

    @property
    def chooses_null(self) -> bool:
        """Null is one of two alternatives: its type is the other one's for the engine, but not for cel-go."""
        tree = parse_expression(self._text, self._environment)
        return tree is not None and any(
            isinstance(node, Call) and node.function == "_?_:_" and NULL in node.args[1:]
            for node in walk(tree.root)
        )

    @cached_property
    def _positions(self) -> dict[int, int]:
        tree = parse_expression(self._text, self._environment)
        return dict(tree.positions) if tree else {}

    @cached_property
    def _places(self) -> defaultdict[int, list[Node]]:
        tree = parse_expression(self._text, self._environment)
        places: defaultdict[int, list[Node]] = defaultdict(list)
        for node in walk(tree.root) if tree else ():
            places[self._positions.get(node.id, -1)].append(node)
        return places


def _split(report: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for line in report.split("\n"):
        match = _ERROR.fullmatch(line)
        if match:
            found.append(Diagnostic(int(match["line"]), int(match["column"]), match["message"]))
        elif found and not line.startswith((_ECHO, _WARNING)):
            found[-1] = found[-1]._replace(message=f"{found[-1].message}\n{line}")
    return found or [Diagnostic(1, 1, report)]


def _complete(message: str) -> str:
    """In the macro filter() with a condition that is not bool the engine does not know yet that both lists are alike."""
    match = _CHOICE.fullmatch(message) if "T%" in message else None
    kinds = _split_types(match[2]) if match else []
    if match is None or len(kinds) != 3 or kinds[0] == "bool" or not kinds[2].startswith("list(T%"):
        return message
    return f"{match[1]}({kinds[0]}, {kinds[1]}, {kinds[1]})'"


def _spell(match: re.Match[str]) -> str:
    return _SPELLED[match[0].rstrip("0123456789")]


Rewrite = Callable[[Report, Diagnostic, re.Match[str]], Iterator[Diagnostic]]


def _text(template: str) -> Rewrite:
    def rewrite(_report: Report, diagnostic: Diagnostic, match: re.Match[str]) -> Iterator[Diagnostic]:
        yield diagnostic._replace(message=match.expand(template))

    return rewrite


def _undefined_field(report: Report, diagnostic: Diagnostic, _match: re.Match[str]) -> Iterator[Diagnostic]:
    for node in report.nodes_at(diagnostic):
        match node:
            case Call(function="_?._", args=(_, Const(value=str() as name))) if report.has_field(name):
                report.doubt = "a field of device is read as an optional one"
                return
            case Select(field=name) | Call(function="_?._", args=(_, Const(value=str() as name))):
                yield diagnostic._replace(message=f"undefined field '{name}'")
                return
    yield diagnostic


def _made_device(report: Report, _diagnostic: Diagnostic, _match: re.Match[str]) -> Iterator[Diagnostic]:
    report.doubt = "a device is made"
    yield from ()


def _unresolved_select(_report: Report, diagnostic: Diagnostic, match: re.Match[str]) -> Iterator[Diagnostic]:
    kind = match[1]
    if kind.startswith("kubernetes."):
        yield diagnostic._replace(message=f"unexpected failed resolution of '{kind}'")
    else:
        yield diagnostic._replace(message=f"type '{kind}' does not support field selection")


def _undeclared_path(report: Report, diagnostic: Diagnostic, match: re.Match[str]) -> Iterator[Diagnostic]:
    for node in report.nodes_at(diagnostic):
        if isinstance(node, MapLiteral) and node.message == match[1]:
            # cel-go points to the brace.
            yield report.moved(diagnostic, rf"{re.escape(match[1])}\s*\{{")
            return
        root = node
        while isinstance(root, Select):
            root = root.operand
        if isinstance(root, Ident):
            yield report.at(root, f"undeclared reference to '{root.name}' (in container '')")
            return
    yield diagnostic


def _undeclared(report: Report, diagnostic: Diagnostic, match: re.Match[str]) -> Iterator[Diagnostic]:
    """cel-go knows a function that is called as a method, and the reverse."""
    if report.knows(match[1]):
        message = report.overloads.get((diagnostic.line, diagnostic.column))
        if message:
            yield from report.reword(diagnostic._replace(message=message))
            return
    yield diagnostic


def _member_overload(report: Report, diagnostic: Diagnostic, match: re.Match[str]) -> Iterator[Diagnostic]:
    for node in report.nodes_at(diagnostic):
        if isinstance(node, Call) and node.function == match[1] and (node.target or match[1] in _METHODS):
            receiver, *arguments = _split_types(match[2])
            applied = f"'{receiver}.({', '.join(arguments)})'"
            message = f"found no matching overload for '{match[1]}' applied to {applied}"
            yield diagnostic._replace(message=message)
            return
    yield diagnostic


def _logical(report: Report, diagnostic: Diagnostic, match: re.Match[str]) -> Iterator[Diagnostic]:
    """cel-go names the operand that is not bool."""
    for node in report.nodes_at(diagnostic):
        if isinstance(node, Call) and node.function == match[1]:
            for operand, kind in zip(node.args, _split_types(match[2]), strict=False):
                if kind not in ("bool", "dyn", "any", "!error!", "wrapper(bool)"):
                    yield report.at(operand, f"expected type 'bool' but found '{kind}'")
            return
    yield diagnostic


def _unrecognized(report: Report, diagnostic: Diagnostic, match: re.Match[str]) -> Iterator[Diagnostic]:
    """The engine escapes line breaks in what it quotes, cel-go does not."""
    quoted = report.quote(diagnostic, len(match[2].replace("\\n", "\n")))
    yield diagnostic._replace(message=f"{match[1]}'{quoted}'")


def _split_types(types: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(types):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(types[start:index])
            start = index + 2
    return [*parts, types[start:]]


_REWRITES: Final[tuple[tuple[re.Pattern[str], Rewrite], ...]] = tuple(
    (re.compile(pattern), rewrite)
    for pattern, rewrite in (
        (
            r"expression of type 'kubernetes\.DRADevice' cannot be the operand of a select operation",
            _undefined_field,
        ),
        (r"expression of type '(.+)' cannot be the operand of a select operation", _unresolved_select),
        (r"undeclared reference to 'kubernetes\.DRADevice' \(in container ''\)", _made_device),
        (r"undeclared reference to '(\w+(?:\.\w+)+)' \(in container ''\)", _undeclared_path),
        (r"undeclared reference to '(\w+)' \(in container ''\)", _undeclared),
        (r"found no matching overload for '(_&&_|_\|\|_)' applied to '\((.+)\)'", _logical),
        (r"found no matching overload for '(@?\w+)' applied to '\((.+)\)'", _member_overload),
        (r"(?s)(Syntax error: token recognition error at: )'(.*)'", _unrecognized),
        (r"(Syntax error: .*)'\\u003F'(.*)", _text(r"\1'?'\2")),
        (r"all\(\) second variable name must be.*", _text("argument must be a simple name")),
        (r"has\(\) argument must be a field selection", _text("invalid argument to has() macro")),
        (r"(.*)cannot be the range of a comprehension(.*)", _text(r"\1cannot be range of a comprehension\2")),
        (
            r"cel\.bind\(\) variable name must be a simple identifier",
            _text("cel.bind() variable names must be simple identifiers"),
        ),
        (r"\w+\(\) variable name must be a simple identifier", _text("argument must be a simple name")),
    )
)
