"""The rules for DeviceTaintRule (validateDeviceTaintRuleSpec, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.model.device_taint_rule import DeviceTaintRuleSpec, DeviceTaintSelector
from dra_infra.model.go_time import canonical_time
from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.configurations import check_driver_name, check_selectors
from dra_infra.validation.field_errors import FieldError, invalid
from dra_infra.validation.slices import check_pool_name
from dra_infra.validation.taints import check_effect, check_taint


def check_taint_rule(
    spec: DeviceTaintRuleSpec, release: Release, *, old: DeviceTaintRuleSpec | None = None
) -> Iterator[FieldError]:
    """The hand-written rules; since 1.35 an effect that the *old* rule had is not checked anew."""
    if spec.device_selector is not None:
        before = old.device_selector if old is not None else None
        yield from _check_selector(spec.device_selector, "spec.deviceSelector", release, before)
    is_new = release.number < 35 or old is None or old.taint.effect != spec.taint.effect
    yield from check_taint(spec.taint, "spec.taint", release, effect=is_new)


def check_generated_taint_rule(
    spec: DeviceTaintRuleSpec, release: Release, *, old: DeviceTaintRuleSpec | None = None
) -> Iterator[FieldError]:
    """The generated rules, which have a say since 1.37 (see `generated`)."""
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
        for told in formats.dns_subdomain(selector.device_class_name):
            yield invalid("taint-rule.class", f"{path}.deviceClassName", selector.device_class_name, told)
    if selector.driver is not None:
        yield from check_driver_name(
            selector.driver, f"{path}.driver", rule="taint-rule.driver", goes_on=release.number < 35
        )
    if selector.pool is not None:
        yield from check_pool_name(selector.pool, f"{path}.pool", rule="taint-rule.pool")
    if selector.device is not None:
        for told in formats.dns_label(selector.device):
            yield invalid("taint-rule.device", f"{path}.device", selector.device, told)
    stored = old is not None and (old.selectors or []) == (selector.selectors or [])
    yield from check_selectors(selector.selectors, f"{path}.selectors", release, stored=stored)
