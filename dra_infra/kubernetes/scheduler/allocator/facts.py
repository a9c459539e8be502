"""Facts that proofs read of an attempt: values that constraints compare, and counters that devices draw on.

There are facts only where the order in which devices are picked decides nothing but which solution is the first:
where no claim can come to more devices than a result holds, and where no bug of the minor leaves anything behind when
a device is refused or given back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dra_infra.kubernetes.api.limits import MAX_RESULTS
from dra_infra.kubernetes.api.quantity import nanos
from dra_infra.kubernetes.api.resource_claim import DeviceConstraint, ResourceClaim
from dra_infra.kubernetes.api.resource_slice import DeviceAttribute
from dra_infra.kubernetes.scheduler.allocator.constraints import (
    Scope,
    attribute_values,
    scalar_value,
    static_attribute,
)
from dra_infra.kubernetes.scheduler.allocator.counters import CounterAvailability, counter_key
from dra_infra.kubernetes.scheduler.allocator.demands import Demands, positions, union
from dra_infra.kubernetes.scheduler.allocator.identity import Published
from dra_infra.kubernetes.scheduler.allocator.pools import Pool
from dra_infra.kubernetes.scheduler.allocator.requests import RequestKey
from dra_infra.kubernetes.scheduler.allocator.state import AllocatedState
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant


@dataclass(frozen=True, slots=True)
class ConstraintValues:
    """A constraint of a claim; its values are numbered, and a list has several.

    Args:
        scope: Which requests it is about.
        is_match: Whether all devices have a value in common; else no two have.
        values: By candidate.
        holders: Candidates as bits, by value.
    """

    scope: Scope
    is_match: bool
    values: Mapping[int, frozenset[int]]
    holders: Mapping[int, int]

    def with_any(self, wanted: frozenset[int]) -> int:
        """The candidates that have one of some values."""
        return union(self.holders[value] for value in wanted)


@dataclass(frozen=True, slots=True)
class Facts:
    """The devices, requests and amounts of an attempt, by numbers.

    Args:
        demands: Requests and candidates; what a constraint or a counter always refuses is not allowed.
        limits: The constraints of each claim.
        counter_sets: What is left of each counter of a counter set before the attempt.
        draws: By candidate, what it takes of which counter set: number of the counter set, counter, amount.
        at: The position of a candidate.
        state: What is in use.
    """

    demands: Demands
    limits: Sequence[Sequence[ConstraintValues]]
    counter_sets: Sequence[Mapping[str, int]]
    draws: Mapping[int, tuple[tuple[int, str, int], ...]]
    at: Mapping[Published, int]
    state: AllocatedState


def gather_facts(
    demands: Demands,
    claims: Sequence[ResourceClaim],
    state: AllocatedState,
    availability: CounterAvailability,
) -> Facts | None:
    """The facts of an attempt that no error can end; None where the order of the tries matters."""
    if not _is_orderly(demands, claims):
        return None
    allowed = dict(demands.allowed)
    limits: list[list[ConstraintValues]] = []
    for number, claim in enumerate(claims):
        limits.append([])
        for constraint in claim.spec.devices.constraints or ():
            limit = _limit(number, constraint, demands, allowed)
            if limit is None:
                return None
            limits[-1].append(limit)
    counter_sets = _CounterSets(demands.variant, availability)
    draws: dict[int, tuple[tuple[int, str, int], ...]] = {}
    blocked = 0
    for at in demands.candidates_in_question():
        pool, published = demands.candidates[at]
        if published.device.consumes_counters:
            drawn = counter_sets.draw(pool, published)
            if drawn is None:
                blocked |= 1 << at
            else:
                draws[at] = drawn
    for key in allowed:
        if demands.wanted[key].all_devices is None:
            allowed[key] &= ~blocked
    return Facts(
        replace(demands, allowed=allowed),
        limits,
        counter_sets.found,
        draws,
        {published: at for at, (_, published) in enumerate(demands.candidates)},
        state,
    )


def _is_orderly(demands: Demands, claims: Sequence[ResourceClaim]) -> bool:
    variant = demands.variant
    most = [0] * len(claims)
    for entries in demands.requests():
        most[entries[0].claim] += max(demands.wanted[key].count for key in entries)
        if variant.has(Quirk.ALL_GOES_ON_WITH_FIRST) and any(
            demands.wanted[key].parent and demands.wanted[key].all_devices is not None for key in entries
        ):
            return False
    if max(most, default=0) > MAX_RESULTS:
        return False
    if variant.has(Quirk.REFUSED_KEEPS) and _leaks(demands, claims):
        return False
    drawing = sum(
        1 << at
        for at in demands.candidates_in_question()
        if demands.candidates[at][1].device.consumes_counters
    )
    return not drawing & demands.shares and not (drawing and variant.features.compatibility_groups)


def _leaks(demands: Demands, claims: Sequence[ResourceClaim]) -> bool:
    """A device may be refused after it took something that it keeps then."""
    if demands.shares:
        return True
    drawing = [each.device for _, each in demands.candidates if each.device.consumes_counters]
    constrained = any(claim.spec.devices.constraints for claim in claims)
    return bool(drawing) and (constrained or any(device.taints for device in drawing))


def _limit(
    claim: int, constraint: DeviceConstraint, demands: Demands, allowed: dict[RequestKey, int]
) -> ConstraintValues | None:
    """A constraint with its values; what has none is no longer allowed. None where the order matters."""
    variant = demands.variant
    scope = Scope(constraint)
    keys = [key for key, wanted in demands.wanted.items() if key.claim == claim and scope.covers(wanted)]
    name = constraint.match_attribute
    is_match = name is not None
    if name is None:
        name = constraint.distinct_attribute or ""
    if not is_match and (
        variant.has(Quirk.DISTINCT_BY_POINTER)
        or (variant.has(Quirk.DISTINCT_FORGETS) and any(demands.wanted[key].count > 1 for key in keys))
    ):
        return None
    if is_match and variant.features.list_attributes and variant.has(Quirk.LISTS_STAY_NARROW):
        return None
    numbers: dict[object, int] = {}
    found: dict[int, frozenset[int]] = {}
    holders: dict[int, int] = {}
    for at in positions(union(allowed[key] for key in keys)):
        attribute = static_attribute(demands.candidates[at][1], name)
        if attribute is None:
            for key in keys:
                allowed[key] &= ~(1 << at)
            continue
        elements = _elements(attribute, variant)
        if not elements:
            return None
        found[at] = frozenset(numbers.setdefault(each, len(numbers)) for each in elements)
        for value in found[at]:
            holders[value] = holders.get(value, 0) | 1 << at
    return ConstraintValues(scope, is_match, found, holders)


def _elements(attribute: DeviceAttribute, variant: Variant) -> list[object]:
    """The values that are compared; none where the first device may have it and others not."""
    if sum(value is not None for value in attribute.__dict__.values()) != 1:
        return []
    if variant.features.list_attributes:
        several = attribute_values(attribute)
        return [] if several is None else [(several[0], each) for each in several[1]]
    single = scalar_value(attribute)
    return [] if single is None else [single]


class _CounterSets:
    def __init__(self, variant: Variant, availability: CounterAvailability) -> None:
        self.found: list[Mapping[str, int]] = []
        self._variant = variant
        self._availability = availability
        self._numbers: dict[object, int] = {}

    def draw(self, pool: Pool, published: Published) -> tuple[tuple[int, str, int], ...] | None:
        """Counters that a device takes; None where one of its pool is overdrawn, so that nobody gets anything."""
        available = self._availability.of(pool, published)
        if any(left < 0 for counters in available.values() for left in counters.values()):
            return None
        key = counter_key(published, self._variant)
        sums: dict[tuple[int, str], int] = {}
        for consumption in published.device.consumes_counters or ():
            known = available.get(consumption.counter_set)
            if known is None:
                continue
            number = self._numbers.get((key, consumption.counter_set))
            if number is None:
                number = self._numbers[key, consumption.counter_set] = len(self.found)
                self.found.append(known)
            for name, counter in (consumption.counters or {}).items():
                if name in known:
                    sums[number, name] = sums.get((number, name), 0) + nanos(counter.value)
        return tuple((number, name, amount) for (number, name), amount in sums.items())
