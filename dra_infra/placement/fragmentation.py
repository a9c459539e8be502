"""Counts how large a claim of each class and MIG profile still fits, and finds what is in the way of larger ones.

Every size is asked of the allocator, on the nodes as they are and on the same nodes with nothing in use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from dra_infra.kubernetes.api import DeviceClass
from dra_infra.kubernetes.scheduler.allocator import DeviceID
from dra_infra.placement.cluster_state import Attempts, InUse
from dra_infra.placement.demand import Demand
from dra_infra.placement.fragments import BlockedNode, DomainRoom, Fragment
from dra_infra.placement.headroom import CLAIMS_LIMIT, Probe, fill, find_room, probes_of
from dra_infra.placement.outcomes import Chosen

CLIQUE_LABEL: Final = "nvidia.com/gpu.clique"
"""Label of nodes that NVLink joins."""
_NAMED: Final = 3
"""Nodes that are named as those in the way."""


def count_fragments(
    attempts: Attempts, in_use: InUse, classes: Mapping[str, DeviceClass]
) -> tuple[Fragment, ...]:
    """Return what is free of each class and profile, and how large a claim of it fits; none for those without devices.

    Args:
        attempts: Searches on the nodes.
        in_use: Devices in use.
        classes: The classes whose claims are counted, by name.
    """
    nodes = [number for number, node in enumerate(attempts.cluster.nodes) if not node.unschedulable]
    counter = _Counter(attempts, in_use, nodes)
    return tuple(
        found for probe in probes_of(attempts, classes) if (found := counter.count(probe)) is not None
    )


class _Counter:
    def __init__(self, attempts: Attempts, in_use: InUse, nodes: Sequence[int]) -> None:
        self._attempts = attempts
        self._in_use = in_use
        self._empty = in_use.emptied()
        self._nodes = nodes

    def count(self, probe: Probe) -> Fragment | None:
        whole = find_room(self._attempts, self._empty, self._nodes, probe).largest
        if not whole:
            return None
        room = find_room(self._attempts, self._in_use, self._nodes, probe)
        endless = any(claims >= CLAIMS_LIMIT for claims in room.per_node)
        sizes = {1: room.claims} if endless else self._count_sizes(probe, whole, room.claims)
        demand = probe.ask(whole)
        blocked = sorted(self._find_blocked(probe, demand), key=lambda each: (len(each.held), each.node))
        return Fragment(
            name=probe.name,
            free=room.claims,
            largest=room.largest,
            whole=whole,
            sizes=sizes,
            blocked=tuple(blocked[:_NAMED]),
            blocked_count=len(blocked),
            domains=tuple(self._count_domains(demand)),
        )

    def _count_sizes(self, probe: Probe, whole: int, ones: int) -> dict[int, int]:
        """How many claims of each size fit that divides the largest on an empty node."""
        return {
            size: ones if size == 1 else self._count_claims(probe.ask(size))
            for size in range(1, whole + 1)
            if whole % size == 0
        }

    def _count_claims(self, demand: Demand) -> int:
        filled = self._in_use.fork()
        shapes = self._attempts.shapes((demand,))
        known: dict[Hashable, int] = {}
        total = 0
        for node in self._nodes:
            key = (shapes[node], filled.of(node))
            claims = known.get(key)
            if claims is None or self._in_use.is_shared:
                state = filled if self._in_use.is_shared else filled.fork()
                claims = known[key] = fill(self._attempts, state, node, (demand,))
            total += claims
        return total

    def _fits(self, node: int, demand: Demand, in_use: InUse) -> bool:
        return isinstance(self._attempts.attempt(node, (demand,), in_use), Chosen)

    def _find_blocked(self, probe: Probe, demand: Demand) -> Iterator[BlockedNode]:
        for node in self._nodes:
            if self._fits(node, demand, self._in_use):
                continue
            chosen = self._attempts.attempt(node, (demand,), self._empty)
            if isinstance(chosen, Chosen):
                cluster = self._attempts.cluster
                drivers = {cluster.device(node, pick).driver for pick in chosen.picks}
                held = tuple((each.driver, each.pool, each.device) for each in self._held(node, drivers))
                free = fill(self._attempts, self._in_use.fork(), node, (probe.ask(1),))
                yield BlockedNode(node=cluster.nodes[node].name, free=free, held=held)

    def _held(self, node: int, drivers: set[str]) -> Iterator[DeviceID]:
        for pool in self._attempts.cluster.pools(node):
            for each in pool.devices:
                if each.id.driver in drivers and self._in_use.state.is_allocated(each.id):
                    yield each.id

    def _count_domains(self, demand: Demand) -> Iterator[DomainRoom]:
        """Count the nodes of each domain that serve the largest claim, empty and now."""
        there: Counter[str] = Counter()
        free: defaultdict[str, int] = defaultdict(int)
        for node in self._nodes:
            name = self._attempts.cluster.nodes[node].labels.get(CLIQUE_LABEL, "")
            if name and self._fits(node, demand, self._empty):
                there[name] += 1
                free[name] += self._fits(node, demand, self._in_use)
        yield from (
            DomainRoom(name=name, nodes=number, free=free[name])
            for name, number in sorted(there.items())
            if number > 1
        )
