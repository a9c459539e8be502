"""Pairs the items of a list with those of another that they have become, by which comments go with items that move and change."""

from __future__ import annotations

import json
from bisect import bisect, bisect_left
from collections.abc import Mapping, Sequence
from typing import Any


def find_origins(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[int, bool]]:
    """Where each item of *new* comes from, -1 for nowhere, and whether it stays among those that do.

    It comes from the one that says the same, has its name or its key, or stood in its place.
    """
    found: dict[int, int] = {}
    for name_of in (_whole, _name):
        _find_named([*map(name_of, old)], [*map(name_of, new)], found)
    stay = _in_order(found)
    free = sorted(set(range(len(old))) - set(found.values()))
    following = len(old)
    ends = [0] * len(new)
    for to in reversed(range(len(new))):
        ends[to] = following = found[to] if to in stay else following
    last = -1
    for to, end in enumerate(ends):
        at = next(iter(free[(place := bisect(free, last)) : place + 1]), end)
        if to in stay:
            last = end
        # Of two objects of which none became the other, comments of the first say nothing of the second.
        elif to not in found and at < end and _object_name(old[at]) == _object_name(new[to]):
            found[to] = last = at
            stay.add(to)
    return [(found.get(to, -1), to in stay) for to in range(len(new))]


def _find_named(old: Sequence[str], new: Sequence[str], found: dict[int, int]) -> None:
    """Finds items of one name: of several the next one behind the item before."""
    gone = set(found.values())
    places: dict[str, list[int]] = {}
    for at in reversed(range(len(old))):
        if at not in gone:
            places.setdefault(old[at], []).append(-at)
    last = -1
    for to, name in enumerate(new):
        if to not in found and (left := places.get(name)):
            found[to] = -left.pop(bisect_left(left, -last) - 1)
        last = found.get(to, last)


def _in_order(found: Mapping[int, int]) -> set[int]:
    """The most of the new items whose old ones have the same order."""
    ends: list[int] = []
    chains: list[tuple[int, Any]] = []
    for to, at in sorted(found.items()):
        place = bisect_left(ends, at)
        ends[place : place + 1] = [at]
        chains[place : place + 1] = [(to, chains[place - 1] if place else None)]
    stay = set[int]()
    chain = chains[-1] if chains else None
    while chain:
        to, chain = chain
        stay.add(to)
    return stay


def _whole(item: Any) -> str:
    return json.dumps(item, sort_keys=True)


def _name(item: Any) -> str:
    """Returns the name or key of an item of a list, else all of it as a text."""
    own = (item.get("name") or item.get("key")) if isinstance(item, Mapping) else None
    if isinstance(own, str):
        return f"name {own}"
    return f"{item.get('kind')} {name}" if (name := _object_name(item)) else _whole(item)


def _object_name(item: Any) -> str:
    """The group, namespace and name of an object; empty for what is none. A version or kind may be what changes."""
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        return ""
    group = str(item.get("apiVersion")).rpartition("/")[0]
    return f"{group} {metadata.get('namespace')} {metadata['name']}"
