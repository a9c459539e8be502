"""Rows of tables in docs/pulumi.md that tests make: a test compares its row, and `DRA_INFRA_UPDATE_GOLDEN=1` rewrites it.

A table stands between `<!-- made by tests: NAME -->` and `<!-- end -->`. The first cell of a row is its name.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[3] / "docs" / "pulumi.md"


def assert_row(table: str, cells: Sequence[str], order: Iterable[str]) -> None:
    """Check that the page has a row with these cells, or write it.

    Args:
        table: Name of the table.
        cells: All cells; the first names the row.
        order: Names of all rows. Writing a row takes others out of the table.
    """
    row = f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        _write_row(table, cells[0], row, order)
    rows = read_rows(table)
    assert cells[0] in rows, f"{PAGE.name} has no row {cells[0]!r}: run with DRA_INFRA_UPDATE_GOLDEN=1"
    assert rows[cells[0]] == row


def read_rows(table: str) -> dict[str, str]:
    """Return the rows of a table by their first cells."""
    return _by_name(_table_of(PAGE.read_text(), table)["rows"])


def _by_name(rows: str) -> dict[str, str]:
    return {row.split(" | ")[0].removeprefix("| "): row for row in rows.splitlines()}


def _write_row(table: str, name: str, row: str, order: Iterable[str]) -> None:
    # Tests in several processes write to one page.
    with PAGE.open("r+") as page:
        fcntl.flock(page, fcntl.LOCK_EX)
        text = page.read()
        place = _table_of(text, table)
        rows = {**_by_name(place["rows"]), name: row}
        written = "".join(f"{rows[each]}\n" for each in order if each in rows)
        page.seek(0)
        page.write(text[: place.start("rows")] + written + text[place.end("rows") :])
        page.truncate()


def _table_of(text: str, table: str) -> re.Match[str]:
    """Find the rows of a table, below its header.

    Raises:
        LookupError: The page has no such table.
    """
    pattern = rf"<!-- made by tests: {re.escape(table)} -->\n\n\|[^\n]*\n\| ---[^\n]*\n(?P<rows>(?:\|[^\n]*\n)*)\n<!-- end -->"
    match = re.search(pattern, text)
    if match is None:
        raise LookupError(f"{PAGE.name}: no table {table!r}")
    return match
