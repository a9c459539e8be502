"""Refusals: which check keeps a device from a request, for a caller that asks why.

The checks themselves are those of the search: `Search`, `Matching` and `Taking` report here what they refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from dra_infra.kubernetes.scheduler.allocator.identity import DeviceID, Published


class Check(IntEnum):
    """Checks of a device, in the order in which the allocator makes them."""

    IN_USE = 0
    BINDING_CONDITIONS = 1
    SELECTOR = 2
    NODE = 3
    CAPACITY = 4
    FEATURE = 5
    COMPATIBILITY_GROUPS = 6
    COUNTERS = 7
    TAINT = 8


@dataclass(frozen=True, slots=True)
class Refusal:
    """One check that a device fails.

    Args:
        device: The device.
        check: The check.
        owner: With `Check.SELECTOR`, whose selector it is: `class NAME` or `claim NAMESPACE/NAME`.
        selector: The number of the selector there.
        error: Why a selector or an amount has no value on the device, which ends the attempt; empty where it has one.
    """

    device: DeviceID
    check: Check
    owner: str = ""
    selector: int = 0
    error: str = ""


Tracer: TypeAlias = Callable[[Refusal], object]
"""Receives refusals. With one, the checks of a device go on after a refusal, so that it receives all of them."""


def refuse(tracer: Tracer | None, published: Published, check: Check, error: str = "") -> bool:
    """Report a refusal to a tracer.

    Returns:
        Whether the checks end here: without a tracer.
    """
    if tracer is None:
        return True
    tracer(Refusal(published.id, check, error=error))
    return False
