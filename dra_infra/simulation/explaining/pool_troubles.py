"""Pools that give no devices away, and why; and what can be given away of the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dra_infra.model.fleet import Node
from dra_infra.simulation.allocation.identity import PoolID, Published
from dra_infra.simulation.allocation.pools import Pool
from dra_infra.simulation.allocation.quirks import Quirk
from dra_infra.simulation.allocation.slices import pool_of
from dra_infra.simulation.allocation.variants import Variant
from dra_infra.simulation.explaining.inventory import Inventory


@dataclass(frozen=True, slots=True)
class PoolTrouble:
    """A pool that gives no devices away, and why; `devices` are those that the node would see in it."""

    pool: PoolID
    state: str
    why: str
    devices: int

    def __str__(self) -> str:
        return f"resource pool {self.pool} is {self.state}: {self.why}"


def tried_devices(pools: Iterable[Pool], variant: Variant) -> tuple[tuple[Pool, Published], ...]:
    """What can be given away of pools, in order."""
    return tuple((pool, each) for pool in pools if _is_tried(pool, variant) for each in pool.devices)


def find_troubles(cluster: Inventory, node: Node) -> Iterator[PoolTrouble]:
    """The pools that a node sees and whose devices nobody gets."""
    built = {pool.id: pool for pool in cluster.allocator.pools(node)}
    relevant = cluster.index.relevant(node)
    names = {pool_of(each) for each in relevant}
    for name in sorted(
        each for each in names if each not in built or not _is_tried(built[each], cluster.variant)
    ):
        slices = [each for each in relevant if pool_of(each) == name]
        generation = max(each.spec.pool.generation for each in slices)
        newest = [each for each in slices if each.spec.pool.generation == generation]
        devices = sum(len(each.spec.devices or ()) for each in newest)
        pool = built.get(name)
        if pool is None:
            why = "slices of a newer generation are there, and none of them is for this node"
            yield PoolTrouble(name, "obsolete", why, devices)
        elif pool.invalid:
            yield PoolTrouble(name, "invalid", pool.invalid, devices)
        else:
            there = len(cluster.index.everywhere(name, generation) or ())
            wanted = newest[0].spec.pool.resource_slice_count
            yield PoolTrouble(name, "incomplete", f"{there} of {wanted} slices are published", devices)


def _is_tried(pool: Pool, variant: Variant) -> bool:
    return not pool.invalid and (not pool.is_incomplete or variant.has(Quirk.INCOMPLETE_IS_USED))
