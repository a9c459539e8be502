"""Defaults of claims, templates and slices (SetDefaults_* in pkg/apis/resource/*/defaults.go).

A server fills them in when it decodes an object. They run on the version that was sent, before the conversion to the
server's internal shape. The time of a taint, which is the server's clock, is not filled in here.
"""

from __future__ import annotations

from typing import Any, TypeVar

from dra_infra.kubernetes.api.device_taints import DeviceToleration
from dra_infra.kubernetes.api.record import Record
from dra_infra.kubernetes.api.resource_claim import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from dra_infra.kubernetes.api.resource_slice import Device, ResourceSlice

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
        spec = changed_only(record.spec, devices=devices)
        return changed_only(record, spec=spec, status=_status(record.status))
    if isinstance(record, ResourceClaimTemplate):
        inner = record.spec.spec
        spec = changed_only(inner, devices=claim_with_defaults(inner.devices, version=version))
        return changed_only(record, spec=changed_only(record.spec, spec=spec))
    if isinstance(record, ResourceSlice) and record.spec.devices:
        published = each_changed(record.spec.devices, _device)
        return changed_only(record, spec=changed_only(record.spec, devices=published))
    return record


def claim_with_defaults(claim: DeviceClaim, *, version: str = "v1") -> DeviceClaim:
    """The devices part of a claim after defaulting."""
    if not claim.requests:
        return claim
    return changed_only(
        claim, requests=each_changed(claim.requests, lambda request: _request(request, version))
    )


def _request(request: DeviceRequest, version: str) -> DeviceRequest:
    exactly = request.exactly
    if exactly is not None:
        # In v1beta1 a request without a class is taken for one with alternatives.
        is_left = version == "v1beta1" and not exactly.device_class_name
        exactly = (
            changed_only(exactly, tolerations=_tolerations(exactly.tolerations))
            if is_left
            else _leaf(exactly)
        )
    alternatives = request.first_available
    if alternatives:
        alternatives = each_changed(alternatives, _leaf)
    return changed_only(request, exactly=exactly, first_available=alternatives)


def _leaf(leaf: _Leaf) -> _Leaf:
    mode = leaf.allocation_mode or "ExactCount"
    return changed_only(
        leaf,
        allocation_mode=mode,
        count=leaf.count or (1 if mode == "ExactCount" else 0),
        tolerations=_tolerations(leaf.tolerations),
    )


def _tolerations(tolerations: list[DeviceToleration] | None) -> list[DeviceToleration] | None:
    if not tolerations:
        return tolerations
    return each_changed(tolerations, lambda each: changed_only(each, operator=each.operator or "Equal"))


def _status(status: ResourceClaimStatus) -> ResourceClaimStatus:
    allocation = status.allocation
    if allocation is None or not allocation.devices.results:
        return status
    results = each_changed(
        allocation.devices.results,
        lambda result: changed_only(result, tolerations=_tolerations(result.tolerations)),
    )
    return changed_only(
        status, allocation=changed_only(allocation, devices=changed_only(allocation.devices, results=results))
    )


def each_changed(items: list[Any], change: Any) -> list[Any]:
    """Every item after *change*; the same list when nothing changes."""
    changed = [change(item) for item in items]
    return items if all(new is old for new, old in zip(changed, items, strict=True)) else changed


def changed_only(record: AnyRecord, **values: Any) -> AnyRecord:
    """*record* with those of *values* that differ; the same object when none does."""
    # What stays the same object stays unset if it was: only real changes show in the manifest.
    old = record.__dict__
    differing = {
        name: value
        for name, value in values.items()
        if old[name] is not value and not (isinstance(value, (str, int)) and old[name] == value)
    }
    return record.changed(differing) if differing else record


def _device(device: Device) -> Device:
    """A device of 1.36, whose node resources are multiplied by one unless they say otherwise; 1.37 has others."""
    mappings = device.node_allocatable_resource_mappings
    if not mappings:
        return device
    changed = {
        name: changed_only(each, allocation_multiplier=each.allocation_multiplier or "1")
        for name, each in mappings.items()
    }
    return device.changed({"node_allocatable_resource_mappings": changed})
