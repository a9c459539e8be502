"""Advice on selectors: reads that may fail, names, types and amounts, and tests that decide nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from dra_infra.catalog.drivers import DeviceType
from dra_infra.catalog.pins import Pins
from dra_infra.cel.release import Environment
from dra_infra.validation.advice.amounts import check_amounts
from dra_infra.validation.advice.findings import Finding, clause_with, listed
from dra_infra.validation.advice.names import check_absence, check_name
from dra_infra.validation.advice.places import Place
from dra_infra.validation.advice.reach import Reach, Step, advance, reach_of_class
from dra_infra.validation.advice.study import Study, find_warnings, study
from dra_infra.validation.advice.types import check_types


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
        step = advance(found, reach)
        said = by if by and index == 0 else ""
        findings += [(index, finding) for finding in _check_step(step, pins, studies, said)]
        reach = step.after
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
        yield _unguarded(place, lacking, step.study.text)


def _unguarded(place: Place, lacking: Sequence[DeviceType | None], text: str) -> Finding:
    guard = f"has({place.cel})"
    clause = clause_with(text, place.identifier)
    return Finding(
        "cel-unguarded-read",
        f"{place.section} {place.name} is read without a test that it exists{_who(place, lacking)}: "
        "one device without it ends the scheduling of the whole pod",
        f"write {guard} && {clause}" if clause else f"put {guard} && in front",
    )


def _who(place: Place, lacking: Sequence[DeviceType | None]) -> str:
    if None in lacking:
        return ", and nothing before it says whose devices come here"
    reasons = []
    for device in lacking:
        entry = device.published(place.section, place.name) if device is not None else None
        reasons.append(f"{device}s have none {entry.absent}" if entry else f"{device}s have none")
    return f", and {listed(list(dict.fromkeys(reasons)))}"


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
