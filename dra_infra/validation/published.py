"""The rules for what drivers and administrators publish: ResourceSlice and DeviceTaintRule, as `verdict` has those for claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dra_infra.model.device_taint_rule import DeviceTaintRule
from dra_infra.model.dropping import Dropped
from dra_infra.model.dropping_slices import drop_from_slice
from dra_infra.model.record import Record
from dra_infra.model.resource_slice import ResourceSlice
from dra_infra.model.target import Release
from dra_infra.validation.field_errors import FieldError, quoted
from dra_infra.validation.generated import SINCE, merge
from dra_infra.validation.generated_slices import check_generated_slice
from dra_infra.validation.metadata import check_metadata, without_repeated_owners
from dra_infra.validation.slices import check_slice
from dra_infra.validation.taint_rules import check_generated_taint_rule, check_taint_rule, with_clock

Published = ResourceSlice | DeviceTaintRule


def check_published(
    record: Record, before: Any, release: Release, *, flat: bool
) -> tuple[Published, tuple[Dropped, ...], tuple[FieldError, ...]]:
    """What is left of *record*, the fields that it lost, and why a server of *release* refuses it.

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


def warn(record: Record, release: Release) -> Iterator[tuple[str, str]]:
    """What the strategies warn about since 1.35 (WarningsOnCreate and WarningsOnUpdate)."""
    if release.number < 35 or not isinstance(record, ResourceSlice):
        return
    if record.spec.driver != record.spec.driver.lower():
        told = f"driver names should be lowercase; {quoted(record.spec.driver)} contains uppercase characters"
        yield "spec.driver", told


def _check_resource_slice(
    record: ResourceSlice, before: ResourceSlice | None, release: Release, *, flat: bool
) -> tuple[Published, tuple[Dropped, ...], tuple[FieldError, ...]]:
    old = before.spec if before is not None else None
    spec, dropped = drop_from_slice(record.spec, release, old)
    written = (
        *check_metadata(record.metadata, release, kind="ResourceSlice", is_new=before is None),
        *check_slice(spec, release, old=old),
    )
    generated = check_generated_slice(spec, release, old=old) if release.number >= SINCE else ()
    kept = record.model_copy(update={"spec": spec}) if dropped else record
    return kept, dropped, merge(written, generated, flat=flat)


def _check_device_taint_rule(
    record: DeviceTaintRule, before: DeviceTaintRule | None, release: Release
) -> tuple[Published, tuple[Dropped, ...], tuple[FieldError, ...]]:
    old = before.spec if before is not None else None
    written = (
        *check_metadata(record.metadata, release, kind="DeviceTaintRule", is_new=before is None),
        *check_taint_rule(record.spec, release, old=old),
    )
    generated = check_generated_taint_rule(record.spec, release, old=old) if release.number >= SINCE else ()
    kept = record.model_copy(update={"spec": with_clock(record.spec, release, old)})
    return kept, (), merge(written, generated)
