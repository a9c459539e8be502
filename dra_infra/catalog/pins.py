"""Which release line of each driver is meant: the newest, or one that is named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from dra_infra.catalog.drivers import DeviceType, Driver, DriverRelease, ShippedClass, drivers
from dra_infra.errors import InvalidSpecError, Problem

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
        if term != "newest":
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
