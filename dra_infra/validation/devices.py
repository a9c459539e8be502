"""The hand-written rules for one device of a slice (validateDevice, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dra_infra.model.device import Device
from dra_infra.model.record import Record
from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.attributes import check_attributes, check_number_of_entries
from dra_infra.validation.bindings import check_bindings
from dra_infra.validation.capacities import check_capacities
from dra_infra.validation.counters import check_consumption, check_old_consumption
from dra_infra.validation.field_errors import FieldError, invalid, required
from dra_infra.validation.lists import check_items
from dra_infra.validation.node_resources import check_node_resources
from dra_infra.validation.node_selectors import check_node_selector
from dra_infra.validation.taints import check_taint

_ONE_NODE_FIELD = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceContext:
    """What the rules for a device need to know of its slice.

    Args:
        release: The server.
        selects_per_device: Whether devices say themselves which nodes they are for.
        stored: Devices of the stored slice by name.
        sets: Names of the counters of each set of the slice, for servers up to 1.34.
    """

    release: Release
    selects_per_device: bool
    stored: Mapping[str, Device]
    sets: Mapping[str, frozenset[str]]


def max_taints(release: Release) -> int:
    """Taints that a device may have (DeviceTaintsMaxLength)."""
    return 4 if release.number < 35 else 16


def check_device(device: Device, path: str, context: SliceContext) -> Iterator[FieldError]:
    """Check one device."""
    release = context.release
    old = context.stored.get(device.name)
    for told in formats.dns_label(device.name):
        yield invalid("device.name", f"{path}.name", device.name, told)
    yield from check_number_of_entries(device, path, release)
    yield from check_attributes(device.attributes, f"{path}.attributes", release)
    if release.number < 37 or old is None or not _same_capacity(old, device):
        yield from check_capacities(
            device.capacity,
            f"{path}.capacity",
            release,
            is_shareable=bool(device.allow_multiple_allocations),
        )
    if release.number < 35 or old is None or not _same_taints(old, device):
        yield from check_items(
            device.taints,
            f"{path}.taints",
            lambda taint, at: check_taint(taint, at, release),
            size_rule="taints.size",
            limit=max_taints(release),
            goes_on=release.number < 35,
            covered=False,
        )
    yield from check_consumption(device.consumes_counters, f"{path}.consumesCounters", release)
    if release.number < 35:
        yield from check_old_consumption(device.consumes_counters, path, context.sets)
    if context.selects_per_device:
        yield from _check_nodes(device, path, release)
    elif not (device.node_name is None and device.node_selector is None and device.all_nodes is None):
        told = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
            "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        )
        yield invalid("device.nodes-of-slice", path, None, told)
    yield from check_bindings(device.binding_conditions, device.binding_failure_conditions, path, release)
    if release.number >= 36:
        yield from check_node_resources(device, path, release)


def _check_nodes(device: Device, path: str, release: Release) -> Iterator[FieldError]:
    found = []
    if device.node_name == "":
        yield invalid("device.node-name", f"{path}.nodeName", "", "must not be empty")
    elif device.node_name is not None:
        found.append("`nodeName`")
        for told in formats.dns_subdomain(device.node_name):
            yield invalid("device.node-name", f"{path}.nodeName", device.node_name, told)
    if device.node_selector is not None:
        found.append("`nodeSelector`")
        yield from check_node_selector(device.node_selector, f"{path}.nodeSelector", release)
    if device.all_nodes:
        found.append("`allNodes`")
    elif device.all_nodes is not None:
        told = "must be either unset or set to true"
        yield invalid("device.all-nodes", f"{path}.allNodes", device.all_nodes, told)
    if not found:
        yield required("device.nodes-none", path, _ONE_NODE_FIELD)
    elif len(found) > 1:
        yield invalid("device.nodes-many", path, f"{{{', '.join(found)}}}", _ONE_NODE_FIELD)


def _same_capacity(old: Device, new: Device) -> bool:
    before, after = old.capacity or {}, new.capacity or {}
    return before.keys() == after.keys() and all(same(before[name], after[name]) for name in before)


def _same_taints(old: Device, new: Device) -> bool:
    before, after = old.taints or (), new.taints or ()
    return len(before) == len(after) and all(map(same, before, after))


def same(one: Record, other: Record) -> bool:
    """Whether Go takes two records for equal: amounts by value, absent lists like empty ones."""
    return one is other or one.to_go_json() == other.to_go_json()
