"""What `dra-infra validate` found, in the formats that people and machines read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.errors import CODES, Place, Problem

_DOCUMENTATION: Final = "docs/errors.md"
_NOT_XML: Final = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""What XML 1.0 cannot hold, not even escaped."""

_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\r": "&#13;"}
)
# The standard library's own escapes bring its HTTP client and TLS along, a tenth of the time of a short run.


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """The findings of one run.

    Args:
        problems: Sorted by place; every one has one.
        objects: (place, name) of each object that was checked.
        passed: Number of objects of other kinds.
        kubernetes: The minors that were checked.
    """

    problems: Sequence[Problem]
    objects: Sequence[tuple[Place, str]]
    passed: int
    kubernetes: Sequence[str]

    @property
    def errors(self) -> int:
        """Number of problems that a server refuses."""
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def summary(self) -> str:
        """One line: what was checked and what was found."""
        others = f", {_count(self.passed, 'other')} passed through" if self.passed else ""
        warnings = len(self.problems) - self.errors
        return (
            f"checked {_count(len(self.objects), 'object')} on Kubernetes {' and '.join(self.kubernetes)}{others}: "
            f"{_count(self.errors, 'error')}, {_count(warnings, 'warning')}"
        )


def render_json(report: ValidationReport) -> str:
    """JSON of a stable shape; `version` counts its changes."""
    problems = [
        {
            **_place(problem.place),
            "path": problem.path,
            "code": problem.code,
            "severity": problem.severity,
            "message": problem.message,
            "hint": problem.hint,
        }
        for problem in report.problems
    ]
    data = {
        "version": 1,
        "kubernetes": list(report.kubernetes),
        "checked": len(report.objects),
        "passed": report.passed,
        "errors": report.errors,
        "warnings": len(report.problems) - report.errors,
        "problems": problems,
    }
    return json.dumps(data, indent=2)


def render_sarif(report: ValidationReport) -> str:
    """SARIF 2.1.0, for code scanning."""
    codes = sorted({problem.code for problem in report.problems})
    rules = [
        {
            "id": code,
            "shortDescription": {"text": CODES[code]},
            "help": {"text": f"{CODES[code]}; see {_DOCUMENTATION}, section {code}"},
        }
        for code in codes
    ]
    results = [
        {
            "ruleId": problem.code,
            "ruleIndex": codes.index(problem.code),
            "level": problem.severity,
            "message": {"text": _told(problem)},
            "locations": [{"physicalLocation": _location(problem.place)}],
        }
        for problem in report.problems
    ]
    driver = {"name": "dra-infra", "rules": rules}
    data = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    return json.dumps(data, indent=2)


def render_junit(report: ValidationReport) -> str:
    """JUnit XML: a test case for each object and each file that could not be read."""
    cases: dict[tuple[Place, str], list[Problem]] = {each: [] for each in report.objects}
    starts = sorted({place for place, _ in cases})
    for problem in report.problems:
        place = problem.place or Place(file="")
        near = [start for start in starts if start.file == place.file and start <= place]
        key = next((each for each in cases if near and each[0] == near[-1]), (place, "document"))
        cases.setdefault(key, []).append(problem)
    failed = sum(any(each.severity == "error" for each in found) for found in cases.values())
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<testsuite name="dra-infra validate" tests="{len(cases)}" failures="{failed}">')
    for (place, name), found in sorted(cases.items()):
        attributes = f"classname={_xml(place.file)} name={_xml(name)}"
        errors = [each for each in found if each.severity == "error"]
        warnings = [each for each in found if each.severity != "error"]
        lines.append(f"  <testcase {attributes}>")
        lines += [
            f"    <failure type={_xml(each.code)} message={_xml(f'{each.place}: {_told(each)}')}/>"
            for each in errors
        ]
        lines += [f"    <system-out>{_text(str(each))}</system-out>" for each in warnings]
        lines.append("  </testcase>")
    lines.append("</testsuite>")
    return "\n".join(lines)


def render_github(report: ValidationReport) -> str:
    """Workflow commands, which the forge shows beside the lines of a pull request."""
    lines = []
    for problem in report.problems:
        place = problem.place or Place(file="")
        parts = {"file": place.file, "line": place.line, "col": place.column, "title": problem.code}
        shown = ",".join(f"{name}={_property(str(value))}" for name, value in parts.items() if value)
        lines.append(f"::{problem.severity} {shown}::{_data(_told(problem))}")
    return "\n".join([*lines, report.summary])


RENDERERS: Final[Mapping[str, Callable[[ValidationReport], str]]] = {
    "json": render_json,
    "sarif": render_sarif,
    "junit": render_junit,
    "github": render_github,
}


def _told(problem: Problem) -> str:
    line = f"{problem.path}: {problem.message}"
    return f"{line}\nhint: {problem.hint}" if problem.hint else line


def _place(place: Place | None) -> dict[str, Any]:
    place = place or Place(file="")
    return {"file": place.file, "line": place.line, "column": place.column}


def _location(place: Place | None) -> dict[str, Any]:
    place = place or Place(file="")
    location: dict[str, Any] = {"artifactLocation": {"uri": place.file}}
    if place.line:
        location["region"] = {"startLine": place.line, "startColumn": max(place.column, 1)}
    return location


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _xml(text: str) -> str:
    return f'"{_text(text)}"'.replace("\n", "&#10;")


def _text(text: str) -> str:
    return re.sub(_NOT_XML, "\ufffd", text).translate(_ESCAPES)
