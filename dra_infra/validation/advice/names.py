"""Attribute and capacity names that the pinned releases do not publish, with the one that is meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from dra_infra.catalog.drivers import DeviceType, Published, Section, drivers
from dra_infra.catalog.pins import Pins
from dra_infra.catalog.vocabulary import Misnomer, misnomers
from dra_infra.validation.advice.findings import Finding, listed
from dra_infra.validation.advice.places import Place

STANDARD_DOMAIN: Final = "resource.kubernetes.io"
STANDARD_NAMES: Final = ("numaNode", "pciBusID", "pcieRoot")
"""Attributes that mean the same for every driver (k8s.io/dynamic-resource-allocation/deviceattribute, KEP 6072)."""
_CLOSE_DOMAIN: Final = 0.9
_OTHER: Final[dict[Section, Section]] = {"attribute": "capacity", "capacity": "attribute"}


@lru_cache(maxsize=1024)
def check_name(place: Place, pins: Pins) -> Finding | None:
    """What is wrong with the name of *place*, on whatever device it is read."""
    if place.domain in pins.releases:
        return _check_own(place, pins)
    if place.domain == STANDARD_DOMAIN:
        near = _nearest(place.identifier, STANDARD_NAMES)
        if place.identifier in STANDARD_NAMES or not near:
            return None
        return Finding(
            "attribute-not-known", f"there is no standard {place.section} {place.name}", _write(place, near)
        )
    return _check_domain(place, pins)


def check_absence(place: Place, devices: Sequence[DeviceType], pins: Pins) -> Finding | None:
    """What is wrong when none of *devices*, all that there may be, has what *place* reads."""
    for device in devices:
        older = _lines(place, device.driver, device.name)
        if older:
            return _other_release(place, older, device.driver, pins)
    owners = [device for device in pins.devices if device.published(place.section, place.name)]
    own = [device for device in owners if any(device.driver == each.driver for each in devices)]
    said = listed(sorted({f"{device}s" for device in devices}))
    if own:
        return Finding(
            "attribute-of-other-device",
            f"no {' or '.join(sorted(map(str, devices)))} has the {place.section} {place.name}, only "
            f"{listed(sorted({f'{device}s' for device in own}))} have it",
            _own_class(own[0], pins),
        )
    if owners or place.domain == STANDARD_DOMAIN:
        publisher = f", which {owners[0].driver} publishes," if owners else ""
        return Finding(
            "attribute-wrong-domain",
            f"no device here has the {place.section} {place.name}{publisher}: they are {said} of {devices[0].driver}",
            _own_names(place, devices),
        )
    return None


def _check_own(place: Place, pins: Pins) -> Finding | None:
    release = pins.releases[place.domain]
    known = _names(release.devices.values(), place.section)
    if place.name in known:
        return None
    if place.name in _names(release.devices.values(), _OTHER[place.section]):
        other = Place(_OTHER[place.section], place.domain, place.identifier)
        hint = (
            f'write {other.cel}.compareTo(quantity("40Gi")) >= 0'
            if other.section == "capacity"
            else f"write {other.cel}"
        )
        said = f"{place.name} is {_a(other.section)}, not {_a(place.section)}"
        return Finding("attribute-is-capacity", said, hint)
    older = _lines(place, place.domain)
    if older:
        return _other_release(place, older, place.domain, pins)
    standard = _nearest(place.identifier, STANDARD_NAMES, cutoff=0.95)
    if standard and place.section == "attribute":
        return Finding(
            "attribute-wrong-domain",
            f"{release} publishes no {place.name}: the name is a standard one, in the domain {STANDARD_DOMAIN}",
            _write(Place("attribute", STANDARD_DOMAIN, standard), standard),
        )
    message = f"{release} publishes no {place.section} {place.name}"
    misnomer = _misnomer(place.identifier, misnomers("attributes"), place.domain)
    if misnomer is not None:
        return Finding(
            "attribute-not-known", message, f"write {misnomer.use}" if misnomer.attribute else misnomer.use
        )
    own = [name.partition("/")[2] for name in known if name.startswith(f"{place.domain}/")]
    for owner in sorted(pins.releases):
        if place.section == "attribute" and f"{owner}/{place.identifier}" in _names(
            pins.releases[owner].devices.values(), place.section
        ):
            said = f"{message}; {owner} does, for its own devices"
            return Finding("attribute-wrong-domain", said, f"known are {', '.join(sorted(own))}")
    near = _nearest(place.identifier, own)
    if near:
        return Finding("attribute-not-known", message, _write(place, near))
    return Finding("attribute-not-known", message, f"known are {', '.join(sorted(own))}" if own else "")


def _check_domain(place: Place, pins: Pins) -> Finding | None:
    misnomer = _misnomer(place.domain, misnomers("domains"))
    near = misnomer.use if misnomer else _nearest(place.domain, pins.releases, cutoff=_CLOSE_DOMAIN)
    if not near:
        return None
    meant = Place(place.section, near, place.identifier)
    finding = check_name(meant, pins)
    return Finding(
        "attribute-wrong-domain",
        f"no driver known here publishes under {place.domain}",
        finding.hint if finding else _write(meant, place.identifier),
    )


def _other_release(place: Place, lines: dict[str, Published], driver: str, pins: Pins) -> Finding:
    instead = next(iter(lines.values())).instead
    if not instead:
        hint = f"no {pins.releases[driver]} device has it: leave it out"
    elif any(device.published(place.section, instead) for device in pins.releases[driver].devices.values()):
        domain, _, identifier = instead.partition("/")
        hint = _write(Place(place.section, domain, identifier), identifier)
    else:
        hint = "leave it out"
    since = list(lines)
    said = since[0] if len(since) == 1 else f"{since[0]} to {since[-1]}"
    return Finding(
        "attribute-other-release",
        f"{pins.releases[driver]} publishes no {place.section} {place.name}, only {said} does",
        hint,
    )


def _lines(place: Place, driver: str, device: str = "") -> dict[str, Published]:
    """The release lines of *driver* that publish it, oldest first."""
    found = {}
    for release in drivers()[driver].releases:
        for each in release.devices.values():
            entry = each.published(place.section, place.name)
            if entry is not None and device in ("", each.name):
                found[release.line] = entry
    return found


def _names(devices: Iterable[DeviceType], section: Section) -> set[str]:
    return {
        name
        for device in devices
        for name in (device.attributes if section == "attribute" else device.capacity)
    }


def _misnomer(name: str, entries: Iterable[Misnomer], domain: str = "") -> Misnomer | None:
    for entry in entries:
        if entry.domain == domain and re.fullmatch(entry.pattern, name, re.IGNORECASE):
            return entry
    return None


def _nearest(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """The known name that is meant; letters in another case make no difference."""
    by_letters = {each.lower(): each for each in sorted(known)}
    near = difflib.get_close_matches(name.lower()[:80], by_letters, n=1, cutoff=cutoff)
    return by_letters[near[0]] if near else ""


def _write(place: Place, identifier: str) -> str:
    meant = Place(place.section, place.domain, identifier)
    return (
        f"write {meant.cel}, or {meant.name} in a constraint"
        if place.section == "attribute"
        else f"write {meant.cel}"
    )


def _a(section: Section) -> str:
    return "an attribute" if section == "attribute" else "a capacity"


def _own_class(device: DeviceType, pins: Pins) -> str:
    for shipped in pins.releases[device.driver].classes:
        if f"'{device.name}'" in shipped.expression:
            return f"write deviceClassName: {shipped.name} for them"
    return ""


def _own_names(place: Place, devices: Sequence[DeviceType]) -> str:
    names = sorted(_names(devices, place.section))
    return f"they have {', '.join(names)}" if names else ""
