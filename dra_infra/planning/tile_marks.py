"""What is drawn around the cells of one node: joints of claims, bars for what was before, and letters.

Neighbours that get the same mark share one element: a page with the devices of 500 nodes opens in less than a second only
when it has few of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dra_infra.planning.fleet_tiles import Cell

_MIDDLE: Final = 11
_BASELINE: Final = 18.5
_ABOVE: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """A bar along cells of one row.

    Args:
        index: The workload that it stands for, -1 for none.
        x: Left edge.
        y: Top edge.
        width: To the right edge of the last cell.
    """

    index: int
    x: float
    y: float
    width: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Letters:
    """Letters of one workload in one row.

    Args:
        index: The workload.
        x: The middle of each cell, as SVG takes a list.
        y: The line that they stand on.
        text: One character per cell, or what a single cell bears.
    """

    index: int
    x: str
    y: float
    text: str


def draw_joints(cells: Sequence[Cell]) -> Iterator[Bar]:
    """A bar through the middle of all cells of one claim that lie side by side."""
    start = 0
    for position, cell in enumerate(cells):
        if cell.joined:
            continue
        if position > start:
            yield _bar(cells[start], cell, index=cell.now, y=cell.y + _MIDDLE)
        start = position + 1


def draw_before(cells: Sequence[Cell]) -> Iterator[Bar]:
    """A bar above all cells side by side that one workload had, or nobody."""
    start = 0
    for position, cell in enumerate(cells):
        right = cells[position + 1] if position + 1 < len(cells) else None
        if right is None or right.was != cell.was or right.y != cell.y:
            yield _bar(cells[start], cell, index=cell.was, y=cell.y - _ABOVE)
            start = position + 1


def draw_letters(cells: Sequence[Cell]) -> Iterator[Letters]:
    """The letters, those of one workload in one row as one text."""
    rows: dict[tuple[int, float], list[Cell]] = {}
    for cell in cells:
        if len(cell.letter) == 1:
            rows.setdefault((cell.now, cell.y), []).append(cell)
        elif cell.letter:
            yield _letters([cell])
    yield from map(_letters, rows.values())


def _letters(cells: Sequence[Cell]) -> Letters:
    middles = (round(cell.x + cell.width / 2, 2) for cell in cells)
    return Letters(
        index=cells[0].now,
        x=" ".join(f"{middle:g}" for middle in middles),
        y=cells[0].y + _BASELINE,
        text="".join(cell.letter for cell in cells),
    )


def _bar(first: Cell, last: Cell, *, index: int, y: float) -> Bar:
    return Bar(index=index, x=first.x, y=y, width=round(last.x + last.width - first.x, 2))
