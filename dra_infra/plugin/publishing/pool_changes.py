"""Writes that bring a pool's slices up to date, without any scheduler taking an unfinished pool for a whole one.

A pool is whole when as many slices of its highest generation are there as each of them says (`resourceSliceCount`).
So all are written with a higher generation where more than one changes: the last write makes it whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.client.objects import name_of, text
from dra_infra.kubernetes.api import mapping, mappings
from dra_infra.plugin.publishing.pools import Spec

Item = Mapping[str, Any]
TaintTimes = dict[tuple[str, str, str, str], str]

_INDEX: Final = re.compile(r"([0-9a-f]{5,})-.*")
_HIGHEST: Final = 2**53
"""Generations above are somebody's joke: counting on from them would end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """Slices that were written last: where all are gone, they tell whether the inventory has changed since."""

    generation: int = 0
    specs: tuple[Spec, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """Writes, to be done in this order.

    Args:
        generation: Of the pool afterwards.
        first: Slices that are deleted before anything else: they would be counted into the pool.
        update: Slices with their new specs.
        create: Places in the pool with their specs.
        last: Slices that are deleted when the pool is whole: their generation is an older one.
    """

    generation: int
    first: tuple[Item, ...] = ()
    update: tuple[tuple[Item, Spec], ...] = ()
    create: tuple[tuple[int, Spec], ...] = ()
    last: tuple[Item, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.first or self.update or self.create or self.last)


def find_changes(
    wanted: Sequence[Spec], found: Sequence[Item], written: Written, *, owner: Mapping[str, Any]
) -> Changes:
    """Find the writes that turn the slices *found* into those *wanted*.

    Args:
        wanted: Specs without generation and count, in the form in which the server keeps them.
        found: The node's slices.
        written: By this process, before.
        owner: Of the slices, as their metadata has it.
    """
    generation = max((_generation(each) for each in found), default=0)
    if generation > _HIGHEST:
        return Changes(generation=1, first=tuple(found), create=tuple(_create(wanted, 1)))
    placed, extra = _place(wanted, found, generation)
    differing = [
        index
        for index, item in placed.items()
        if _generation(item) == generation and not _says(item, wanted[index], len(wanted))
    ]
    lacking = any(index not in placed for index in range(len(wanted))) or any(
        _generation(item) != generation for item in placed.values()
    )
    surplus = any(_generation(each) == generation for each in extra)
    if not found:
        same = written.specs == tuple(wanted) and written.generation
        generation = written.generation if same else written.generation + 1
    elif differing and (lacking or len(differing) > 1 or len(wanted) == 1):
        # One of several changes alone in one write, which is whole before and after it (as in Kubernetes' own library).
        generation += 1
    elif surplus and (differing or lacking):
        # With as many of those that are too many gone as are lacking, it would be whole, and wrong.
        generation += 1
    update = []
    for index, item in sorted(placed.items()):
        spec = _complete(wanted[index], generation, len(wanted))
        if not _equal(item.get("spec"), spec) or owner not in mappings(
            mapping(item.get("metadata")).get("ownerReferences")
        ):
            update.append((item, spec))
    missing = [index for index in range(len(wanted)) if index not in placed]
    return Changes(
        generation=generation,
        first=tuple(each for each in extra if _generation(each) == generation),
        update=tuple(update),
        create=tuple((index, _complete(wanted[index], generation, len(wanted))) for index in missing),
        last=tuple(each for each in extra if _generation(each) != generation),
    )


def taint_times(specs: Sequence[Mapping[str, Any]]) -> TaintTimes:
    """Since when devices have their taints."""
    return {
        _taint_key(device, taint): text(taint.get("timeAdded"))
        for spec in specs
        for device in mappings(spec.get("devices"))
        for taint in mappings(device.get("taints"))
        if taint.get("timeAdded")
    }


def keep_taint_times(spec: Spec, times: TaintTimes) -> Spec:
    """*spec* with the times that taints have already: eviction counts from them."""
    if not any(device.get("taints") for device in mappings(spec.get("devices"))):
        return spec
    return {**spec, "devices": [_with_times(device, times) for device in mappings(spec.get("devices"))]}


def _with_times(device: Mapping[str, Any], times: TaintTimes) -> Mapping[str, Any]:
    if not device.get("taints"):
        return device
    taints = []
    for taint in mappings(device.get("taints")):
        since = text(taint.get("timeAdded")) or times.get(_taint_key(device, taint), "")
        taints.append({**taint, "timeAdded": since} if since else taint)
    return {**device, "taints": taints}


def _taint_key(device: Mapping[str, Any], taint: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return (
        text(device.get("name")),
        text(taint.get("key")),
        text(taint.get("value")),
        text(taint.get("effect")),
    )


def _place(
    wanted: Sequence[Spec], found: Sequence[Item], generation: int
) -> tuple[dict[int, Item], list[Item]]:
    """The slice for each place, and those that are too many; what needs no writing goes first."""
    placed: dict[int, Item] = {}
    extra = []
    for item in sorted(found, key=lambda each: _rank(each, wanted, generation)):
        index = _index(item)
        if index is None or index >= len(wanted) or index in placed:
            extra.append(item)
        else:
            placed[index] = item
    return placed, extra


def _rank(item: Item, wanted: Sequence[Spec], generation: int) -> tuple[bool, bool, str]:
    index = _index(item)
    fits = index is not None and index < len(wanted) and _says(item, wanted[index], len(wanted))
    return _generation(item) != generation, not fits, name_of(item)


def _index(item: Item) -> int | None:
    found = _INDEX.fullmatch(name_of(item))
    return int(found[1], 16) if found else None


def _create(wanted: Sequence[Spec], generation: int) -> Iterator[tuple[int, Spec]]:
    return ((index, _complete(spec, generation, len(wanted))) for index, spec in enumerate(wanted))


def _complete(spec: Spec, generation: int, count: int) -> Spec:
    return {**spec, "pool": {**spec["pool"], "generation": generation, "resourceSliceCount": count}}


def _says(item: Item, spec: Spec, count: int) -> bool:
    return _equal(item.get("spec"), _complete(spec, _generation(item), count))


def _equal(one: object, other: object) -> bool:
    return _bare(one) == _bare(other)


def _bare(value: object) -> object:
    """Drop the fields that a server leaves out where they are empty."""
    if isinstance(value, Mapping):
        parts = {key: _bare(each) for key, each in value.items()}
        return {key: each for key, each in parts.items() if each is not None and each not in ("", [], {})}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _generation(item: Item) -> int:
    number = mapping(mapping(item.get("spec")).get("pool")).get("generation")
    return number if isinstance(number, int) else 0
