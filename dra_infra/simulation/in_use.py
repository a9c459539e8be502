"""What is in use of a cluster, as a value that can be forked, and as each node sees it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Self

from dra_infra.simulation.allocation import AllocatedState, DeviceID, PoolID
from dra_infra.simulation.cluster import Cluster
from dra_infra.simulation.outcomes import Pick

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
