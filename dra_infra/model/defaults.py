"""What a server fills in when it decodes a claim, template or slice (SetDefaults_* in pkg/apis/resource/*/defaults.go).

Defaults run on the version that was sent, before the conversion to the server's internal shape. The time of a taint,
which is the server's clock, is not filled in here.
"""

from __future__ import annotations

from typing import Any, TypeVar

from dra_infra.model.claim_status import ResourceClaimStatus
from dra_infra.model.device import Device
from dra_infra.model.record import Record
from dra_infra.model.resource_claim import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_infra.model.resource_slice import ResourceSlice
from dra_infra.model.toleration import DeviceToleration

AnyRecord = TypeVar("AnyRecord", bound=Record)
_Leaf = TypeVar("_Leaf", ExactDeviceRequest, DeviceSubRequest)


def with_defaults(record: AnyRecord, *, version: str = "v1") -> AnyRecord:
    """*record* as a server has it after defaulting; the same object when nothing was to be filled in.

    Args:
        record: A ResourceClaim, ResourceClaimTemplate or ResourceSlice; other kinds come back as they are.
        version: The version that the object was sent in. v1beta1 leaves a request without class as it is.
    """
    if isinstance(record, ResourceClaim):
        devices = claim_with_defaults(record.spec.devices, version=version)
        spec = _changed(record.spec, devices=devices)
        return _changed(record, spec=spec, status=_status(record.status))
    if isinstance(record, ResourceClaimTemplate):
        inner = record.spec.spec
        spec = _changed(inner, devices=claim_with_defaults(inner.devices, version=version))
        return _changed(record, spec=_changed(record.spec, spec=spec))
    if isinstance(record, ResourceSlice) and record.spec.devices:
        return _changed(record, spec=_changed(record.spec, devices=_each(record.spec.devices, _device)))
    return record


def _device(device: Device) -> Device:
    """A device of 1.36, whose node resources are multiplied by one unless they say otherwise; 1.37 has others."""
    mappings = device.node_allocatable_resource_mappings
    if not mappings:
        return device
    changed = {
        name: _changed(each, allocation_multiplier=each.allocation_multiplier or "1")
        for name, each in mappings.items()
    }
    return device.changed({"node_allocatable_resource_mappings": changed})


def claim_with_defaults(claim: DeviceClaim, *, version: str = "v1") -> DeviceClaim:
    """The devices part of a claim after defaulting."""
    if not claim.requests:
        return claim
    return _changed(claim, requests=_each(claim.requests, lambda request: _request(request, version)))


def _request(request: DeviceRequest, version: str) -> DeviceRequest:
    exactly = request.exactly
    if exactly is not None:
        # In v1beta1 a request without a class is taken for one with alternatives.
        is_left = version == "v1beta1" and not exactly.device_class_name
        exactly = (
            _changed(exactly, tolerations=_tolerations(exactly.tolerations)) if is_left else _leaf(exactly)
        )
    alternatives = request.first_available
    if alternatives:
        alternatives = _each(alternatives, _leaf)
    return _changed(request, exactly=exactly, first_available=alternatives)


def _leaf(leaf: _Leaf) -> _Leaf:
    mode = leaf.allocation_mode or "ExactCount"
    return _changed(
        leaf,
        allocation_mode=mode,
        count=leaf.count or (1 if mode == "ExactCount" else 0),
        tolerations=_tolerations(leaf.tolerations),
    )


def _tolerations(tolerations: list[DeviceToleration] | None) -> list[DeviceToleration] | None:
    if not tolerations:
        return tolerations
    return _each(tolerations, lambda each: _changed(each, operator=each.operator or "Equal"))


def _status(status: ResourceClaimStatus) -> ResourceClaimStatus:
    allocation = status.allocation
    if allocation is None or not allocation.devices.results:
        return status
    results = _each(
        allocation.devices.results,
        lambda result: _changed(result, tolerations=_tolerations(result.tolerations)),
    )
    return _changed(
        status, allocation=_changed(allocation, devices=_changed(allocation.devices, results=results))
    )


def _each(items: list[Any], change: Any) -> list[Any]:
    changed = [change(item) for item in items]
    return items if all(new is old for new, old in zip(changed, items, strict=True)) else changed


def _changed(record: AnyRecord, **values: Any) -> AnyRecord:
    # What stays the same object stays unset if it was: only real changes show in the manifest.
    old = record.__dict__
    differing = {
        name: value
        for name, value in values.items()
        if old[name] is not value and not (isinstance(value, (str, int)) and old[name] == value)
    }
    return record.changed(differing) if differing else record
