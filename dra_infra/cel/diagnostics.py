"""The engine's compile errors, one by one, in the API server's words, each with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

_ERROR = re.compile(r"ERROR: <input>:(?P<line>-?\d+):(?P<column>-?\d+): (?P<message>.*)")
_ECHO: Final = " | "
_PREFIX: Final = "INVALID_ARGUMENT: "
_SUFFIX: Final = " [INVALID_ARGUMENT]"
_DEVICE_FIELDS: Final = "allowMultipleAllocations, attributes, capacity, driver"


@dataclass(frozen=True, slots=True)
class Diagnostic:
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
        """Whether the text does not even parse."""
        return self.message.startswith("Syntax error:")

    @property
    def hint(self) -> str:
        """The line to write, for the mistakes that people make."""
        for pattern, hint in _HINTS:
            if pattern.search(self.message):
                return hint
        return ""


def read_report(report: str, text: str) -> tuple[Diagnostic, ...]:
    """Split the engine's *report* about the expression *text*; one diagnostic at least."""
    report = report.removeprefix(_PREFIX).removesuffix(_SUFFIX)
    found = []
    for line in report.split("\n"):
        match = _ERROR.fullmatch(line)
        if match:
            found.append(Diagnostic(int(match["line"]), int(match["column"]), match["message"]))
        elif found and not line.startswith(_ECHO):
            found[-1] = replace(found[-1], message=f"{found[-1].message}\n{line}")
    if not found:
        return (Diagnostic(1, 1, report),)
    return tuple(_reworded(diagnostic, text) for diagnostic in found)


def write_report(diagnostics: tuple[Diagnostic, ...], text: str) -> str:
    """The whole report as the API server prints it behind `compilation failed: `."""
    lines = text.split("\n")
    parts = []
    for diagnostic in diagnostics:
        parts.append(f"ERROR: <input>:{diagnostic.line}:{diagnostic.column}: {diagnostic.message}")
        source = lines[diagnostic.line - 1] if 0 < diagnostic.line <= len(lines) else ""
        if source:
            # cel-go fills up with dots as wide as what they stand for.
            dots = "".join(
                "." if ord(character) < 128 else "\uff0e" for character in source[: diagnostic.column - 1]
            )
            parts += [f"{_ECHO}{source}", f"{_ECHO}{dots}^"]
    return "\n".join(parts)


def _reworded(diagnostic: Diagnostic, text: str) -> Diagnostic:
    lines = text.split("\n")
    source = lines[diagnostic.line - 1] if 0 < diagnostic.line <= len(lines) else ""
    if not text and diagnostic.is_syntax:
        return replace(diagnostic, column=0)
    for pattern, rewrite in _REWRITES:
        match = pattern.fullmatch(diagnostic.message)
        if match:
            return rewrite(diagnostic, match, source)
    return diagnostic


Rewrite = Callable[[Diagnostic, re.Match[str], str], Diagnostic]


def _text(template: str) -> Rewrite:
    return lambda diagnostic, match, _source: replace(diagnostic, message=match.expand(template))


def _undefined_field(diagnostic: Diagnostic, _match: re.Match[str], source: str) -> Diagnostic:
    name = re.search(r"\.\s*(\w+)", source[diagnostic.column - 1 :])
    return replace(diagnostic, message=f"undefined field '{name[1]}'") if name else diagnostic


def _unresolved_select(diagnostic: Diagnostic, match: re.Match[str], _source: str) -> Diagnostic:
    kind = match[1]
    if kind.startswith("kubernetes."):
        return replace(diagnostic, message=f"unexpected failed resolution of '{kind}'")
    return replace(diagnostic, message=f"type '{kind}' does not support field selection")


def _undeclared_path(diagnostic: Diagnostic, match: re.Match[str], source: str) -> Diagnostic:
    root = match[1].partition(".")[0]
    start = re.search(rf"(?<![\w.]){re.escape(root)}\s*(\.\s*\w+\s*)*$", source[: diagnostic.column - 1])
    if start is None:
        return diagnostic
    message = f"undeclared reference to '{root}' (in container '')"
    return replace(diagnostic, column=start.start() + 1, message=message)


def _member_overload(diagnostic: Diagnostic, match: re.Match[str], source: str) -> Diagnostic:
    if not re.search(rf"\.\s*{re.escape(match[1])}\s*$", source[: diagnostic.column - 1]):
        return diagnostic
    receiver, arguments = _split_first(match[2])
    message = f"found no matching overload for '{match[1]}' applied to '{receiver}.({arguments})'"
    return replace(diagnostic, message=message)


def _split_first(types: str) -> tuple[str, str]:
    depth = 0
    for index, character in enumerate(types):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            return types[:index], types[index + 2 :]
    return types, ""


_REWRITES: Final[tuple[tuple[re.Pattern[str], Rewrite], ...]] = tuple(
    (re.compile(pattern), rewrite)
    for pattern, rewrite in (
        (
            r"expression of type 'kubernetes\.DRADevice' cannot be the operand of a select operation",
            _undefined_field,
        ),
        (r"expression of type '(.+)' cannot be the operand of a select operation", _unresolved_select),
        (r"undeclared reference to '(\w+(?:\.\w+)+)' \(in container ''\)", _undeclared_path),
        (r"found no matching overload for '(\w+)' applied to '\((.+)\)'", _member_overload),
        (r"has\(\) argument must be a field selection", _text("invalid argument to has() macro")),
        (r"(.*)cannot be the range of a comprehension(.*)", _text(r"\1cannot be range of a comprehension\2")),
        (
            r"cel\.bind\(\) variable name must be a simple identifier",
            _text("cel.bind() variable names must be simple identifiers"),
        ),
        (r"\w+\(\) variable name must be a simple identifier", _text("argument must be a simple name")),
    )
)

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
            "write && for and, || for or, ! for not",
        ),
        (r"token recognition error at: '= ?'", "write == to compare"),
        (r"undeclared reference to '\w+' ", "quote texts; an expression only knows the variable device"),
    )
)
