"""One node on the map of a fleet: a cell per GPU, a strip per partition, coloured by workload.

Around the cells of a node are drawn joints of claims, bars for what was before, and letters. Neighbours that get the
same mark share one element: a page with the devices of 500 nodes opens in less than a second only when it has few of
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dra_infra.kubernetes.api import Device, Node
from dra_infra.output.wording import compress_names, count_of, join_words
from dra_infra.placement.texts import DeviceKey, name_model

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


_COLUMNS: Final = 8
_SIDE: Final = 28
_GAP: Final = 4
_WAS_HEIGHT: Final = 5
_PITCH: Final = _WAS_HEIGHT + 3 + _SIDE + 8


ClaimKey = tuple[int, int, str]
"""Index of a workload, the number of its pod, and the entry of the claim in that pod."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One device on the map, in units of the drawing.

    Args:
        x: Left edge.
        y: Top edge of the cell; the bar for what was before is drawn above.
        width: As wide as the share of its GPU.
        now: Index of the workload that gets the device, -1 for a free one.
        was: Index of the workload that had it, -1 for a free one.
        state: `used`, `free`, `other` for a model that no workload uses, `closed` by a taint or a cordon.
        letter: What is written in the cell.
        device: Name and model.
        holder: The workload and its claim, or `free`.
        pod: Number of the pod that has it; empty for a free one.
        previous: Who had it, where that is another.
        joined: Whether the cell to the right belongs to the same claim.
    """

    x: float
    y: float
    width: float
    now: int
    was: int
    state: str
    letter: str
    device: str
    holder: str
    pod: str = ""
    previous: str = ""
    joined: bool = False

    @property
    def label(self) -> str:
        """The device and what becomes of it, for the pointer."""
        return f"{self.device} · {self.holder}{self.pod}{self.previous}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """Equal nodes, or pools of devices that hang on no single node: the same devices, held by the same workloads.

    Args:
        nodes: Their names.
        cells: Its devices.
        free: How many of them nobody gets.
        tags: `cordoned`, `tainted`.
        description: What is drawn, in words.
        changes: Whether any of its devices changes hands.
        width: Of the drawing.
        height: Of the drawing.
    """

    nodes: tuple[str, ...]
    cells: tuple[Cell, ...]
    free: int
    tags: tuple[str, ...]
    description: str
    changes: bool
    width: int
    height: int

    @property
    def name(self) -> str:
        """The nodes in few words."""
        return compress_names(self.nodes, most=3, of_nodes=True)

    @property
    def joints(self) -> tuple[Bar, ...]:
        """Bars that join the cells of one claim."""
        return tuple(draw_joints(self.cells))

    @property
    def before(self) -> tuple[Bar, ...]:
        """Bars for the use before; empty where nothing changes."""
        return tuple(draw_before(self.cells)) if self.changes else ()

    @property
    def letters(self) -> tuple[Letters, ...]:
        """The letters on the cells."""
        return tuple(draw_letters(self.cells))


@dataclass(frozen=True, kw_only=True, slots=True)
class TilePainter:
    """Paints the devices of a node as cells, by the workloads that have them.

    Args:
        now: Index of the workload that gets the device.
        was: Index of the workload that had it.
        claims: The claim that gets it.
        letters: Letter of each workload.
        owners: Name of each workload.
        models: Models that some pod can get.
        candidates: Nodes that can take some pod.
        nodes: Nodes by name.
    """

    now: Mapping[DeviceKey, int] = field(repr=False)
    was: Mapping[DeviceKey, int] = field(repr=False)
    claims: Mapping[DeviceKey, ClaimKey] = field(repr=False)
    letters: tuple[str, ...]
    owners: tuple[str, ...]
    models: frozenset[str]
    candidates: frozenset[str]
    nodes: Mapping[str, Node] = field(repr=False)

    def is_used(self, devices: Iterable[tuple[DeviceKey, Device]]) -> bool:
        """True when any of the devices is in use before or after."""
        return any(key in self.now or key in self.was for key, _ in devices)

    def draw_tile(self, name: str, devices: list[tuple[DeviceKey, Device]]) -> Tile:
        """Lay out the devices of one node, in the order in which the driver lists them."""
        slots = _slots(devices)
        closed = self._is_closed(name)
        drawn = [
            (key, cell)
            for position, slot in enumerate(slots)
            for key, cell in self._draw_slot(position, slot, closed=closed)
        ]
        cells = tuple(self._join(drawn))
        rows = -(-len(slots) // _COLUMNS)
        columns = min(len(slots), _COLUMNS) if rows > 1 else _COLUMNS
        return Tile(
            nodes=(name,),
            cells=cells,
            free=sum(cell.state in ("free", "other") for cell in cells),
            tags=tuple(_tags(self.nodes.get(name))),
            description=self._describe(cells),
            changes=any(cell.now != cell.was for cell in cells) and bool(self.was),
            width=columns * (_SIDE + _GAP) - _GAP,
            height=rows * _PITCH - 8,
        )

    def _draw_slot(
        self, position: int, slot: list[tuple[DeviceKey, Device]], *, closed: bool
    ) -> Iterator[tuple[DeviceKey, Cell]]:
        x = (position % _COLUMNS) * (_SIDE + _GAP)
        y = (position // _COLUMNS) * _PITCH + _WAS_HEIGHT + 3
        share = _SIDE / len(slot)
        for part, (key, device) in enumerate(slot):
            now, was = self.now.get(key, -1), self.was.get(key, -1)
            model = name_model(key[0], device)
            width = round(share - (1 if len(slot) > 1 else 0), 2)
            holder, pod = self._name_holder(key, now)
            previous = (
                f" (before: {self.owners[was] if was >= 0 else 'free'})" if was != now and self.was else ""
            )
            cell = Cell(
                x=round(x + part * share, 2),
                y=y,
                width=width,
                now=now,
                was=was,
                state=self._state(now, model, device, closed=closed),
                letter=self.letters[now] if now >= 0 and width > 10 else "",
                device=f"{device.name} · {model}",
                holder=holder,
                pod=pod,
                previous=previous,
            )
            yield key, cell

    def _join(self, drawn: list[tuple[DeviceKey, Cell]]) -> Iterator[Cell]:
        following = [*drawn[1:], (("", "", ""), None)]
        for (key, cell), (next_key, right) in zip(drawn, following, strict=True):
            same = right is not None and right.y == cell.y and key in self.claims
            yield replace(cell, joined=same and self.claims[key] == self.claims.get(next_key))

    def _name_holder(self, key: DeviceKey, now: int) -> tuple[str, str]:
        if now < 0:
            return "free", ""
        _, pod, entry = self.claims[key]
        return f"{self.owners[now]}, claim {entry}", f" of pod {pod}"

    def _state(self, now: int, model: str, device: Device, *, closed: bool) -> str:
        if now >= 0:
            return "used"
        if closed or any(taint.effect in ("NoSchedule", "NoExecute") for taint in device.taints or ()):
            return "closed"
        return "free" if model in self.models else "other"

    def _is_closed(self, name: str) -> bool:
        node = self.nodes.get(name)
        return node is not None and name not in self.candidates and bool(node.unschedulable or node.taints)

    def _describe(self, cells: tuple[Cell, ...]) -> str:
        counts = Counter(self.owners[cell.now] if cell.now >= 0 else "free" for cell in cells)
        said = [
            f"{number} {'for ' if owner != 'free' else ''}{owner}" for owner, number in sorted(counts.items())
        ]
        moved = sum(cell.now != cell.was for cell in cells)
        changed = f"; {moved} other than before" if moved and self.was else ""
        return f"of {count_of(len(cells), 'device')} {join_words(said, most=12)}{changed}"


def fold_tiles(tiles: Iterable[Tile]) -> Iterator[Tile]:
    """One tile for all that are drawn alike, in the order of the first of each; its cells name no pods then."""
    alike: dict[Tile, list[Tile]] = {}
    for tile in tiles:
        cells = tuple(replace(cell, pod="") for cell in tile.cells)
        alike.setdefault(replace(tile, nodes=(), cells=cells), []).append(tile)
    for look, found in alike.items():
        names = tuple(name for tile in found for name in tile.nodes)
        yield found[0] if len(found) == 1 else replace(look, nodes=names)


def _slots(devices: list[tuple[DeviceKey, Device]]) -> list[list[tuple[DeviceKey, Device]]]:
    """One slot per GPU: partitions of one GPU share a slot."""
    slots: dict[str, list[tuple[DeviceKey, Device]]] = {}
    for key, device in devices:
        attributes = device.attributes or {}
        parent = attributes.get("parentUUID") or attributes.get(f"{key[0]}/parentUUID")
        name = parent.string if parent is not None and parent.string else f"{key[1]}/{device.name}"
        slots.setdefault(name, []).append((key, device))
    return list(slots.values())


def _tags(node: Node | None) -> Iterator[str]:
    if node is not None and node.unschedulable:
        yield "cordoned"
    if node is not None and node.taints:
        yield "tainted"
