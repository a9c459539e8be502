"""Device requests as the search sees them: the conditions on one device, and how many are wanted.

Source: requestAccessor, requestData and the checks of Allocate and validateDeviceRequest.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.kubernetes.api.limits import MAX_RESULTS
from dra_infra.kubernetes.api.resource_claim import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dra_infra.kubernetes.scheduler.allocator.identity import AllocationError, Failed, Published, abort
from dra_infra.kubernetes.scheduler.allocator.pools import Pool
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant


class RequestKey(NamedTuple):
    """Number of a claim, of its request, and of the entry in the request's prioritized list."""

    claim: int
    request: int
    sub: int = 0


@dataclass(slots=True)
class Wanted:
    """One request, or one entry of a prioritized list.

    Args:
        claim: Namespace and name of its claim.
        name: Its name.
        parent: The name of the request that it is an entry of; empty for one that is none.
        leaf: What is asked for.
        device_class: The class that it names.
        count: Number of devices.
        all_devices: With mode `All`, the devices of that number, in order.
        selected: On the first entry of a prioritized list: which entry was chosen.
        content: All of it that decides which devices it can have, once somebody asked.
    """

    claim: str
    name: str
    parent: str
    leaf: ExactDeviceRequest | DeviceSubRequest
    device_class: DeviceClass
    count: int = 0
    all_devices: tuple[tuple[Pool, Published], ...] | None = None
    selected: int = 0
    admin: bool = False
    capacity: Mapping[str, str] = field(default_factory=dict)
    derived: Mapping[str, str] = field(default_factory=dict)
    content: Hashable = None

    @property
    def where(self) -> str:
        """Name of the request in errors."""
        return f"claim {self.claim}, request {self.name}"

    @property
    def full_name(self) -> str:
        """Name of the request in results and constraints."""
        return f"{self.parent}/{self.name}" if self.parent else self.name


def claim_name(claim: ResourceClaim) -> str:
    """Namespace and name, as klog.KObj writes them."""
    namespace = claim.metadata.namespace
    name = claim.metadata.name or ""
    return f"{namespace}/{name}" if namespace else name


def request_leaves(request: DeviceRequest) -> tuple[ExactDeviceRequest | DeviceSubRequest, ...]:
    """The alternatives of a request, or the request itself.

    Raises:
        AllocationError: For one with nothing in it, at which the scheduler crashes.
    """
    if request.first_available:
        return tuple(request.first_available)
    if request.exactly is None:
        text = "runtime error: invalid memory address or nil pointer dereference"
        raise AllocationError(Failed(text, crashes=True))
    return (request.exactly,)


def check_features(claim: ResourceClaim, request: DeviceRequest, variant: Variant) -> None:
    """Refuse what the gates do not allow, before anything is looked at.

    Raises:
        AllocationError: As upstream words it.
    """
    if request.first_available and not variant.features.prioritized_list:
        raise abort(
            f"claim {claim_name(claim)}, request {request.name}: has subrequests, but the DRAPrioritizedList feature is "
            "disabled"
        )
    if variant.features.consumable_capacity or not variant.is_extended:
        return
    reason = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if request.exactly is not None and request.exactly.capacity is not None:
        raise abort(f"claim {claim_name(claim)}, request {request.name}: {reason}")
    for entry in request.first_available or ():
        if entry.capacity is not None:
            # 1.34 names the request, later minors the entry of its list.
            where = f"request {request.name}" if variant.number == 34 else f"subrequest {entry.name}"
            raise abort(f"claim {claim_name(claim)}, {where}: {reason}")


def describe_request(
    claim: ResourceClaim,
    request: DeviceRequest,
    leaf: ExactDeviceRequest | DeviceSubRequest,
    classes: Mapping[str, DeviceClass],
    variant: Variant,
) -> Wanted:
    """One leaf with its class; the devices of mode `All` come later.

    Raises:
        AllocationError: As upstream words it.
    """
    is_exact = isinstance(leaf, ExactDeviceRequest)
    name = request.name if isinstance(leaf, ExactDeviceRequest) else leaf.name
    where = f"claim {claim_name(claim)}, request {name}"
    derived = leaf.derived_attributes or ()
    if derived and variant.number >= 37 and not variant.features.derived_attributes:
        raise abort(f"{where}: cannot handle request with derived attributes, the feature is disabled")
    for number, selector in enumerate(leaf.selectors or ()):
        if selector.cel is None:
            raise abort(f"{where}, selector #{number}: CEL expression empty (unsupported selector type?)")
    admin = leaf.admin_access if isinstance(leaf, ExactDeviceRequest) else None
    if admin is not None and not variant.features.admin_access:
        raise abort(f"{where}: admin access is requested, but the feature is disabled")
    if not leaf.device_class_name:
        raise abort(f"{where}: missing device class name (unsupported request type?)")
    device_class = classes.get(leaf.device_class_name)
    if device_class is None:
        missing = f'deviceclass.resource.k8s.io "{leaf.device_class_name}" not found'
        raise abort(f"{where}: could not retrieve device class {leaf.device_class_name}: {missing}")
    if leaf.allocation_mode not in ("ExactCount", "All"):
        raise abort(f"{where}: unsupported count mode {leaf.allocation_mode}")
    return Wanted(
        claim=claim_name(claim),
        name=name,
        parent="" if is_exact else request.name,
        leaf=leaf,
        device_class=device_class,
        count=leaf.count if leaf.allocation_mode == "ExactCount" else 0,
        admin=bool(admin),
        capacity=(leaf.capacity.requests or {}) if leaf.capacity is not None else {},
        derived={each.name: each.expression for each in derived},
    )


def wrap_int64(number: int) -> int:
    """Return what is left of a number in a Go `int` of 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


class DeviceCount:
    """Adds up the least number of devices of a claim, and refuses what no result can hold."""

    def __init__(self, claim: ResourceClaim, variant: Variant) -> None:
        self._claim = claim
        self._variant = variant
        self._total = 0

    def add(self, request: DeviceRequest, count: int) -> None:
        """Count the least that a request needs.

        Raises:
            AllocationError: At the request that is too much, unless the release adds counts up first (`COUNTS_OVERFLOW`).
        """
        if self._variant.has(Quirk.COUNTS_OVERFLOW):
            self._total = wrap_int64(self._total + count)
            return
        if count > MAX_RESULTS - self._total:
            raise abort(
                f"claim {claim_name(self._claim)}, request {request.name}: adding {count} devices exceeds the claim limit "
                f"of {MAX_RESULTS}, with {self._total} already accounted for"
            )
        self._total += count

    def finish(self) -> None:
        """Ends the count for a claim, and refuses one with too many devices.

        Raises:
            AllocationError: In a release with `COUNTS_OVERFLOW`, where all requests together are too much, or where their sum
                overflows to a negative size of a slice, at which the scheduler panics.
        """
        if self._total < 0:
            raise AllocationError(Failed("runtime error: makeslice: cap out of range", crashes=True))
        if self._total > MAX_RESULTS:
            raise abort(
                f"claim {claim_name(self._claim)}: number of requested devices {self._total} exceeds the claim limit of "
                f"{MAX_RESULTS}"
            )
