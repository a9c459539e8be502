"""The table of costs that Kubernetes' own packages estimated, in `golden/costs.txt`.

A line holds a cost per environment, or one if all are equal, a tab, and the expression as JSON; `-` where the release
refuses the expression. `tests/e2e/judges/test_cost_table.py` records it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from dra_infra.kubernetes.cel import Environment

PATH = Path(__file__).parents[2] / "unit/kubernetes/cel/golden/costs.txt"

ENVIRONMENTS = (
    *(Environment(minor, stored) for minor in (34, 35, 36, 37) for stored in (False, True)),
    Environment(36, stored=True, list_attributes=False),
    Environment(37, stored=False, list_attributes=False),
)
"""New and stored expressions of every release, then where attributes are no lists."""


class Row(NamedTuple):
    """An expression with its cost by environment; None where it is refused."""

    costs: tuple[int | None, ...]
    expression: str


def read_rows() -> list[Row]:
    """The rows in the order of the file."""
    return [_read_row(line) for line in PATH.read_text().splitlines()]


def write_rows(rows: list[Row]) -> str:
    """The text of the file."""
    return "".join(f"{_write_costs(row.costs)}\t{json.dumps(row.expression)}\n" for row in rows)


def _read_row(line: str) -> Row:
    before, _, expression = line.rpartition("\t")
    costs = [None if text == "-" else int(text) for text in before.split()]
    if len(costs) == 1:
        costs *= len(ENVIRONMENTS)
    return Row(tuple(costs), json.loads(expression))


def _write_costs(costs: tuple[int | None, ...]) -> str:
    texts = ["-" if cost is None else str(cost) for cost in costs]
    return texts[0] if len(set(texts)) == 1 else " ".join(texts)
