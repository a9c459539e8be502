"""The hand-written rules for binding conditions, of devices and of allocated ones (validateDeviceBindingParameters)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.field_errors import FieldError, invalid
from dra_infra.validation.lists import check_items, check_unique
from dra_infra.validation.requests import label_wording

MAX_CONDITIONS = 4


def check_bindings(
    conditions: Sequence[str] | None, failures: Sequence[str] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """Check both lists; *path* is that of the device."""
    ready, failed = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    for items, at in ((conditions, ready), (failures, failed)):
        yield from check_items(
            items,
            at,
            lambda name, place: _check_condition(name, place, release),
            size_rule="binding.size",
            limit=MAX_CONDITIONS,
            goes_on=release.number < 35,
        )
        # Looked at even where there are too many.
        yield from check_unique(items, at, lambda name: name, rule="binding.duplicate", covered=False)
    for index, name in enumerate(failures or ()):
        if name in (conditions or ()):
            told = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid("binding.overlap", f"{failed}[{index}]", name, told)
    if failures and not conditions:
        told = "bindingConditions are required to use bindingFailureConditions"
        yield invalid("binding.both", ready, conditions, told)
    if conditions and not failures:
        told = "bindingFailureConditions are required to use bindingConditions"
        yield invalid("binding.both", failed, failures, told)


def _check_condition(name: str, path: str, release: Release) -> Iterator[FieldError]:
    noun, unit = label_wording(release)
    for told in formats.label_key(name, noun=noun, unit=unit):
        yield invalid("binding.condition", path, name, told)
