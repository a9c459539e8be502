"""Where devices end on their way to a request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dra_infra.simulation.allocation.identity import DeviceID

NOWHERE, REFUSED, TROUBLED, SIEVED = -3, -2, -1, 0
"""Stages before a node's sieve: no node, nodes that refuse the pod, pools that give nothing. Those of the sieve follow."""

PASSED: Final = 99
"""Behind all stages: the request can have the device."""

FAILED: Final = 98
"""In place of the number of a clause, where the selector has no value on a device."""


class End(NamedTuple):
    """A place in the order of things; the higher the further a device comes.

    Args:
        stage: One of the above, or `SIEVED` and the stage of a sieve.
        rank: Number of selectors that it passes.
        clause: Number of the clause that it fails.
        text: What is said of it.
    """

    stage: int
    rank: int = 0
    clause: int = 0
    text: str = ""


NONE: Final = End(-9)
"""Before everything."""


@dataclass(slots=True)
class Ends:
    """Where each device ends, for one request."""

    at: dict[DeviceID, End] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
