"""Outcomes of a search for devices on one node, in positions that mean the same on all nodes of a shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Pick:
    """One device of a choice.

    Args:
        claim: Number of the claim among those of the pod that are not allocated yet.
        request: Name of the request as results have it.
        pool: Number of the pool on the node.
        position: Number of the device in its pool.
        admin: Whether it is for admin access, which takes nothing from anybody.
        share: Whether others can have shares beside it.
        consumed: What a share takes, by capacity, as the server prints it.
    """

    claim: int
    request: str
    pool: int
    position: int
    admin: bool = False
    share: bool = False
    consumed: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A full choice, in the order of allocation."""

    picks: tuple[Pick, ...]


@dataclass(frozen=True, slots=True)
class Impossible:
    """No choice of devices satisfies all claims."""


@dataclass(frozen=True, slots=True)
class Aborted:
    """The scheduler ends the whole attempt for the pod with an error.

    Args:
        text: The scheduler's text, see `cluster.name_claims` for the names of claims in it.
        crashes: Whether it panics.
    """

    text: str
    crashes: bool = False


@dataclass(frozen=True, slots=True)
class NotDecided:
    """The search reached something that is not modelled, or its limit.

    Args:
        code: Code of the reason.
        what: What it reached.
        on_node: Whether it is about this node alone, so that other nodes may still take the pod for certain.
    """

    code: str
    what: str
    on_node: bool = False


Halt: TypeAlias = Aborted | NotDecided
Outcome: TypeAlias = Chosen | Impossible | Aborted | NotDecided
