"""Validation of ResourceSlice and DeviceTaintRule (validateDeviceTaintRuleSpec in validation.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.device_taints import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from dra_infra.kubernetes.api.dropping import drop_from_slice
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.go_text import quoted
from dra_infra.kubernetes.api.go_time import canonical_time
from dra_infra.kubernetes.api.record import Record
from dra_infra.kubernetes.api.record_equality import are_lists_equal
from dra_infra.kubernetes.api.resource_slice import ResourceSlice
from dra_infra.kubernetes.apiserver.configurations import check_driver_name, check_selectors
from dra_infra.kubernetes.apiserver.devices import check_effect, check_taint
from dra_infra.kubernetes.apiserver.field_errors import FieldError, Outcome, invalid
from dra_infra.kubernetes.apiserver.generated import SINCE, merge
from dra_infra.kubernetes.apiserver.generated_slices import check_generated_slice
from dra_infra.kubernetes.apiserver.metadata import check_metadata, without_repeated_owners
from dra_infra.kubernetes.apiserver.slices import check_pool_name, check_slice


def check_taint_rule(
    spec: DeviceTaintRuleSpec, release: Release, *, old: DeviceTaintRuleSpec | None = None
) -> Iterator[FieldError]:
    """Check a taint rule; since 1.35 an effect that the *old* rule had is not checked anew."""
    if spec.device_selector is not None:
        before = old.device_selector if old is not None else None
        yield from _check_selector(spec.device_selector, "spec.deviceSelector", release, before)
    is_new = release.number < 35 or old is None or old.taint.effect != spec.taint.effect
    yield from check_taint(spec.taint, "spec.taint", release, effect=is_new)


def check_generated_taint_rule(
    spec: DeviceTaintRuleSpec, release: Release, *, old: DeviceTaintRuleSpec | None = None
) -> Iterator[FieldError]:
    """Check a taint rule by the generated rules, which count since 1.37 (see `generated`)."""
    if old is None or old.taint.effect != spec.taint.effect:
        yield from check_effect(spec.taint, "spec.taint", release)


def with_clock(
    spec: DeviceTaintRuleSpec, release: Release, old: DeviceTaintRuleSpec | None
) -> DeviceTaintRuleSpec:
    """*spec* without a time that the server replaces by its own: since 1.36 when the effect changes and the time does not."""
    if release.number < 36 or old is None or old.taint.effect == spec.taint.effect:
        return spec
    before, after = old.taint.time_added, spec.taint.time_added
    if before is None or after is None or canonical_time(before) != canonical_time(after):
        return spec
    return spec.changed({"taint": spec.taint.changed({"time_added": None})})


def _check_selector(
    selector: DeviceTaintSelector, path: str, release: Release, old: DeviceTaintSelector | None
) -> Iterator[FieldError]:
    if selector.device_class_name is not None:
        for told in names.dns_subdomain(selector.device_class_name):
            yield invalid("taint-rule.class", f"{path}.deviceClassName", selector.device_class_name, told)
    if selector.driver is not None:
        yield from check_driver_name(
            selector.driver, f"{path}.driver", rule="taint-rule.driver", checks_missing=release.number < 35
        )
    if selector.pool is not None:
        yield from check_pool_name(selector.pool, f"{path}.pool", rule="taint-rule.pool")
    if selector.device is not None:
        for told in names.dns_label(selector.device):
            yield invalid("taint-rule.device", f"{path}.device", selector.device, told)
    stored = old is not None and are_lists_equal(old.selectors, selector.selectors)
    yield from check_selectors(selector.selectors, f"{path}.selectors", release, stored=stored)


def check_published(record: Record, before: Any, release: Release, *, flat: bool) -> Outcome:
    """Judge a slice or a taint rule, in the place of the one that was there *before*.

    Raises:
        TypeError: When there are no rules for its kind.
    """
    if not isinstance(record, (ResourceSlice, DeviceTaintRule)):
        raise TypeError(f"no rules for {type(record).__name__}")
    metadata = without_repeated_owners(record.metadata)
    if metadata is not record.metadata:
        record = record.model_copy(update={"metadata": metadata})
    if isinstance(record, ResourceSlice):
        return _check_resource_slice(record, before, release, flat=flat)
    return _check_device_taint_rule(record, before, release)


def _warn(record: ResourceSlice, release: Release) -> Iterator[tuple[str, str]]:
    # WarningsOnCreate and WarningsOnUpdate of the strategy, since 1.35.
    if release.number >= 35 and record.spec.driver != record.spec.driver.lower():
        told = f"driver names should be lowercase; {quoted(record.spec.driver)} contains uppercase characters"
        yield "spec.driver", told


def _check_resource_slice(
    record: ResourceSlice, before: ResourceSlice | None, release: Release, *, flat: bool
) -> Outcome:
    old = before.spec if before is not None else None
    spec, dropped = drop_from_slice(record.spec, release, old)
    written = (
        *check_metadata(record.metadata, release, kind="ResourceSlice", is_new=before is None),
        *check_slice(spec, release, old=old),
    )
    generated = check_generated_slice(spec, release, old=old) if release.number >= SINCE else ()
    kept = record.model_copy(update={"spec": spec}) if dropped else record
    errors = merge(written, generated, flat=flat)
    return Outcome(kept, dropped, errors, () if errors else tuple(_warn(kept, release)))


def _check_device_taint_rule(
    record: DeviceTaintRule, before: DeviceTaintRule | None, release: Release
) -> Outcome:
    old = before.spec if before is not None else None
    written = (
        *check_metadata(record.metadata, release, kind="DeviceTaintRule", is_new=before is None),
        *check_taint_rule(record.spec, release, old=old),
    )
    generated = check_generated_taint_rule(record.spec, release, old=old) if release.number >= SINCE else ()
    kept = record.model_copy(update={"spec": with_clock(record.spec, release, old)})
    return Outcome(kept, (), merge(written, generated))
