"""Hand-written rules for ResourceSlice (validateResourceSliceSpec, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.go_text import go_json
from dra_infra.kubernetes.api.limits import (
    MAX_ADVANCED_DEVICES,
    MAX_DEVICE_COUNTERS,
    MAX_DEVICES,
    MAX_POOL_NAME,
)
from dra_infra.kubernetes.api.placeholders import is_placeholder
from dra_infra.kubernetes.api.record import write_internal_list
from dra_infra.kubernetes.api.resource_slice import (
    Device,
    DeviceAttribute,
    NodeSelector,
    ResourcePool,
    ResourceSliceSpec,
)
from dra_infra.kubernetes.apiserver.capacities import check_counter_sets
from dra_infra.kubernetes.apiserver.configurations import check_driver_name, check_fully_qualified
from dra_infra.kubernetes.apiserver.devices import LISTS, SliceContext, check_device, check_node_selector
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    Printed,
    check_keyed_items,
    invalid,
    malformed,
    required,
    too_long,
)

_IMMUTABLE = "field is immutable"
_NODE_FIELDS = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_TRUE_OR_ABSENT = "must be either unset or set to true"


def check_slice(
    spec: ResourceSliceSpec, release: Release, *, old: ResourceSliceSpec | None = None
) -> Iterator[FieldError]:
    """Check the spec of a slice, which may be put in the place of the *old* one."""
    yield from check_driver_name(
        spec.driver, "spec.driver", rule="slice.driver", checks_missing=release.number < 35
    )
    yield from _check_pool(spec.pool, "spec.pool")
    if old is not None:
        yield from _check_unchanged(spec, old)
    yield from _check_nodes(spec, release)
    if release.number >= 35 and spec.shared_counters is not None and spec.devices is not None:
        told = "only one of `sharedCounters` or `devices` is allowed"
        yield invalid("slice.counters-or-devices", "spec", "", told)
    yield from _check_devices(spec, release, old)
    yield from check_counter_sets(spec.shared_counters, "spec.sharedCounters", release)
    if spec.partition_type_attribute is not None:
        yield from _check_partition_type(spec, spec.partition_type_attribute, release)
    yield from _check_skipped(spec.skip_node_operations, "spec.skipNodeOperations")


def check_pool_name(name: str, path: str, *, rule: str) -> Iterator[FieldError]:
    """Check the name of a pool: subdomains joined by slashes (validatePoolName)."""
    if not name:
        yield required(f"{rule}-required", path)
        return
    if is_placeholder(name):
        return
    if names.size(name) > MAX_POOL_NAME:
        yield too_long(f"{rule}-length", path, MAX_POOL_NAME)
    for part in name.split("/"):
        yield from malformed(f"{rule}-format", path, part, names.dns_subdomain(part))


def _check_pool(pool: ResourcePool, path: str) -> Iterator[FieldError]:
    yield from check_pool_name(pool.name, f"{path}.name", rule="pool.name")
    if pool.resource_slice_count <= 0:
        at = f"{path}.resourceSliceCount"
        yield invalid("pool.slice-count", at, pool.resource_slice_count, "must be greater than zero")
    if pool.generation < 0:
        told = "must be greater than or equal to zero"
        yield invalid("pool.generation", f"{path}.generation", pool.generation, told)


def _check_unchanged(spec: ResourceSliceSpec, old: ResourceSliceSpec) -> Iterator[FieldError]:
    if spec.pool.name != old.pool.name:
        yield invalid("slice.immutable", "spec.pool.name", spec.pool.name, _IMMUTABLE)
    if spec.driver != old.driver:
        yield invalid("slice.immutable", "spec.driver", spec.driver, _IMMUTABLE)
    if spec.node_name != old.node_name:
        yield invalid("slice.immutable", "spec.nodeName", Printed(go_json(spec.node_name)), _IMMUTABLE)


def _check_nodes(spec: ResourceSliceSpec, release: Release) -> Iterator[FieldError]:
    found = []
    if spec.node_name == "":
        told = "must be either unset or set to a non-empty string"
        yield invalid("slice.node-name", "spec.nodeName", "", told)
    elif spec.node_name is not None:
        found.append("`nodeName`")
        for told in names.dns_subdomain(spec.node_name):
            yield invalid("slice.node-name", "spec.nodeName", spec.node_name, told)
    if spec.node_selector is not None:
        found.append("`nodeSelector`")
        yield from _check_selector(spec.node_selector, "spec.nodeSelector", release)
    for name, value in (
        ("allNodes", spec.all_nodes),
        ("perDeviceNodeSelection", spec.per_device_node_selection),
    ):
        if value:
            found.append(f"`{name}`")
        elif value is not None:
            yield invalid("slice.true-or-absent", f"spec.{name}", value, _TRUE_OR_ABSENT)
    if not found:
        yield required("slice.nodes-none", "spec", _NODE_FIELDS)
    elif len(found) > 1:
        told = f"{_NODE_FIELDS}, but multiple fields are set"
        yield invalid("slice.nodes-many", "spec", f"{{{', '.join(found)}}}", told)


def _check_selector(selector: NodeSelector, path: str, release: Release) -> Iterator[FieldError]:
    yield from check_node_selector(selector, path, release)
    terms = selector.node_selector_terms
    if len(terms or ()) != 1:
        shown = Printed(write_internal_list(terms, release.number))
        told = "must have exactly one node selector term"
        yield invalid("slice.node-selector-terms", f"{path}.nodeSelectorTerms", shown, told)


def max_devices(spec: ResourceSliceSpec, release: Release) -> int:
    """Devices that the slice may have."""
    if release.number < 35:
        return MAX_DEVICES
    is_advanced = any(
        device.taints or device.consumes_counters or (release.number >= 36 and _has_lists(device))
        for device in spec.devices or ()
    )
    return MAX_ADVANCED_DEVICES if is_advanced else MAX_DEVICES


def _has_lists(device: Device) -> bool:
    return any(
        getattr(attribute, name) is not None
        for attribute in (device.attributes or {}).values()
        for name in LISTS
    )


def _check_devices(
    spec: ResourceSliceSpec, release: Release, old: ResourceSliceSpec | None
) -> Iterator[FieldError]:
    is_old = release.number < 35
    stored: dict[str, Device] = {}
    for device in (old.devices if old is not None else None) or ():
        stored.setdefault(device.name, device)
    context = SliceContext(
        release=release,
        selects_per_device=bool(spec.per_device_node_selection),
        stored=stored,
        sets={each.name: frozenset(each.counters or ()) for each in spec.shared_counters or ()},
    )
    yield from check_keyed_items(
        spec.devices,
        "spec.devices",
        lambda device, at: check_device(device, at, context),
        lambda device: device.name,
        size_rule="slice.devices-size",
        unique_rule="slice.devices-duplicate",
        limit=max_devices(spec, release),
        checks_all=is_old,
        below=".name" if is_old else "",
        covered=False,
    )
    total = sum(
        len(each.counters or ()) for device in spec.devices or () for each in device.consumes_counters or ()
    )
    if is_old and total > MAX_DEVICE_COUNTERS:
        told = f"the total number of counters in devices must not exceed {MAX_DEVICE_COUNTERS}"
        yield invalid("slice.device-counters", "spec.devices", total, told)


def _check_partition_type(spec: ResourceSliceSpec, name: str, release: Release) -> Iterator[FieldError]:
    if not any(device.consumes_counters for device in spec.devices or ()):
        told = "may only be set on a slice which declares devices that consume counters"
        yield invalid("partition-type.no-counters", "spec.partitionTypeAttribute", name, told)
        return
    # The format is a rule of the generated engine.
    if any(check_fully_qualified(name, "", release, covered=False)):
        return
    bare = name.removeprefix(f"{spec.driver}/")
    for index, device in enumerate(spec.devices or ()):
        if not device.consumes_counters:
            continue
        at = f"spec.devices[{index}].attributes[{name}]"
        attributes: dict[str, DeviceAttribute] = device.attributes or {}
        attribute = attributes.get(name) or attributes.get(bare)
        if attribute is None:
            told = "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
            yield required("partition-type.missing", at, told)
        elif attribute.string is None:
            told = "must be a string value because `partitionTypeAttribute` names this attribute"
            shown = Printed(attribute.to_internal_json(release.number))
            yield invalid("partition-type.no-text", at, shown, told)


def _check_skipped(operations: list[str] | None, path: str) -> Iterator[FieldError]:
    """Check which calls of the kubelet a driver does without (validateSkipNodeOperations)."""
    skipped = set(operations or ())
    if "NodePrepareResources" in skipped and not skipped & {"NodeUnprepareResources", "*"}:
        told = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        yield invalid("skip.prepare-alone", path, operations, told)
