"""What `dra-infra validate` found, in the formats that people and machines read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.errors import Place, Problem
from dra_infra.model.junit import TestCase, write_junit
from dra_infra.model.sarif import Finding, write_sarif


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
    return write_sarif(
        [
            Finding(
                code=problem.code,
                level=problem.severity,
                message=_told(problem),
                place=problem.place or Place(file=""),
            )
            for problem in report.problems
        ]
    )


def render_junit(report: ValidationReport) -> str:
    """JUnit XML: a test case for each object and each file that could not be read."""
    cases: dict[tuple[Place, str], list[Problem]] = {each: [] for each in report.objects}
    starts = sorted({place for place, _ in cases})
    for problem in report.problems:
        place = problem.place or Place(file="")
        near = [start for start in starts if start.file == place.file and start <= place]
        key = next((each for each in cases if near and each[0] == near[-1]), (place, "document"))
        cases.setdefault(key, []).append(problem)
    return write_junit(
        "dra-infra validate",
        [
            TestCase(
                group=place.file,
                name=name,
                failures=[
                    (each.code, f"{each.place}: {_told(each)}") for each in found if each.severity == "error"
                ],
                remarks=[str(each) for each in found if each.severity != "error"],
            )
            for (place, name), found in sorted(cases.items())
        ],
    )


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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
