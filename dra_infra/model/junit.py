"""JUnit XML, which every CI system shows as a list of tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_NOT_XML: Final = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""What XML 1.0 cannot hold, not even escaped."""

_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\r": "&#13;"}
)
# The standard library's own escapes bring its HTTP client and TLS along, a tenth of the time of a short run.


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


def write_junit(suite: str, cases: Sequence[TestCase]) -> str:
    """One test suite, in the order of *cases*; ends without a line break."""
    failed = sum(bool(case.failures) for case in cases)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<testsuite name={_attribute(suite)} tests="{len(cases)}" failures="{failed}">')
    for case in cases:
        lines.append(f"  <testcase classname={_attribute(case.group)} name={_attribute(case.name)}>")
        lines += [
            f"    <failure type={_attribute(code)} message={_attribute(text)}/>"
            for code, text in case.failures
        ]
        lines += [f"    <system-out>{_text(remark)}</system-out>" for remark in case.remarks]
        lines.append("  </testcase>")
    lines.append("</testsuite>")
    return "\n".join(lines)


def _attribute(text: str) -> str:
    return f'"{_text(text)}"'.replace("\n", "&#10;")


def _text(text: str) -> str:
    return re.sub(_NOT_XML, "\ufffd", text).translate(_ESCAPES)
