"""The table of docs/fleets.md is made of the data about autoscalers."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.pages.autoscaler_table import BEGIN, END, write_table

PAGE = Path(__file__).parents[2] / "docs/fleets.md"


def test_the_table_of_autoscalers_is_that_of_the_data() -> None:
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    shown, end, after = rest.partition(END)
    assert (begin, end) == (BEGIN, END), "docs/fleets.md has no place for the table"
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(f"{before}{BEGIN}{write_table()}{END}{after}", encoding="utf-8")
        return
    assert shown == write_table(), "run `make golden`, and read what it wrote"
