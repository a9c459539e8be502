"""What of a back end makes devices ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dra_infra.plugin.claims import Claim, Edits


class Devices(Protocol):
    """The part of `BackEnd` that prepares."""

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        """As `BackEnd.prepare`."""
        ...

    def release(self, claim: Claim) -> None:
        """As `BackEnd.release`."""
        ...
