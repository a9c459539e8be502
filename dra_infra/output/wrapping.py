"""Lines of a report at the width of a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Final

NARROWEST: Final = 40
"""Columns below which nothing is wrapped: words would stand alone."""

_GAP: Final = re.compile(r"(?<=\S) {2,}(?=\S)")
"""The space between two columns of a table."""

_START: Final = re.compile(
    r"(?: *[✓✗!?·+~=-] | *(?:hint|not known|also|new|lost|changed|kept|to decide): | *)"
)
"""The indentation of a line, with its mark or its first word."""

_COMMAND: Final = re.compile(r" *\$ ")
"""A command to copy, which stays in one line."""


def wrap_line(line: str, columns: int) -> Iterator[str]:
    """Yield a line in pieces of at most so many columns; the pieces after the first are indented.

    They begin below the last column of a table that begins in the left half, or else below the text behind the mark.

    Args:
        line: The line, without colours.
        columns: Columns of the terminal.
    """
    if len(line) <= columns or columns < NARROWEST or _COMMAND.match(line):
        yield line
        return
    starts = [found.end() for found in _GAP.finditer(line) if found.end() <= columns // 2]
    start = _START.match(line)
    indent = starts[-1] if starts else start.end() if start else 0
    yield from textwrap.wrap(
        line,
        columns,
        subsequent_indent=" " * min(indent, columns // 2),
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    )
