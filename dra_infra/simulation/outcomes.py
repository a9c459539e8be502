"""What a search for devices on one node can end with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allocated:
    """A full choice: positions on the node per request, the requests of all claims in order."""

    picks: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Impossible:
    """No choice of devices satisfies all claims."""


@dataclass(frozen=True, slots=True)
class Aborted:
    """The scheduler ends the whole attempt for the pod with an error.

    Args:
        text: The scheduler's text, without the words `claim <namespace>/<name>` that it may start with.
        claim: Number of the claim whose name comes first; None when the text is complete.
    """

    text: str
    claim: int | None


@dataclass(frozen=True, slots=True)
class NotDecided:
    """The search reached something that is not modelled, or its limit."""

    code: str
    what: str


Halt = Aborted | NotDecided
Outcome = Allocated | Impossible | Aborted | NotDecided
