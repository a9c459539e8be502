"""The rules for what one request may take of a capacity (validateRequestPolicy and below, validation.go)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

from dra_infra.model.device import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from dra_infra.model.go_quantity import MAX_INT64, Amount, wrapped
from dra_infra.model.target import Release
from dra_infra.validation.attribute_names import check_qualified
from dra_infra.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    internal,
    invalid,
    required,
    too_many,
)
from dra_infra.validation.lists import keyed

MAX_OPTIONS = 10
_FRACTIONS = "DRAFractionalCapacityRange"
PANIC = "the API server panics over a step of zero"


def check_capacities(
    capacities: Mapping[str, DeviceCapacity] | None, path: str, release: Release, *, is_shareable: bool
) -> Iterator[FieldError]:
    """Check the capacities of a device that several requests share, or that one has for itself."""
    for name, capacity in (capacities or {}).items():
        at = f"{path}[{keyed(name)}]"
        yield from check_qualified(
            name, path if release.number >= 36 else at, release, rule="device.capacity-name"
        )
        policy = capacity.request_policy
        if policy is None:
            continue
        if is_shareable:
            yield from _check_policy(Amount(capacity.value), policy, f"{at}.requestPolicy", release)
        else:
            told = "allowMultipleAllocations must be true"
            yield forbidden("policy.needs-sharing", f"{at}.requestPolicy", told)


def _check_policy(
    most: Amount, policy: CapacityRequestPolicy, path: str, release: Release
) -> Iterator[FieldError]:
    options, bounds = policy.valid_values or (), policy.valid_range
    if options and bounds is not None:
        told = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield forbidden("policy.one-of", path, told)
        return
    if not options and bounds is None:
        return
    field = "validValues" if options else "validRange"
    if policy.default is None:
        yield required("policy.default-required", f"{path}.default", f"required when {field} is defined")
        return
    default = Amount(policy.default)
    if bounds is None:
        amounts = [Amount(option) for option in options]
        yield from _check_options(amounts, default, most, f"{path}.validValues", release)
    else:
        yield from _check_range(bounds, default, most, f"{path}.validRange", release)


def _check_options(
    options: list[Amount], default: Amount, most: Amount, path: str, release: Release
) -> Iterator[FieldError]:
    for index in range(len(options) - 1):
        if options[index].compare(options[index + 1]) > 0:
            shown, told = str(options[index + 1]), "values must be sorted in ascending order"
            yield invalid("policy.values-sorted", f"{path}[{index + 1}]", shown, told)
    has_default = False
    if len(options) > MAX_OPTIONS:
        yield too_many("policy.values-size", path, len(options), MAX_OPTIONS)
    if len(options) <= MAX_OPTIONS or release.number < 35:
        for index, option in enumerate(options):
            if option.compare(most) > 0:
                told = f"option is larger than capacity value: {most}"
                yield invalid("policy.value-too-large", f"{path}[{index}]", str(option), told)
            has_default = has_default or option.value == default.value
        yield from _check_unique(options, path, _key(release))
    if not has_default:
        told = "default value is not valid according to the requestPolicy"
        yield invalid("policy.default-among-values", path, str(default), told)


def _key(release: Release) -> Callable[[Amount], Hashable]:
    # Without fractions two amounts count as one when they round to the same number.
    return _spelling if release.enabled(_FRACTIONS) else lambda amount: str(amount.whole)


def _spelling(amount: Amount) -> str:
    """The amount as Go's decimal prints it, with the digits that it was written with."""
    digits = abs(int(amount.value * 10**amount.places))
    text = str(digits).rjust(amount.places + 1, "0")
    point = len(text) - amount.places
    sign = "-" if amount.value < 0 else ""
    return f"{sign}{text[:point]}.{text[point:]}" if amount.places else f"{sign}{text}"


def _check_unique(
    options: list[Amount], path: str, key: Callable[[Amount], Hashable]
) -> Iterator[FieldError]:
    seen = set()
    for index, option in enumerate(options):
        found = key(option)
        if found in seen:
            yield duplicate("policy.values-duplicate", f"{path}[{index}]", found)
        seen.add(found)


def _check_range(
    bounds: CapacityRequestPolicyRange, default: Amount, most: Amount, path: str, release: Release
) -> Iterator[FieldError]:
    if bounds.min is None:
        yield required("policy.min-required", f"{path}.min", "required when validRange is defined")
        return
    least = Amount(bounds.min)
    highest = Amount(bounds.max) if bounds.max is not None else None
    step = Amount(bounds.step) if bounds.step is not None else None
    yield from _check_bounds(least, highest, default, most, path, release)
    named = {"default": default, "min": least, "max": highest, "step": step}
    given = {name: amount for name, amount in named.items() if amount is not None}
    uses_milli = release.enabled(_FRACTIONS) and any(amount.is_fractional for amount in given.values())
    if uses_milli:
        unsafe = [
            invalid(
                "policy.milli", f"{path}.{name}", str(amount), "value cannot be represented as a milli value"
            )
            for name, amount in given.items()
            if amount.value * 1000 != amount.milli
        ]
        yield from unsafe
        if unsafe:
            return
    if step is not None:
        yield from _check_step(given, most, path, release, uses_milli=uses_milli)


def _check_bounds(
    least: Amount, highest: Amount | None, default: Amount, most: Amount, path: str, release: Release
) -> Iterator[FieldError]:
    # Up to 1.36 the default is reported at what it does not agree with.
    own = release.number >= 37
    if least.compare(most) > 0:
        told = f"min is larger than capacity value: {most}"
        yield invalid("policy.min-too-large", f"{path}.min", str(least), told)
    if default.compare(least) < 0:
        told = f"default is less than min: {least}"
        yield invalid("policy.default-in-range", f"{path}.{'default' if own else 'min'}", str(default), told)
    if highest is None:
        return
    if least.compare(highest) > 0:
        told = f"min is larger than max: {highest}"
        yield invalid("policy.min-above-max", f"{path}.max", str(least), told)
    if highest.compare(most) > 0:
        told = f"max is larger than capacity value: {most}"
        yield invalid("policy.max-too-large", f"{path}.max", str(highest), told)
    if default.compare(highest) > 0:
        told = f"default is more than max: {highest}"
        yield invalid("policy.default-in-range", f"{path}.{'default' if own else 'max'}", str(default), told)


def _check_step(
    given: Mapping[str, Amount], most: Amount, path: str, release: Release, *, uses_milli: bool
) -> Iterator[FieldError]:
    step, least = given["step"], given["min"]
    if step.value <= 0 and release.number >= 37:
        yield invalid("policy.step-positive", f"{path}.step", str(step), "must be greater than zero")
        return
    if least.value + step.value > most.value:
        told = f"one step {least.plus(step)} is larger than capacity value: {most}"
        yield invalid("policy.step-too-large", f"{path}.step", str(step), told)
    if release.number >= 37 and not uses_milli:
        unsafe = [error for name, amount in given.items() for error in _check_int64(amount, f"{path}.{name}")]
        yield from unsafe
        if unsafe:
            return
    width = step.milli if uses_milli else step.whole
    start = least.milli if uses_milli else least.whole
    if width == 0:
        yield internal("policy.step-panic", path, PANIC)
        return
    for name in ("default", "max"):
        amount = given.get(name)
        if amount is None:
            continue
        value = amount.milli if uses_milli else amount.whole
        if wrapped(value - start) % width != 0:
            told = f"value is not a multiple of a given step ({step}) from ({least})"
            yield invalid("policy.step-multiple", f"{path}.step", str(amount), told)


def _check_int64(amount: Amount, path: str) -> Iterator[FieldError]:
    if amount.value < 0:
        yield invalid("policy.int64", path, str(amount), "must be greater than or equal to 0")
    elif amount.value > MAX_INT64:
        yield invalid("policy.int64", path, str(amount), f"must not be larger than {MAX_INT64}")
