"""The rules for taints of devices, in slices and in taint rules (validateDeviceTaint, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.model.target import Release
from dra_infra.model.toleration import DeviceTaint
from dra_infra.validation import formats
from dra_infra.validation.field_errors import FieldError, invalid, not_supported, required
from dra_infra.validation.requests import label_wording, taint_effects


def check_taint(
    taint: DeviceTaint, path: str, release: Release, *, effect: bool = True
) -> Iterator[FieldError]:
    """Check a taint by the hand-written rules; its *effect* may be one that was stored before."""
    noun, unit = label_wording(release)
    for told in formats.label_key(taint.key, noun=noun, unit=unit):
        yield invalid("taint.key", f"{path}.key", taint.key, told)
    if taint.value:
        for told in formats.label_value(taint.value, unit):
            yield invalid("taint.value", f"{path}.value", taint.value, told)
    if effect:
        yield from check_effect(taint, path, release, covered=True)


def check_effect(
    taint: DeviceTaint, path: str, release: Release, *, covered: bool = False
) -> Iterator[FieldError]:
    """Check the effect of a taint, which both engines do in the same words."""
    effects = taint_effects(release)
    if not taint.effect:
        yield required("taint.effect-required", f"{path}.effect", covered=covered)
    elif taint.effect not in effects:
        yield not_supported("taint.effect", f"{path}.effect", taint.effect, effects, covered=covered)
