"""What tells a report of dra-infra from other files."""

from __future__ import annotations

from typing import Final

_MARKS: Final = (b"by dra-infra ", b"<!-- dra-infra review ", b'"dra-infra/compiled/')
"""What every report says of itself in its provenance, a Markdown one in its first line too, and a compiled side of a review in its format."""

LONGEST_REPORT: Final = 2**26
"""Bytes; a longer file counts as no report."""


def is_report(content: bytes) -> bool:
    """Tell whether the content of a file is a report, or a compiled side of a review."""
    return len(content) <= LONGEST_REPORT and any(mark in content for mark in _MARKS)
