"""SARIF 2.1.0, the format of code scanning: findings in, the text of one log out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, Literal
from urllib.parse import quote

from dra_infra.codes import CODES
from dra_infra.errors import Place

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

_DOCUMENTATION: Final = "docs/errors.md"


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


def write_sarif(findings: Sequence[Finding], *, notes: Iterable[str] = ()) -> str:
    """One run of this tool.

    Args:
        findings: In the order of the log.
        notes: What the tool says of the run itself, not of the user's files.
    """
    codes = sorted({finding.code for finding in findings})
    numbers = {code: number for number, code in enumerate(codes)}
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "dra-infra", "rules": [_rule(code) for code in codes]}},
        "columnKind": "unicodeCodePoints",
    }
    if said := [{"level": "note", "message": {"text": note}} for note in notes]:
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": said}]
    run["results"] = [_result(finding, numbers[finding.code]) for finding in findings]
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str) -> dict[str, Any]:
    # A policy of the user's own brings a name that is no code of ours.
    if code not in CODES:
        return {"id": code}
    told = CODES[code]
    return {
        "id": code,
        "shortDescription": {"text": told},
        "help": {"text": f"{told}; see {_DOCUMENTATION}, section {code}"},
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": finding.message},
    }
    location: dict[str, Any] = {}
    if finding.place is not None:
        location["physicalLocation"] = _physical(finding.place)
    if finding.subject:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.subject, "kind": "resource"}]
    return result | ({"locations": [location]} if location else {})


def _physical(place: Place) -> dict[str, Any]:
    located: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file)}}
    if place.line:
        located["region"] = {"startLine": place.line, "startColumn": max(place.column, 1)}
    return located


def _uri(file: str) -> str:
    # A name of a file is no reference yet: spaces, `%` and `#` mean something else there, and `a:b` is a scheme.
    reference = quote(file, safe="/@+=,~!$&'()*;", errors="surrogatepass")
    return f"file://{reference}" if PurePath(file).is_absolute() else reference
