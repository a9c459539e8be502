"""Consumable capacity: the part of a device that one request takes, and whether it is still there.

Source: consumable_capacity.go of the incubating and experimental allocators. 1.37 counts in thousandths where the
gate DRAFractionalCapacityRange is on, and ends the attempt for amounts that its arithmetic cannot hold; earlier
minors skip the device and print a rounded amount with a binary suffix.
"""

from __future__ import annotations

from collections.abc import Mapping

from dra_infra.kubernetes.api.go_text import go_json
from dra_infra.kubernetes.api.quantity import BINARY, MAX_INT64, MILLI, NANO, Quantity, nanos
from dra_infra.kubernetes.api.resource_slice import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from dra_infra.kubernetes.scheduler.allocator.variants import Variant

_UNREPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"
_NEGATIVE = "capacity value is negative"

Capacities = Mapping[str, DeviceCapacity]
Requested = Mapping[str, str]
"""Capacity that a request asks for, by name, as it was written."""


class CapacityError(Exception):
    """A request that 1.37 refuses for good; the text is the allocator's."""


def consumed_amounts(requested: Requested, capacities: Capacities, variant: Variant) -> dict[str, Quantity]:
    """Amounts that a request takes of every capacity of a device, named or not.

    Raises:
        CapacityError: In 1.37, when an amount cannot be computed.
    """
    taken = {}
    # Upstream walks a Go map: which of several errors it tells is random there, and the first by name here.
    for name in sorted(capacities):
        text = requested.get(name)
        try:
            amount = _consumed(None if text is None else Quantity.parse(text), capacities[name], variant)
        except CapacityError as error:
            raise CapacityError(f"capacity {go_json(name)}: {error}") from None
        taken[name] = amount
    return taken


def fits_capacity(
    requested: Requested,
    capacities: Capacities,
    used: Mapping[str, int],
    allocating: Mapping[str, int],
    variant: Variant,
) -> bool:
    """Checks that enough is left of a device for a request.

    Args:
        requested: Amounts by capacity, as the request has them.
        capacities: The capacities of the device.
        used: Nanos that earlier claims take, by capacity.
        allocating: Nanos that this attempt takes already.
        variant: Whose arithmetic.

    Raises:
        CapacityError: In 1.37, when an amount cannot be computed or is negative.
    """
    if any(name not in capacities for name in requested):
        return False
    taken = consumed_amounts(requested, capacities, variant)
    if variant.number >= 37:
        for name, amount in taken.items():
            if amount.nanos < 0:
                raise CapacityError(f"capacity {go_json(name)}: {_NEGATIVE}")
    return all(
        not _violates(taken[name], capacity.request_policy, variant)
        and used.get(name, 0) + allocating.get(name, 0) + taken[name].nanos <= nanos(capacity.value)
        for name, capacity in capacities.items()
    )


def _consumed(requested: Quantity | None, capacity: DeviceCapacity, variant: Variant) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        return Quantity.parse(capacity.value if policy is None or policy.default is None else policy.default)
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _round_up(requested, policy.valid_range, policy.valid_range.min, variant)
    for value in map(Quantity.parse, policy.valid_values or ()):
        if requested.nanos <= value.nanos:
            return value
    return requested


def _round_up(
    requested: Quantity, valid: CapacityRequestPolicyRange, least: str, variant: Variant
) -> Quantity:
    minimum = Quantity.parse(least)
    if requested.nanos < minimum.nanos:
        return minimum
    if valid.step is None:
        return requested
    step = Quantity.parse(valid.step)
    shown = requested.canonical_text
    if _counts_in_milli(valid, variant):
        milli = requested.exact_milli()
        if milli is None:
            raise CapacityError(f"{_UNREPRESENTABLE}: request {shown} is not a representable milli value")
        first, width = minimum.milli, step.milli
        steps = _steps(milli - first, width)
        if steps > (MAX_INT64 - first) // width:
            raise CapacityError(
                f"{_UNREPRESENTABLE}: rounding request {shown} up to the next step passes the milli-value range"
            )
        return step.written_as((first + width * steps) * MILLI)
    if variant.number >= 37 and requested.nanos > MAX_INT64 * NANO:
        raise CapacityError(f"{_UNREPRESENTABLE}: request {shown} exceeds MaxInt64")
    first, width = minimum.whole, step.whole
    steps = _steps(requested.whole - first, width)
    if variant.number >= 37 and first >= 0 and steps > (MAX_INT64 - first) // width:
        raise CapacityError(
            f"{_UNREPRESENTABLE}: rounding request {shown} up to the next step passes MaxInt64"
        )
    form = step if variant.number >= 37 else BINARY
    return form.written_as((first + width * steps) * NANO)


def _steps(added: int, width: int) -> int:
    """Steps up to an amount, in Go's division: an amount that left 64 bits is below the first, and one step is made."""
    whole, rest = divmod(abs(added), width)
    return (whole if added >= 0 else -whole) + (rest != 0)


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None, variant: Variant) -> bool:
    if policy is None:
        return False
    if policy.default is not None and amount.is_same(Quantity.parse(policy.default)):
        return False
    if policy.valid_range is not None:
        return _leaves_range(amount, policy.valid_range, variant)
    values = policy.valid_values
    return bool(values) and all(amount.nanos != nanos(value) for value in values or ())


def _leaves_range(amount: Quantity, valid: CapacityRequestPolicyRange, variant: Variant) -> bool:
    if valid.max is not None and amount.nanos > nanos(valid.max):
        return True
    if valid.step is None:
        return False
    step, minimum = Quantity.parse(valid.step), Quantity.parse(valid.min or "0")
    if _counts_in_milli(valid, variant):
        milli = amount.exact_milli()
        return milli is None or (milli - minimum.milli) % step.milli != 0
    return (amount.whole - minimum.whole) % step.whole != 0


def _counts_in_milli(valid: CapacityRequestPolicyRange, variant: Variant) -> bool:
    if not variant.features.fractional_capacity_range:
        return False
    if any(
        text is not None and Quantity.parse(text).exact_milli() is None
        for text in (valid.min, valid.max, valid.step)
    ):
        return False
    return valid.step is None or Quantity.parse(valid.step).milli >= 1
