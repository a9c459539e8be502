"""What the node offers: slices of its inventory as the server keeps them, or, where it refuses these, what is left of the last ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.cluster.objects import mapping, mappings, name_of, text
from dra_infra.errors import PluginError, Problem
from dra_infra.model.device import Device
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.api_server.refusals import ApiError
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.observing import DeviceState, Observer
from dra_infra.plugin.publishing.pool_changes import TaintTimes, keep_taint_times
from dra_infra.plugin.publishing.pools import Spec, lay_out
from dra_infra.plugin.publishing.storable import Storable, dropped, unsafe_devices, without

Item = Mapping[str, Any]

_REFUSALS: Final = frozenset({400, 403, 413, 422})
"""Answers that are about what was sent, and stay the same however often it is sent."""

_OWN_REFUSALS: Final = frozenset({"pool-not-usable", "plugin-failed"})
"""Codes of an inventory that does not come as far as the server; `plugin-failed` where an own back end's cannot be laid out."""

_KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
_NAMED: Final = 3
"""Devices that a message names."""


class Offer:
    """Asks the server what it would keep of slices, and tells what that means once.

    Args:
        driver: Name of the driver.
        node: Name of the node and of the pool.
        observer: Is told what is not offered.
    """

    def __init__(self, api: Api, *, driver: str, node: str, observer: Observer) -> None:
        self._api = api
        self._driver = driver
        self._node = node
        self._observer = observer
        self._storable = Storable(api)
        self._told: tuple[Problem, ...] = ()

    def forget(self) -> None:
        """The server may be another release, or have other gates."""
        self._storable.forget()

    def specs(self, inventory: Inventory, times: TaintTimes) -> tuple[Spec, ...]:
        """Slices as the server keeps them, of the devices that it keeps whole enough.

        Args:
            inventory: What the node has.
            times: Since when devices have their taints.

        Raises:
            PluginError: `pool-not-usable`, and the codes of `Api`.
        """
        lost: list[str] = []
        held_back: list[str] = []
        while True:
            specs = lay_out(inventory, driver=self._driver, node=self._node, minor=self._api.minor())
            specs = tuple(keep_taint_times(each, times) for each in specs)
            kept = self._storable.ask(specs)
            lost.extend(path for _, paths in kept for path in paths)
            unsafe = [
                name
                for spec, (stored, _) in zip(specs, kept, strict=True)
                for name in unsafe_devices(spec, stored)
            ]
            if not unsafe:
                break
            held_back.extend(unsafe)
            devices = without(inventory.devices, unsafe)
            drawn = {one.counter_set for each in devices for one in each.consumes_counters or ()}
            counters = tuple(each for each in inventory.counters if each.name in drawn)
            inventory = replace(inventory, devices=devices, counters=counters)
        self._tell((dropped(self._driver, lost, held_back),) if lost else ())
        return tuple(stored for stored, _ in kept)

    def remains(self, last: Sequence[Spec], found: Sequence[Item], inventory: Inventory) -> tuple[Spec, ...]:
        """Of what was published last, what may be given out still though the server refuses those of *inventory*.

        Devices that are gone, and those that are to be kept away now, are taken out; the others stay as they were published.
        Kubernetes' own library removes slices that are too many, for "it's still better to remove devices that the driver no
        longer has", but leaves what is gone in all others (resourceslicecontroller.go, syncPool).

        Args:
            last: What this process has published, to its end; nothing in one that has just started.
            found: The node's slices.
            inventory: What the node has.

        Returns:
            Specs of a whole pool. Where only an unfinished one is known, of a slice without devices: nobody gets any of it
            either way, but for as long as it stays the scheduler answers no request for all devices of whatever driver.
        """
        newest = last or _whole_pool(found) or [self._nothing()] * bool(found)
        have = {each.name: each for each in inventory.devices}
        left_out: list[str] = []
        specs = []
        for spec in newest:
            devices = mappings(spec.get("devices"))
            stay = [each for each in devices if _stays(each, have.get(text(each.get("name"))))]
            left_out.extend(text(each.get("name")) for each in devices if each not in stay)
            rest = {key: value for key, value in spec.items() if key != "devices"}
            pool = {"name": text(mapping(spec.get("pool")).get("name"))}
            specs.append({**rest, "pool": pool, **({"devices": stay} if stay else {})})
        self._tell((_withdrawn(self._driver, left_out),) if left_out else self._told)
        return tuple(specs)

    def _nothing(self) -> Spec:
        return {"driver": self._driver, "nodeName": self._node, "pool": {"name": self._node}}

    def _tell(self, problems: tuple[Problem, ...]) -> None:
        if problems != self._told and problems:
            self._observer.noticed(problems)
        self._told = problems


def by_state(inventory: Inventory) -> Mapping[DeviceState, int]:
    """How many devices are in which state."""
    states = Counter(
        inventory.health[each.name].state if each.name in inventory.health else "healthy"
        for each in inventory.devices
    )
    return {"healthy": states["healthy"], "unhealthy": states["unhealthy"], "unknown": states["unknown"]}


def is_refused(error: PluginError) -> bool:
    """Whether slices would not be taken however often they are tried."""
    if isinstance(error, ApiError):
        return error.status in _REFUSALS
    return any(each.code in _OWN_REFUSALS for each in error.problems)


def _whole_pool(found: Sequence[Item]) -> list[Item]:
    """Specs of the slices that a scheduler gives out devices of, in their order."""
    pools = [mapping(mapping(each.get("spec")).get("pool")) for each in found]
    highest = max((each.get("generation") or 0 for each in pools), default=0)
    newest = [
        item for item, pool in zip(found, pools, strict=True) if (pool.get("generation") or 0) == highest
    ]
    specs = [mapping(each.get("spec")) for each in sorted(newest, key=name_of)]
    whole = all(mapping(each.get("pool")).get("resourceSliceCount") == len(specs) for each in specs)
    return specs if whole else []


def _stays(published: Item, now: Device | None) -> bool:
    if now is None:
        return False
    had = set(_kept_away(published))
    return all((each.key, each.effect) in had for each in now.taints or () if each.effect in _KEEPS_AWAY)


def _kept_away(published: Item) -> Iterator[tuple[str, str]]:
    for taint in mappings(published.get("taints")):
        if taint.get("effect") in _KEEPS_AWAY:
            yield text(taint.get("key")), text(taint.get("effect"))


def _withdrawn(driver: str, names: Sequence[str]) -> Problem:
    listed = ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
    return Problem(
        path=f"slices of {driver}",
        code="devices-withdrawn",
        message=f"the node's new devices are refused; taken out of the slices that are there: {listed}",
        hint="they are gone, or unhealthy; the others stay as they were published until the new ones are taken",
        severity="warning",
    )
