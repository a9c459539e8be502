"""Driver catalogue: what each release line publishes per device type, the shipped classes, and pinned lines.

Lines are the first two numbers of a release, `25.12` or `0.4`; patch releases of a line publish the same. Where no
release is named, `NEWEST_DRIVER` counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple

from dra_infra.catalog.vocabulary import mig_profiles, product_names, read_data
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.target import NEWEST_DRIVER

Section = Literal["attribute", "capacity"]
Presence = Literal["always", "sometimes", "never"]
Scalar = str | int | bool


class Published(NamedTuple):
    """One attribute or capacity of a type of device, in one release line.

    Args:
        type: `string`, `int`, `bool`, `version`, or `quantity` for a capacity.
        absent: When a device of the type lacks it; empty when each has it.
        value: What all devices of the type hold by definition, None when they differ.
        sample: What they happen to hold, or empty.
        is_prefixed: Whether slices have the name with the driver's domain, which drivers usually leave out.
        values: All that are possible, empty when that is not known.
        instead: What says the same in the lines that lack it.
    """

    type: str
    absent: str = ""
    value: Scalar | None = None
    values: tuple[str, ...] = ()
    instead: str = ""
    sample: str = ""
    is_prefixed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DeviceType:
    """A type of device of one release line; attributes and capacities by fully qualified name."""

    driver: str
    name: str
    device_name: str
    attributes: Mapping[str, Published]
    capacity: Mapping[str, Published]

    def published(self, section: Section, name: str) -> Published | None:
        """The entry of a fully qualified name, None where such devices never have it."""
        return (self.attributes if section == "attribute" else self.capacity).get(name)

    def presence(self, section: Section, name: str) -> Presence:
        """How devices of this type publish it: `always`, `sometimes` or `never`."""
        entry = self.published(section, name)
        if entry is None:
            return "never"
        return "sometimes" if entry.absent else "always"

    def __str__(self) -> str:
        return f"{self.name} device" if self.name not in ("gpu", "mig", "vfio") else _SAID[self.name]


_SAID = {"gpu": "whole GPU", "mig": "MIG device", "vfio": "VFIO device"}


class ShippedClass(NamedTuple):
    """A DeviceClass that a driver's chart renders; `selects` is the type of devices that its expression leaves."""

    name: str
    expression: str
    selects: str
    extended_resource_name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DriverRelease:
    """One release line of a driver."""

    driver: str
    product: str
    line: str
    source: str
    devices: Mapping[str, DeviceType]
    classes: tuple[ShippedClass, ...]

    def __str__(self) -> str:
        return f"{self.driver} {self.line}"


@dataclass(frozen=True, slots=True, eq=False)
class Driver:
    """A driver with all release lines that are known, oldest first."""

    name: str
    product: str
    releases: tuple[DriverRelease, ...]
    by_line: Mapping[str, DriverRelease] = field(repr=False)

    @property
    def newest(self) -> DriverRelease:
        """The newest release line."""
        return self.releases[-1]

    def has(self, line: str, *, since: str = "", until: str = "") -> bool:
        """True for what a release line has of what came with *since* and went after *until*; empty bounds are none.

        Raises:
            KeyError: *line* is no release line of the driver.
        """
        order = list(self.by_line)
        if line not in order:
            raise KeyError(line)
        return (not since or order.index(line) >= order.index(since)) and (
            not until or order.index(line) <= order.index(until)
        )


class _Entry(NamedTuple):
    type: Literal["string", "int", "bool", "version", "quantity"] = "quantity"
    since: str = ""
    until: str = ""
    absent: str = ""
    absent_since: str = ""
    value: Scalar | None = None
    values: Sequence[str] = ()
    values_from: Literal["", "mig_profiles", "product_names"] = ""
    instead: str = ""
    sample: str = ""
    is_prefixed: bool = False


class _Class(NamedTuple):
    name: str
    selects: str
    expression: str
    extended_resource_name: str = ""
    extended_resource_since: str = ""
    since: str = ""


@cache
def drivers() -> dict[str, Driver]:
    """Every driver that is known, by name."""
    return {name: _driver(name, entry) for name, entry in read_data("drivers.yaml").items()}


def _driver(name: str, written: Mapping[str, Any]) -> Driver:
    releases = tuple(_release(name, written, line) for line in written["lines"])
    return Driver(
        name=name,
        product=written["product"],
        releases=releases,
        by_line={release.line: release for release in releases},
    )


def _release(name: str, written: Mapping[str, Any], line: str) -> DriverRelease:
    order = written["lines"]
    return DriverRelease(
        driver=name,
        product=written["product"],
        line=line,
        source=written["source"],
        devices={
            type_: DeviceType(
                driver=name,
                name=type_,
                device_name=device["device_name"],
                attributes=dict(_published(name, device["attributes"], line, order)),
                capacity=dict(_published(name, device["capacity"], line, order)),
            )
            for type_, device in written["devices"].items()
            if _reaches(line, device.get("since", ""), order)
        },
        classes=tuple(_shipped(written["classes"], line, order)),
    )


def _shipped(entries: Sequence[Mapping[str, str]], line: str, order: Sequence[str]) -> Iterator[ShippedClass]:
    for entry in entries:
        shipped = _Class(**entry)
        if _reaches(line, shipped.since, order):
            named = _reaches(line, shipped.extended_resource_since, order)
            extended = shipped.extended_resource_name if named else ""
            yield ShippedClass(shipped.name, shipped.expression, shipped.selects, extended)


def _published(
    driver: str, entries: Mapping[str, Mapping[str, Any]], line: str, order: Sequence[str]
) -> Iterator[tuple[str, Published]]:
    for name, written in entries.items():
        entry = _Entry(**written)
        if not _reaches(line, entry.since, order) or not _reaches(entry.until, line, order):
            continue
        values = _LISTS[entry.values_from]() if entry.values_from else tuple(entry.values)
        absent = entry.absent if _reaches(line, entry.absent_since, order) else ""
        qualified = name if "/" in name else f"{driver}/{name}"
        yield (
            qualified,
            Published(
                entry.type, absent, entry.value, values, entry.instead, entry.sample, entry.is_prefixed
            ),
        )


_LISTS: Final = {"mig_profiles": mig_profiles, "product_names": product_names}


def _reaches(line: str, bound: str, order: Sequence[str]) -> bool:
    """True when *line* is *bound* or newer; an empty one is no limit."""
    return not line or not bound or order.index(line) >= order.index(bound)


_NUMBERS = r"v?(?P<line>\d+\.\d+)(?:\.\d+)?(?:[-+].*)?"
_NVIDIA = "gpu.nvidia.com"


@dataclass(frozen=True, eq=False)
class Pins:
    """One release line of every known driver. Two pins are equal when they are one object; `read_pins` shares them."""

    releases: Mapping[str, DriverRelease]

    @cached_property
    def devices(self) -> tuple[DeviceType, ...]:
        """Every type of device that these releases publish."""
        return tuple(device for release in self.releases.values() for device in release.devices.values())

    @cached_property
    def classes(self) -> Mapping[str, ShippedClass]:
        """The classes that these releases ship, by name."""
        return {shipped.name: shipped for release in self.releases.values() for shipped in release.classes}

    def devices_of(self, class_name: str) -> tuple[DeviceType, ...] | None:
        """The type of devices that a shipped class selects; None for a class that these releases do not ship."""
        for release in self.releases.values():
            for shipped in release.classes:
                if shipped.name == class_name:
                    return (release.devices[shipped.selects],)
        return None


@cache
def newest() -> Pins:
    """The newest line of every driver."""
    return Pins({name: driver.newest for name, driver in drivers().items()})


@lru_cache(maxsize=64)
def read_pins(text: str) -> Pins:
    """Read what was written behind `--driver`.

    Args:
        text: `newest`; a release of the NVIDIA driver, `25.8` or `v0.4.1`; or a driver with a release,
            `gpu.example.com=0.2`. Several are separated by commas.

    Raises:
        InvalidSpecError: `unknown-driver-release`.
    """
    releases = dict(newest().releases)
    for term in filter(None, map(str.strip, text.split(","))):
        if term != NEWEST_DRIVER:
            releases |= _read(term)
    return newest() if releases == newest().releases else Pins(releases)


def _read(term: str) -> dict[str, DriverRelease]:
    name, equals, release = term.rpartition("=")
    name = name.strip() if equals else _NVIDIA
    if name not in drivers():
        raise InvalidSpecError([_unknown(f"there is no driver {name[:80]!r} known here", list(drivers()))])
    match = re.fullmatch(_NUMBERS, release.strip(), re.ASCII)
    pinned = drivers()[name].by_line.get(match["line"]) if match else None
    if pinned is None:
        lines = [each.line for each in drivers()[name].releases]
        message = f"{release.strip()[:80]!r} is no release of {name} that is known here"
        raise InvalidSpecError([_unknown(message, lines)])
    # The drivers of one product come in one release.
    return {
        each.name: _nearest(each, pinned) for each in drivers().values() if each.product == pinned.product
    }


def _nearest(driver: Driver, pinned: DriverRelease) -> DriverRelease:
    """The line of *driver*; its own newest when it has none of that number, for it came later."""
    return driver.by_line.get(pinned.line, driver.newest)


def _unknown(message: str, known: list[str]) -> Problem:
    return Problem(
        path="driver", code="unknown-driver-release", message=message, hint=f"write one of {', '.join(known)}"
    )
