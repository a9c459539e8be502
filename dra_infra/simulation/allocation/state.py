"""What is allocated before an attempt, as a value: adding a claim makes another state and leaves this one alone.

Source: AllocatedState in k8s.io/dynamic-resource-allocation/structured, and allocateddevices.go of the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Self

from dra_infra.model.claim_status import AllocationResult
from dra_infra.simulation.allocation.amounts import nanos
from dra_infra.simulation.allocation.identity import DeviceID

_MOST_ADDED: Final = 256
"""Entries beside the large tables before they are copied into one; forks share the large ones."""

NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


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
        """Whether one claim has the device to itself: `AllocatedDevices`."""
        return device in self._added.devices or device in self._base.devices

    def has_share(self, device: DeviceID) -> bool:
        """Whether some claim has a share of the device: `AllocatedSharedDeviceIDs`."""
        return device in self._added.shared or device in self._base.shared

    def has_consumed(self, device: DeviceID) -> bool:
        """Whether any capacity of the device is recorded as taken, even none of it: `AggregatedCapacity`."""
        return device in self._added.consumed or device in self._base.consumed

    def consumed(self, device: DeviceID) -> Mapping[str, int]:
        """Nanos that are taken of the device, by capacity."""
        found = self._added.consumed.get(device)
        return self._base.consumed.get(device, NOTHING) if found is None else found

    def is_allocated(self, device: DeviceID) -> bool:
        """Whether the device is in use at all, as IsDeviceAllocated says it from 1.36 on."""
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
        """Whether nothing is in use."""
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
                sums = dict(added.consumed.get(device) or self._base.consumed.get(device, NOTHING))
                for name, text in consumed.items():
                    sums[name] = sums.get(name, 0) + nanos(text)
                added.consumed[device] = sums
        forked = self.__class__()
        if len(added) > _MOST_ADDED:
            forked._base, forked._added = self._base.join(added), _Tables()  # noqa: SLF001
        else:
            forked._base, forked._added = self._base, added  # noqa: SLF001
        return forked
