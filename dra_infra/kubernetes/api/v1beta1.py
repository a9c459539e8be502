"""`resource.k8s.io/v1beta1` where it is arranged otherwise than v1.

Its requests are flat, its devices wrapped, its node fields plain. The records here only say what the version can
hold; objects are read into those of v1. Upstream: pkg/apis/resource/v1beta1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import Field

from dra_infra.kubernetes.api import resource_claim, resource_slice
from dra_infra.kubernetes.api.device_class import DeviceSelector
from dra_infra.kubernetes.api.device_taints import DeviceTaint, DeviceToleration
from dra_infra.kubernetes.api.record import (
    FullyQualifiedName,
    Integer,
    QualifiedName,
    Record,
    ResourceName,
    Text,
    Truth,
)
from dra_infra.kubernetes.api.resource_slice import NodeSelector

EXACT_FIELDS: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
)
"""Fields that lie on the request here and in `exactly` in v1."""


_PLAIN: Final = ("deviceClassName", "allocationMode", "count")
"""Those of them that Go holds without a pointer: an empty one is as good as none."""


class DeviceRequest(Record):
    """A request: its own fields, or `first_available`."""

    WRITTEN_EMPTY = ("name", "device_class_name")

    name: Text = ""
    device_class_name: Text = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: resource_claim.AllocationMode = ""
    count: Integer = 0
    admin_access: Truth | None = None
    first_available: list[resource_claim.DeviceSubRequest] | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: resource_claim.CapacityRequirements | None = None
    derived_attributes: list[resource_claim.DerivedAttribute] | None = None


class BasicDevice(Record):
    """Fields that v1 has on the device itself, but for the name."""

    attributes: dict[QualifiedName, resource_slice.DeviceAttribute] | None = None
    capacity: dict[QualifiedName, resource_slice.DeviceCapacity] | None = None
    consumes_counters: list[resource_slice.DeviceCounterConsumption] | None = None
    node_name: Text | None = None
    node_selector: NodeSelector | None = None
    all_nodes: Truth | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: Truth | None = None
    binding_conditions: list[Text] | None = None
    binding_failure_conditions: list[Text] | None = None
    allow_multiple_allocations: Truth | None = None
    node_allocatable_resource_mappings: (
        dict[ResourceName, resource_slice.NodeAllocatableResourceMapping] | None
    ) = None
    node_allocatable_resources: dict[ResourceName, resource_slice.NodeAllocatableResource] | None = None


class Device(Record):
    """A device: its name, and all else in `basic`."""

    WRITTEN_EMPTY = ("name",)

    name: Text = ""
    basic: BasicDevice | None = None


class ResourceSliceSpec(Record):
    """Devices of a driver; an empty node name and false stand for absent ones."""

    WRITTEN_EMPTY = ("driver", "pool")

    driver: Text = ""
    pool: resource_slice.ResourcePool = Field(default=resource_slice.ResourcePool())
    node_name: Text = ""
    node_selector: NodeSelector | None = None
    all_nodes: Truth = False
    devices: list[Device] | None = None
    per_device_node_selection: Truth | None = None
    shared_counters: list[resource_slice.CounterSet] | None = None
    partition_type_attribute: FullyQualifiedName | None = None
    skip_node_operations: list[resource_slice.SkipNodeOperation] | None = None


SHAPES: Final[Mapping[type[Record], type[Record]]] = {
    resource_claim.DeviceRequest: DeviceRequest,
    resource_slice.ResourceSliceSpec: ResourceSliceSpec,
}
"""Records of v1, and what has their place here."""


def flat_request(request: resource_claim.DeviceRequest) -> DeviceRequest:
    """A request of v1 as v1beta1 has it, which is what that version's messages print."""
    return DeviceRequest.from_known(_request_from_hub(request.to_manifest()))


def to_hub(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """An object of v1beta1 in the arrangement of v1; its `apiVersion` stays."""
    return _rearranged(manifest, _request_to_hub, _slice_to_hub)


def from_hub(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """An object of v1 in the arrangement of v1beta1; its `apiVersion` stays."""
    return _rearranged(manifest, _request_from_hub, _slice_from_hub)


_Change = Callable[[Mapping[str, Any]], dict[str, Any]]


def _rearranged(
    manifest: Mapping[str, Any], change_request: _Change, change_slice: _Change
) -> dict[str, Any]:
    changed = dict(manifest)
    kind, spec = manifest.get("kind"), manifest.get("spec")
    if not isinstance(spec, Mapping):
        return changed
    if kind == "ResourceSlice":
        changed["spec"] = change_slice(spec)
    elif kind == "ResourceClaim":
        changed["spec"] = _claim_spec(spec, change_request)
    elif kind == "ResourceClaimTemplate" and isinstance(spec.get("spec"), Mapping):
        changed["spec"] = {**spec, "spec": _claim_spec(spec["spec"], change_request)}
    return changed


def _claim_spec(spec: Mapping[str, Any], change: _Change) -> dict[str, Any]:
    devices = spec.get("devices")
    if not isinstance(devices, Mapping) or not isinstance(devices.get("requests"), list):
        return dict(spec)
    return {**spec, "devices": {**devices, "requests": _each(devices["requests"], change)}}


def _each(items: list[Any], change: _Change) -> list[Any]:
    return [change(item) if isinstance(item, Mapping) else item for item in items]


def is_exact(fields: Mapping[str, Any]) -> bool:
    """Checks that a field of a request that is in `exactly` in v1 says anything (hasAnyMainRequestFieldsSet)."""
    return any(
        value is not None and (name not in _PLAIN or value not in ("", 0))
        for name, value in ((name, fields.get(name)) for name in EXACT_FIELDS)
    )


def _request_to_hub(request: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in request.items() if name not in EXACT_FIELDS}
    if not is_exact(request):
        return rest
    exactly = {name: value for name, value in request.items() if name in EXACT_FIELDS}
    if exactly.get("tolerations") == []:
        # The server's conversion appends one after the other, so that none are nil (pkg/apis/resource/v1beta1/conversion.go).
        del exactly["tolerations"]
    return {**rest, "exactly": exactly}


def _request_from_hub(request: Mapping[str, Any]) -> dict[str, Any]:
    exactly = request.get("exactly")
    rest = {name: value for name, value in request.items() if name != "exactly"}
    return {**rest, **exactly} if isinstance(exactly, Mapping) else rest


def _slice_to_hub(spec: Mapping[str, Any]) -> dict[str, Any]:
    changed = {name: value for name, value in spec.items() if name not in ("nodeName", "allNodes") or value}
    if isinstance(changed.get("devices"), list):
        changed["devices"] = _each(changed["devices"], _device_to_hub)
    return changed


def _slice_from_hub(spec: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(spec)
    if isinstance(changed.get("devices"), list):
        changed["devices"] = _each(changed["devices"], _device_from_hub)
    return changed


def _device_to_hub(item: Mapping[str, Any]) -> dict[str, Any]:
    basic = item.get("basic")
    rest = {name: value for name, value in item.items() if name != "basic"}
    return {**rest, **basic} if isinstance(basic, Mapping) else rest


def _device_from_hub(item: Mapping[str, Any]) -> dict[str, Any]:
    basic = {name: value for name, value in item.items() if name != "name"}
    return {**{name: item[name] for name in ("name",) if name in item}, "basic": basic}
