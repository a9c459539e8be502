"""What tells a report of dra-infra from other files, also from pages that quote one."""

from __future__ import annotations

from typing import Final

LONGEST_REPORT: Final = 2**26
"""Bytes; a longer file counts as no report."""

_MADE_BY: Final = b"by dra-infra "
"""What every report says of itself in its provenance."""

_STARTS: Final = (
    b"<!-- dra-infra review ",
    b"# A snapshot of a cluster, by dra-infra ",
    b'{"format": "dra-infra/compiled/',
    b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="dra-infra ',
)
"""First bytes of a Markdown report, a snapshot, a compiled side of a review, and JUnit XML."""

_PAGE: Final = b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
_PAGE_POLICY: Final = b"content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"
"""How the page of a review starts, and its policy, which stands in its head."""

_HEAD: Final = 1024
"""Bytes in which the head of a page has its policy."""


def is_report(content: bytes) -> bool:
    """Tell whether the content of a file is a report, a snapshot, or a compiled side of a review.

    A page of documentation that shows a report is none: the form decides where a report says what made it.

    Args:
        content: All of the file, or more than `LONGEST_REPORT` bytes of it.
    """
    if len(content) > LONGEST_REPORT:
        return False
    if content.startswith(_STARTS):
        return True
    if content.startswith(b"{"):
        return b'"provenance": {' in content and _MADE_BY in content
    if content.startswith(_PAGE):
        return _PAGE_POLICY in content[:_HEAD] and _MADE_BY in content
    last = content.rstrip().rpartition(b"\n")[2]
    return last.startswith(b"checked for ") and _MADE_BY in last
