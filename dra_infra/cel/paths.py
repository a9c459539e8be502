"""Where a value of an expression comes from in a device, and how large the API server lets it be there.

Upstream: `sizeEstimator` of `dynamic-resource-allocation/cel/compile.go`, and `exprPaths` of cel-go's `checker/cost.go`.
A path is a slice there, and slices that grow out of one share its memory while there is room: a path of four parts
changes when another is made from the same three. Sizes depend on it, so it is so here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Size: TypeAlias = tuple[int, int]
"""Smallest and largest: characters of a text, bytes, elements of a list, or entries of a map."""

_MAX_ENTRIES: Final = 32
_MAX_VALUE: Final = 64
_MAX_IDENTIFIER: Final = 32
_MAX_DOMAIN: Final = 63
_MAX_DRIVER: Final = 63


@dataclass(frozen=True, slots=True)
class Place:
    """What a device holds at one place: `by_step` leads on, `otherwise` from any other name."""

    size: Size
    by_step: Mapping[str, Place] = field(default_factory=dict)
    otherwise: Place | None = None

    def step(self, name: str) -> Place | None:
        """The place that one more part of a path leads to."""
        return self.by_step.get(name, self.otherwise)


class Third:
    """A path of three parts, with the room for a fourth that all paths made from it share."""

    __slots__ = ("fourth", "name", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.name = ""
        self.fourth = Fourth(self)


class Fourth:
    """A path of four parts."""

    __slots__ = ("third",)

    def __init__(self, third: Third) -> None:
        self.third = third


Path: TypeAlias = Place | Third | Fourth | None
"""None stands for all that is not part of a device."""


def _map(size_of_key: int, value: Place, otherwise: Place | None = None) -> Place:
    key = Place((0, size_of_key))
    return Place((0, _MAX_ENTRIES), {"@keys": key, "@items": value, "@values": value}, otherwise)


_ATTRIBUTE: Final = Place((0, _MAX_VALUE))
_FIELDS: Final = {
    "driver": Place((0, _MAX_DRIVER)),
    "allowMultipleAllocations": Place((0, 1)),
    "attributes": _map(_MAX_DOMAIN, _map(_MAX_IDENTIFIER, _ATTRIBUTE, _ATTRIBUTE)),
    "capacity": _map(_MAX_DOMAIN, _map(_MAX_IDENTIFIER, Place((0, 0)))),
}
_DEVICE: Final = Place((0, 0), _FIELDS)
ROOTS: Final[dict[str, Path]] = {
    "device": _DEVICE,
    **{f"device.{name}": place for name, place in _FIELDS.items()},
}
"""The paths of the variables."""


def append(path: Path, part: str) -> Path:
    """A path with one more part; none of more than four leads anywhere."""
    if path is None or path.__class__ is Fourth:
        return None
    if isinstance(path, Third):
        path.name = part
        return path.fourth
    if isinstance(path, Place):
        place = path.step(part)
        if path is _DEVICE or place is None:
            return place
        return Third(place)
    return None


def size_at(path: Path) -> Size | None:
    """The range of sizes at the end of a path, None where the server knows of none."""
    if isinstance(path, Place):
        return path.size
    if isinstance(path, Third):
        return path.place.size
    if isinstance(path, Fourth):
        place = path.third.place.step(path.third.name)
        return place.size if place else None
    return None


def size_of_elements(path: Path) -> Size | None:
    """The range of sizes of what the value at a path holds."""
    if isinstance(path, Third):
        place = path.place.step("@items")
    elif isinstance(path, Place) and path is not _DEVICE:
        place = path.step("@items")
    else:
        return None
    return place.size if place else None
