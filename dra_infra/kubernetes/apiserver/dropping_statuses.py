"""Fields of a claim's status that a server clears.

Upstream: dropDisabledStatusFields, pkg/registry/resource/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_infra.kubernetes.api.dropping import Dropped, used_gates
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.resource_claim import ResourceClaim, ResourceClaimStatus
from dra_infra.kubernetes.apiserver.claim_statuses import device_id

_DEVICES: Final = "DRAResourceClaimDeviceStatus"
_SHARING: Final = "DRAConsumableCapacity"
_BINDING: Final = "DRADeviceBindingConditions"
_RESULT_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "DRAAdminAccess": {"admin_access": "adminAccess"},
    _SHARING: {"share_id": "shareID", "consumed_capacity": "consumedCapacity"},
    _BINDING: {
        "binding_conditions": "bindingConditions",
        "binding_failure_conditions": "bindingFailureConditions",
    },
    "DRAOptionalNodeOperations": {"skip_node_operations": "skipNodeOperations"},
}
"""Fields of results by gate, with their JSON names."""


def drop_from_status(
    status: ResourceClaimStatus, old: ResourceClaim, release: Release
) -> tuple[ResourceClaimStatus, tuple[Dropped, ...]]:
    """*status* as a server of *release* takes it in the place of that of the *old* claim, and what it lost to gates.

    What says something of devices that are no longer allocated goes too, whatever the gates.
    """
    off = {
        gate
        for gate in (_DEVICES, *_RESULT_FIELDS)
        if not _is_on(gate, release) and gate not in _used(old, release)
    }
    found: list[Dropped] = []
    changed: dict[str, Any] = {}
    if _DEVICES in off and status.devices is not None:
        found += [Dropped("status.devices", _DEVICES)] if status.devices else []
        changed["devices"] = None
    elif status.devices is not None and _SHARING in off:
        found += [
            Dropped(f"status.devices[{index}].shareID", _SHARING)
            for index, device in enumerate(status.devices)
            if device.share_id is not None
        ]
        changed["devices"] = [_unset(device, ("share_id",)) for device in status.devices]
    results = status.allocation.devices.results if status.allocation is not None else None
    if status.allocation is not None and results:
        fields = {field: name for gate in off for field, name in _RESULT_FIELDS.get(gate, {}).items()}
        gates = {field: gate for gate in off for field in _RESULT_FIELDS.get(gate, {})}
        found += [
            Dropped(f"status.allocation.devices.results[{index}].{name}", gates[field])
            for index, result in enumerate(results)
            for field, name in fields.items()
            if getattr(result, field) not in (None, [], {})
        ]
        devices = status.allocation.devices.changed({"results": [_unset(each, fields) for each in results]})
        changed["allocation"] = status.allocation.changed({"devices": devices})
    allocation = changed.get("allocation", status.allocation)
    # Since 1.35 the time of the allocation stays whatever the gates.
    if _BINDING in off and release.number < 35 and allocation is not None and allocation.allocation_timestamp:
        found.append(Dropped("status.allocation.allocationTimestamp", _BINDING))
        changed["allocation"] = allocation.changed({"allocation_timestamp": None})
    kept = status.changed(changed) if changed else status
    return (kept if _DEVICES in off else _without_deallocated(kept, old)), tuple(found)


def _without_deallocated(status: ResourceClaimStatus, old: ResourceClaim) -> ResourceClaimStatus:
    gone = _allocated(old.status) - _allocated(status)
    if not status.devices or not gone:
        return status
    return status.changed(
        {"devices": [each for each in status.devices if device_id(each) not in gone] or None}
    )


def _allocated(status: ResourceClaimStatus) -> set[tuple[str, str, str, str]]:
    results = (status.allocation.devices.results if status.allocation is not None else None) or ()
    return {device_id(result) for result in results}


def _is_on(gate: str, release: Release) -> bool:
    # Up to 1.34 binding conditions need the gate for statuses of devices too.
    if gate == _BINDING and release.number < 35 and not release.enabled(_DEVICES):
        return False
    return release.enabled(gate)


def _used(old: ResourceClaim, release: Release) -> set[str]:
    """The gates whose fields the stored claim has."""
    used = set(used_gates(old.spec.devices)) & {"DRAAdminAccess", _SHARING}
    status = old.status
    if status.devices:
        used.add(_DEVICES)
    if any(device.share_id is not None for device in status.devices or ()):
        used.add(_SHARING)
    allocation = status.allocation
    if release.number < 35 and allocation is not None and allocation.allocation_timestamp is not None:
        used.add(_BINDING)
    for result in (status.allocation.devices.results if status.allocation is not None else None) or ():
        for gate, fields in _RESULT_FIELDS.items():
            if any(getattr(result, field) is not None for field in fields):
                used.add(gate)
    return used


def _unset(record: Any, fields: Any) -> Any:
    given = {name: None for name in fields if getattr(record, name) is not None}
    return record.changed(given) if given else record
