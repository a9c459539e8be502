"""A fleet from which running pods can be taken away: which pods have to leave a node so that others find room there."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dra_infra.kubernetes.scheduler.allocator import Published, static_attribute
from dra_infra.placement.cluster_state import ClusterState, SharedPools, TakenDevice, find_devices
from dra_infra.placement.demand import PodPlan, ReadFields
from dra_infra.placement.free_fleet import FreeFleet
from dra_infra.placement.movable_pods import RunningPod
from dra_infra.placement.outcomes import Chosen, Impossible

_MOST_TRIES: Final = 600
"""Sets of pods of one node that are tried for one pod; of nodes with more, not every set is known."""

Cost: TypeAlias = tuple[float, int, int, int]
"""GPU-hours that are lost, pods that are moved, pods that lose work, devices that are moved; compared in this order."""

NOTHING: Final[Cost] = (0.0, 0, 0, 0)


def add_costs(first: Cost, second: Cost) -> Cost:
    """Return the sum of two costs."""
    return first[0] + second[0], first[1] + second[1], first[2] + second[2], first[3] + second[3]


@dataclass(frozen=True, slots=True, eq=False)
class Mover:
    """A running pod that may be moved.

    Args:
        pod: The pod.
        node: Number of its node.
        plan: How its controller creates it again; None for a bare pod.
        own: What it takes of its node now.
        devices: The devices that it has.
        cost: What it costs to move it.
    """

    pod: RunningPod
    node: int
    plan: PodPlan | None
    own: PodPlan
    devices: tuple[TakenDevice, ...]
    cost: Cost


@dataclass(frozen=True, slots=True)
class Landed:
    """A pod that was placed.

    Args:
        plan: The pod.
        node: Number of its node.
        chosen: Its devices.
        devices: The same, by name.
    """

    plan: PodPlan
    node: int
    chosen: Chosen
    devices: tuple[TakenDevice, ...]


@dataclass(slots=True)
class Freed:
    """Sets of pods to take from nodes.

    Args:
        is_exact: Whether no cheaper set was left untried.
    """

    is_exact: bool = True
    sets: list[tuple[Cost, tuple[int, ...]]] = field(default_factory=list)


class Layout:
    """Who is where: pods that run, less those that were taken away, and pods that were placed.

    Args:
        free: The fleet with the pods that stay.
        movers: All pods that may be moved, each on its node.
    """

    def __init__(self, free: FreeFleet, movers: Sequence[Mover]) -> None:
        self.free = free
        self.movers = movers
        self.gone: set[int] = set()
        self.is_open = False
        """Whether a search for devices ended without an answer: what did not fit then may fit."""
        self.placed: defaultdict[int, list[Landed]] = defaultdict(list)
        self.on_node: defaultdict[int, list[int]] = defaultdict(list)
        for number, each in enumerate(movers):
            self.on_node[each.node].append(number)
        self._shared = SharedPools(free.cluster)
        self._states: dict[int, ClusterState] = {}
        self._freed: dict[Hashable, Freed] = {}
        plans = [each.plan for each in movers if each.plan is not None]
        self._fields = ReadFields.of(
            [entry.demand for plan in dict.fromkeys(plans) for entry in plan.at({}).entries]
        )
        self._kinds: dict[int, Hashable] = {}
        self._is_plain: dict[int, bool] = {}
        self.is_apart = (
            not self._shared.are_there
            and not free.cluster.device_amounts
            and not free.running.apart_keys
            and not any(each.own.shape.asks or each.own.shape.apart for each in movers)
        )
        """True where nothing on one node decides what fits on another."""

    def fresh(self) -> Layout:
        """Return the layout before any move, with what was learned about it."""
        other = copy(self)
        other.gone = set()
        other.is_open = False
        other.placed = defaultdict(list)
        other._states = {}  # noqa: SLF001
        return other

    def take_away(self, numbers: Iterable[int]) -> None:
        """Take pods from their nodes."""
        for number in numbers:
            self.gone.add(number)
            self._forget(self.movers[number].node)

    def put_back(self, numbers: Iterable[int]) -> None:
        """Put pods back that were taken from their nodes."""
        for number in numbers:
            self.gone.discard(number)
            self._forget(self.movers[number].node)

    def place(self, plan: PodPlan, node: int) -> Landed | None:
        """Place a pod on a node; None where it does not fit."""
        chosen = self.attempt(plan, node)
        if chosen is None:
            return None
        landed = Landed(plan, node, chosen, tuple(find_devices(self.free.cluster, node, chosen.picks)))
        self.placed[node].append(landed)
        self._forget(node)
        return landed

    def unplace(self, landed: Landed) -> None:
        """Remove the pod that was placed on a node last."""
        self.placed[landed.node].remove(landed)
        self._forget(landed.node)

    def attempt(self, plan: PodPlan, node: int) -> Chosen | None:
        """Return the devices of a pod on a node; None where it does not fit."""
        if self.free.refusals(plan)[node]:
            return None
        state = self.state(node)
        if plan.shape.asks and state.refusal(plan, node):
            return None
        outcome = state.attempt(plan, node)
        if isinstance(outcome, Chosen):
            return outcome
        self.is_open |= not isinstance(outcome, Impossible)
        return None

    def state(self, node: int) -> ClusterState:
        """Return a node with the pods that it has now, beside those of nodes that decide with it."""
        known = self._states.get(node)
        if known is None:
            known = self._states[node] = self._build(node)
        return known

    def whole(self) -> ClusterState:
        """Return the fleet with all pods that are there now."""
        state = self.free.state()
        self._fill(state, range(len(self.free.cluster.nodes)))
        return state

    def free_devices(self, node: int) -> int:
        """How many devices of a node nobody has; MIG devices of one GPU count each."""
        in_use = self.state(node).in_use.state
        return sum(
            not in_use.is_allocated(each.id)
            for pool in self.free.cluster.pools(node)
            for each in pool.devices
        )

    def is_plain(self, node: int) -> bool:
        """True where each device of a node is in use as a whole or not at all, and takes nothing from others."""
        known = self._is_plain.get(node)
        if known is None:
            known = self._is_plain[node] = not any(
                each.device.consumes_counters or each.device.allow_multiple_allocations
                for pool in self.free.cluster.pools(node)
                for each in pool.devices
            )
        return known

    def find_sets(self, plans: Sequence[PodPlan], node: int) -> Freed:
        """Return the sets of pods to take from a node so that others fit there, the cheapest first, none with more than needed."""
        if any(self.free.refusals(plan)[node] for plan in plans):
            return Freed()
        present = [number for number in self.on_node[node] if number not in self.gone]
        key = (
            node,
            frozenset(present),
            tuple((each.plan, tuple(device for device, _, _ in each.devices)) for each in self.placed[node]),
            tuple(plans),
        )
        known = self._freed.get(key)
        if known is None:
            known = self._freed[key] = self._find_sets(plans, node, present)
        return known

    def _find_sets(self, plans: Sequence[PodPlan], node: int, present: Sequence[int]) -> Freed:
        freed = Freed()
        if self._fits(plans, node, ()):
            freed.sets.append((NOTHING, ()))
            return freed
        if not self._fits(plans, node, present):
            return freed
        for part in self._find_parts(plans, node, present):
            self._add_sets(freed, plans, node, part)
        if not freed.sets:
            self._add_sets(freed, plans, node, present)
        if not freed.is_exact:
            freed.sets.append(self._reduce(plans, node, present))
        freed.sets.sort()
        return freed

    def _add_sets(self, found: Freed, plans: Sequence[PodPlan], node: int, present: Sequence[int]) -> None:
        """Add the sets of some of the pods of a node that make room, each without a pod that may stay."""
        groups = [tuple(each) for each in self._group(node, present)]
        minimal: list[tuple[int, ...]] = []
        costs = [self.movers[group[0]].cost for group in groups]
        for tries, counts in enumerate(_by_cost([len(group) for group in groups], costs)):
            if any(all(a <= b for a, b in zip(one, counts, strict=True)) for one in minimal):
                continue
            if tries > _MOST_TRIES:
                found.is_exact = False
                return
            parts = (group[:count] for group, count in zip(groups, counts, strict=True))
            chosen = tuple(itertools.chain.from_iterable(parts))
            if self._fits(plans, node, chosen):
                minimal.append(counts)
                found.sets.append((self._cost(chosen), chosen))

    def _find_parts(
        self, plans: Sequence[PodPlan], node: int, present: Sequence[int]
    ) -> Iterable[Sequence[int]]:
        """Pods of which those of one part alone are in the way of a pod with one device: the pods of each partitioned GPU.

        There are no parts where the pod needs more, or where the node is short of CPU or memory too.
        """
        if self.is_plain(node) or len(plans) > 1 or self.state(node).find_shortage(plans[0], node):
            return ()
        entries = plans[0].at(self.free.cluster.offered[node]).entries
        leaves = [leaf for entry in entries for _, leaf in entry.demand.leaves]
        if len(leaves) != 1 or leaves[0].allocation_mode == "All" or (leaves[0].count or 1) != 1:
            return ()
        counted = {
            device.id: tuple(each.counter_set for each in device.device.consumes_counters or ())
            for pool in self.free.cluster.pools(node)
            for device in pool.devices
        }
        parts: defaultdict[Hashable, list[int]] = defaultdict(list)
        for number in present:
            for device, _, _ in self.movers[number].devices:
                keys = counted.get(device) or (device,)
                for key in keys:
                    part = parts[device.driver, device.pool, key]
                    if number not in part:
                        part.append(number)
        return parts.values()

    def _reduce(
        self, plans: Sequence[PodPlan], node: int, present: Sequence[int]
    ) -> tuple[Cost, tuple[int, ...]]:
        """A set from which no pod can be left out, found by leaving out the costliest first."""
        chosen = list(present)
        for number in sorted(present, key=lambda each: self.movers[each].cost, reverse=True):
            without = [each for each in chosen if each != number]
            if self._fits(plans, node, without):
                chosen = without
        return self._cost(chosen), tuple(chosen)

    def _fits(self, plans: Sequence[PodPlan], node: int, without: Sequence[int]) -> bool:
        self.take_away(without)
        landed: list[Landed] = []
        for plan in plans:
            each = self.place(plan, node)
            if each is None:
                break
            landed.append(each)
        for each in reversed(landed):
            self.unplace(each)
        self.put_back(without)
        return len(landed) == len(plans)

    def _cost(self, numbers: Iterable[int]) -> Cost:
        cost = NOTHING
        for number in numbers:
            cost = add_costs(cost, self.movers[number].cost)
        return cost

    def _group(self, node: int, present: Sequence[int]) -> Iterator[list[int]]:
        """Pods of a node that can be exchanged for each other; on nodes with partitions each is a group of its own."""
        groups: defaultdict[Hashable, list[int]] = defaultdict(list)
        for number in present:
            groups[self._kind(number) if self.is_plain(node) else number].append(number)
        yield from groups.values()

    def _kind(self, number: int) -> Hashable:
        known = self._kinds.get(number)
        if known is None:
            each = self.movers[number]
            by_id = {
                device.id: device for pool in self.free.cluster.pools(each.node) for device in pool.devices
            }
            devices = Counter(self._device_kind(by_id.get(device)) for device, _, _ in each.devices)
            known = self._kinds[number] = (
                each.plan and self.free.key_of(each.plan),
                tuple(each.own.requests.items()),
                each.cost,
                each.pod.budgets,
                frozenset(devices.items()),
            )
        return known

    def _device_kind(self, device: Published | None) -> Hashable:
        if device is None:
            return None
        values = tuple(
            str(value.to_manifest()) if (value := static_attribute(device, name)) else ""
            for name in self._fields.attributes
        )
        return self.free.cluster.kinds.number(self._fields.reads, device), values

    def _build(self, node: int) -> ClusterState:
        if not self.is_apart:
            state = self.free.state()
            self._fill(state, range(len(self.free.cluster.nodes)))
            return state
        state = self.free.node_state(node)
        self._fill(state, (node,))
        return state

    def _fill(self, state: ClusterState, nodes: Iterable[int]) -> None:
        for node in nodes:
            for number in self.on_node[node]:
                each = self.movers[number]
                if number not in self.gone:
                    state.occupy(node, each.own.requests, each.own.shape, each.devices)
            for landed in self.placed[node]:
                plan = landed.plan.at(self.free.cluster.offered[node])
                state.occupy(node, plan.requests, plan.shape, landed.devices)

    def _forget(self, node: int) -> None:
        if self.is_apart:
            self._states.pop(node, None)
        else:
            self._states.clear()


def _by_cost(sizes: Sequence[int], costs: Sequence[Cost]) -> Iterator[tuple[int, ...]]:
    """Yield how many of each group are taken, every way once and the cheapest first, without taking none."""
    heap: list[tuple[Cost, tuple[int, ...], int]] = [(NOTHING, (0,) * len(sizes), 0)]
    while heap:
        cost, counts, first = heapq.heappop(heap)
        if any(counts):
            yield counts
        for group in range(first, len(sizes)):
            if counts[group] < sizes[group]:
                more = (*counts[:group], counts[group] + 1, *counts[group + 1 :])
                heapq.heappush(heap, (add_costs(cost, costs[group]), more, group))
