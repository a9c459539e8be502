"""Names of devices, and one device where it was published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dra_infra.model.device import Device
from dra_infra.model.resource_slice import ResourceSlice

ROOM_FOR_RESULTS = 32
"""Most devices of one claim: AllocationResultsMaxSize."""


class PoolID(NamedTuple):
    """A pool of a driver."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    """A device, wherever its slice is."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


@dataclass(slots=True, eq=False)
class Published:
    """One device in its slice; never changed, though not frozen, which makes 40,000 of them slow.

    Args:
        id: Its name.
        device: What the driver says about it.
        slice: The slice that lists it.
        index: Its position in the slice.
        shareable: Whether several claims may use it: `allowMultipleAllocations`.
    """

    id: DeviceID
    device: Device
    slice: ResourceSlice
    index: int
    shareable: bool

    @property
    def pool(self) -> PoolID:
        """The pool that the device is part of."""
        return PoolID(self.id.driver, self.id.pool)


def published_devices(slice_: ResourceSlice) -> tuple[Published, ...]:
    """The devices of a slice, in order."""
    spec = slice_.spec
    driver, pool = spec.driver, spec.pool.name
    return tuple(
        [
            Published(
                DeviceID(driver, pool, device.name),
                device,
                slice_,
                index,
                device.allow_multiple_allocations is True,
            )
            for index, device in enumerate(spec.devices or ())
        ]
    )
