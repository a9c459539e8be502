"""What a claim's status is to say of devices that had to be waited for. Two instances of the plugin may both say it.

What was said of a device stays: the scheduler acts on it once, and takes the allocation back, with all that was said, or
goes on. So two instances that think otherwise of a device do not overwrite each other for ever; the first one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol

from dra_infra.cluster.objects import mapping, mappings, text

Item = Mapping[str, Any]

_TYPES: Final = {"met": "bindingConditions", "failed": "bindingFailureConditions"}
_REASONS: Final = {"met": "DeviceReady", "failed": "DeviceFailed"}
_LONGEST: Final = 1024
"""Characters of a message that are written; the server takes 32,768."""

_KEYS: Final = ("driver", "pool", "device", "shareID")


class Bound(Protocol):
    """What is known of a device for a claim."""

    @property
    def state(self) -> Literal["met", "failed"]:
        """Whether it is ready, or never will be."""
        ...

    @property
    def message(self) -> str:
        """For a person."""
        ...


def results_of(claim: Item, *, driver: str, pool: str) -> list[Item]:
    """Devices of a driver's pool in a claim's allocation that have conditions."""
    allocation = mapping(mapping(claim.get("status")).get("allocation"))
    return [
        each
        for each in mappings(mapping(allocation.get("devices")).get("results"))
        if each.get("driver") == driver and each.get("pool") == pool and each.get("bindingConditions")
    ]


def to_write(
    claim: Item, results: Sequence[Item], decided: Callable[[str], Bound | None]
) -> list[dict[str, Any]]:
    """Entries of `status.devices` with all that is said of *results*; none where nothing is new.

    What was said before is among it: in server-side apply a manager takes back what it does not repeat.

    Args:
        claim: As it was read.
        results: Some of its devices.
        decided: What is known of a device.
    """
    entries = {_key(each): each for each in mappings(mapping(claim.get("status")).get("devices"))}
    written, new = [], False
    # A device that is there for two requests, once to watch it, has one entry.
    for result in {_key(each): each for each in results}.values():
        said = _said(result, mapping(entries.get(_key(result))))
        bound = decided(text(result.get("device")))
        if bound is not None and not said.keys() & _other_types(result, bound):
            for type_ in _types(result, bound.state):
                if type_ not in said:
                    said[type_] = _condition(type_, bound)
                    new = True
        if said:
            place = {key: result[key] for key in _KEYS if key in result}
            written.append({**place, "conditions": list(said.values())})
    return written if new else []


def _said(result: Item, entry: Item) -> dict[str, Item]:
    types = {*_types(result, "met"), *_types(result, "failed")}
    conditions = {text(each.get("type")): each for each in mappings(entry.get("conditions"))}
    return {key: each for key, each in conditions.items() if key in types and each.get("status") == "True"}


def _types(result: Item, state: Literal["met", "failed"]) -> list[str]:
    return [each for each in result.get(_TYPES[state]) or () if isinstance(each, str)]


def _other_types(result: Item, bound: Bound) -> set[str]:
    return set(_types(result, "failed" if bound.state == "met" else "met"))


def _condition(type_: str, bound: Bound) -> Item:
    return {
        "type": type_,
        "status": "True",
        "reason": _REASONS[bound.state],
        "message": bound.message[:_LONGEST],
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _key(item: Item) -> tuple[str, ...]:
    return tuple(text(item.get(key)) for key in _KEYS)
