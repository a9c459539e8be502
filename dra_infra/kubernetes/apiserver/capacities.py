"""Hand-written rules for device capacities, shared counters and node-allocatable resources (validation.go).

- What one request may take of a capacity: validateRequestPolicy and below.
- Counter sets and what devices take from them: validateCounterSet.
- What a device counts against its node: validateNodeAllocatableResources.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.go_text import go_json
from dra_infra.kubernetes.api.limits import MAX_CONSUMED_SETS, MAX_COUNTERS, MAX_OPTIONS, MAX_SETS
from dra_infra.kubernetes.api.quantity import MAX_INT64, Amount, wrapped
from dra_infra.kubernetes.api.resource_slice import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResourceMapping,
)
from dra_infra.kubernetes.apiserver.configurations import check_qualified
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    Printed,
    check_keyed_items,
    check_unique,
    forbidden,
    internal,
    invalid,
    keyed,
    malformed,
    not_found,
    required,
    too_many,
)

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
    options = policy.valid_values or ()
    bounds = policy.valid_range
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
            shown = str(options[index + 1])
            told = "values must be sorted in ascending order"
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
        rule = "policy.values-duplicate"
        yield from check_unique(options, path, _key(release), rule=rule, covered=False)
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


_LABEL = 63
_SHORT_NAME = "format=k8s-short-name"


def check_counter_sets(
    sets: Sequence[CounterSet] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """Check the counters that a slice offers."""
    is_old = release.number < 35
    total = sum(len(each.counters or ()) for each in sets or ())
    if is_old and total > MAX_COUNTERS:
        told = f"the total number of shared counters must not exceed {MAX_COUNTERS}"
        yield invalid("counter-sets.total", path, total, told)
    yield from check_keyed_items(
        sets,
        path,
        lambda each, at: _check_set(each, at, release),
        lambda each: each.name,
        size_rule="counter-sets.size",
        unique_rule="counter-sets.duplicate",
        limit=-1 if is_old else MAX_SETS,
        below=".name" if is_old else "",
    )


def _check_set(counter_set: CounterSet, path: str, release: Release) -> Iterator[FieldError]:
    if not counter_set.name:
        yield required("counter-set.name-required", f"{path}.name", covered=True)
    else:
        yield from _check_name(counter_set.name, f"{path}.name", rule="counter-set.name")
    yield from _check_counters(counter_set.counters, f"{path}.counters", release)


def _check_counters(
    counters: Mapping[str, Counter] | None, path: str, release: Release
) -> Iterator[FieldError]:
    if not counters:
        yield required("counters.required", path, covered=True)
        return
    if release.number >= 35 and len(counters) > MAX_COUNTERS:
        yield too_many("counters.size", path, len(counters), MAX_COUNTERS)
        return
    for name in counters:
        at = path if release.number >= 36 else f"{path}[{keyed(name, _LABEL)}]"
        yield from _check_name(name, at, rule="counters.name")


def _check_name(name: str, path: str, *, rule: str) -> Iterator[FieldError]:
    yield from malformed(rule, path, name, names.dns_label(name), origin=_SHORT_NAME, covered=True)


def check_consumption(
    consumed: Sequence[DeviceCounterConsumption] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """Check `consumesCounters` of a device."""
    is_old = release.number < 35
    yield from check_keyed_items(
        consumed,
        path,
        lambda each, at: _check_consumed(each, at, release),
        lambda each: each.counter_set,
        size_rule="consumption.size",
        unique_rule="consumption.duplicate",
        limit=-1 if is_old else MAX_CONSUMED_SETS,
        below=".counterSet" if is_old else "",
    )


def _check_consumed(each: DeviceCounterConsumption, path: str, release: Release) -> Iterator[FieldError]:
    if not each.counter_set:
        yield required("consumption.set-required", f"{path}.counterSet", covered=True)
    elif release.number >= 35:
        yield from _check_name(each.counter_set, f"{path}.counterSet", rule="consumption.set")
    yield from _check_counters(each.counters, f"{path}.counters", release)


def check_old_consumption(
    consumed: Sequence[DeviceCounterConsumption] | None, path: str, sets: Mapping[str, frozenset[str]]
) -> Iterator[FieldError]:
    """Check what servers up to 1.34 do, whose counters are in the slice of the devices; *path* is the device's."""
    total = sum(len(each.counters or ()) for each in consumed or ())
    if total > MAX_COUNTERS:
        told = f"the total number of counters must not exceed {MAX_COUNTERS}"
        yield invalid("consumption.total", path, total, told)
    for index, each in enumerate(consumed or ()):
        at = f"{path}.consumesCounters[{index}]"
        if each.counter_set not in sets:
            told = "must reference a counterSet defined in the ResourceSlice sharedCounters"
            yield invalid("consumption.unknown-set", f"{at}.counterSet", each.counter_set, told)
            continue
        for name in each.counters or ():
            if name not in sets[each.counter_set]:
                told = "must reference a counter defined in the ResourceSlice sharedCounters"
                yield invalid("consumption.unknown-counter", f"{at}.counters", name, told)


_POSITIVE = "must be positive"


def check_node_resources(device: Device, path: str, release: Release) -> Iterator[FieldError]:
    """Check what *device* says of cpu, memory and huge pages of its node; 1.36 has it in another shape."""
    keys = device.capacity or {}
    if release.number >= 37:
        yield from _check_resources(device, f"{path}.nodeAllocatableResources", keys)
    else:
        for name, mapping in (device.node_allocatable_resource_mappings or {}).items():
            at = f"{path}.nodeAllocatableResourceMappings[{name}]"
            if "/" in name and "kubernetes.io/" not in name:
                yield _no_node_resource(name, at)
            yield from _check_old_mapping(mapping, at, keys)


def _no_node_resource(name: str, path: str) -> FieldError:
    return invalid(
        "node-resources.name", path, Printed(go_json(name)), "must be a node allocatable resource name"
    )


def _check_resources(device: Device, path: str, keys: Collection[str]) -> Iterator[FieldError]:
    for name, resource in (device.node_allocatable_resources or {}).items():
        at = f"{path}[{name}]"
        if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
            yield _no_node_resource(name, at)
        if resource.mapping is None and resource.overhead is None:
            yield required("node-resources.empty", at, "at least one of mapping or overhead must be set")
        if resource.mapping is not None:
            yield from _check_mapping(resource.mapping, f"{at}.mapping", keys)
        if resource.overhead is not None:
            yield from _check_overhead(resource.overhead, f"{at}.overhead")


def _check_old_mapping(
    mapping: NodeAllocatableResourceMapping, path: str, keys: Collection[str]
) -> Iterator[FieldError]:
    yield from _check_positive(mapping.allocation_multiplier, f"{path}.allocationMultiplier")
    yield from _check_key(mapping.capacity_key, f"{path}.capacityKey", keys)


def _check_mapping(mapping: NodeAllocatableMapping, path: str, keys: Collection[str]) -> Iterator[FieldError]:
    multiplier = mapping.capacity_multiplier
    if mapping.capacity_key is not None:
        yield from _check_key(mapping.capacity_key, f"{path}.capacityKey", keys)
        if multiplier is None:
            told = "capacityMultiplier is required when capacityKey is set"
            yield required("node-resources.multiplier-required", f"{path}.capacityMultiplier", told)
        yield from _check_positive(multiplier, f"{path}.capacityMultiplier")
    elif multiplier is not None:
        told = "capacityKey is required when capacityMultiplier is set"
        yield required("node-resources.key-required", f"{path}.capacityKey", told)
    yield from _check_positive(mapping.device_multiplier, f"{path}.deviceMultiplier")


def _check_key(key: str | None, path: str, keys: Collection[str]) -> Iterator[FieldError]:
    if key == "":
        told = "capacityKey must not be an empty string"
        yield invalid("node-resources.key-empty", path, "", told)
    elif key is not None and key not in keys:
        yield not_found("node-resources.key-unknown", path, Printed(go_json(key)))


def _check_positive(amount: str | None, path: str) -> Iterator[FieldError]:
    if amount is not None and (read := Amount(amount)).value <= 0:
        yield invalid("node-resources.positive", path, str(read), _POSITIVE)


def _check_overhead(overhead: NodeAllocatableOverhead, path: str) -> Iterator[FieldError]:
    if overhead.per_pod is None and overhead.per_container is None:
        told = "at least one of perPod or perContainer must be set"
        yield invalid("node-resources.overhead-empty", path, "", told)
    for name, amount in (("perPod", overhead.per_pod), ("perContainer", overhead.per_container)):
        if amount is not None and (read := Amount(amount)).value < 0:
            yield invalid(
                "node-resources.overhead-negative", f"{path}.{name}", str(read), "must be non-negative"
            )
