"""Advice on CEL selectors: unguarded reads, unknown names, wrong types and amounts, tests that decide nothing.

Names are those of attributes and capacities: for one that the pinned releases do not publish, the hint gives the one
that is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from dra_infra.advice.findings import STANDARD_DOMAIN, STANDARD_NAMES, Finding, Place, guarded_clause, show
from dra_infra.advice.literals import check_literals
from dra_infra.advice.product_names import check_products
from dra_infra.advice.reach import Reach, Step, advance, reach_of_class
from dra_infra.advice.study import Study, find_warnings, study
from dra_infra.advice.values import check_amounts, check_types
from dra_infra.advice.written_values import say_written, with_quotes_of
from dra_infra.catalog.drivers import DeviceType, Pins, Published, Section, drivers
from dra_infra.catalog.vocabulary import Misnomer, misnomers
from dra_infra.kubernetes.cel import Environment
from dra_infra.output.wording import join_words, nearest

_CLOSE_DOMAIN: Final = 0.9
_OTHER: Final[dict[Section, Section]] = {"attribute": "capacity", "capacity": "attribute"}


@lru_cache(maxsize=1024)
def check_name(place: Place, pins: Pins) -> Finding | None:
    """Check the name of *place*, on whatever device it is read."""
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
    """Check that one of *devices*, all that there may be, has what *place* reads."""
    for device in devices:
        older = _lines(place, device.driver, device.name)
        if older:
            return _other_release(place, older, device.driver, pins)
    owners = [device for device in pins.devices if device.published(place.section, place.name)]
    own = [device for device in owners if any(device.driver == each.driver for each in devices)]
    said = join_words(sorted({f"{device}s" for device in devices}))
    if own:
        return Finding(
            "attribute-of-other-device",
            f"no {' or '.join(sorted(set(map(str, devices))))} has the {place.section} {place.name}, only "
            f"{join_words(sorted({f'{device}s' for device in own}))} have it",
            _own_class(own[0], pins),
        )
    if owners or place.domain == STANDARD_DOMAIN:
        publisher = f", which {owners[0].driver} publishes" if owners else ""
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
            "attribute-not-known",
            message,
            f"write {misnomer.use}"
            if misnomer.attribute or misnomer.use.startswith("device.")
            else misnomer.use,
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
    return by_letters.get(nearest(name.lower(), by_letters, cutoff=cutoff), "")


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


@lru_cache(maxsize=2048)
def check_selectors(
    texts: tuple[str, ...], before: tuple[str, ...], pins: Pins, environment: Environment, by: str = ""
) -> tuple[tuple[tuple[int, Finding], ...], Reach]:
    """Advice on the selectors of a class or request, each with its index, and who passes them all.

    Args:
        texts: Their expressions.
        before: The expressions of the request's class, which run first.
        pins: The driver releases that are meant.
        environment: What expressions mean.
        by: What was before the first, for messages: `DeviceClass gpu.nvidia.com`.
    """
    reach = reach_of_class(before, pins, environment)
    studies = [found for text in (*before, *texts) if (found := study(text, environment)) is not None]
    findings: list[tuple[int, Finding]] = []
    for index, text in enumerate(texts):
        warnings = find_warnings(text, environment)
        findings += [(index, Finding(each.code, each.message, each.hint)) for each in warnings]
        found = study(text, environment)
        if found is None:
            continue
        findings += [(index, finding) for finding in dict.fromkeys(check_literals(found))]
        step = advance(found, reach)
        said = by if by and index == 0 else ""
        findings += [(index, finding) for finding in _check_step(step, pins, studies, said)]
        named = dict.fromkeys(check_products(found.tests, studies, environment))
        findings += [(index, finding) for finding in named]
        reach = step.after
    findings = [(index, with_quotes_of(finding, texts[index])) for index, finding in findings]
    return tuple(findings), reach


def check_reads(found: Study, before: Reach, pins: Pins) -> Iterator[Finding]:
    """Advice on what an expression reads, whatever its result."""
    step = Step(found, before, before, "")
    for place in sorted(found.mentions, key=lambda each: (each.section, each.name)):
        yield from _check_read(place, step, pins)


def _check_step(step: Step, pins: Pins, studies: Sequence[Study], by: str) -> Iterator[Finding]:
    named = list(check_reads(step.study, step.before, pins))
    yield from named
    devices = [device for device in step.before.types if device is not None]
    typed = list(dict.fromkeys(check_types(step.study.tests, devices, pins)))
    yield from typed
    yield from dict.fromkeys(check_amounts(step.study.tests, studies, devices))
    named += typed
    if step.outcome and not any(each.code != "cel-unguarded-read" for each in named):
        # Written for several releases, the selector may decide something on another one.
        places = (check_name(place, pins) for place in step.study.mentions)
        if not any(places):
            yield _decided(step, by)


def _check_read(place: Place, step: Step, pins: Pins) -> Iterator[Finding]:
    lacking = step.lacking.get(place.cel, ())
    finding = check_name(place, pins)
    if finding is not None:
        finding = say_written(finding, place, step.study.tests)
        # A test that it exists is how to read what only some releases have.
        if finding.code != "attribute-other-release" or place in step.study.unguarded:
            yield finding
        return
    known = step.before.known
    if known and not any(device.published(place.section, place.name) for device in known):
        finding = check_absence(place, known, pins)
        if finding is not None and (
            finding.code != "attribute-other-release" or place in step.study.unguarded
        ):
            yield finding
            return
    if lacking:
        yield _unguarded(place, lacking, step)


def _unguarded(place: Place, lacking: Sequence[DeviceType | None], step: Step) -> Finding:
    guard = f"has({place.cel})"
    clause = guarded_clause(step.study.text, place.identifier, guard)
    return Finding(
        "cel-unguarded-read",
        f"{place.section} {place.name} is read without a test that it exists{_who(place, lacking, step.other_driver)}: "
        "one device without it ends the scheduling of the whole pod",
        f"write {clause}" if clause else f"put {guard} && in front of the test that reads it",
    )


def _who(place: Place, lacking: Sequence[DeviceType | None], driver: str) -> str:
    if None in lacking and driver:
        return f", and what devices of {show(driver)} have is not known here"
    if None in lacking:
        return ", and nothing before it says whose devices come here"
    reasons = []
    for device in lacking:
        entry = device.published(place.section, place.name) if device is not None else None
        reasons.append(f"{device}s have none {entry.absent}" if entry else f"{device}s have none")
    return f", and {join_words(list(dict.fromkeys(reasons)))}"


def _decided(step: Step, by: str) -> Finding:
    if step.outcome == "always":
        return Finding(
            "selector-always-true",
            "the selector is true of every device",
            "leave it out: no selector selects all",
        )
    if step.outcome == "implied":
        return Finding(
            "selector-implied",
            f"{by or 'what comes before it'} already selects all that this selector asks for",
            "leave it out",
        )
    reason = "" if step.before.whole else f" that passes {by or 'the selectors before it'}"
    return Finding(
        "selector-never-true",
        f"no device{reason} can pass this selector",
        "the request can never be met: correct the selector, or name another class"
        if not step.before.whole
        else "its tests exclude each other: correct one, or join them with ||",
    )
