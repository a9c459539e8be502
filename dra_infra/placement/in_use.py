"""Devices and pools in use, as a value that can be forked, and searches once per shape of node.

Nodes that are the same to the claims of a pod have one shape, so that each shape is searched once, with the same
things in use. Two nodes have one shape for some claims when a search would go the same way on both: their pools in
order, the devices in them in all that selectors, constraints and the allocator look at, and values under a constraint
up to their names.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

from dra_infra.kubernetes.api.resource_slice import Device
from dra_infra.kubernetes.cel.dependencies import Dependencies, find_dependencies
from dra_infra.kubernetes.scheduler.allocator import AllocatedState, DeviceID, PoolID
from dra_infra.kubernetes.scheduler.allocator.constraints import static_attribute
from dra_infra.kubernetes.scheduler.allocator.identity import Published
from dra_infra.kubernetes.scheduler.allocator.pools import Pool
from dra_infra.kubernetes.scheduler.allocator.slices import device_matches_node
from dra_infra.placement.cluster import Cluster, Outcome, Pick
from dra_infra.placement.demand import Demand

_COMPARED: Final = frozenset({"name", "attributes", "capacity"})
"""Fields of a device that are looked at one by one; all others count as they are."""


@dataclass(frozen=True, slots=True)
class Looks:
    """What the claims of a pod look at.

    Args:
        reads: Attributes and capacities that decide expressions; None for everything.
        attributes: Attributes under a constraint, of which only sameness counts.
        capacity: Whether capacities are compared with a request.
    """

    reads: Dependencies
    attributes: tuple[str, ...]
    capacity: bool

    @classmethod
    def of(cls, demands: Sequence[Demand]) -> Looks:
        """Those of all claims together."""
        union: set[tuple[str, str, str]] | None = set()
        for expression in {each for demand in demands for each in demand.expressions}:
            reads = find_dependencies(expression)
            if union is None or reads is None:
                union = None
            else:
                union |= reads
        return cls(
            None if union is None else frozenset(union),
            tuple(sorted({name for demand in demands for name in demand.attributes})),
            any(demand.asks_capacity for demand in demands),
        )


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of all nodes for some claims.

    Args:
        numbers: Number of the shape by node.
        examples: First node of each shape.
    """

    numbers: Sequence[int]
    examples: Sequence[int]


class NodeShapes:
    """Finds the shapes of a cluster's nodes; claims that look at the same share them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Looks, Shapes] = {}
        self._rest: dict[int, Hashable] = {}

    def of(self, looks: Looks) -> Shapes:
        """The shapes for what is looked at."""
        shapes = self._known.get(looks)
        if shapes is None:
            shapes = self._known[looks] = self._find(looks)
        return shapes

    def _find(self, looks: Looks) -> Shapes:
        describe = _Description(self._cluster, looks, self._rest)
        seen: dict[Hashable, int] = {}
        numbers: list[int] = []
        examples: list[int] = []
        for node in range(len(self._cluster.nodes)):
            number = seen.setdefault(describe.node(node), len(seen))
            if number == len(examples):
                examples.append(node)
            numbers.append(number)
        return Shapes(numbers, examples)


class _Description:
    """Hashable descriptions of devices and nodes, for one way of looking at them."""

    def __init__(self, cluster: Cluster, looks: Looks, rest: dict[int, Hashable]) -> None:
        self._cluster = cluster
        self._looks = looks
        self._rest = rest
        self._devices: dict[int, int] = {}
        self._kinds: dict[Hashable, int] = {}

    def node(self, node: int) -> Hashable:
        pools = self._cluster.pools(node)
        devices = [each for pool in pools for each in pool.devices]
        names: dict[str, int] = {}
        where = self._cluster.nodes[node]
        return (
            # In 1.35 pools of one name and several drivers share counters.
            tuple(names.setdefault(pool.id.pool, len(names)) for pool in pools),
            tuple(self._pool(pool) for pool in pools),
            tuple(_number_values(devices, name) for name in self._looks.attributes),
            tuple(
                device_matches_node(each.device, where)
                for each in devices
                if each.slice.spec.per_device_node_selection
            ),
        )

    def _pool(self, pool: Pool) -> Hashable:
        return (
            pool.id.driver,
            pool.is_incomplete,
            pool.invalid,
            # Where a slice begins counts: 1.34 and 1.35 look at other devices of it.
            tuple((self._kind(each), each.index) for each in pool.devices),
            tuple(self._kind(each) for each in pool.elsewhere if each.device.consumes_counters),
            _freeze(pool.counters) if pool.counters else None,
        )

    def _kind(self, published: Published) -> int:
        known = self._devices.get(id(published))
        if known is None:
            described = (
                self._cluster.kinds.number(self._looks.reads, published),
                self._describe_rest(published),
                self._describe_capacity(published.device),
            )
            known = self._devices[id(published)] = self._kinds.setdefault(described, len(self._kinds))
        return known

    def _describe_capacity(self, device: Device) -> Hashable:
        """Capacities, where amounts of them are counted."""
        capacity = device.capacity or {}
        has_policy = any(each.request_policy is not None for each in capacity.values())
        if not (self._looks.capacity or has_policy or device.allow_multiple_allocations):
            return None
        return _freeze(capacity)

    def _describe_rest(self, published: Published) -> Hashable:
        """Everything that the allocator looks at beside attributes and capacity; the same for any claims."""
        known = self._rest.get(id(published))
        if known is None:
            device, spec = published.device, published.slice.spec
            others: Hashable = None
            if not device.model_fields_set <= _COMPARED or device.model_extra:
                manifest = device.to_manifest()
                others = _freeze({name: value for name, value in manifest.items() if name not in _COMPARED})
            known = self._rest[id(published)] = (
                published.id.driver,
                others,
                bool(spec.per_device_node_selection),
                bool(spec.node_name),
                _freeze(spec.skip_node_operations) if spec.skip_node_operations else None,
            )
        return known


def _number_values(devices: Iterable[Published], name: str) -> Hashable:
    """The values of an attribute up to their names: equal numbers for equal values, in the order of appearance."""
    numbers: dict[Hashable, int] = {}
    numbered: list[Hashable] = []
    for each in devices:
        attribute = static_attribute(each, name)
        if attribute is None:
            numbered.append(None)
            continue
        found = attribute.to_manifest().items()
        if not found:
            numbered.append(())
        for kind, value in found:
            # A list is compared with single values of its type where lists are known.
            several = value if isinstance(value, list) else [value]
            one = kind.removesuffix("s")
            numbers_of = tuple(numbers.setdefault((one, item), len(numbers)) for item in several)
            numbered.append(numbers_of if isinstance(value, list) else numbers_of[0])
    return tuple(numbered)


def _freeze(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: object) -> object:
    return value.to_manifest() if hasattr(value, "to_manifest") else str(value)


FREE: tuple[()] = ()
"""What a node sees on which nothing is in use."""


class SharedPools:
    """Which nodes see a pool, for those that several nodes see."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @cached_property
    def nodes(self) -> dict[PoolID, tuple[int, ...]]:
        """The nodes of each pool."""
        found: defaultdict[PoolID, list[int]] = defaultdict(list)
        for node in range(len(self._cluster.nodes)):
            for pool in self._cluster.pools(node):
                found[pool.id].append(node)
        return {pool: tuple(nodes) for pool, nodes in found.items()}

    @cached_property
    def are_there(self) -> bool:
        """Whether any pool is seen by several nodes."""
        return any(len(nodes) > 1 for nodes in self.nodes.values())


class InUse:
    """Devices in use, with what each node can tell of it.

    Args:
        cluster: The cluster.
        shared: Its pools of several nodes.
        state: What is in use.
    """

    def __init__(self, cluster: Cluster, shared: SharedPools, state: AllocatedState) -> None:
        self._cluster = cluster
        self._shared = shared
        self.state = state
        self._seen: dict[int, Hashable] = {}
        self._is_free = state.is_empty

    @property
    def is_shared(self) -> bool:
        """Whether what one node takes may be gone for others."""
        return self._shared.are_there

    def of(self, node: int) -> Hashable:
        """Equal for nodes of one shape on which a search finds the same in use."""
        if self._is_free:
            return FREE
        seen = self._seen.get(node)
        if seen is None:
            seen = self._seen[node] = self._look(node)
        return seen

    def take(self, node: int, picks: Iterable[Pick]) -> None:
        """Devices that a claim got on a node."""
        taken = [
            (self._cluster.device(node, pick), pick.consumed if pick.share else None, pick.share)
            for pick in picks
            if not pick.admin
        ]
        self.state = self.state.with_devices(taken)
        self._is_free = False
        for pool in {PoolID(device.driver, device.pool) for device, _, _ in taken}:
            for each in self._shared.nodes[pool]:
                self._seen.pop(each, None)

    def fork(self) -> Self:
        """The same, to go on from."""
        other = self.__class__(self._cluster, self._shared, self.state)
        other._seen = dict(self._seen)  # noqa: SLF001
        return other

    def _look(self, node: int) -> Hashable:
        found: list[Hashable] = []
        for number, pool in enumerate(self._cluster.pools(node)):
            for position, each in enumerate(pool.devices):
                if (used := self._use(each.id)) is not None:
                    found.append((number, position, used))
            for position, each in enumerate(pool.elsewhere):
                if each.device.consumes_counters and (used := self._use(each.id)) is not None:
                    found.append((number, ~position, used))
        return tuple(found)

    def _use(self, device: DeviceID) -> Hashable:
        state = self.state
        if not state.is_allocated(device):
            return None
        consumed = tuple(sorted(state.consumed(device).items())) if state.has_consumed(device) else None
        return state.has_whole(device), state.has_share(device), consumed


class Attempts:
    """The outcomes of searches, remembered for all states of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._shapes = NodeShapes(cluster)
        self._looks: dict[tuple[str, ...], Looks] = {}
        self._known: dict[tuple[object, ...], Outcome] = {}

    def shapes(self, demands: Sequence[Demand]) -> Shapes:
        """The shapes of the nodes for claims that are still to be allocated."""
        key = tuple(demand.key for demand in demands)
        looks = self._looks.get(key)
        if looks is None:
            looks = self._looks[key] = Looks.of(demands)
        return self._shapes.of(looks)

    def attempt(self, node: int, demands: Sequence[Demand], in_use: InUse) -> Outcome:
        """What a node gives claims that are not allocated yet, beside what is in use."""
        shape = self.shapes(demands).numbers[node]
        key = (tuple(demand.key for demand in demands), shape, in_use.of(node))
        outcome = self._known.get(key)
        if outcome is None:
            outcome = self._known[key] = self.cluster.search(node, demands, in_use.state)
        return outcome
