"""The hand-written rules for counter sets and what devices take from them (validateCounterSet, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dra_infra.model.device import Counter, CounterSet, DeviceCounterConsumption
from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.field_errors import FieldError, invalid, required, too_many
from dra_infra.validation.lists import check_items, check_unique, keyed

MAX_SETS = 8
MAX_CONSUMED_SETS = 2
MAX_COUNTERS = 32
MAX_DEVICE_COUNTERS = 1024
"""Counters that all devices of a slice take together, up to 1.34."""

_LABEL = 63
_SHORT_NAME = "format=k8s-short-name"


def check_counter_sets(
    sets: Sequence[CounterSet] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """Check the counters that a slice offers."""
    is_old = release.number < 35
    total = sum(len(each.counters or ()) for each in sets or ())
    if is_old and total > MAX_COUNTERS:
        told = f"the total number of shared counters must not exceed {MAX_COUNTERS}"
        yield invalid("counter-sets.total", path, total, told)
    yield from check_items(
        sets,
        path,
        lambda each, at: _check_set(each, at, release),
        size_rule="counter-sets.size",
        limit=-1 if is_old else MAX_SETS,
    )
    if is_old or len(sets or ()) <= MAX_SETS:
        yield from check_unique(
            sets,
            path,
            lambda each: each.name,
            rule="counter-sets.duplicate",
            below=".name" if is_old else "",
        )


def _check_set(counter_set: CounterSet, path: str, release: Release) -> Iterator[FieldError]:
    if not counter_set.name:
        yield required("counter-set.name-required", f"{path}.name", covered=True)
    else:
        yield from _check_name(counter_set.name, f"{path}.name", rule="counter-set.name")
    yield from _check_counters(counter_set.counters, f"{path}.counters", release)


def _check_counters(
    counters: Mapping[str, Counter] | None, path: str, release: Release
) -> Iterator[FieldError]:
    if not counters:
        yield required("counters.required", path, covered=True)
        return
    if release.number >= 35 and len(counters) > MAX_COUNTERS:
        yield too_many("counters.size", path, len(counters), MAX_COUNTERS)
        return
    for name in counters:
        at = path if release.number >= 36 else f"{path}[{keyed(name, _LABEL)}]"
        yield from _check_name(name, at, rule="counters.name")


def _check_name(name: str, path: str, *, rule: str) -> Iterator[FieldError]:
    for told in formats.dns_label(name):
        yield invalid(rule, path, name, told, origin=_SHORT_NAME, covered=True)


def check_consumption(
    consumed: Sequence[DeviceCounterConsumption] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """Check `consumesCounters` of a device."""
    is_old = release.number < 35
    yield from check_items(
        consumed,
        path,
        lambda each, at: _check_consumed(each, at, release),
        size_rule="consumption.size",
        limit=-1 if is_old else MAX_CONSUMED_SETS,
    )
    if is_old or len(consumed or ()) <= MAX_CONSUMED_SETS:
        yield from check_unique(
            consumed,
            path,
            lambda each: each.counter_set,
            rule="consumption.duplicate",
            below=".counterSet" if is_old else "",
        )


def _check_consumed(each: DeviceCounterConsumption, path: str, release: Release) -> Iterator[FieldError]:
    if not each.counter_set:
        yield required("consumption.set-required", f"{path}.counterSet", covered=True)
    elif release.number >= 35:
        yield from _check_name(each.counter_set, f"{path}.counterSet", rule="consumption.set")
    yield from _check_counters(each.counters, f"{path}.counters", release)


def check_old_consumption(
    consumed: Sequence[DeviceCounterConsumption] | None, path: str, sets: Mapping[str, frozenset[str]]
) -> Iterator[FieldError]:
    """What was checked up to 1.34, where the counters are in the slice of the devices; *path* is the device's.

    Args:
        consumed: What the device takes.
        path: Path of the device.
        sets: Names of the counters of each set of the slice.
    """
    total = sum(len(each.counters or ()) for each in consumed or ())
    if total > MAX_COUNTERS:
        told = f"the total number of counters must not exceed {MAX_COUNTERS}"
        yield invalid("consumption.total", path, total, told)
    for index, each in enumerate(consumed or ()):
        at = f"{path}.consumesCounters[{index}]"
        if each.counter_set not in sets:
            told = "must reference a counterSet defined in the ResourceSlice sharedCounters"
            yield invalid("consumption.unknown-set", f"{at}.counterSet", each.counter_set, told)
            continue
        for name in each.counters or ():
            if name not in sets[each.counter_set]:
                told = "must reference a counter defined in the ResourceSlice sharedCounters"
                yield invalid("consumption.unknown-counter", f"{at}.counters", name, told)
