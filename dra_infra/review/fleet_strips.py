"""The dense form of a fleet map: a strip per kind of node, where there are too many to draw each as a tile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dra_infra.output.wording import compress_names, count_of, join_words
from dra_infra.review.fleet_colors import Colors
from dra_infra.review.fleet_tiles import Tile


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """Nodes that look the same: equal devices, held by those of the same colours, before and after.

    Args:
        nodes: Their names.
        parts: Colour, -1 for devices that nobody gets, and where it ends, in percent of the strip.
        changes: Whether devices change hands.
        tags: `cordoned`, `tainted`.
        description: What is drawn, in words.
    """

    nodes: tuple[str, ...]
    parts: tuple[tuple[int, float], ...]
    changes: bool
    tags: tuple[str, ...]
    description: str

    @property
    def name(self) -> str:
        """The nodes in few words."""
        return compress_names(self.nodes, most=3, of_nodes=True)


def draw_strips(tiles: Iterable[Tile], colors: Colors) -> Iterator[Strip]:
    """One strip for all tiles that look the same in so little room; those where devices change hands come first."""
    alike: dict[object, list[Tile]] = {}
    for tile in tiles:
        look = tuple((cell.width, _color(cell.now, colors), _color(cell.was, colors)) for cell in tile.cells)
        alike.setdefault((look, tile.changes, tile.tags), []).append(tile)
    for found in sorted(alike.values(), key=lambda found: not found[0].changes):
        yield Strip(
            nodes=tuple(name for tile in found for name in tile.nodes),
            parts=tuple(_parts(found[0], colors)),
            changes=found[0].changes,
            tags=found[0].tags,
            description=_describe(found[0], colors),
        )


def _color(workload: int, colors: Colors) -> int:
    return colors.of[workload] if workload >= 0 else -1


def _parts(tile: Tile, colors: Colors) -> Iterator[tuple[int, float]]:
    total = sum(cell.width for cell in tile.cells)
    end = 0.0
    for position, cell in enumerate(tile.cells):
        end += cell.width
        color = _color(cell.now, colors)
        right = tile.cells[position + 1] if position + 1 < len(tile.cells) else None
        if right is None or _color(right.now, colors) != color:
            yield color, round(100 * end / total, 1)


def _describe(tile: Tile, colors: Colors) -> str:
    held = Counter(_color(cell.now, colors) for cell in tile.cells)
    said = [
        f"{number} {f'for {colors.by} {colors.name(color)}' if color >= 0 else 'free'}"
        for color, number in sorted(held.items())
    ]
    return f"of {count_of(len(tile.cells), 'device')} {join_words(said, most=12)}"
