"""What an attempt on one node comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dra_infra.model.claim_status import AllocationResult


@dataclass(frozen=True, slots=True)
class Allocated:
    """Every claim got its devices.

    Args:
        results: What `status.allocation` of each claim becomes, in the order of the claims. A share has the id `share`
            in place of the random one that the scheduler makes.
    """

    results: tuple[AllocationResult, ...]


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
        decided: False where the CEL engine here cannot tell what the scheduler's says (`cel-not-decided-here`).
    """

    text: str
    on_node: bool = False
    crashes: bool = False
    decided: bool = True


Outcome: TypeAlias = Allocated | Cannot | Failed


class AllocationError(Exception):
    """Ends an attempt with *failed*; upstream returns an error up the stack."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.text)
        self.failed = failed


def abort(text: str) -> AllocationError:
    """An error that ends the attempt for the pod."""
    return AllocationError(Failed(text))
