"""Names of pools and devices, published devices, and the outcomes of an attempt on one node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from dra_infra.kubernetes.api.resource_claim import AllocationResult
from dra_infra.kubernetes.api.resource_slice import Device, ResourceSlice


class PoolID(NamedTuple):
    """A pool of a driver."""

    driver: str
    pool: str

    @classmethod
    def of(cls, slice_: ResourceSlice) -> PoolID:
        """Return the pool that a slice is part of."""
        return cls(slice_.spec.driver, slice_.spec.pool.name)

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
    driver = spec.driver
    pool = spec.pool.name
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


@dataclass(frozen=True, slots=True)
class Allocated:
    """Every claim got its devices.

    Args:
        results: What `status.allocation` of each claim becomes, in the order of the claims. A share has the id `share`
            in place of the random one that the scheduler makes.
        leaves_out: Whether proofs left out tries that the scheduler makes, so that it may not come to this in its time.
    """

    results: tuple[AllocationResult, ...]
    leaves_out: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Cannot:
    """The node cannot serve the claims, and nothing more is said."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt ended with an error.

    Args:
        text: The error as the scheduler words it.
        on_node: Whether it is about this node alone; else it ends the attempt for the pod, whatever other nodes can do.
        crashes: Whether the scheduler panics instead of returning an error.
        decided: False where it is not known what the scheduler does, for the reason of `code`.
        code: `cel-not-decided-here`, or `slice-counts-differ`.
    """

    text: str
    on_node: bool = False
    crashes: bool = False
    decided: bool = True
    code: str = "cel-not-decided-here"


Outcome: TypeAlias = Allocated | Cannot | Failed
"""What the allocator answers for the claims of a pod on one node."""


class AllocationError(Exception):
    """Ends an attempt with *failed*; upstream returns an error up the stack."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.text)
        self.failed = failed


def abort(text: str) -> AllocationError:
    """An error that ends the attempt for the pod."""
    return AllocationError(Failed(text))
