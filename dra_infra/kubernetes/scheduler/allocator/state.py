"""Allocated state: what is allocated before an attempt, and what the attempt has taken so far.

`AllocatedState` is a value: adding a claim makes another state and leaves this one alone. Source: AllocatedState in
k8s.io/dynamic-resource-allocation/structured, and allocateddevices.go of the scheduler.

`Usage` has the devices and capacity that one attempt has taken beside that. Source: deviceInUse, deviceCapacityInUse
and ConsumedCapacityCollection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Self

from dra_infra.kubernetes.api.quantity import Quantity, nanos
from dra_infra.kubernetes.api.resource_claim import AllocationResult
from dra_infra.kubernetes.scheduler.allocator.capacity import fits_capacity
from dra_infra.kubernetes.scheduler.allocator.identity import DeviceID, Published
from dra_infra.kubernetes.scheduler.allocator.requests import Wanted
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant

_MOST_ADDED: Final = 256
"""Entries beside the large tables before they are copied into one; forks share the large ones."""

NO_USE: Final[Mapping[str, int]] = MappingProxyType({})
"""No capacity of a device in use."""


@dataclass(slots=True)
class _Tables:
    devices: dict[DeviceID, None] = field(default_factory=dict)
    shared: dict[DeviceID, None] = field(default_factory=dict)
    consumed: dict[DeviceID, Mapping[str, int]] = field(default_factory=dict)

    def copy(self) -> _Tables:
        return _Tables(dict(self.devices), dict(self.shared), dict(self.consumed))

    def join(self, other: _Tables) -> _Tables:
        return _Tables(
            self.devices | other.devices, self.shared | other.shared, self.consumed | other.consumed
        )

    def __len__(self) -> int:
        return len(self.devices) + len(self.shared) + len(self.consumed)


class AllocatedState:
    """Devices in use by the claims of the cluster.

    Args:
        devices: Those that one claim has to itself.
        shared: Those of which some claim has a share.
        consumed: Nanos that all shares of a device take together, by capacity.
    """

    __slots__ = ("_added", "_base")

    def __init__(
        self,
        devices: Iterable[DeviceID] = (),
        shared: Iterable[DeviceID] = (),
        consumed: Mapping[DeviceID, Mapping[str, int]] | None = None,
    ) -> None:
        self._base = _Tables(dict.fromkeys(devices), dict.fromkeys(shared), dict(consumed or {}))
        self._added = _Tables()

    def has_whole(self, device: DeviceID) -> bool:
        """One claim has the device to itself: `AllocatedDevices`."""
        return device in self._added.devices or device in self._base.devices

    def has_share(self, device: DeviceID) -> bool:
        """Some claim has a share of the device: `AllocatedSharedDeviceIDs`."""
        return device in self._added.shared or device in self._base.shared

    def has_consumed(self, device: DeviceID) -> bool:
        """A capacity of the device is recorded as taken, even none of it: `AggregatedCapacity`."""
        return device in self._added.consumed or device in self._base.consumed

    def consumed(self, device: DeviceID) -> Mapping[str, int]:
        """Nanos that are taken of the device, by capacity."""
        found = self._added.consumed.get(device)
        return self._base.consumed.get(device, NO_USE) if found is None else found

    def is_allocated(self, device: DeviceID) -> bool:
        """The device is in use, as IsDeviceAllocated says it from 1.36 on."""
        return self.has_whole(device) or self.has_share(device) or self.has_consumed(device)

    def with_allocation(self, result: AllocationResult, *, shares: bool = True) -> Self:
        """The state once a claim has got *result*; devices for admin access are not in use by it.

        Args:
            result: `status.allocation` of the claim.
            shares: Whether the gate DRAConsumableCapacity is on; else who has a share has the whole device.
        """
        return self.with_devices(
            (
                DeviceID(picked.driver, picked.pool, picked.device),
                picked.consumed_capacity,
                shares and picked.share_id is not None,
            )
            for picked in result.devices.results or ()
            if not picked.admin_access
        )

    @property
    def is_empty(self) -> bool:
        """Nothing is in use."""
        return not len(self._base) and not len(self._added)

    def with_devices(self, taken: Iterable[tuple[DeviceID, Mapping[str, str] | None, bool]]) -> Self:
        """The state once some devices are taken.

        Args:
            taken: Device, what a share takes of it by capacity, and whether it is a share; else it is the whole device.
        """
        added = self._added.copy()
        for device, consumed, is_share in taken:
            if not is_share:
                added.devices[device] = None
                continue
            added.shared[device] = None
            if consumed is not None:
                sums = dict(added.consumed.get(device) or self._base.consumed.get(device, NO_USE))
                for name, text in consumed.items():
                    sums[name] = sums.get(name, 0) + nanos(text)
                added.consumed[device] = sums
        forked = self.__class__()
        if len(added) > _MOST_ADDED:
            forked._base, forked._added = self._base.join(added), _Tables()  # noqa: SLF001
        else:
            forked._base, forked._added = self._base, added  # noqa: SLF001
        return forked


Undo = Callable[[], object]
"""Gives back what was taken."""


@dataclass(frozen=True, slots=True)
class Picked:
    """One device of a result.

    Args:
        wanted: For which request.
        published: The device.
        is_share: Whether other claims may have shares beside it.
        consumed: What the share takes, by capacity.
    """

    wanted: Wanted
    published: Published
    is_share: bool
    consumed: Mapping[str, Quantity]


class Usage:
    """Devices and capacities that are in use at one point of an attempt."""

    def __init__(self, state: AllocatedState, variant: Variant) -> None:
        self._state = state
        self._variant = variant
        self._owners: dict[DeviceID, set[int]] = {}
        self._capacity: dict[DeviceID, dict[str, int]] = {}

    def is_free(self, wanted: Wanted, published: Published, claim: int) -> bool:
        """Nobody has the device; for admin access, this claim does not have it yet."""
        owners = self._owners.get(published.id)
        if wanted.admin:
            return not owners or claim not in owners
        return not owners and not self._state.has_whole(published.id)

    def mark(self, device: DeviceID, claim: int) -> Undo:
        """Give the whole device to a claim."""
        owners = self._owners.setdefault(device, set())
        owners.add(claim)
        return lambda: owners.discard(claim)

    def has_capacity(self, wanted: Wanted, published: Published) -> bool:
        """Enough of the device is left for the request.

        Raises:
            CapacityError: In 1.37, when the request cannot be counted.
        """
        return fits_capacity(
            wanted.capacity,
            published.device.capacity or {},
            self._state.consumed(published.id),
            self._capacity.get(published.id, NO_USE),
            self._variant,
        )

    def has_shares(self, device: DeviceID) -> bool:
        """The counters of a shareable device are paid already; 1.34 pays them for each share."""
        if self._variant.has(Quirk.SHARES_PAY_AGAIN):
            return False
        if device in self._capacity or self._state.has_consumed(device):
            return True
        return not self._variant.has(Quirk.EMPTY_SHARES_PAY_AGAIN) and self._state.has_share(device)

    def take_capacity(self, device: DeviceID, consumed: Mapping[str, Quantity]) -> Undo | None:
        """Take a share; None where it stays taken for good, as one without any capacity does before 1.36."""
        existed = device in self._capacity
        sums = self._capacity.setdefault(device, {})
        for name, amount in consumed.items():
            sums[name] = sums.get(name, 0) + amount.nanos
        if not consumed and self._variant.has(Quirk.REFUSED_KEEPS):
            return None
        return lambda: self._give_back(device, consumed, existed=existed)

    def _give_back(self, device: DeviceID, consumed: Mapping[str, Quantity], *, existed: bool) -> None:
        sums = self._capacity.get(device)
        if sums is None:
            return
        for name, amount in consumed.items():
            if name in sums:
                sums[name] -= amount.nanos
        if any(sums.values()):
            return
        if existed and not self._variant.has(Quirk.REFUSED_KEEPS):
            # An earlier share of the device is still there, by which the counters are paid.
            self._capacity[device] = {}
        else:
            del self._capacity[device]
