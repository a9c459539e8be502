"""Declarative validation of slices: rules that the server generates from markers, which count since 1.37.

On an update what did not change is not looked at again: the list of devices as a whole, counter sets each by its
name. See `generated` for the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.limits import MAX_CONDITIONS, MAX_CONSUMED_SETS, MAX_GROUPS, MAX_SETS
from dra_infra.kubernetes.api.record_equality import are_lists_equal, are_maps_equal, are_records_equal
from dra_infra.kubernetes.api.resource_slice import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    NodeAllocatableMapping,
    ResourceSliceSpec,
)
from dra_infra.kubernetes.apiserver.devices import LISTS, VALUES, check_effect
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    Printed,
    check_items,
    check_keyed_items,
    check_unique,
    invalid,
    itself,
    malformed,
    not_supported,
    required,
)
from dra_infra.kubernetes.apiserver.generated import check_generated_attribute

OPERATIONS = ("*", "NodePrepareResources", "NodeUnprepareResources")
_SHORT_NAME = "format=k8s-short-name"


def check_generated_slice(
    spec: ResourceSliceSpec, release: Release, *, old: ResourceSliceSpec | None = None
) -> Iterator[FieldError]:
    """Check the spec of a slice, which may be put in the place of the *old* one, by the generated rules."""
    if old is None or not are_lists_equal(old.devices, spec.devices):
        for index, device in enumerate(spec.devices or ()):
            yield from _check_device(device, f"spec.devices[{index}]", release)
    yield from _check_sets(spec, old)
    name = spec.partition_type_attribute
    if name is not None and (old is None or old.partition_type_attribute != name):
        yield from check_generated_attribute(
            name, "spec.partitionTypeAttribute", rule="partition-type.format"
        )
    if old is None or (old.skip_node_operations or []) != (spec.skip_node_operations or []):
        yield from _check_skipped(spec.skip_node_operations, "spec.skipNodeOperations", old)


def _check_skipped(
    operations: list[str] | None, path: str, old: ResourceSliceSpec | None = None
) -> Iterator[FieldError]:
    """Check the calls of the kubelet that are skipped: each is one, and once."""
    yield from check_unique(operations, path, itself, rule="skip.duplicate", covered=False)
    known = {*OPERATIONS, *((old.skip_node_operations if old is not None else None) or ())}
    for index, each in enumerate(operations or ()):
        if each not in known:
            yield not_supported("skip.operation", f"{path}[{index}]", each, OPERATIONS)


def _check_device(device: Device, path: str, release: Release) -> Iterator[FieldError]:
    for name, attribute in (device.attributes or {}).items():
        yield from _check_union(attribute, f"{path}.attributes[{name}]")
    at = f"{path}.consumesCounters"
    consumed = device.consumes_counters
    yield from check_keyed_items(
        consumed,
        at,
        _check_consumption,
        lambda each: each.counter_set,
        size_rule="consumption.size",
        unique_rule="consumption.duplicate",
        limit=MAX_CONSUMED_SETS,
        shown=_shown,
    )
    for index, taint in enumerate(device.taints or ()):
        yield from check_effect(taint, f"{path}.taints[{index}]", release)
    for name, conditions in (
        ("bindingConditions", device.binding_conditions),
        ("bindingFailureConditions", device.binding_failure_conditions),
    ):
        yield from check_items(
            conditions, f"{path}.{name}", None, size_rule="binding.size", limit=MAX_CONDITIONS
        )
    for name, resource in (device.node_allocatable_resources or {}).items():
        if resource.mapping is not None:
            at = f"{path}.nodeAllocatableResources[{name}].mapping"
            yield from _check_mapping(resource.mapping, at)


def _check_union(attribute: DeviceAttribute, path: str) -> Iterator[FieldError]:
    # An empty list is no value here, where the hand-written rule counts it as one.
    found = [
        name
        for name, field in VALUES.items()
        if (value := getattr(attribute, field)) is not None and not (name in LISTS and not value)
    ]
    known = ", ".join(f"`{name}`" for name in VALUES)
    if not found:
        yield invalid("attribute.one-of-none", path, "", f"must specify one of: {known}", origin="union")
    elif len(found) > 1:
        told = f"must specify exactly one of: {known}"
        yield invalid("attribute.one-of-many", path, f"{{{', '.join(found)}}}", told, origin="union")


def _check_consumption(each: DeviceCounterConsumption, path: str) -> Iterator[FieldError]:
    yield from _check_name(each.counter_set, f"{path}.counterSet", stem="consumption.set")
    yield from _check_counters(each.counters, f"{path}.counters")
    groups = each.compatibility_groups
    at = f"{path}.compatibilityGroups"
    yield from check_keyed_items(
        groups,
        at,
        lambda group, place: _check_label(group, place, rule="groups.name"),
        itself,
        size_rule="groups.size",
        unique_rule="groups.duplicate",
        limit=MAX_GROUPS,
        covered=False,
    )


def _check_label(name: str, path: str, *, rule: str) -> Iterator[FieldError]:
    return malformed(rule, path, name, names.dns_label(name, "bytes"), origin=_SHORT_NAME)


def _check_name(name: str, path: str, *, stem: str) -> Iterator[FieldError]:
    if not name:
        yield required(f"{stem}-required", path)
    else:
        yield from _check_label(name, path, rule=stem)


def _check_counters(
    counters: Mapping[str, Counter] | None, path: str, old: Mapping[str, Counter] | None = None
) -> Iterator[FieldError]:
    if not counters:
        yield required("counters.required", path)
    for name in counters or ():
        if name not in (old or {}):
            yield from _check_label(name, path, rule="counters.name")


def _check_mapping(mapping: NodeAllocatableMapping, path: str) -> Iterator[FieldError]:
    members = {"capacityKey": mapping.capacity_key, "deviceMultiplier": mapping.device_multiplier}
    known = ", ".join(f"`{name}`" for name in members)
    found = [name for name, value in members.items() if value is not None]
    if not found:
        told = f"must specify one of: {known}"
        yield invalid("node-resources.one-of-none", path, "", told, origin="union")
    elif len(found) > 1:
        told = f"must specify exactly one of: {known}"
        yield invalid("node-resources.one-of-both", path, f"{{{', '.join(found)}}}", told, origin="union")


def _check_sets(spec: ResourceSliceSpec, old: ResourceSliceSpec | None) -> Iterator[FieldError]:
    path = "spec.sharedCounters"
    sets = spec.shared_counters or []
    stored = (old.shared_counters if old is not None else None) or []
    if old is not None and are_lists_equal(stored, sets):
        return
    before: dict[str, CounterSet] = {}
    for each in stored:
        before.setdefault(each.name, each)
    yield from check_keyed_items(
        sets,
        path,
        lambda each, at: _check_set(each, at, before.get(each.name)),
        lambda each: each.name,
        size_rule="counter-sets.size",
        unique_rule="counter-sets.duplicate",
        limit=MAX_SETS,
        shown=_shown,
    )


def _check_set(each: CounterSet, path: str, old: CounterSet | None) -> Iterator[FieldError]:
    if old is None:
        yield from _check_name(each.name, f"{path}.name", stem="counter-set.name")
    elif are_records_equal(old, each):
        return
    if old is None or not are_maps_equal(old.counters, each.counters):
        yield from _check_counters(
            each.counters, f"{path}.counters", old.counters if old is not None else None
        )


def _shown(item: CounterSet | DeviceCounterConsumption) -> Printed:
    return Printed(item.to_go_json())
