"""The picture of a fleet: a tile per node, a cell per GPU, a strip per partition, coloured by workload.

Where there are too many kinds of nodes to draw each as a tile, each is a strip: the dense form.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Device, ObjectRef
from dra_infra.output.wording import compress_names, count_of, join_words
from dra_infra.placement.candidates import name_nodes
from dra_infra.placement.placement import Placement
from dra_infra.placement.texts import DeviceKey, DeviceNames, device_key, name_model
from dra_infra.review.fleet_colors import Colors, LegendEntry, choose_colors, letter_of
from dra_infra.review.fleet_tiles import ClaimKey, Tile, TilePainter, fold_tiles

MAX_NODES: Final = 5_120
"""Nodes on one map; above that nobody looks at single nodes."""

MAX_TILES: Final = 200
"""Tiles on one map; where there are more kinds of nodes, each is a strip of colours."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TileGroup:
    """Nodes with the same devices.

    Args:
        model: What is in them.
        tiles: All of them as tiles, each for equal nodes; empty where the map is dense.
        strips: All of them as strips, where it is.
        nodes: How many nodes these are.
        devices: How many devices they have.
        free: How many of these nobody gets.
        states: Which states of devices occur.
    """

    model: str
    tiles: tuple[Tile, ...]
    strips: tuple[Strip, ...]
    nodes: int
    devices: int
    free: int
    states: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class UseBar:
    """How the devices of the whole fleet are shared out, on one side of the review.

    Args:
        title: `before` or `after`.
        parts: Each colour, where its share begins and how wide it is, in percent of the fleet.
        used: Devices in use.
        total: Devices of the fleet.
    """

    title: str
    parts: tuple[tuple[int, float, float], ...]
    used: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetMap:
    """Everything that is drawn.

    Args:
        groups: The nodes, by what is in them.
        legend: Who has which colour.
        colors: The same, by workload.
        states: Which states of devices occur.
        changes: Whether any device changes hands.
        remark: What the map does not show, as a sentence; empty when it shows all.
        bars: The use of the whole fleet before, where that is known, and after.
    """

    groups: tuple[TileGroup, ...]
    legend: tuple[LegendEntry, ...]
    colors: Colors
    states: frozenset[str]
    changes: bool
    remark: str
    bars: tuple[UseBar, ...]

    @property
    def is_dense(self) -> bool:
        """True where nodes are strips."""
        return any(group.strips for group in self.groups)


def draw_fleet(
    before: Placement | None,
    after: Placement,
    owners: Sequence[ObjectRef],
    teams: Mapping[ObjectRef, str] = MappingProxyType({}),
) -> FleetMap:
    """Lay out the fleet of *after* with the joint placement of both sides.

    Args:
        before: The placement of the base on the same fleet, if any.
        after: The placement of the head.
        owners: The workloads in the order of their letters.
        teams: Team by workload, as far as known.
    """
    index = {owner: number for number, owner in enumerate(owners)}
    models, candidates = _find_candidates(before, after)
    painter = TilePainter(
        now=_occupy(after, index),
        was=_occupy(before, index) if before else {},
        claims=_claims(after, index),
        letters=tuple(map(letter_of, range(len(owners)))),
        owners=tuple(map(str, owners)),
        models=models,
        candidates=candidates,
        nodes={node.name: node for node in after.fleet.nodes},
    )
    colors = choose_colors(owners, Counter([*painter.now.values(), *painter.was.values()]), teams)
    places = _devices_by_place(after.fleet)
    shown = _choose(places, painter)
    groups = tuple(_group(painter, {place: places[place] for place in shown}, colors))
    return FleetMap(
        groups=groups,
        legend=tuple(colors.list_entries(after)),
        colors=colors,
        states=frozenset().union(*(group.states for group in groups)),
        changes=before is not None and painter.now != painter.was,
        remark=_remark(after.fleet, places, shown, painter),
        bars=tuple(_bars(painter, before, after, colors)),
    )


def _bars(
    painter: TilePainter, before: Placement | None, after: Placement, colors: Colors
) -> Iterator[UseBar]:
    if before is not None:
        yield _bar("before", painter.was, before.fleet.device_count, colors)
    yield _bar("after", painter.now, after.fleet.device_count, colors)


def _bar(title: str, occupied: Mapping[DeviceKey, int], total: int, colors: Colors) -> UseBar:
    parts: list[tuple[int, float, float]] = []
    start = 0
    for index, number in sorted(Counter(colors.of[each] for each in occupied.values()).items()):
        parts.append((index, round(100 * start / total, 3), round(100 * number / total, 3)))
        start += number
    return UseBar(title=title, parts=tuple(parts), used=start, total=total)


_Places = Mapping[str, list[tuple[DeviceKey, Device]]]


def _occupy(placement: Placement, index: Mapping[ObjectRef, int]) -> dict[DeviceKey, int]:
    return {
        device_key(choice): index[workload.owner]
        for workload in placement.workloads
        if workload.owner in index
        for pod in workload.pods
        for choice in pod.devices
    }


def _claims(placement: Placement, index: Mapping[ObjectRef, int]) -> dict[DeviceKey, ClaimKey]:
    """The claim that holds each device; of pods that share one, the first counts."""
    claims: dict[DeviceKey, ClaimKey] = {}
    for workload in placement.workloads:
        for number, pod in enumerate(workload.pods, start=1):
            for choice in pod.devices:
                claims.setdefault(device_key(choice), (index.get(workload.owner, -1), number, choice.entry))
    return claims


def _find_candidates(before: Placement | None, after: Placement) -> tuple[frozenset[str], frozenset[str]]:
    """The models that a pod can get or has, and the nodes that can take a pod of the head."""
    names = DeviceNames.of(after.fleet)
    closed = any(node.unschedulable or node.taints for node in after.fleet.nodes)
    if len(names.kinds) <= 1 and not closed:
        return names.kinds, frozenset()
    sides = [placement for placement in (before, after) if placement is not None]
    holders = [pod for placement in sides for workload in placement.workloads for pod in workload.pods]
    candidates: set[str] = set()
    models = {names.models.get(device_key(choice), "") for pod in holders for choice in pod.devices}
    contents: defaultdict[str, set[str]] = defaultdict(set)
    for (_, pool, _), model in names.models.items():
        contents[pool].add(model)
    kinds = {pool: frozenset(found) for pool, found in contents.items()}
    for workload in after.workloads:
        seen: set[frozenset[str]] = set()
        for number, name in enumerate(name_nodes(workload.nodes)):
            candidates.add(name)
            # Thousands of nodes with the same models give a pod the same ones: one of them is looked at.
            kind = kinds.get(name, frozenset())
            if not kind or kind not in seen:
                seen.add(kind)
                devices = workload.nodes[number].devices
                models.update(names.models.get(device_key(choice), "") for choice in devices)
    return frozenset(models), frozenset(candidates)


def _devices_by_place(fleet: Fleet) -> _Places:
    places: defaultdict[str, list[tuple[DeviceKey, Device]]] = defaultdict(list)
    for slice_ in fleet.slices:
        place = slice_.spec.node_name or f"pool {slice_.spec.pool.name}"
        places[place] += [
            ((slice_.spec.driver, slice_.spec.pool.name, device.name), device)
            for device in slice_.spec.devices or ()
        ]
    return places


def _choose(places: _Places, painter: TilePainter) -> tuple[str, ...]:
    """At most `MAX_NODES` places by name; those that this program uses come before others."""
    ranked = sorted(places, key=lambda place: (not painter.is_used(places[place]), place))
    return tuple(sorted(place for place in ranked[:MAX_NODES] if places[place]))


def _group(painter: TilePainter, places: _Places, colors: Colors) -> tuple[TileGroup, ...]:
    by_model: defaultdict[str, list[Tile]] = defaultdict(list)
    for place, devices in places.items():
        models = sorted({name_model(key[0], device) for key, device in devices})
        by_model[join_words(models)].append(painter.draw_tile(place, devices))
    folded = {model: tuple(fold_tiles(tiles)) for model, tiles in by_model.items()}
    is_dense = sum(map(len, folded.values())) > MAX_TILES
    used = {
        model: sum(cell.now >= 0 for each in tiles for cell in each.cells)
        for model, tiles in by_model.items()
    }
    # The kind of node that this program uses most comes first.
    return tuple(
        TileGroup(
            model=model,
            tiles=() if is_dense else folded[model],
            strips=tuple(draw_strips(folded[model], colors)) if is_dense else (),
            nodes=len(tiles),
            devices=sum(len(tile.cells) for tile in tiles),
            free=sum(tile.free for tile in tiles),
            states=frozenset(cell.state for tile in folded[model] for cell in tile.cells),
        )
        for model, tiles in sorted(by_model.items(), key=lambda item: (-used[item[0]], item[0]))
    )


def _remark(fleet: Fleet, places: _Places, shown: tuple[str, ...], painter: TilePainter) -> str:
    said: list[str] = []
    drawn = set(shown)
    rest = [place for place in places if place not in drawn and places[place]]
    if rest:
        devices = sum(len(places[place]) for place in rest)
        used = sum(painter.is_used(places[place]) for place in rest)
        use = (
            f"{used:,} of these nodes are used here too"
            if used
            else "no pod of this program was placed there"
        )
        said.append(
            f"The map shows {len(shown):,} of {len(shown) + len(rest):,} nodes, those in use first. "
            f"The others hold {count_of(devices, 'device')}; {use}."
        )
    empty = len(fleet.nodes) - sum(node.name in places and bool(places[node.name]) for node in fleet.nodes)
    if empty:
        said.append(f"{count_of(empty, 'node')} without devices {'is' if empty == 1 else 'are'} left out.")
    return " ".join(said)


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
        look = tuple(
            (cell.width, _color_of(cell.now, colors), _color_of(cell.was, colors)) for cell in tile.cells
        )
        alike.setdefault((look, tile.changes, tile.tags), []).append(tile)
    for found in sorted(alike.values(), key=lambda found: not found[0].changes):
        yield Strip(
            nodes=tuple(name for tile in found for name in tile.nodes),
            parts=tuple(_strip_parts(found[0], colors)),
            changes=found[0].changes,
            tags=found[0].tags,
            description=_describe_strip(found[0], colors),
        )


def _color_of(workload: int, colors: Colors) -> int:
    return colors.of[workload] if workload >= 0 else -1


def _strip_parts(tile: Tile, colors: Colors) -> Iterator[tuple[int, float]]:
    total = sum(cell.width for cell in tile.cells)
    end = 0.0
    for position, cell in enumerate(tile.cells):
        end += cell.width
        color = _color_of(cell.now, colors)
        right = tile.cells[position + 1] if position + 1 < len(tile.cells) else None
        if right is None or _color_of(right.now, colors) != color:
            yield color, round(100 * end / total, 1)


def _describe_strip(tile: Tile, colors: Colors) -> str:
    held = Counter(_color_of(cell.now, colors) for cell in tile.cells)
    said = [
        f"{number} {f'for {colors.by} {colors.name(color)}' if color >= 0 else 'free'}"
        for color, number in sorted(held.items())
    ]
    return f"of {count_of(len(tile.cells), 'device')} {join_words(said, most=12)}"
