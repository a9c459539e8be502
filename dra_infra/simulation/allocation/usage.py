"""Devices and capacity that one attempt has taken so far, beside what is allocated before it.

Source: deviceInUse, deviceCapacityInUse and ConsumedCapacityCollection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dra_infra.simulation.allocation.amounts import Amount
from dra_infra.simulation.allocation.capacity import fits
from dra_infra.simulation.allocation.identity import DeviceID, Published
from dra_infra.simulation.allocation.quirks import Quirk
from dra_infra.simulation.allocation.requests import Wanted
from dra_infra.simulation.allocation.state import NOTHING, AllocatedState
from dra_infra.simulation.allocation.variants import Variant

Undo = Callable[[], object]
"""Gives back what was taken."""


@dataclass(frozen=True, slots=True)
class Picked:
    """One device of a result.

    Args:
        wanted: For which request.
        published: The device.
        is_share: Whether other claims may have shares beside it.
        consumed: What the share takes, by capacity.
    """

    wanted: Wanted
    published: Published
    is_share: bool
    consumed: Mapping[str, Amount]


class Usage:
    """What is in use at one point of an attempt.

    Args:
        state: What is allocated before.
        variant: Whose rules.
    """

    def __init__(self, state: AllocatedState, variant: Variant) -> None:
        self._state = state
        self._variant = variant
        self._owners: dict[DeviceID, set[int]] = {}
        self._capacity: dict[DeviceID, dict[str, int]] = {}

    def is_free(self, wanted: Wanted, published: Published, claim: int) -> bool:
        """Whether nobody has the device; for admin access, whether this claim does not have it yet."""
        owners = self._owners.get(published.id)
        if wanted.admin:
            return not owners or claim not in owners
        return not owners and not self._state.has_whole(published.id)

    def mark(self, device: DeviceID, claim: int) -> Undo:
        """Give the whole device to a claim."""
        owners = self._owners.setdefault(device, set())
        owners.add(claim)
        return lambda: owners.discard(claim)

    def has_capacity(self, wanted: Wanted, published: Published) -> bool:
        """Whether enough of the device is left for the request.

        Raises:
            CapacityError: In 1.37, when the request cannot be counted.
        """
        return fits(
            wanted.capacity,
            published.device.capacity or {},
            self._state.consumed(published.id),
            self._capacity.get(published.id, NOTHING),
            self._variant,
        )

    def has_shares(self, device: DeviceID) -> bool:
        """Whether the counters of a shareable device are paid already; 1.34 pays them for each share."""
        if self._variant.has(Quirk.SHARES_PAY_AGAIN):
            return False
        if device in self._capacity or self._state.has_consumed(device):
            return True
        return not self._variant.has(Quirk.EMPTY_SHARES_PAY_AGAIN) and self._state.has_share(device)

    def take_capacity(self, device: DeviceID, consumed: Mapping[str, Amount]) -> Undo | None:
        """Take a share; None where it stays taken for good, as one without any capacity does before 1.36."""
        existed = device in self._capacity
        sums = self._capacity.setdefault(device, {})
        for name, amount in consumed.items():
            sums[name] = sums.get(name, 0) + amount.nanos
        if not consumed and self._variant.has(Quirk.REFUSED_KEEPS):
            return None
        return lambda: self._give_back(device, consumed, existed=existed)

    def _give_back(self, device: DeviceID, consumed: Mapping[str, Amount], *, existed: bool) -> None:
        sums = self._capacity.get(device)
        if sums is None:
            return
        for name, amount in consumed.items():
            if name in sums:
                sums[name] -= amount.nanos
        if any(sums.values()):
            return
        if existed and not self._variant.has(Quirk.REFUSED_KEEPS):
            # An earlier share of the device is still there, by which the counters are paid.
            self._capacity[device] = {}
        else:
            del self._capacity[device]
