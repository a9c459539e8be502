"""Compile errors one by one, as the API server lists them, each with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.tree import CelType

_ECHO: Final = " | "
_SYNTAX: Final = ("Syntax error:", "unsupported syntax:", "expression recursion limit exceeded:")
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
        return self.message.startswith(_SYNTAX)


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
        # An empty text has no lines to show, an empty last line is shown (Snippet in common/source.go of cel-go).
        if text and 0 < diagnostic.line <= len(lines):
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
        (
            r"undefined field 'allowMultipleAllocations'",
            "it is there with the feature gate DRAConsumableCapacity, which is on by default from Kubernetes 1.36 on",
        ),
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
