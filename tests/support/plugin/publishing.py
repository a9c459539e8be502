"""A back end whose devices tests change, an observer that remembers, and what a scheduler would make of slices."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
)
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.claims import Claim, Edits
from dra_infra.plugin.observing import DeviceState, Observer

DRIVER = "gpu.example.com"
NODE = "node-1"

PATIENCE = 120.0
"""Seconds for what takes one on a quiet machine."""


def device(name: str, *, taint: str = "", drawn: str = "", index: int = 0) -> Device:
    return Device(
        name=name,
        attributes={"index": DeviceAttribute(int=index)},
        **({"taints": [DeviceTaint(key=taint, effect="NoSchedule")]} if taint else {}),
        **(
            {
                "consumes_counters": [
                    DeviceCounterConsumption(counter_set=drawn, counters={"memory": Counter(value="1Gi")})
                ]
            }
            if drawn
            else {}
        ),
    )


def counters(name: str, many: int = 1) -> CounterSet:
    extra = {f"c{number}": Counter(value="1") for number in range(many - 1)}
    return CounterSet(name=name, counters={"memory": Counter(value="4Gi"), **extra})


def inventory(devices: Iterable[Device | str], sets: Iterable[CounterSet] = ()) -> Inventory:
    made = tuple(device(each) if isinstance(each, str) else each for each in devices)
    return Inventory(devices=made, counters=tuple(sets))


class BackEnd:
    """Devices that a test changes."""

    driver = DRIVER

    def __init__(self, offered: Inventory) -> None:
        self.offered = offered
        self.watching: list[Callable[[], None]] = []

    def inventory(self) -> Inventory:
        return self.offered

    def watch(self, changed: Callable[[], None]) -> None:
        self.watching.append(changed)

    def change(self, offered: Inventory) -> None:
        self.offered = offered
        for each in self.watching:
            each()

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        raise NotImplementedError

    def release(self, claim: Claim) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Remembering(Observer):
    """Remembers what it was told about publishing."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.publishings: list[tuple[int, int, PluginError | None]] = []
        self.problems: list[Problem] = []
        self.states: Mapping[DeviceState, int] = {}

    def published(self, *, slices: int, generation: int, error: PluginError | None) -> None:
        with self.changed:
            self.publishings.append((slices, generation, error))
            self.changed.notify_all()

    def noticed(self, problems: Sequence[Problem]) -> None:
        with self.changed:
            self.problems.extend(problems)
            self.changed.notify_all()

    def devices(self, by_state: Mapping[DeviceState, int]) -> None:
        self.states = by_state

    def wait_for_code(self, code: str, seconds: float = PATIENCE) -> Problem:
        """The first problem of a code, noticed or of a publishing that failed."""

        def find() -> Problem | None:
            failed = [each for _, _, error in self.publishings if error for each in error.problems]
            return next((each for each in [*self.problems, *failed] if each.code == code), None)

        with self.changed:
            assert self.changed.wait_for(find, seconds), f"{code} was not told: {self.publishings[-3:]}"
            found = find()
            assert found
            return found


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def pool_of(slices: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]] | None:
    """Devices of a pool as the allocator gathers them (gatherPools): None where it is not whole."""
    if not slices:
        return None
    highest = max(each["spec"]["pool"]["generation"] for each in slices)
    newest = [each for each in slices if each["spec"]["pool"]["generation"] == highest]
    if any(each["spec"]["pool"]["resourceSliceCount"] != len(newest) for each in newest):
        return None
    ordered = sorted(newest, key=lambda each: str(each["metadata"]["name"]))
    return [found for each in ordered for found in each["spec"].get("devices") or ()]


def names_of(devices: Iterable[Mapping[str, Any]] | None) -> list[str] | None:
    return None if devices is None else [str(each["name"]) for each in devices]
