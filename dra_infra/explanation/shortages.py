"""Shortages of devices on a node for the requests of a pod, in numbers that no search can change.

How many devices requests can have at most is found by counting: no search, and never less than the truth. A bound
that is below what is asked for is a proof that nothing can be allocated, whatever the search would do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass

from dra_infra.explanation.device_checks import DeviceChecks
from dra_infra.explanation.question import Leaf
from dra_infra.kubernetes.api import DeviceConstraint, ResourceClaim, nanos
from dra_infra.kubernetes.scheduler.allocator import (
    AllocatedState,
    AllocationError,
    Allocator,
    CounterAvailability,
    DeviceID,
    Matching,
    Pool,
    Published,
    Quirk,
    Variant,
    attribute_values,
    scalar_value,
)


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
        """The name of the request for messages."""
        first = self.entries[0]
        return f"request {first.wanted.parent or first.wanted.name} of {first.claim_name}"

    @property
    def claim(self) -> int:
        """Number of its claim."""
        return self.entries[0].key.claim

    @property
    def is_admin(self) -> bool:
        """It asks for admin access, and may have devices that others use."""
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
    """Several requests may have the device."""
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

    placed = 0
    lacking = set[int]()
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


@dataclass(frozen=True, slots=True)
class Shortage:
    """Requests that want more than there is.

    Args:
        code: What is lacking: `too-few-devices`, `counters-exceeded` or `constraint-not-met`.
        text: All of it, with `{best}` where the number of the best node goes.
        asked: What is asked for, as `9 devices with one pcieRoot`.
        there: What there is on the node, as `the largest group has 4`.
        wanted: How many devices are asked for.
        best: How many of them there can be.
    """

    code: str
    text: str
    asked: str
    there: str
    wanted: int
    best: int


class Counting:
    """Counts on one node, as if nothing were in use."""

    def __init__(
        self,
        cluster: Allocator,
        checks: DeviceChecks,
        claims: Sequence[ResourceClaim],
        choices: Sequence[Choice],
    ) -> None:
        self._variant = cluster.variant
        self._claims = claims
        self._choices = choices
        self._matching = Matching(cluster.evaluator, checks.node, cluster.variant)
        self._left = CounterAvailability(AllocatedState(), cluster.variant)

    def find(self, names: Sequence[str]) -> Iterator[Shortage]:
        """Everything that is too little, the simplest first."""
        for choice in self._choices:
            yield from self._alone(choice)
        yield from self._together()
        yield from self._by_counters()
        for number, claim in enumerate(self._claims):
            for index, constraint in enumerate(claim.spec.devices.constraints or ()):
                kind = "match" if constraint.match_attribute is not None else "distinct"
                attribute = constraint.match_attribute or constraint.distinct_attribute or ""
                where = f"constraint #{index} of {names[number]} ({kind}Attribute {attribute})"
                found = self._constrained(number, constraint, where)
                if found is not None:
                    yield found

    def _alone(self, choice: Choice) -> Iterator[Shortage]:
        most = most_devices(choice, self._variant)
        if most is not None and most < choice.wanted:
            number = _devices(choice.wanted)
            yield Shortage(
                "too-few-devices",
                f"{literal(choice.name)} needs {number}, the largest node has {{best}} that match",
                f"{number} for {choice.name}",
                f"{most} match",
                choice.wanted,
                most,
            )

    def _together(self) -> Iterator[Shortage]:
        choices = [each for each in self._choices if not each.is_admin]
        if len(choices) < 2 or not self._variant.picks_combinations:
            return
        _, lacking = match_choices(choices, self._variant)
        if len(lacking) < 2:
            return
        short = [choices[number] for number in lacking]
        wanted = sum(each.wanted for each in short)
        union = {device for each in short for device in each.devices}
        who = f"the {len(short)} requests"
        if len(short) < len(self._choices):
            who = " and ".join(each.name for each in short)
        yield Shortage(
            "too-few-devices",
            f"{literal(who)} need {wanted} different devices, the largest node has {{best}} that match",
            f"{wanted} different devices for {who}",
            f"{len(union)} match any of them",
            wanted,
            len(union),
        )

    def _by_counters(self) -> Iterator[Shortage]:
        sets = [[each] for each in self._choices]
        plain = [each for each in self._choices if not each.is_admin]
        for chosen in (*sets, *([plain] if len(plain) > 1 else [])):
            wanted = sum(each.wanted for each in chosen)
            devices = {key: found for each in chosen for key, found in each.devices.items()}
            most = most_by_counters(devices, self._left, self._variant, times=wanted)
            if most < wanted <= len(devices):
                who = chosen[0].name if len(chosen) == 1 else f"the {len(chosen)} requests"
                need = "needs" if len(chosen) == 1 else "need"
                yield Shortage(
                    "counters-exceeded",
                    f"{literal(who)} {need} {_devices(wanted)} at once, the counters that they share allow {{best}} "
                    "on the best node",
                    f"{_devices(wanted)} at once for {who}",
                    f"the counters that they share allow {most} of the {len(devices)} that match",
                    wanted,
                    most,
                )

    def _constrained(self, claim: int, constraint: DeviceConstraint, where: str) -> Shortage | None:
        covered = [each for each in self._choices if each.claim == claim and _covers(constraint, each)]
        wanted = sum(each.wanted for each in covered)
        if not wanted:
            return None
        attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        try:
            groups = self._group(covered, attribute)
        except AllocationError:
            return None
        if not groups:
            text = f"{literal(where)} is not met: no matching device has the attribute"
            asked = f"{_devices(wanted)} with a value of {attribute}"
            return Shortage("constraint-not-met", text, asked, "no matching device has it", wanted, 0)
        if constraint.match_attribute is None:
            best = self._distinct(covered, wanted, groups)
            how = "different values"
            there = "there are {} values"
        else:
            best = max(self._most(covered, devices) for devices in groups.values())
            how, there = "one value", "the largest group has {}"
        if best >= wanted:
            return None
        return Shortage(
            "constraint-not-met",
            f"{literal(where)} needs {_devices(wanted)} with {how}, the best node has {{best}}",
            f"{_devices(wanted)} with {how} of {attribute}",
            there.format(best),
            wanted,
            best,
        )

    def _distinct(self, covered: Sequence[Choice], wanted: int, groups: Sized) -> int:
        # Where values are forgotten or compared by their place in memory, equal ones may be beside each other.
        forgets = self._variant.has(Quirk.DISTINCT_FORGETS) and any(each.wanted > 1 for each in covered)
        if forgets or self._variant.has(Quirk.DISTINCT_BY_POINTER):
            return wanted
        return len(groups)

    def _most(self, covered: Sequence[Choice], devices: set[DeviceID]) -> int:
        within = [each.within(devices) for each in covered]
        if not self._variant.picks_combinations and any(
            most_devices(each, self._variant) is None for each in within
        ):
            return sum(each.wanted for each in covered)
        matched, _ = match_choices(within, self._variant)
        union = {key: found for each in within for key, found in each.devices.items()}
        wanted = sum(each.wanted for each in covered)
        return min(matched, most_by_counters(union, self._left, self._variant, times=wanted))

    def _group(self, covered: Sequence[Choice], attribute: str) -> dict[str, set[DeviceID]]:
        """Devices by value; one with a list is in the group of each of its values."""
        groups: dict[str, set[DeviceID]] = {}
        for choice in covered:
            for device, (_, published) in choice.devices.items():
                for value in self._values(choice, published, attribute):
                    groups.setdefault(value, set()).add(device)
        return groups

    def _values(self, choice: Choice, published: Published, name: str) -> set[str]:
        found = set()
        for entry in choice.entries:
            attribute = self._matching.attribute(entry.wanted, published, name)
            if attribute is None:
                continue
            if self._variant.features.list_attributes:
                several = attribute_values(attribute)
                found |= {f"{several[0]} {each}" for each in several[1]} if several else set()
            elif (single := scalar_value(attribute)) is not None:
                found.add(f"{single[0]} {single[1]}")
            else:
                # Of a type that nothing can be compared with: good for one device.
                found.add(f"{published.id}")
        return found


def _covers(constraint: DeviceConstraint, choice: Choice) -> bool:
    """The constraint names the request, or whichever of its entries is taken."""
    names = constraint.requests
    if not names:
        return True
    return all(
        each.wanted.full_name in names or (each.wanted.parent and each.wanted.parent in names)
        for each in choice.entries
    )


def literal(text: str) -> str:
    """Keep braces of names and expressions apart from the one placeholder."""
    return text.replace("{", "{{").replace("}", "}}")


def _devices(number: int) -> str:
    return "1 device" if number == 1 else f"{number} devices"
