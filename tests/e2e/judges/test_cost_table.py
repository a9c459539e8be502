"""The recorded costs that the CEL tests use are what the packages of every release estimate.

`DRA_INFRA_UPDATE_GOLDEN=1` records them anew, also of lines that hold an expression alone: write those to record more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.parity.cel_comparison import Judges
from tests.support.parity.recorded_costs import ENVIRONMENTS, PATH, Row, read_rows, write_rows

pytestmark = pytest.mark.e2e


def test_the_recorded_costs_are_what_kubernetes_estimates(binaries: Callable[[str], Path]):
    rows = read_rows()
    assert len(rows) > 500
    with Judges(binaries) as judges:
        asked = [
            Row(
                tuple(judges.ask(row.expression, environment).get("cost") for environment in ENVIRONMENTS),
                row.expression,
            )
            for row in rows
        ]
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PATH.write_text(write_rows(asked))
    assert read_rows() == asked
