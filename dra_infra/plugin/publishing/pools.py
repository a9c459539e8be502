"""Lays a node's devices out as the slices of its pool: how many devices one takes, and where counters go.

It is as the server has it. Limits: staging/src/k8s.io/api/resource/v1/types.go of the minors, and reference of the
API server's validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import CounterSet, Device, DeviceAttribute
from dra_infra.plugin.back_end import Inventory

Spec = dict[str, Any]

SEPARATE: Final = 35
"""Minor from which on counter sets are in slices of their own; before, beside the devices that draw on them."""

_DEVICES: Final = 128
_ADVANCED: Final = 64
"""Devices of a slice in which one has a taint, counters or a list for an attribute, from 1.35 on."""

_SETS: Final = 8
_COUNTERS_BESIDE: Final = 32
"""Counters of all sets of a slice, before 1.35."""

_CONSUMED_BESIDE: Final = 1024
"""Counters that all devices of a slice draw on, before 1.35."""

_TOLD: Final = 35
"""Minor from which on taints may have the effect None, which keeps nobody away; before, servers refuse the slice."""

_LISTS: Final = ("ints", "bools", "strings", "versions")


def lay_out(inventory: Inventory, *, driver: str, node: str, minor: int) -> tuple[Spec, ...]:
    """Specs of the slices of the node's pool, without generation and count; one that has nothing where there are no devices.

    "Drivers should publish at least one slice for each pool that they normally manage, even if that slice is empty", which
    shows that the driver runs (resourceslice.Pool of k8s.io/dynamic-resource-allocation). So the last devices go in one
    write, too, where several deletions would leave an unfinished pool behind each: for as long as one is on the node the
    scheduler answers no request for all devices of whatever driver there. And the generation goes on from where it was.

    Devices keep their order, but for servers before 1.35, where those with the same counters are brought together.

    Args:
        inventory: What there is.
        driver: Its name.
        node: Name of the node and of the pool.
        minor: Of the API server, 37 for 1.37.

    Raises:
        PluginError: `pool-not-usable`, with everything that makes the pool useless, though a server would store it.
    """
    problems = tuple(_check(inventory, driver))
    if problems:
        raise PluginError(problems)
    if minor < _TOLD:
        inventory = replace(inventory, devices=tuple(map(_without_told, inventory.devices)))
    base: Spec = {"driver": driver, "nodeName": node, "pool": {"name": node}}
    parts = _beside(inventory, driver) if minor < SEPARATE else _apart(inventory)
    return tuple({**base, **part} for part in parts if part) or (base,)


def _without_told(device: Device) -> Device:
    """The device without taints of the effect None."""
    taints = [taint for taint in device.taints or () if taint.effect != "None"]
    return device.changed({"taints": taints or None}) if taints != (device.taints or []) else device


def _apart(inventory: Inventory) -> Iterator[Spec]:
    used = inventory.counters if inventory.devices else ()
    for sets in _chunks(used, _SETS):
        yield _part((), sets)
    most = _ADVANCED if any(map(_is_advanced, inventory.devices)) else _DEVICES
    for devices in _chunks(inventory.devices, most):
        yield _part(devices, ())


def _beside(inventory: Inventory, driver: str) -> Iterator[Spec]:
    """Groups of devices that share counters, with these: as many groups in a slice as there is room for."""
    devices: list[Device] = []
    sets: list[CounterSet] = []
    for group, drawn in _groups(inventory):
        if not _has_room(group, drawn):
            names = ", ".join(each.name for each in drawn)
            message = f"{len(group)} devices share the counter sets {names}, and are too many for one slice"
            hint = "Kubernetes 1.35 and newer take them; an older one needs fewer devices or counters"
            raise PluginError([_invalid(driver, message, hint)])
        if devices and not _has_room([*devices, *group], [*sets, *drawn]):
            yield _part(devices, sets)
            devices = []
            sets = []
        devices.extend(group)
        sets.extend(drawn)
    if devices:
        yield _part(devices, sets)


def _groups(inventory: Inventory) -> Iterator[tuple[list[Device], list[CounterSet]]]:
    """Devices that have to be in one slice, for their counters are; in the order of the first of them."""
    leader = {each.name: each.name for each in inventory.counters}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for device in inventory.devices:
        drawn = [each.counter_set for each in device.consumes_counters or ()]
        for other in drawn[1:]:
            leader[find(other)] = find(drawn[0])
    groups: dict[str, list[Device]] = {}
    for device in inventory.devices:
        consumed = device.consumes_counters or ()
        # A name with a space is no counter set's.
        key = find(consumed[0].counter_set) if consumed else f"alone {device.name}"
        groups.setdefault(key, []).append(device)
    for key, devices in groups.items():
        yield devices, [each for each in inventory.counters if find(each.name) == key]


def _has_room(devices: Sequence[Device], sets: Sequence[CounterSet]) -> bool:
    consumed = sum(len(one.counters or ()) for each in devices for one in each.consumes_counters or ())
    offered = sum(len(each.counters or ()) for each in sets)
    return len(devices) <= _DEVICES and offered <= _COUNTERS_BESIDE and consumed <= _CONSUMED_BESIDE


def _is_advanced(device: Device) -> bool:
    return bool(
        device.taints or device.consumes_counters or any(map(_is_list, (device.attributes or {}).values()))
    )


def _is_list(attribute: DeviceAttribute) -> bool:
    return any(getattr(attribute, name) is not None for name in _LISTS)


def _part(devices: Iterable[Device], sets: Iterable[CounterSet]) -> Spec:
    written = {
        "devices": [each.to_manifest() for each in devices],
        "sharedCounters": [each.to_manifest() for each in sets],
    }
    # A list that is there and empty counts as one, and a slice has no two (from 1.35 on).
    return {name: values for name, values in written.items() if values}


def _chunks(items: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + most] for start in range(0, len(items), most))


def _check(inventory: Inventory, driver: str) -> Iterator[Problem]:
    """Problems that no server looks for, since they are spread over slices, and on which the scheduler gives up (k8s.io/dynamic-resource-allocation)."""
    sets: dict[str, Mapping[str, Any]] = {}
    for each in inventory.counters:
        if each.name in sets:
            yield _invalid(driver, f"two counter sets are called {each.name}", "give each another name")
        sets[each.name] = each.counters or {}
    names: set[str] = set()
    for device in inventory.devices:
        if device.name in names:
            yield _invalid(driver, f"two devices are called {device.name}", "give each another name")
        names.add(device.name)
        for consumed in device.consumes_counters or ():
            if consumed.counter_set not in sets:
                message = (
                    f"device {device.name} draws on a counter set {consumed.counter_set}, which is not there"
                )
                yield _invalid(driver, message, "have the inventory hold it")
                continue
            for name in sorted((consumed.counters or {}).keys() - sets[consumed.counter_set].keys()):
                message = (
                    f"device {device.name} draws on a counter {name}, which {consumed.counter_set} has not"
                )
                yield _invalid(driver, message, "have the counter set hold it")


def _invalid(driver: str, message: str, hint: str) -> Problem:
    return Problem(path=f"inventory of {driver}", code="pool-not-usable", message=message, hint=hint)
