"""The back end interface: what a driver knows of its hardware, and nothing else.

The rest of the plugin is the same for all drivers. `Devices` is the part of a back end that makes devices ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dra_infra.kubernetes.api import CounterSet, Device
from dra_infra.plugin.claims import Claim, ClaimReference, Edits


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """Health of a device, as the kubelet shows it in the status of pods (KEP 4680).

    Args:
        message: For a person; the kubelet takes 1,024 bytes, and the rest is cut.
    """

    state: Literal["healthy", "unhealthy", "unknown"] = "healthy"
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inventory:
    """Devices of the node, all of them in the pool that has the node's name.

    Args:
        devices: In the order in which the scheduler is to try them; their taints are part of them.
        counters: What the devices consume together, such as the memory slices of a GPU.
        health: By the device's name; what is not named is healthy.
    """

    devices: tuple[Device, ...]
    counters: tuple[CounterSet, ...] = ()
    health: Mapping[str, Health] = field(default_factory=dict)


class Devices(Protocol):
    """The part of a back end that makes devices ready; one call at a time."""

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        """Make the devices ready, and say what each changes in a container, in the claim's order.

        Again is no error, and answers the same: a crash may have come between.
        """
        ...

    def release(self, claim: Claim) -> None:
        """Undo what `prepare` did, or a part of it, or nothing.

        Of a claim that was not restored only the UID and names of devices are known.
        """
        ...


class BackEnd(Devices, Protocol):
    """Devices of one driver on one node. Its methods raise `PluginError` where they cannot do what they are asked.

    `prepare` and `release` are called one at a time, the others at any time and from any thread.
    """

    @property
    def driver(self) -> str:
        """Name of the driver, such as gpu.example.com: that of slices, claims and sockets."""
        ...

    def inventory(self) -> Inventory:
        """The devices that there are now."""
        ...

    def watch(self, changed: Callable[[], None]) -> None:
        """Call *changed*, from any thread, whenever `inventory` may answer something else; returns at once.

        Several ask: each is told.
        """
        ...

    def close(self) -> None:
        """Stop watching; what is prepared stays so."""
        ...


class Bound(Protocol):
    """Binding of a device to a claim: it is done, or never will be."""

    @property
    def state(self) -> Literal["met", "failed"]:
        """Ready (met), or never to be ready (failed)."""
        ...

    @property
    def message(self) -> str:
        """Message for a person."""
        ...


class Bindings(Protocol):
    """The part of a back end that devices with binding conditions need."""

    def binding(self, claim: ClaimReference, device: str) -> Bound | None:
        """Binding of a device to a claim; None while that is not decided. `BackEnd.watch` tells when it may be."""
        ...
