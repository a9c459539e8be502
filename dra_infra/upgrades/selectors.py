"""Selectors on two releases: whether they compile, what they cost, and which devices they select."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.api import (
    DeviceClass,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ObjectRef,
    Release,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    can_decode,
    decode,
    drop_from_slice,
    is_placeholder,
)
from dra_infra.kubernetes.apiserver import environment_of
from dra_infra.kubernetes.cel import check_expression
from dra_infra.kubernetes.scheduler.allocator import (
    CelEvaluator,
    DeviceID,
    Published,
    Trouble,
    choose_variant,
    published_devices,
)
from dra_infra.upgrades.differences import Difference
from dra_infra.upgrades.objects import ComparedObject

MAX_DEVICES: Final = 1_000
"""Devices of a fleet on which each selector is evaluated, of each kind of device at least one."""

_MAX_EXPRESSIONS: Final = 2_000
"""Selectors that are compared; those after it are counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selector:
    """One expression.

    Args:
        ref: The object.
        path: Its field.
        text: The expression.
    """

    ref: ObjectRef
    path: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedSelectors:
    """What was compared.

    Args:
        differences: What differs.
        selectors: How many were compared.
        left_out: How many were not, because there are too many.
        devices: On how many devices they were evaluated.
        all_devices: How many devices the fleet has.
    """

    differences: tuple[Difference, ...]
    selectors: int
    left_out: int
    devices: int
    all_devices: int


def compare_selectors(
    items: Iterable[ComparedObject],
    classes: Iterable[DeviceClass],
    slices: tuple[Sequence[ResourceSlice], Sequence[ResourceSlice]],
    before: Release,
    after: Release,
) -> ComparedSelectors:
    """Compare every selector of some objects and DeviceClasses. Code: `upgrade-selector-differs`.

    Args:
        items: The objects.
        classes: DeviceClasses of the fleet.
        slices: The published devices under the older and the newer release; empty where no hardware is named.
        before: The older release.
        after: The newer release.
    """
    every = [*_find_in_objects(items, after), *_find_in_classes(classes)]
    chosen = list(dict.fromkeys(every))[:_MAX_EXPRESSIONS]
    devices = [_devices(found, release) for found, release in zip(slices, (before, after), strict=True)]
    both = [name for name in devices[0] if name in devices[1]]
    shown = _choose([devices[1][name] for name in both])
    evaluators = CelEvaluator(choose_variant(before)), CelEvaluator(choose_variant(after))
    found: list[Difference] = []
    for selector in chosen:
        found += _compare_checks(selector, before, after)
        results = [
            (
                evaluators[0].test(selector.text, devices[0][each.id]),
                evaluators[1].test(selector.text, each),
            )
            for each in shown
        ]
        found += _compare_results(selector, results)
    return ComparedSelectors(
        differences=tuple(found),
        selectors=len(chosen),
        left_out=len(set(every)) - len(chosen),
        devices=len(shown),
        all_devices=len(both),
    )


def _find_in_objects(items: Iterable[ComparedObject], release: Release) -> Iterator[Selector]:
    for item in items:
        if not can_decode(item.manifest):
            continue
        record = decode(item.manifest, minor=release.number).record
        if isinstance(record, DeviceClass):
            yield from _of_selectors(record.spec.selectors or (), "spec", item.ref)
        elif isinstance(record, ResourceClaim | ResourceClaimTemplate):
            yield from _of_claim(record, item.ref)


def _of_claim(record: ResourceClaim | ResourceClaimTemplate, ref: ObjectRef) -> Iterator[Selector]:
    is_template = isinstance(record, ResourceClaimTemplate)
    devices = record.spec.spec.devices if isinstance(record, ResourceClaimTemplate) else record.spec.devices
    steps = "spec.spec.devices" if is_template else "spec.devices"
    for number, request in enumerate(devices.requests or ()):
        request_path = f"{steps}.requests[{number}]"
        entries: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]] = [
            (f"{request_path}.firstAvailable[{position}]", entry)
            for position, entry in enumerate(request.first_available or ())
        ]
        if request.exactly is not None:
            entries.append((f"{request_path}.exactly", request.exactly))
        for path, entry in entries:
            yield from _of_selectors(entry.selectors or (), path, ref)


def _of_selectors(selectors: Sequence[DeviceSelector], path: str, ref: ObjectRef) -> Iterator[Selector]:
    for position, each in enumerate(selectors):
        if each.cel is not None and not is_placeholder(each.cel.expression):
            field = f"{path}.selectors[{position}].cel.expression"
            yield Selector(ref=ref, path=field, text=str(each.cel.expression))


def _find_in_classes(classes: Iterable[DeviceClass]) -> Iterator[Selector]:
    for each in classes:
        yield from _of_selectors(
            each.spec.selectors or (), "spec", ObjectRef("DeviceClass", each.metadata.name or "")
        )


def _devices(slices: Sequence[ResourceSlice], release: Release) -> dict[DeviceID, Published]:
    """Return the devices as a server of the release keeps them, by name."""
    kept = (each.changed({"spec": drop_from_slice(each.spec, release)[0]}) for each in slices)
    return {device.id: device for each in kept for device in published_devices(each)}


def _choose(devices: Sequence[Published]) -> list[Published]:
    """Return at most `MAX_DEVICES`: first one of each set of attribute names and driver, then the others in order."""
    if len(devices) <= MAX_DEVICES:
        return list(devices)
    first: dict[object, Published] = {}
    for each in devices:
        look = (each.id.driver, *sorted(each.device.attributes or {}), *sorted(each.device.capacity or {}))
        first.setdefault(look, each)
    chosen = dict.fromkeys([each.id for each in first.values()][:MAX_DEVICES])
    for each in devices:
        if len(chosen) >= MAX_DEVICES:
            break
        chosen[each.id] = None
    return [each for each in devices if each.id in chosen]


def _compare_checks(selector: Selector, before: Release, after: Release) -> Iterator[Difference]:
    old, new = (
        check_expression(selector.text, environment=environment_of(release)) for release in (before, after)
    )
    if old.errors or new.errors:
        # The check of the object reports what does not compile.
        return
    if old.undecided != new.undecided or old.cost != new.cost:
        shown = [each.undecided or f"estimated cost {each.cost:,}" for each in (old, new)]
        yield Difference(
            level="note",
            area="selectors",
            code="upgrade-selector-differs",
            subject=selector.ref,
            path=selector.path,
            message="the servers estimate another cost; both accept the selector",
            before=shown[0],
            after=shown[1],
        )


def _compare_results(
    selector: Selector, results: Sequence[tuple[bool | Trouble, bool | Trouble]]
) -> Iterator[Difference]:
    different = [(old, new) for old, new in results if _show(old) != _show(new)]
    if not different:
        return
    matched = [sum(result[side] is True for result in results) for side in (0, 1)]
    old, new = different[0]
    fails = isinstance(new, Trouble) and not isinstance(old, Trouble)
    yield Difference(
        level="breaks" if fails or matched[1] < matched[0] else "changes",
        area="selectors",
        code="upgrade-selector-differs",
        subject=selector.ref,
        path=selector.path,
        message=f"the result differs on {len(different):,} of {len(results):,} devices",
        before=f"selects {matched[0]:,}; the first different device: {_show(old)}",
        after=f"selects {matched[1]:,}; the first different device: {_show(new)}",
    )


def _show(result: bool | Trouble) -> str:  # noqa: FBT001  (a value)
    if isinstance(result, Trouble):
        return f"error: {result.text}"
    return "selected" if result else "not selected"
