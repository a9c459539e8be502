"""How many devices requests can have at most, by counting: no search, and never less than the truth.

A bound that is below what is asked for is a proof that nothing can be allocated, whatever the search would do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from dra_infra.simulation.allocation.amounts import nanos
from dra_infra.simulation.allocation.counters import CounterAvailability
from dra_infra.simulation.allocation.identity import DeviceID, Published
from dra_infra.simulation.allocation.pools import Pool
from dra_infra.simulation.allocation.variants import Variant
from dra_infra.simulation.explaining.leaves import Leaf


@dataclass(frozen=True, slots=True)
class Choice:
    """One request of a claim, and what it could have.

    Args:
        entries: The request, or the entries of its prioritized list.
        wanted: The least number of devices that it needs.
        devices: What any of the entries could have.
    """

    entries: tuple[Leaf, ...]
    wanted: int
    devices: Mapping[DeviceID, tuple[Pool, Published]]

    @property
    def name(self) -> str:
        """As a person knows it."""
        first = self.entries[0]
        return f"request {first.wanted.parent or first.wanted.name} of {first.claim_name}"

    @property
    def claim(self) -> int:
        """Number of its claim."""
        return self.entries[0].key.claim

    @property
    def is_admin(self) -> bool:
        """Whether it may have devices that others use."""
        return any(entry.wanted.admin for entry in self.entries)

    def within(self, devices: Set[DeviceID]) -> Choice:
        """The same with some of the devices only."""
        kept = {key: found for key, found in self.devices.items() if key in devices}
        return Choice(self.entries, self.wanted, kept)


def most_devices(choice: Choice, variant: Variant) -> int | None:
    """How many devices a request could have if it were alone; None where one device can serve it several times."""
    if not variant.picks_combinations and any(
        is_shared(each, variant) for _, each in choice.devices.values()
    ):
        return None
    return len(choice.devices)


def is_shared(published: Published, variant: Variant) -> bool:
    """Whether several requests may have the device."""
    return variant.features.consumable_capacity and published.shareable


def match_choices(choices: Sequence[Choice], variant: Variant) -> tuple[int, tuple[int, ...]]:
    """How many devices the requests can have together, each device for one of them.

    Returns:
        The number, and which requests are too many for the devices that any of them could have; empty when the number
        is what they want.
    """
    slots = [number for number, choice in enumerate(choices) for _ in range(choice.wanted)]
    owner: dict[DeviceID, int] = {}

    def place(slot: int, seen: set[DeviceID]) -> bool:
        for device, (_, published) in choices[slots[slot]].devices.items():
            if device in seen:
                continue
            if is_shared(published, variant):
                return True
            seen.add(device)
            if device not in owner or place(owner[device], seen):
                owner[device] = slot
                return True
        return False

    placed, lacking = 0, set[int]()
    for slot in range(len(slots)):
        seen: set[DeviceID] = set()
        if place(slot, seen):
            placed += 1
        else:
            lacking |= {slots[slot], *(slots[owner[device]] for device in seen if device in owner)}
    return placed, tuple(sorted(lacking))


def most_by_counters(
    devices: Mapping[DeviceID, tuple[Pool, Published]],
    left: CounterAvailability,
    variant: Variant,
    *,
    times: int,
) -> int:
    """How many of the devices their counters allow at once, each group on the same counter sets by itself.

    Args:
        devices: The devices.
        left: What is left of counters.
        variant: Whose rules.
        times: How often a device can be taken that several claims may share.
    """
    total = 0
    groups: dict[tuple[object, ...], list[tuple[Pool, Published]]] = defaultdict(list)
    for pool, published in devices.values():
        sets = sorted(each.counter_set for each in published.device.consumes_counters or ())
        if sets and not is_shared(published, variant):
            part = published.slice.metadata.name if variant.simple_pools else ""
            groups[pool.id, part, *sets].append((pool, published))
        else:
            total += times if is_shared(published, variant) else 1
    for members in groups.values():
        numbers = [_most_of_one(members, left, *counter) for counter in _counters_of(members)]
        total += min([len(members), *numbers])
    return total


def _counters_of(members: Sequence[tuple[Pool, Published]]) -> set[tuple[str, str]]:
    return {
        (consumption.counter_set, name)
        for _, published in members
        for consumption in published.device.consumes_counters or ()
        for name in consumption.counters or ()
    }


def _most_of_one(
    members: Sequence[tuple[Pool, Published]], left: CounterAvailability, set_name: str, counter: str
) -> int:
    available = left.of(*members[0]).get(set_name, {}).get(counter)
    if available is None:
        return len(members)
    amounts = sorted(_amount(published, set_name, counter) for _, published in members)
    number = 0
    for amount in amounts:
        available -= amount
        if amount and available < 0:
            break
        number += 1
    return number


def _amount(published: Published, set_name: str, counter: str) -> int:
    return sum(
        nanos((consumption.counters or {})[counter].value)
        for consumption in published.device.consumes_counters or ()
        if consumption.counter_set == set_name and counter in (consumption.counters or {})
    )
