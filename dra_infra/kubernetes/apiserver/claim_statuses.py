"""Validation of updates of a claim's status (validateResourceClaimStatusUpdate, validation.go).

The spec and most of the metadata are those of the stored claim, whatever is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.record import go_json
from dra_infra.kubernetes.api.resource_claim import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from dra_infra.kubernetes.apiserver.allocations import check_allocation, check_generated_allocation
from dra_infra.kubernetes.apiserver.configurations import check_driver_name, check_parameters
from dra_infra.kubernetes.apiserver.devices import same
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    Printed,
    check_items,
    check_unique,
    forbidden,
    invalid,
    required,
    too_long,
)
from dra_infra.kubernetes.apiserver.slices import check_pool_name
from dra_infra.kubernetes.apiserver.status_values import (
    check_address,
    check_conditions,
    check_generated_share_id,
    check_share_id,
)

MAX_RESERVED = 256
MAX_ADDRESSES = 16
MAX_INTERFACE_NAME = 256
MAX_HARDWARE_ADDRESS = 128
ADMIN_LABEL = "resource.kubernetes.io/admin-access"

_DeviceId = tuple[str, str, str, str]


def device_id(device: AllocatedDeviceStatus | DeviceRequestAllocationResult) -> _DeviceId:
    """What tells a device, and a share of it, from others; no share is like an empty one."""
    return (device.driver, device.pool, device.device, device.share_id or "")


def check_status(
    status: ResourceClaimStatus, old: ResourceClaim, release: Release, *, is_deleted: bool = False
) -> Iterator[FieldError]:
    """The hand-written rules for a status that is put in the place of that of the *old* claim."""
    goes_on = release.number < 35
    reserved = status.reserved_for or ()
    yield from check_items(
        reserved,
        "status.reservedFor",
        _check_consumer,
        size_rule="reserved.size",
        limit=MAX_RESERVED,
        goes_on=goes_on,
    )
    if goes_on or len(reserved) <= MAX_RESERVED:
        yield from check_unique(
            reserved,
            "status.reservedFor",
            lambda each: each.uid,
            rule="reserved.duplicate",
            below=".uid" if goes_on else "",
            shown=lambda each: Printed(go_json(each.uid)),
        )
    allocation = status.allocation
    allocated = {device_id(result) for result in (allocation.devices.results if allocation else None) or ()}
    for index, device in enumerate(status.devices or ()):
        yield from _check_device(device, f"status.devices[{index}]", allocated, release)
    yield from check_unique(
        status.devices,
        "status.devices",
        device_id,
        rule="device-status.duplicate",
        below=".deviceID" if goes_on else "",
        shown=lambda device: _shown_id(device, release),
    )
    yield from _check_reservation(status, old.status, is_deleted=is_deleted)
    if allocation is None:
        return
    stored = old.status.allocation
    if stored is None:
        yield from check_allocation(allocation, old.spec.devices, "status.allocation", release)
    elif not same(stored, allocation):
        shown = Printed(allocation.to_internal_json(release.number))
        yield invalid(
            "status.immutable",
            "status.allocation",
            shown,
            "field is immutable",
            origin="update",
            covered=True,
        )


def check_generated_status(
    status: ResourceClaimStatus, old: ResourceClaimStatus, release: Release
) -> Iterator[FieldError]:
    """The generated rules, which have a say since 1.37 (see `generated`); what did not change is not looked at."""
    allocation, stored = status.allocation, old.allocation
    if allocation is not None and stored is None:
        yield from check_generated_allocation(allocation, "status.allocation", release)
    elif allocation is not None and stored is not None and not same(stored, allocation):
        told = "field cannot be modified once set"
        yield invalid("status.immutable", "status.allocation", None, told, origin="update")
    reserved = status.reserved_for or []
    if reserved != (old.reserved_for or []):
        yield from check_items(
            reserved, "status.reservedFor", _nothing, size_rule="reserved.size", limit=MAX_RESERVED
        )
        if len(reserved) <= MAX_RESERVED:
            yield from check_unique(
                reserved, "status.reservedFor", lambda each: each.uid, rule="reserved.duplicate", shown=_shown
            )
    yield from _check_generated_devices(status, old)


def check_admin_results(
    status: ResourceClaimStatus, old: ResourceClaimStatus, namespace_labels: Mapping[str, str] | None
) -> Iterator[FieldError]:
    """Results with admin access need a label on the namespace, unless there were some (AuthorizedForAdminStatus)."""
    if namespace_labels is None or namespace_labels.get(ADMIN_LABEL) == "true" or _admin_results(old):
        return
    for index in _admin_results(status)[:1]:
        yield forbidden(
            "request.admin-access",
            f"status.allocation.devices.results[{index}].adminAccess",
            f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace",
        )


def _admin_results(status: ResourceClaimStatus) -> list[int]:
    results = (status.allocation.devices.results if status.allocation else None) or ()
    return [index for index, result in enumerate(results) if result.admin_access]


def _check_consumer(reference: ResourceClaimConsumerReference, path: str) -> Iterator[FieldError]:
    for name in ("resource", "name", "uid"):
        if not getattr(reference, name):
            yield required("reserved.required", f"{path}.{name}")


def _check_reservation(
    status: ResourceClaimStatus, old: ResourceClaimStatus, *, is_deleted: bool
) -> Iterator[FieldError]:
    reserved = status.reserved_for or ()
    if reserved and status.allocation is None:
        told = "may not be specified when `allocated` is not set"
        yield forbidden("reserved.not-allocated", "status.reservedFor", told)
    elif is_deleted and any(each not in (old.reserved_for or ()) for each in reserved):
        told = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden("reserved.deleted", "status.reservedFor", told)


def _check_device(
    device: AllocatedDeviceStatus, path: str, allocated: set[_DeviceId], release: Release
) -> Iterator[FieldError]:
    yield from check_driver_name(
        device.driver, f"{path}.driver", rule="device-status.driver", goes_on=release.number < 35
    )
    yield from check_pool_name(device.pool, f"{path}.pool", rule="device-status.pool")
    for told in names.dns_label(device.device):
        yield invalid("device-status.device", f"{path}.device", device.device, told)
    if device.share_id is not None:
        yield from check_share_id(device.share_id, f"{path}.shareID")
    if device_id(device) not in allocated:
        told = "must be an allocated device in the claim"
        yield invalid("device-status.not-allocated", path, _shown_id(device, release), told)
    yield from check_conditions(device.conditions, f"{path}.conditions", release)
    if device.data is not None:
        yield from check_parameters(device.data, f"{path}.data", stem="device-status.data")
    if device.network_data is not None:
        yield from _check_network(device.network_data, f"{path}.networkData", release)


def _check_network(data: NetworkDeviceData, path: str, release: Release) -> Iterator[FieldError]:
    yield from _check_lengths(data, path, covered=True)
    goes_on = release.number < 35
    yield from check_items(
        data.ips,
        f"{path}.ips",
        check_address,
        size_rule="status.addresses-size",
        limit=MAX_ADDRESSES,
        goes_on=goes_on,
    )
    if goes_on or len(data.ips or ()) <= MAX_ADDRESSES:
        yield from check_unique(
            data.ips, f"{path}.ips", lambda address: address, rule="status.addresses-duplicate"
        )


def _check_lengths(data: NetworkDeviceData, path: str, *, covered: bool = False) -> Iterator[FieldError]:
    for name, text, limit in (
        ("interfaceName", data.interface_name, MAX_INTERFACE_NAME),
        ("hardwareAddress", data.hardware_address, MAX_HARDWARE_ADDRESS),
    ):
        if names.size(text) > limit:
            yield too_long(
                "status.network-length", f"{path}.{name}", limit, origin="maxBytes", covered=covered
            )


def _check_generated_devices(status: ResourceClaimStatus, old: ResourceClaimStatus) -> Iterator[FieldError]:
    devices, stored = status.devices or [], old.devices or []
    if len(devices) == len(stored) and all(map(same, stored, devices)):
        return
    yield from check_unique(
        devices, "status.devices", _generated_id, rule="device-status.duplicate", shown=_shown
    )
    before: dict[object, AllocatedDeviceStatus] = {}
    for each in stored:
        before.setdefault(_generated_id(each), each)
    for index, device in enumerate(devices):
        at = f"status.devices[{index}]"
        earlier = before.get(_generated_id(device))
        if earlier is not None and same(earlier, device):
            continue
        if device.share_id is not None and earlier is None:
            yield from check_generated_share_id(device.share_id, f"{at}.shareID")
        network = device.network_data
        known = earlier.network_data if earlier is not None else None
        if network is not None and (known is None or not same(known, network)):
            yield from _check_generated_network(network, f"{at}.networkData")


def _check_generated_network(data: NetworkDeviceData, path: str) -> Iterator[FieldError]:
    yield from _check_lengths(data, path)
    at = f"{path}.ips"
    yield from check_items(data.ips, at, _nothing, size_rule="status.addresses-size", limit=MAX_ADDRESSES)
    if len(data.ips or ()) <= MAX_ADDRESSES:
        yield from check_unique(data.ips, at, lambda address: address, rule="status.addresses-duplicate")


def _generated_id(device: AllocatedDeviceStatus) -> tuple[str, str, str, str | None]:
    return (device.driver, device.pool, device.device, device.share_id)


def _shown_id(device: AllocatedDeviceStatus, release: Release) -> Printed:
    # Up to 1.34 the server's id is made of texts that it cannot print as JSON.
    values = device_id(device) if release.number >= 35 else ({},) * 4
    return Printed(go_json(dict(zip(("Driver", "Pool", "Device", "ShareID"), values, strict=True))))


def _shown(item: ResourceClaimConsumerReference | AllocatedDeviceStatus) -> Printed:
    return Printed(item.to_go_json())


def _nothing(_item: object, _path: str) -> Iterator[FieldError]:
    return iter(())
