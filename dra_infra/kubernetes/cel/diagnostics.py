"""Compile errors one by one, as the API server lists them, each with what to write instead.

Ambiguous types are those that only the server's order of overloads decides: of elements that nothing names, as in
`[].map(x, -x)`. cel-go takes the first overload that fits and so gives `x` a type for the rest of the expression; the
engine leaves it open. What is not known here is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.tree import (
    Call,
    CelType,
    CheckedTree,
    Comprehension,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    children,
    is_bind,
    walk,
)

_ECHO: Final = " | "
_DEVICE_FIELDS: Final = "allowMultipleAllocations, attributes, capacity, driver"
_RUNTIME_NAMES: Final = {
    "any": "google.protobuf.Any",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}


class Diagnostic(NamedTuple):
    """One compile error.

    Args:
        line: Counts from 1.
        column: Counts code points from 1; 0 for an empty expression.
        message: In cel-go's words where they are known.
    """

    line: int
    column: int
    message: str

    @property
    def is_syntax(self) -> bool:
        """The text does not even parse."""
        return self.message.startswith(("Syntax error:", "unsupported syntax:"))


def diagnose(text: str, offset: int, message: str) -> Diagnostic:
    """A compile error at an *offset* in code points."""
    before = text[:offset]
    return Diagnostic(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1, message)


def find_hint(report: str, text: str) -> str:
    """The line to write, for the mistakes that people make; empty for others.

    Args:
        report: One message, or all of them.
        text: The expression.
    """
    for pattern, hint in _HINTS:
        if pattern.search(report):
            return hint
    # The parser stumbles over what stands behind a word that is a name to it.
    return _WORDS_OF_PYTHON if "Syntax error:" in report and _NOT.search(text) else ""


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """As the server lists them: by place."""
    return tuple(sorted(diagnostics, key=lambda each: (each.line, each.column)))


def write_report(diagnostics: Iterable[Diagnostic], text: str) -> str:
    """The whole report as the API server prints it behind `compilation failed: `."""
    lines = text.split("\n")
    parts = []
    for diagnostic in diagnostics:
        parts.append(f"ERROR: <input>:{diagnostic.line}:{diagnostic.column}: {diagnostic.message}")
        if 0 < diagnostic.line <= len(lines) and (len(lines) > diagnostic.line or lines[diagnostic.line - 1]):
            source = lines[diagnostic.line - 1].replace("\t", " ")
            parts += [f"{_ECHO}{source}", f"{_ECHO}{_pointer(source, diagnostic.column)}"]
    return "\n".join(parts)


def _pointer(source: str, column: int) -> str:
    """Dots up to the column and a mark at it, both as wide as what stands above."""
    dots = "".join("." if ord(character) < 128 else "\uff0e" for character in source[: max(column - 1, 0)])
    above = source[max(column - 1, 0) :][:1]
    return dots + ("^" if not above or ord(above) < 128 else "\uff3e")


def runtime_name(found: CelType) -> str:
    """A type as cel-go prints it outside of compile errors."""
    name = _RUNTIME_NAMES.get(found.name, found.name)
    return f"{name}({', '.join(map(runtime_name, found.parameters))})" if found.parameters else name


_WORDS_OF_PYTHON: Final = "write && for and, || for or, ! for not"
_NOT: Final = re.compile(r"(?:^|[(&|!,?:\s])not\s")

_HINTS: Final = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (r"'_[<>]=?_' applied to '\(kubernetes\.Quantity", 'compare with .compareTo(quantity("40Gi")) >= 0'),
        (r"'_[!=]=_' applied to '\(kubernetes\.Quantity", 'compare with .compareTo(quantity("40Gi")) == 0'),
        (
            r"'(compareTo|is\w+Than)' applied to 'kubernetes\.Quantity\.\(",
            'wrap the amount: quantity("40Gi")',
        ),
        (r"'(compareTo|is\w+Than)' applied to 'kubernetes\.Semver\.\(", 'wrap the version: semver("9.0.0")'),
        (r"'_[!=<>]+_' applied to", "compare values of the same type: texts are quoted, numbers are not"),
        (r"undefined field", f"device has the fields {_DEVICE_FIELDS}"),
        (
            r"undeclared reference to '(and|or|not)'|input '(and|or|not)'",
            _WORDS_OF_PYTHON,
        ),
        (r"undeclared reference to '(True|False)'", "write true or false, in small letters"),
        (
            r"undeclared reference to 'None'",
            "write has(...) to ask whether something is there; CEL has null for None",
        ),
        (r"input 'is'", "write == to compare"),
        (r"input '(if|else)'", "write condition ? one : other"),
        *(
            (rf"undeclared reference to '{python}'", f"write {cel}")
            for python, cel in (
                ("startswith", "startsWith(...)"),
                ("endswith", "endsWith(...)"),
                ("lower", "lowerAscii()"),
                ("upper", "upperAscii()"),
                ("strip", "trim()"),
                ("find", "indexOf(...)"),
                ("len", "size(...)"),
                ("str", "string(...)"),
            )
        ),
        (r"token recognition error at: '& ?'", "write && for and"),
        (r"token recognition error at: '= ?'", "write == to compare"),
        (r"undeclared reference to '\w+' ", "quote texts; an expression only knows the variable device"),
    )
)


_OVERLOADED: Final = frozenset(
    {
        *("_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_<_", "_<=_", "_>_", "_>=_"),
        *("bool", "bytes", "double", "duration", "int", "size", "string", "timestamp", "uint"),
    }
)
_OVER_ELEMENTS: Final = frozenset({"@sortByAssociatedKeys", "isSorted", "max", "min", "sort", "sum"})
_JOINING: Final = frozenset({"_?_:_", "_+_", "or", "orValue"})
_POLYMORPHIC: Final = frozenset(
    {
        *("_-_", "_*_", "_/_", "_%_", "-_", "_[_]", "_[?_]", "_?._"),
        *(
            "@sortByAssociatedKeys",
            "distinct",
            "first",
            "flatten",
            "last",
            "max",
            "min",
            "reverse",
            "slice",
            "sort",
        ),
        *("sum", "optional.of", "optional.ofNonZeroValue", "optional.unwrap", "unwrapOpt", "value"),
        *("cel.@mapInsert", "type"),
    }
)
"""Functions whose result has a type that their arguments give."""

_SORTED: Final = "@__sortBy_input__"
"""The list in what the macro sortBy() expands to."""

_KNOWN: Final = frozenset({"list", "map", "optional_type"})


def is_ambiguous(tree: CheckedTree) -> bool:
    """Finds an overloaded function that is called on nothing but values without a type."""
    search = _Search(tree)
    search.is_open(tree.root, frozenset())
    return search.found


def has_open_variable(tree: CheckedTree) -> bool:
    """Finds a variable whose type nothing names, so that an error about types may not be the server's."""
    search = _Search(tree)
    search.is_open(tree.root, frozenset())
    return search.used


def is_empty(node: Node) -> bool:
    """Checks that *node* is a literal whose elements have no type: `[]`, `{}`."""
    match node:
        case ListLiteral(elements=()) | MapLiteral(entries=(), message=""):
            return True
        case Call(function="optional.none"):
            return True
    return False


class _Search:
    def __init__(self, tree: CheckedTree) -> None:
        self._tree = tree
        self.found = False
        self.used = False

    def is_open(self, node: Node, names: frozenset[str]) -> bool:
        """Checks that the type of *node* comes from an empty value; *names* are the variables whose type does."""
        match node:
            case Ident(name=name):
                self.used |= name in names and not name.startswith("@")
                return name in names
            case Comprehension():
                return self._is_open_loop(node, names)
        parts = [(part, self.is_open(part, names)) for part in children(node)]
        if isinstance(node, Call) and any(is_open for _, is_open in parts):
            self.found |= self._is_undirected(node, parts, names)
        return is_empty(node) or self._stays_open(node, [is_open for _, is_open in parts])

    def _stays_open(self, node: Node, parts: list[bool]) -> bool:
        if self._tree.type_of(node).name in ("bool", "string"):
            return False
        match node:
            case Call(function=function) if function in _JOINING:
                # One alternative with a type gives it to all.
                return all(parts[-2:])
            case Call(function=function):
                return function in _POLYMORPHIC and any(parts)
            case ListLiteral():
                return all(parts)
        return any(parts)

    def _is_open_loop(self, loop: Comprehension, names: frozenset[str]) -> bool:
        outer = names - {loop.accu_var, loop.iter_var, loop.iter_var2}
        if is_bind(loop):
            own = {loop.accu_var} if self.is_open(loop.accu_init, names) else set()
            return self.is_open(loop.result, outer | own)
        own = {loop.iter_var, loop.iter_var2} if self.is_open(loop.iter_range, names) else set()
        self.is_open(loop.condition, outer | own)
        # What a macro gathers is as open as what it adds.
        made = self.is_open(loop.step, outer | own | ({loop.accu_var} if own else set()))
        return self.is_open(loop.result, outer | own) or made

    def _is_undirected(self, call: Call, parts: list[tuple[Node, bool]], names: frozenset[str]) -> bool:
        if call.function in _OVER_ELEMENTS:
            found = {node.name for part, _ in parts for node in walk(part) if isinstance(node, Ident)}
            return not names.isdisjoint(found - {_SORTED})
        if call.function not in _OVERLOADED:
            return False
        return all(
            isinstance(part, Ident) or self._tree.type_of(part).name not in _KNOWN
            if is_open
            else self._is_dyn(part)
            for part, is_open in parts
        )

    def _is_dyn(self, node: Node) -> bool:
        return self._tree.type_of(node).name in ("dyn", "any")
