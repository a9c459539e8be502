"""The picture of a fleet: a tile per node, a cell per GPU, a strip per partition, coloured by workload."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.resource_slice import Device
from dra_infra.kubernetes.scheduler.fleet import Fleet
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.placement import Placement
from dra_infra.review.fleet_tiles import ClaimKey, Tile, TilePainter
from dra_infra.review.placements import DeviceKey, DeviceNames, key_of, name_model

MAX_NODES: Final = 512
"""Tiles on one map; above that nobody looks at single nodes."""

MAX_LEGEND: Final = 24
"""Workloads that can be picked out on the map; the others are found by their letter."""

COLORS: Final = 8
"""Colours of the page's palette; letters tell workloads apart when there are more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TileGroup:
    """Nodes with the same devices."""

    model: str
    tiles: tuple[Tile, ...]
    devices: int
    free: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LegendEntry:
    """One workload: its letter and colour, and how many of its pods have a place."""

    index: int
    letter: str
    owner: ObjectRef
    placed: int
    replicas: int
    gone: bool

    @property
    def color(self) -> int:
        """Index into the palette."""
        return self.index % COLORS


@dataclass(frozen=True, kw_only=True, slots=True)
class UseBar:
    """How the devices of the whole fleet are shared out, on one side of the review.

    Args:
        title: `before` or `after`.
        parts: Per workload its index, where its share begins and how wide it is, in percent of the fleet.
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
        legend: The workloads, in the order of the review.
        states: Which states of devices occur.
        more: Workloads that the legend has no room for.
        changes: Whether any device changes hands.
        remark: What the map does not show, as a sentence; empty when it shows all.
        bars: The use of the whole fleet before, where that is known, and after.
    """

    groups: tuple[TileGroup, ...]
    legend: tuple[LegendEntry, ...]
    states: frozenset[str]
    more: int
    changes: bool
    remark: str
    bars: tuple[UseBar, ...]


def draw_fleet(before: Placement | None, after: Placement, owners: Iterable[ObjectRef]) -> FleetMap:
    """Lay out the fleet of *after* with the joint placement of both sides.

    Args:
        before: The placement of the base on the same fleet, if any.
        after: The placement of the head.
        owners: The workloads in the order of their letters.
    """
    legend = tuple(_legend(before, after, owners))
    index = {entry.owner: entry.index for entry in legend}
    models, candidates = _find_candidates(before, after)
    painter = TilePainter(
        now=_occupy(after, index),
        was=_occupy(before, index) if before else {},
        claims=_claims(after, index),
        letters=tuple(entry.letter for entry in legend),
        owners=tuple(str(entry.owner) for entry in legend),
        models=models,
        candidates=candidates,
        nodes={node.name: node for node in after.fleet.nodes},
    )
    places = _devices_by_place(after.fleet)
    shown = _choose(places, painter)
    groups = tuple(_group(painter, {place: places[place] for place in shown}))
    tiles = [tile for group in groups for tile in group.tiles]
    return FleetMap(
        groups=groups,
        legend=legend[:MAX_LEGEND],
        more=max(0, len(legend) - MAX_LEGEND),
        states=frozenset(cell.state for tile in tiles for cell in tile.cells),
        changes=before is not None and painter.now != painter.was,
        remark=_remark(after.fleet, places, shown, painter),
        bars=tuple(_bars(painter, before, after)),
    )


def _bars(painter: TilePainter, before: Placement | None, after: Placement) -> Iterator[UseBar]:
    if before is not None:
        yield _bar("before", painter.was, before.fleet.device_count)
    yield _bar("after", painter.now, after.fleet.device_count)


def _bar(title: str, occupied: Mapping[DeviceKey, int], total: int) -> UseBar:
    parts: list[tuple[int, float, float]] = []
    start = 0
    for index, number in sorted(Counter(occupied.values()).items()):
        parts.append((index, round(100 * start / total, 3), round(100 * number / total, 3)))
        start += number
    return UseBar(title=title, parts=tuple(parts), used=start, total=total)


_Places = Mapping[str, list[tuple[DeviceKey, Device]]]


def _legend(before: Placement | None, after: Placement, owners: Iterable[ObjectRef]) -> Iterator[LegendEntry]:
    new = {workload.owner: workload for workload in after.workloads}
    old = {workload.owner: workload for workload in before.workloads} if before else {}
    for index, owner in enumerate(owners):
        workload = new.get(owner) or old.get(owner)
        yield LegendEntry(
            index=index,
            letter=letter_of(index),
            owner=owner,
            placed=len(new[owner].pods) if owner in new else 0,
            replicas=workload.replicas if workload else 0,
            gone=owner not in new,
        )


def letter_of(index: int) -> str:
    """The letter on the cells of a workload: `A` to `Z`, then `A1`."""
    letter = chr(ord("A") + index % 26)
    return letter if index < 26 else f"{letter}{index // 26}"


def _occupy(placement: Placement, index: Mapping[ObjectRef, int]) -> dict[DeviceKey, int]:
    return {
        key_of(choice): index[workload.owner]
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
                claims.setdefault(key_of(choice), (index.get(workload.owner, -1), number, choice.entry))
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
    models = {names.models.get(key_of(choice), "") for pod in holders for choice in pod.devices}
    for workload in after.workloads:
        for node in workload.nodes:
            candidates.add(node.node)
            models.update(names.models.get(key_of(choice), "") for choice in node.devices)
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


def _group(painter: TilePainter, places: _Places) -> Iterator[TileGroup]:
    by_model: defaultdict[str, list[Tile]] = defaultdict(list)
    for place, devices in places.items():
        models = sorted({name_model(key[0], device) for key, device in devices})
        by_model[join_words(models)].append(painter.draw_tile(place, devices))
    # The kind of node that this program uses most comes first.
    for model, tiles in sorted(by_model.items(), key=lambda item: (-_used(item[1]), item[0])):
        yield TileGroup(
            model=model,
            tiles=tuple(tiles),
            devices=sum(len(tile.cells) for tile in tiles),
            free=sum(tile.free for tile in tiles),
        )


def _used(tiles: Iterable[Tile]) -> int:
    return sum(cell.now >= 0 for tile in tiles for cell in tile.cells)


def _remark(fleet: Fleet, places: _Places, shown: tuple[str, ...], painter: TilePainter) -> str:
    said: list[str] = []
    rest = [place for place in places if place not in set(shown) and places[place]]
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
