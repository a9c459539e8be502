"""What of a back end makes devices ready, and how its bugs are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dra_infra.plugin.claims import Claim, Edits
from dra_infra.plugin.unexpected import expected


class Devices(Protocol):
    """The part of `BackEnd` that prepares."""

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        """As `BackEnd.prepare`."""
        ...

    def release(self, claim: Claim) -> None:
        """As `BackEnd.release`."""
        ...


class GuardedDevices:
    """Devices that raise nothing but `PluginError`.

    A back end's bug at one claim keeps no other claim from being prepared or released, and hides no other failure at the same claim.
    """

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def prepare(self, claim: Claim) -> tuple[Edits, ...]:
        """As `BackEnd.prepare`.

        Raises:
            PluginError: What it says, and `plugin-failed`.
        """
        with expected(f"prepare claim {claim.uid}"):
            return tuple(self._devices.prepare(claim))

    def release(self, claim: Claim) -> None:
        """As `BackEnd.release`.

        Raises:
            PluginError: What it says, and `plugin-failed`.
        """
        with expected(f"release claim {claim.uid}"):
            self._devices.release(claim)
