"""Counters that devices of a pool share, and groups of devices that may draw on one counter set together.

Source: checkAvailableCounters, deallocateCountersForDevice and checkAndConsumeCompatibilityGroups.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from dra_infra.kubernetes.api.quantity import nanos
from dra_infra.kubernetes.scheduler.allocator.identity import PoolID, Published
from dra_infra.kubernetes.scheduler.allocator.pools import CounterSets, Pool, counters_of
from dra_infra.kubernetes.scheduler.allocator.state import AllocatedState
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant


def counter_key(published: Published, variant: Variant) -> Hashable:
    """The key that counters are kept by.

    In 1.35 that is the name of the pool without the driver, so two drivers with pools of one name share what was
    computed for the first of them. In 1.34 it is the slice.
    """
    if variant.simple_pools:
        return published.slice.metadata.name
    return published.pool.pool if variant.has(Quirk.COUNTERS_BY_POOL_NAME) else published.pool


class CounterAvailability:
    """Counters before an attempt; kept for all nodes and never computed again, as upstream does."""

    def __init__(self, state: AllocatedState, variant: Variant) -> None:
        self._state = state
        self._variant = variant
        self._known: dict[Hashable, CounterSets] = {}

    def of(self, pool: Pool, published: Published) -> CounterSets:
        """The counters that *published* draws on; negative ones are as good as none."""
        key = counter_key(published, self._variant)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._compute(pool, published)
        return known

    def _compute(self, pool: Pool, published: Published) -> CounterSets:
        devices: Iterable[Published] = (*pool.devices, *pool.elsewhere)
        counters = pool.counters
        if self._variant.simple_pools:
            devices = (each for each in pool.devices if each.slice is published.slice)
            counters = counters_of([published.slice])
        left = {name: dict(counter_set) for name, counter_set in counters.items()}
        for each in devices:
            consumptions = each.device.consumes_counters
            if not consumptions or not self._is_allocated(each):
                continue
            for consumption in consumptions:
                counter_set = left.get(consumption.counter_set, {})
                for name, counter in (consumption.counters or {}).items():
                    if name in counter_set:
                        counter_set[name] -= nanos(counter.value)
        return left

    def _is_allocated(self, published: Published) -> bool:
        if self._variant.number >= 36 and self._variant.is_extended:
            return self._state.is_allocated(published.id)
        return self._state.has_whole(published.id)


class CounterUse:
    """Counters that the devices of one attempt take."""

    def __init__(self, availability: CounterAvailability, variant: Variant) -> None:
        self._availability = availability
        self._variant = variant
        self._taken: dict[Hashable, dict[str, dict[str, int]]] = {}

    def take(self, pool: Pool, published: Published) -> bool:
        """Take what a device needs, if the pool has it; all counters of the pool are looked at."""
        available = self._availability.of(pool, published)
        self._count(published, 1)
        taken = self._taken[counter_key(published, self._variant)]
        for set_name, counters in available.items():
            used = taken.get(set_name, {})
            if any(left < used.get(name, 0) for name, left in counters.items()):
                self._count(published, -1)
                return False
        return True

    def give_back(self, published: Published) -> None:
        """Undo `take`."""
        self._count(published, -1)

    def _count(self, published: Published, sign: int) -> None:
        sets = self._taken.setdefault(counter_key(published, self._variant), {})
        for consumption in published.device.consumes_counters or ():
            counters = sets.setdefault(consumption.counter_set, {})
            for name, counter in (consumption.counters or {}).items():
                counters[name] = counters.get(name, 0) + sign * nanos(counter.value)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Groups that all devices on a counter set have in common; None where none of them has any."""

    groups: frozenset[str] | None

    def admits(self, groups: frozenset[str]) -> bool:
        if not groups:
            return self.groups is None
        return self.groups is not None and bool(self.groups & groups)

    def with_device(self, groups: frozenset[str]) -> _Shared:
        return self if self.groups is None or not groups else _Shared(self.groups & groups)


_Running = dict[tuple[PoolID, str], _Shared]


class GroupBaseline:
    """The groups of the devices that are allocated before an attempt, kept for all nodes."""

    def __init__(self, state: AllocatedState) -> None:
        self._state = state
        self._known: dict[PoolID, dict[str, _Shared]] = {}

    def of(self, pool: Pool) -> dict[str, _Shared]:
        """Groups by counter set; none for a set that nobody draws on."""
        known = self._known.get(pool.id)
        if known is None:
            known = self._known[pool.id] = {}
            for each in (*pool.devices, *pool.elsewhere):
                if not self._state.is_allocated(each.id):
                    continue
                for consumption in each.device.consumes_counters or ():
                    groups = frozenset(consumption.compatibility_groups or ())
                    known[consumption.counter_set] = _joined(known.get(consumption.counter_set), groups)
        return known


class GroupUse:
    """Groups of the devices of one attempt, by counter set."""

    def __init__(self, baseline: GroupBaseline) -> None:
        self._baseline = baseline
        self._running: _Running = {}

    def take(self, pool: Pool, published: Published) -> _Running | None:
        """Add a device, if it may be beside those that are there.

        Returns:
            What to give to `restore`; None when it may not, and nothing is changed then.
        """
        before = dict(self._running)
        for consumption in published.device.consumes_counters or ():
            key = (pool.id, consumption.counter_set)
            groups = frozenset(consumption.compatibility_groups or ())
            shared = self._running.get(key) or self._baseline.of(pool).get(consumption.counter_set)
            if shared is not None and not shared.admits(groups):
                self._running = before
                return None
            self._running[key] = _joined(shared, groups)
        return before

    def restore(self, before: _Running) -> None:
        """Undo `take`."""
        self._running = before


def _joined(shared: _Shared | None, groups: frozenset[str]) -> _Shared:
    return _Shared(groups or None) if shared is None else shared.with_device(groups)
