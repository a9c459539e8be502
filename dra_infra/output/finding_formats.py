"""SARIF 2.1.0, the format of code scanning, and JUnit XML, which every CI system shows as a list of tests.

For SARIF, findings go in and the text of one log comes out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, Literal
from urllib.parse import quote

from dra_infra.codes import CODES
from dra_infra.errors import Place
from dra_infra.output.escaping import block, json_text, one_line, xml_attribute, xml_text

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

_LINK: Final = re.compile(r"(?<!\\)((?:\\\\)*+)\](?=\()")
"""The middle of an embedded link, with the pairs of backslashes in front of it: one more of them makes it text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One result of a log.

    Args:
        code: Stable slug; a rule of the log is made of it.
        level: As SARIF has it.
        message: Plain text.
        place: File and line of the user's code, where known.
        subject: The object or argument that it is about; empty when the place says all.
    """

    code: str
    level: Literal["error", "warning", "note"]
    message: str
    place: Place | None = None
    subject: str = ""


def write_sarif(
    findings: Sequence[Finding],
    *,
    provenance: Mapping[str, Any],
    notes: Iterable[str] = (),
    folder: str = "",
) -> str:
    """One run of this tool.

    Args:
        findings: In the order of the log.
        provenance: What the run was checked for, with the `version` of the tool.
        notes: What the tool says of the run itself, not of the user's files.
        folder: Where relative places begin, seen from the top of the repository: `apps`, or `..` for the folder above it.
    """
    codes = sorted({finding.code for finding in findings})
    numbers = {code: number for number, code in enumerate(codes)}
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "dra-infra",
                "version": provenance["version"],
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
    }
    if said := [{"level": "note", "message": {"text": _without_links(one_line(note))}} for note in notes]:
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": said}]
    run["results"] = [_result(each, numbers[each.code], folder) for each in findings]
    run["properties"] = {"provenance": provenance}
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: str) -> dict[str, Any]:
    # A policy of the user's own brings a name that is no code of ours.
    if code not in CODES:
        return {"id": code}
    told = CODES[code]
    return {
        "id": code,
        "shortDescription": {"text": told},
        "help": {"text": f"{told}; more: dra-infra explain {code}"},
    }


def _result(finding: Finding, rule: int, folder: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": _without_links(block(finding.message))},
    }
    location: dict[str, Any] = {}
    if finding.place is not None:
        location["physicalLocation"] = _physical(finding.place, folder)
    if finding.subject:
        location["logicalLocations"] = [{"fullyQualifiedName": one_line(finding.subject), "kind": "resource"}]
    return result | ({"locations": [location]} if location else {})


def _without_links(text: str) -> str:
    """Plain text in which `[a](b)` is no link: a bracket behind a backslash is one of the text (3.11.6)."""
    return _LINK.sub(r"\1\\]", text)


def _physical(place: Place, folder: str) -> dict[str, Any]:
    located: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file, folder)}}
    if place.line:
        located["region"] = {"startLine": place.line, "startColumn": max(place.column, 1)}
    return located


def _uri(file: str, folder: str) -> str:
    if folder and file:
        parts = posixpath.normpath(posixpath.join(folder, file)).split("/")
        # A way up from the top comes down again by the names of the folders that lead to it.
        file = "/".join(parts[2 * parts.count("..") :])
    # A name of a file is no reference yet: spaces, `%` and `#` mean something else there, and `a:b` is a scheme.
    reference = quote(file, safe="/@+=,~!$&'()*;", errors="surrogatepass")
    return f"file://{reference}" if PurePath(file).is_absolute() else reference


@dataclass(frozen=True, kw_only=True, slots=True)
class TestCase:
    """One line in the list of tests.

    Args:
        group: What it is listed under, such as a file.
        name: What was looked at.
        failures: Code and text of each reason for which it fails; none is a pass.
        remarks: What is to be read though it passes.
    """

    # Not a class of tests: pytest would collect it by its name.
    __test__ = False

    group: str
    name: str
    failures: Sequence[tuple[str, str]] = ()
    remarks: Sequence[str] = ()


def write_junit(suite: str, cases: Sequence[TestCase], *, properties: Mapping[str, str]) -> str:
    """One test suite, in the order of *cases*; ends without a line break.

    Args:
        suite: Its name.
        cases: What was looked at.
        properties: What is to be known of the whole run, by name.
    """
    failed = sum(bool(case.failures) for case in cases)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<testsuite name={xml_attribute(suite)} tests="{len(cases)}" failures="{failed}">')
    lines.append("  <properties>")
    lines += [
        f"    <property name={xml_attribute(name)} value={xml_attribute(one_line(value))}/>"
        for name, value in properties.items()
    ]
    lines.append("  </properties>")
    for case in cases:
        lines.append(
            f"  <testcase classname={xml_attribute(one_line(case.group))} name={xml_attribute(one_line(case.name))}>"
        )
        lines += [
            f"    <failure type={xml_attribute(one_line(code))} message={xml_attribute(text)}/>"
            for code, text in case.failures
        ]
        lines += [f"    <system-out>{xml_text(remark)}</system-out>" for remark in case.remarks]
        lines.append("  </testcase>")
    lines.append("</testsuite>")
    return "\n".join(lines)
