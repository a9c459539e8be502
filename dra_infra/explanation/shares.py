"""Shares of a device's capacity: why a device cannot give one, and the largest that it can.

By its `requestPolicy` a device gives some amounts only: what is asked for is rounded up to the next of them. Source:
consumable_capacity.go of the allocators.
"""

from __future__ import annotations

from dra_infra.kubernetes.api import DeviceCapacity, Quantity, nanos
from dra_infra.kubernetes.scheduler.allocator import (
    AllocatedState,
    CapacityError,
    Published,
    Requested,
    Variant,
    consumed_amounts,
)


def refuse_share(name: str, asked: str, capacity: DeviceCapacity, variant: Variant) -> str:
    """Why a device cannot give a share even if nobody had another: `memory is 40Gi`, or what its policy gives.

    Raises:
        CapacityError: In 1.37, when an amount cannot be computed.
    """
    policy = capacity.request_policy
    taken = consumed_amounts({name: asked}, {name: capacity}, variant)[name]
    rounded = f"{asked} takes {taken.canonical_text}" if taken.nanos != nanos(asked) else ""
    if policy is not None and policy.valid_range is not None:
        most = policy.valid_range.max
        if most is not None and taken.nanos > nanos(most):
            told = f"its requestPolicy gives at most {most} of {name}"
            return f"{told}, and {rounded}" if rounded else told
    elif policy is not None and policy.valid_values and taken.nanos > max(map(nanos, policy.valid_values)):
        return f"its requestPolicy gives {', '.join(policy.valid_values)} of {name}"
    told = f"{name} is {capacity.value}"
    return f"{told}, and by its requestPolicy {rounded}" if rounded else told


def describe_left(requested: Requested, published: Published, state: AllocatedState, variant: Variant) -> str:
    """Tells what is left of the capacities of a device that have too little left: `15Gi of memory is left`.

    Returns:
        The text; empty where enough is left, or where 1.37 cannot compute an amount.
    """
    capacities = published.device.capacity or {}
    told = []
    try:
        amounts = consumed_amounts(requested, capacities, variant)
    except CapacityError:
        return ""
    for name, taken in amounts.items():
        left = nanos(capacities[name].value) - state.consumed(published.id).get(name, 0)
        if taken.nanos > left:
            asked = requested.get(name)
            has = taken.written_as(max(left, 0)).canonical_text
            rounded = (
                f", and by its requestPolicy {asked} takes {taken.canonical_text}"
                if asked is not None and nanos(asked) != taken.nanos
                else ""
            )
            told.append(f"{has} of {name} is left{rounded}")
    return ", ".join(told)


def largest_share(asked: str, capacity: DeviceCapacity, used: int) -> str | None:
    """The largest share that a device has left, in the unit of what is asked, or the device's where that is shorter; None where it has none.

    Args:
        asked: How much a request asks for.
        capacity: What the device has.
        used: Nanos that others take of it.
    """
    left = nanos(capacity.value) - used
    policy = capacity.request_policy
    if policy is not None and policy.valid_range is not None:
        valid = policy.valid_range
        least = nanos(valid.min or "0")
        left = min(left, nanos(valid.max)) if valid.max is not None else left
        if left < least:
            return None
        if valid.step is not None and (step := nanos(valid.step)) > 0:
            left = least + (left - least) // step * step
    elif policy is not None and policy.valid_values:
        left = max((amount for amount in map(nanos, policy.valid_values) if amount <= left), default=0)
    texts = [Quantity.parse(each).written_as(left).canonical_text for each in (asked, capacity.value)]
    return min(texts, key=len) if left > 0 else None
