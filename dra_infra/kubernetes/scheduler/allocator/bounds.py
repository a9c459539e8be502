"""Bounds that rule out a state of the search: what is left cannot serve what is still wanted.

Each is a condition that every solution fulfils, so a state that does not has none. Whether devices can be handed out
to requests at all is a flow from requests over devices to what devices draw on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.scheduler.allocator.demands import positions, union
from dra_infra.kubernetes.scheduler.allocator.facts import ConstraintValues, Facts
from dra_infra.kubernetes.scheduler.allocator.identity import Published
from dra_infra.kubernetes.scheduler.allocator.requests import RequestKey
from dra_infra.kubernetes.scheduler.allocator.state import Picked

_MOST: Final = 160
"""Devices that are wanted, beyond which nobody looks; each may be one call deep."""


class Flow:
    """Hands out devices, each once.

    Args:
        needs: For each request how many devices it needs, and those that it can have, as bits.
        groups: By device the group that it draws on, if any.
        room: How many devices each group has room for.
    """

    def __init__(
        self, needs: Sequence[tuple[int, int]], groups: Mapping[int, int], room: Mapping[int, int]
    ) -> None:
        self._needs = needs
        self._groups = groups
        self._room = dict(room)
        self._owners: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}
        self._seen = 0
        self._seen_groups: set[int] = set()

    def is_possible(self) -> bool:
        """All requests may get all that they need; true as well where that is too much to find out."""
        if sum(need for need, _ in self._needs) > _MOST:
            return True
        for request, (need, _) in enumerate(self._needs):
            for _ in range(need):
                self._seen = 0
                self._seen_groups = set()
                if not self._serve(request):
                    return False
        return True

    def _serve(self, request: int) -> bool:
        """Give one more device to a request, for which others may get another one than they have."""
        for device in positions(self._needs[request][1] & ~self._seen):
            if self._seen >> device & 1:
                continue
            self._seen |= 1 << device
            owner = self._owners.get(device)
            group = self._groups.get(device)
            if owner is None:
                if group is None or self._room[group] > 0 or self._make_room(group):
                    self._give(device, request, group)
                    return True
            elif self._serve(owner):
                self._owners[device] = request
                return True
        return False

    def _make_room(self, group: int) -> bool:
        """Let one device of a full group go, whose request gets one elsewhere."""
        if group in self._seen_groups:
            return False
        self._seen_groups.add(group)
        for device in list(self._members.get(group, ())):
            if self._seen >> device & 1:
                continue
            self._seen |= 1 << device
            if self._serve(self._owners[device]):
                del self._owners[device]
                self._members[group].remove(device)
                self._room[group] += 1
                return True
        return False

    def _give(self, device: int, request: int, group: int | None) -> None:
        self._owners[device] = request
        if group is not None:
            self._room[group] -= 1
            self._members.setdefault(group, []).append(device)


@dataclass(frozen=True, slots=True)
class _Demand:
    """The devices that one request still wants.

    Args:
        claim: Its claim.
        entries: The entries of which one is to be served.
        need: The least number of devices.
        devices: Those that it can have, as bits.
        is_admin: Whether it asks for admin access.
    """

    claim: int
    entries: Sequence[RequestKey]
    need: int
    devices: int
    is_admin: bool


class Bounds:
    """Rules out states of the search, by counting devices, values and counters that are left."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._demands = facts.demands
        self._requests = list(self._demands.requests())
        self._group_of = {at: draws[0][0] for at, draws in facts.draws.items() if draws}
        self._counters = _sum_counters(facts)
        self._least: dict[tuple[int, tuple[int, ...]], list[tuple[tuple[str, ...], int]]] = {}

    def forbid(self, key: RequestKey, number: int, picked: Sequence[Sequence[Picked]]) -> bool:
        """Proves that no solution is left before device *number* of a request."""
        left = self._count_left(picked)
        demands = list(self._list(key, number, picked))
        return (
            any(demand.devices.bit_count() < demand.need for demand in demands)
            or self._lacks_values(demands, key.claim, picked)
            or self._lacks_counters(demands, left)
            or self._lacks_devices(demands, left)
        )

    def _list(self, key: RequestKey, number: int, picked: Sequence[Sequence[Picked]]) -> Iterator[_Demand]:
        at = self._facts.at
        facts = self._facts
        demands = self._demands
        by_claim = [sum(1 << at[each.published] for each in devices) for devices in map(_once, picked)]
        taken = union(by_claim)
        current = demands.wanted[key]
        twice = sum(1 << at[each.published] for each in _once(picked[key.claim]) if each.wanted is current)
        for entries in self._requests:
            if entries[0][:2] < key[:2]:
                continue
            is_current = entries[0][:2] == key[:2]
            chosen = [key] if is_current else entries
            wanted = [demands.wanted[each] for each in chosen]
            need = min(each.count for each in wanted)
            is_admin = wanted[0].admin
            own = by_claim[chosen[0].claim] if chosen[0].claim < len(by_claim) else 0
            devices = union(map(demands.open_to, chosen))
            devices &= ~((own if is_admin else taken) & ~demands.shares)
            if is_current:
                need -= number
                devices &= ~twice
            if chosen[0].claim == key.claim:
                for limit in facts.limits[key.claim]:
                    if all(limit.scope.covers(each) for each in wanted):
                        devices &= _open(limit, at, picked[key.claim])
            yield _Demand(chosen[0].claim, chosen, need, devices, is_admin)

    def _count_left(self, picked: Sequence[Sequence[Picked]]) -> list[dict[str, int]]:
        left = [dict(counters) for counters in self._facts.counter_sets]
        for devices in picked:
            for each in devices:
                for counter_set, name, amount in self._facts.draws.get(self._facts.at[each.published], ()):
                    left[counter_set][name] -= amount
        return left

    def _lacks_values(
        self, demands: Sequence[_Demand], current: int, picked: Sequence[Sequence[Picked]]
    ) -> bool:
        """Proves that no value of an attribute is there often enough, or that too few different ones are."""
        for claim in range(current, len(self._facts.limits)):
            for limit in self._facts.limits[claim]:
                covered = [
                    demand
                    for demand in demands
                    if demand.claim == claim
                    and demand.need > 0
                    and all(limit.scope.covers(self._demands.wanted[key]) for key in demand.entries)
                ]
                if not covered:
                    continue
                if limit.is_match:
                    if not any(self._is_enough(covered, bits) for bits in limit.holders.values()):
                        return True
                elif sum(demand.need for demand in covered) > self._count_new(limit, covered, picked[claim]):
                    return True
        return False

    def _count_new(
        self, limit: ConstraintValues, demands: Iterable[_Demand], picked: Iterable[Picked]
    ) -> int:
        """How many values devices have that none has that is picked."""
        at = self._facts.at
        used = {
            value
            for each in picked
            if limit.scope.covers(each.wanted)
            for value in limit.values[at[each.published]]
        }
        found = {
            value
            for demand in demands
            for position in positions(demand.devices)
            for value in limit.values.get(position, ())
        }
        return len(found - used)

    def _is_enough(self, demands: Iterable[_Demand], among: int) -> bool:
        """Devices of one value can be enough."""
        total = together = 0
        for demand in demands:
            devices = demand.devices & among
            if devices.bit_count() < demand.need:
                return False
            if not demand.is_admin and not devices & self._demands.shares:
                total += demand.need
                together |= devices
        return total <= together.bit_count()

    def _lacks_counters(self, demands: Iterable[_Demand], left: Sequence[dict[str, int]]) -> bool:
        """Proves that the devices that take least of a counter take more than there is of it everywhere."""
        needs = [(demand.need, list(positions(demand.devices))) for demand in demands if demand.need > 0]
        for counters, amounts in self._counters:
            least = sum(need * min(amounts.get(each, 0) for each in devices) for need, devices in needs)
            if least > sum(max(left[counter_set][name], 0) for counter_set, name in counters):
                return True
        return False

    def _lacks_devices(self, demands: Sequence[_Demand], left: Sequence[dict[str, int]]) -> bool:
        """Proves that the devices cannot be handed out, each once and within their counter sets."""
        shares = self._demands.shares
        needs = [
            (max(demand.need - (demand.devices & shares).bit_count(), 0), demand.devices & ~shares)
            for demand in demands
            if not demand.is_admin
        ]
        members: dict[int, list[int]] = {}
        for position in positions(union(devices for _, devices in needs)):
            group = self._group_of.get(position)
            if group is not None:
                members.setdefault(group, []).append(position)
        room = {group: self._room(group, devices, left[group]) for group, devices in members.items()}
        return not Flow(needs, self._group_of, room).is_possible()

    def _room(self, counter_set: int, devices: Sequence[int], left: dict[str, int]) -> int:
        """The most devices for which a counter set has enough."""
        key = (counter_set, tuple(devices))
        least = self._least.get(key)
        if least is None:
            least = self._least[key] = self._find_least(counter_set, devices)
        room = len(devices)
        for names, amount in least:
            room = min(room, sum(max(left[name], 0) for name in names) // amount)
        return room

    def _find_least(self, counter_set: int, devices: Iterable[int]) -> list[tuple[tuple[str, ...], int]]:
        """Least that every device takes of some counters of a set together, where that is not nothing."""
        draws = [
            {name: amount for number, name, amount in self._facts.draws[device] if number == counter_set}
            for device in devices
        ]
        found = []
        for names in _names_together(self._facts.counter_sets[counter_set]):
            amount = min(sum(draw.get(name, 0) for name in names) for draw in draws)
            if amount > 0:
                found.append((names, amount))
        return found


def _names_together(counters: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Each counter by itself, and those of which there is as much: slices of memory are counters of one each."""
    together: dict[int, list[str]] = {}
    for name, amount in counters.items():
        together.setdefault(amount, []).append(name)
    return [*((name,) for name in counters), *map(tuple, together.values())]


def _sum_counters(facts: Facts) -> list[tuple[frozenset[tuple[int, str]], dict[int, int]]]:
    """Counters that are summed over all sets, those of one name or of one amount, and what each device takes of them."""
    groups: dict[object, set[tuple[int, str]]] = {}
    for number, left in enumerate(facts.counter_sets):
        for name, amount in left.items():
            groups.setdefault(name, set()).add((number, name))
            groups.setdefault(amount, set()).add((number, name))
    return [
        (
            frozenset(counters),
            {
                at: sum(amount for number, name, amount in draws if (number, name) in counters)
                for at, draws in facts.draws.items()
            },
        )
        for counters in groups.values()
    ]


def _open(limit: ConstraintValues, at: Mapping[Published, int], picked: Sequence[Picked]) -> int:
    """The candidates that a constraint allows beside what is picked."""
    found = [limit.values[at[each.published]] for each in picked if limit.scope.covers(each.wanted)]
    if not found:
        return ~0
    if limit.is_match:
        return limit.with_any(frozenset.intersection(*found))
    return ~limit.with_any(frozenset.union(*found))


def _once(picked: Sequence[Picked]) -> list[Picked]:
    return list({each.published: each for each in picked}.values())
