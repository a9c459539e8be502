"""Fields of claims, classes and slices that a server clears silently because their feature gate is off.

Upstream: DropDisabledFields in pkg/api/resourceclaimspec/util.go and the strategies in pkg/registry/resource; before
1.35 the strategies alone, where two things differ: tolerations of claims and `distinctAttribute` stay (nothing drops
the first, and the loop for the second edits a copy), and the scheduler ignores them. For slices: dropDisabledFields,
pkg/registry/resource/resourceslice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from dra_infra.kubernetes.api.device_class import DeviceClassSpec
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.record import Record
from dra_infra.kubernetes.api.resource_claim import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from dra_infra.kubernetes.api.resource_slice import Device, ResourceSliceSpec

AnyRecord = TypeVar("AnyRecord", bound=Record)


class Dropped(NamedTuple):
    """One field that a server clears, or keeps and ignores.

    Args:
        path: The field, in the shape of v1.
        gate: The gate that is off.
        kept: Whether the server stores the field all the same, and its scheduler ignores it.
    """

    path: str
    gate: str
    kept: bool = False


_LADDER: Final = "DRAPrioritizedList"
_LEAF_GATES: Final[Mapping[str, str]] = {
    "admin_access": "DRAAdminAccess",
    "tolerations": "DRADeviceTaints",
    "capacity": "DRAConsumableCapacity",
    "derived_attributes": "DRADerivedAttributes",
}
_KEPT: Final = (".tolerations", ".distinctAttribute")
"""Fields of claims that servers before 1.35 keep."""


def drop_from_claim(
    claim: DeviceClaim, path: str, release: Release, old: DeviceClaim | None = None
) -> tuple[DeviceClaim, tuple[Dropped, ...]]:
    """*claim* as a server of *release* sees it behind its gates, and what it lost.

    A feature that the *old* claim used stays usable in an update.
    """
    used = frozenset(gate for gate, at in _find_in_claim(old, "") if at) if old is not None else frozenset()
    off = {
        gate for gate in (_LADDER, *_LEAF_GATES.values()) if not release.enabled(gate) and gate not in used
    }
    if not off:
        return claim, ()
    is_old = release.number < 35
    gated = [each for each in _find_in_claim(claim, path, without_ladders=_LADDER in off) if each[0] in off]
    dropped = tuple(Dropped(at, gate, kept=is_old and at.endswith(_KEPT)) for gate, at in gated if at)
    if len(gated) == len(dropped) and all(each.kept for each in dropped):
        return claim, dropped
    fields = {
        field: None
        for field, gate in _LEAF_GATES.items()
        if gate in off and not (is_old and field == "tolerations")
    }
    requests = claim.requests and [
        _without(request, fields, ladder=_LADDER not in off) for request in claim.requests
    ]
    constraints = claim.constraints
    if constraints and "DRAConsumableCapacity" in off and not is_old:
        constraints = [_unset(each, {"distinct_attribute": None}) for each in constraints]
    return claim.changed({"requests": requests, "constraints": constraints}), dropped


def drop_from_class(
    spec: DeviceClassSpec, release: Release, old: DeviceClassSpec | None = None
) -> tuple[DeviceClassSpec, tuple[Dropped, ...]]:
    """*spec* of a class as a server of *release* sees it behind its gates, and what it lost."""
    gate = "DRAExtendedResource"
    in_use = old is not None and old.extended_resource_name is not None
    if spec.extended_resource_name is None or release.enabled(gate) or in_use:
        return spec, ()
    return spec.changed({"extended_resource_name": None}), (Dropped("spec.extendedResourceName", gate),)


def _find_in_claim(
    claim: DeviceClaim, path: str, *, without_ladders: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the gates of all fields that are there, with the paths; of prioritized lists maybe not what is in them.

    A list with nothing in it has no path: the server clears it too, and nobody loses anything.
    """
    for index, request in enumerate(claim.requests or ()):
        at = f"{path}.requests[{index}]"
        ladder = request.first_available or ()
        if request.first_available is not None:
            yield _LADDER, f"{at}.firstAvailable" if ladder else ""
        leaves: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]] = [
            (f"{at}.firstAvailable[{position}]", sub)
            for position, sub in enumerate(() if without_ladders else ladder)
        ]
        if request.exactly is not None:
            leaves.append((f"{at}.exactly", request.exactly))
        for place, leaf in leaves:
            for field, gate in _LEAF_GATES.items():
                value = getattr(leaf, field, None)
                if _is_there(value):
                    yield gate, f"{place}.{_json(field)}"
                elif value == []:
                    yield gate, ""
    for index, constraint in enumerate(claim.constraints or ()):
        if constraint.distinct_attribute is not None:
            yield "DRAConsumableCapacity", f"{path}.constraints[{index}].distinctAttribute"


def _without(request: DeviceRequest, fields: Mapping[str, None], *, ladder: bool) -> DeviceRequest:
    entries = request.first_available if ladder else None
    return request.changed(
        {
            "exactly": request.exactly and _unset(request.exactly, fields),
            "first_available": entries and [_unset(sub, fields) for sub in entries],
        }
    )


_LISTS: Final = ("ints", "bools", "strings", "versions")
_DEVICE_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "DRADeviceTaints": ("taints",),
    "DRAPartitionableDevices": ("consumes_counters", "node_name", "node_selector", "all_nodes"),
    "DRADeviceBindingConditions": ("binding_conditions", "binding_failure_conditions", "binds_to_node"),
    "DRAConsumableCapacity": ("allow_multiple_allocations",),
    "DRANodeAllocatableResources": ("node_allocatable_resources", "node_allocatable_resource_mappings"),
}
"""Fields of devices by gate."""

_SPEC_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "DRAPartitionableDevices": ("shared_counters", "per_device_node_selection"),
    "DRAPartitionableDevicesType": ("partition_type_attribute",),
    "DRAOptionalNodeOperations": ("skip_node_operations",),
}
"""Fields of the spec by gate."""

_INNER: Final = ("DRAConsumableCapacity", "DRADeviceCompatibilityGroups", "DRAListTypeAttributes")
"""Gates with fields inside capacities, consumed counters and attributes."""

_GATED: Final = frozenset(field for fields in _DEVICE_FIELDS.values() for field in fields)
"""All fields of devices that some gate clears: of thousands of devices usually none has one."""

GATES: Final = tuple(dict.fromkeys((*_DEVICE_FIELDS, *_SPEC_FIELDS, *_INNER)))


def drop_from_slice(
    spec: ResourceSliceSpec, release: Release, old: ResourceSliceSpec | None = None
) -> tuple[ResourceSliceSpec, tuple[Dropped, ...]]:
    """*spec* as a server of *release* sees it behind its gates, and what it lost.

    A feature that the *old* slice used stays usable in an update.
    """
    used = frozenset(gate for gate, _ in _find(old)) if old is not None else frozenset()
    off = {gate for gate in GATES if not is_on(gate, release) and gate not in used}
    if not off:
        return spec, ()
    found = tuple(Dropped(path, gate) for gate, path in _find(spec) if gate in off)
    fields = {field: None for gate in off for field in _SPEC_FIELDS.get(gate, ())}
    inside = {field: None for gate in off for field in _DEVICE_FIELDS.get(gate, ())}
    devices = spec.devices and [_drop_inner(_unset(device, inside), off) for device in spec.devices]
    changed = {name: value for name, value in fields.items() if getattr(spec, name) is not None}
    if devices and any(new is not old_one for new, old_one in zip(devices, spec.devices or (), strict=True)):
        changed["devices"] = devices  # type: ignore[assignment]
    return (spec.changed(changed) if changed else spec), found


def is_on(gate: str, release: Release) -> bool:
    """Checks that fields of *gate* stay; binding conditions need a second gate."""
    if gate == "DRADeviceBindingConditions" and not release.enabled("DRAResourceClaimDeviceStatus"):
        return False
    return release.enabled(gate)


def _find(spec: ResourceSliceSpec) -> Iterator[tuple[str, str]]:
    """The gates of all fields that are there, with the paths; an empty list is nothing that is lost."""
    for gate, fields in _SPEC_FIELDS.items():
        yield from ((gate, f"spec.{_json(field)}") for field in fields if _is_there(getattr(spec, field)))
    for index, device in enumerate(spec.devices or ()):
        path = f"spec.devices[{index}]"
        for gate, fields in () if _GATED.isdisjoint(device.model_fields_set) else _DEVICE_FIELDS.items():
            yield from (
                (gate, f"{path}.{_json(field)}") for field in fields if _is_there(getattr(device, field))
            )
        yield from _find_inner(device, path)


def _find_inner(device: Device, path: str) -> Iterator[tuple[str, str]]:
    for name, capacity in (device.capacity or {}).items():
        if capacity.request_policy is not None:
            yield "DRAConsumableCapacity", f"{path}.capacity[{name}].requestPolicy"
    for index, each in enumerate(device.consumes_counters or ()):
        if each.compatibility_groups:
            at = f"{path}.consumesCounters[{index}].compatibilityGroups"
            yield "DRADeviceCompatibilityGroups", at
    for name, attribute in (device.attributes or {}).items():
        for field in () if attribute.model_fields_set.isdisjoint(_LISTS) else _LISTS:
            if getattr(attribute, field) is not None:
                yield "DRAListTypeAttributes", f"{path}.attributes[{name}].{field}"


def _drop_inner(device: Device, off: set[str]) -> Device:
    changed: dict[str, Any] = {}
    if "DRAConsumableCapacity" in off and _have(("request_policy",), (device.capacity or {}).values()):
        changed["capacity"] = _each(device.capacity or {}, {"request_policy": None})
    if "DRAListTypeAttributes" in off and _have(_LISTS, (device.attributes or {}).values()):
        changed["attributes"] = _each(device.attributes or {}, dict.fromkeys(_LISTS))
    if "DRADeviceCompatibilityGroups" in off and device.consumes_counters:
        changed["consumes_counters"] = [
            _unset(each, {"compatibility_groups": None}) for each in device.consumes_counters
        ]
    return device.changed(changed) if changed else device


def _have(fields: Iterable[str], records: Iterable[Record]) -> bool:
    wanted = frozenset(fields)
    return any(not wanted.isdisjoint(each.model_fields_set) for each in records)


def _each(items: Mapping[str, Any], fields: Mapping[str, None]) -> dict[str, Any]:
    return {name: _unset(item, fields) for name, item in items.items()}


def _unset(record: AnyRecord, fields: Mapping[str, None]) -> AnyRecord:
    if fields.keys().isdisjoint(record.model_fields_set):
        return record
    given = {name: None for name in fields if getattr(record, name, None) is not None}
    return record.changed(given) if given else record


def _is_there(value: object) -> bool:
    return value is not None and value not in ([], {})


def _json(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(part.capitalize() for part in rest)


def gates_of_fields() -> Mapping[str, str]:
    """Fields of slices by their names in JSON, with the gates that clear them."""
    tables = (_DEVICE_FIELDS, _SPEC_FIELDS)
    found = {_json(field): gate for table in tables for gate, fields in table.items() for field in fields}
    inner = {"requestPolicy": "DRAConsumableCapacity", "compatibilityGroups": "DRADeviceCompatibilityGroups"}
    return {**found, **inner, **dict.fromkeys(_LISTS, "DRAListTypeAttributes")}
