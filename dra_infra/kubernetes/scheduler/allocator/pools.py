"""The pools of a node: complete or not, valid or not, and in the order in which their devices are tried.

Source: GatherPools, buildPool and poolIsInvalid of the allocators' copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dra_infra.kubernetes.api.nodes import Node
from dra_infra.kubernetes.api.quantity import nanos
from dra_infra.kubernetes.api.resource_slice import ResourceSlice
from dra_infra.kubernetes.scheduler.allocator.identity import PoolID, Published
from dra_infra.kubernetes.scheduler.allocator.slices import SliceIndex, has_binding_conditions
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant

CounterSets = Mapping[str, Mapping[str, int]]
"""Nanos by counter by counter set."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """One pool as a node sees it.

    Args:
        id: Its driver and name.
        devices: What can be picked, in order.
        elsewhere: Devices of the pool that the node cannot use, but whose counters count.
        counters: What the pool's devices share; in 1.34 the counters are those of a slice.
        is_incomplete: Whether slices are missing.
        invalid: Why its slices contradict each other; empty when they do not.
        counts: The different numbers of slices that its slices claim, where the pool is complete by one of them and
            incomplete by another. The scheduler takes the number of the slice that it lists first, and lists slices out
            of a map (`ListPatchedResourceSlices`), so each attempt may see another answer.
    """

    id: PoolID
    devices: tuple[Published, ...] = ()
    elsewhere: tuple[Published, ...] = ()
    counters: CounterSets = field(default_factory=dict)
    is_incomplete: bool = False
    invalid: str = ""
    counts: tuple[int, ...] = ()

    @property
    def as_incomplete(self) -> Pool:
        """Return the pool as an attempt sees it that reads a number of slices which are not all there."""
        return replace(self, is_incomplete=True, counts=()) if self.counts else self

    def is_tried(self, variant: Variant) -> bool:
        """Check that devices of the pool are given away. An invalid one ends the attempt in 1.34 when its turn comes."""
        if self.invalid:
            return variant.number == 34
        return not self.is_incomplete or variant.has(Quirk.INCOMPLETE_IS_USED)


def gather_pools(index: SliceIndex, node: Node, variant: Variant) -> tuple[Pool, ...]:
    """The pools of a node, in the order in which the allocator tries them."""
    build = _build_simple if variant.simple_pools else _build

    def is_quiet(name: PoolID, slices: list[ResourceSlice]) -> bool:
        pool = build(name, slices, index, variant)
        return pool is not None and not (pool.devices or pool.is_incomplete or pool.invalid or pool.counts)

    index.settle(is_quiet)
    gathered: dict[PoolID, list[ResourceSlice]] = {}
    for slice_ in index.relevant(node):
        _add(gathered, slice_)
    pools = [
        pool for name, slices in gathered.items() if (pool := build(name, slices, index, variant)) is not None
    ]
    if variant.sorts_pools:
        pools.sort(key=lambda pool: tuple(part.encode() for part in pool.id))
    if variant.groups_binding_conditions:
        pools.sort(key=lambda pool: has_binding_conditions(each.device for each in pool.devices))
    return tuple(pools)


def counters_of(slices: Iterable[ResourceSlice]) -> CounterSets:
    """The counter sets of slices, in nanos."""
    return {
        counter_set.name: {
            name: nanos(counter.value) for name, counter in (counter_set.counters or {}).items()
        }
        for slice_ in slices
        for counter_set in slice_.spec.shared_counters or ()
    }


def claimed_counts(slices: Iterable[ResourceSlice]) -> tuple[int, ...]:
    """Return the different values of `resourceSliceCount`, in ascending order."""
    return tuple(sorted({each.spec.pool.resource_slice_count for each in slices}))


def describe_counts(counts: Iterable[int]) -> str:
    """Describe the numbers of slices that the slices of one pool disagree on."""
    numbers = " and ".join(map(str, counts))
    return f"its slices disagree on resourceSliceCount ({numbers}), and the scheduler takes the number of whichever it lists first"


def _add(gathered: dict[PoolID, list[ResourceSlice]], slice_: ResourceSlice) -> None:
    slices = gathered.setdefault(PoolID.of(slice_), [])
    generation = slice_.spec.pool.generation
    if slices and generation > slices[0].spec.pool.generation:
        slices.clear()
    if not slices or generation == slices[0].spec.pool.generation:
        slices.append(slice_)


def _build_simple(
    name: PoolID, slices: list[ResourceSlice], index: SliceIndex, variant: Variant
) -> Pool | None:
    """1.34, and the stable copy of 1.35: the slices of the node are the pool, complete or not."""
    wanted = claimed_counts(slices)
    complete = {len(slices)} & set(wanted)
    if len(complete) < len(wanted) and variant.number >= 35:
        everywhere = index.everywhere(name, slices[0].spec.pool.generation)
        if everywhere is None and not complete:
            return None
        complete |= {len(everywhere or ())} & set(wanted)
    devices = _devices(slices, index)
    counts = wanted if 0 < len(complete) < len(wanted) else ()
    invalid = _find_duplicate_device(devices)
    return Pool(name, devices, is_incomplete=not complete, invalid=invalid, counts=counts)


def _build(name: PoolID, slices: list[ResourceSlice], index: SliceIndex, variant: Variant) -> Pool | None:
    wanted = claimed_counts(slices)
    complete = {len(slices)} & set(wanted)
    others: list[ResourceSlice] = []
    if len(complete) < len(wanted):
        everywhere = index.everywhere(name, slices[0].spec.pool.generation)
        if everywhere is None and not complete:
            # A newer generation is being published and has nothing for this node: the old one is not to be used.
            return None
        complete |= {len(everywhere or ())} & set(wanted)
        if not complete:
            return Pool(name, is_incomplete=True)
        names = {slice_.metadata.name for slice_ in slices}
        others = [slice_ for slice_ in everywhere or () if slice_.metadata.name not in names]
    counts = wanted if len(complete) < len(wanted) else ()
    if variant.sorts_pools:
        slices = sorted(slices, key=lambda slice_: (slice_.metadata.name or "").encode())
    if not variant.features.partitionable_devices:
        devices = _devices(slices, index)
        return _valid(Pool(name, devices, counts=counts), _find_duplicate_device(devices))
    # From 1.37 on counters can be in slices of other nodes; before, all of them are for all nodes.
    counting = [slice_ for slice_ in slices if slice_.spec.shared_counters]
    devices = _devices([slice_ for slice_ in slices if not slice_.spec.shared_counters], index)
    if variant.number >= 37 and variant.channel != "stable":
        counting += [slice_ for slice_ in others if slice_.spec.shared_counters]
        others = [slice_ for slice_ in others if not slice_.spec.shared_counters]
        checked: tuple[Published, ...] = ()
    else:
        checked = _devices(counting, index)
    elsewhere = _devices(others, index)
    counters = counters_of(counting)
    reason = (
        _find_duplicate_device(devices)
        or _find_duplicate_counters(counting)
        or _find_unknown_counter((*checked, *devices, *elsewhere), counters)
    )
    return _valid(Pool(name, devices, elsewhere, counters, counts=counts), reason)


def _valid(pool: Pool, reason: str) -> Pool:
    return Pool(pool.id, invalid=reason, counts=pool.counts) if reason else pool


def _devices(slices: Sequence[ResourceSlice], index: SliceIndex) -> tuple[Published, ...]:
    return tuple(device for slice_ in slices for device in index.devices(slice_))


def _find_duplicate_device(devices: Sequence[Published]) -> str:
    if len({each.id.device for each in devices}) == len(devices):
        return ""
    seen = set()
    for each in devices:
        if each.device.name in seen:
            return f"duplicate device name {each.device.name}"
        seen.add(each.device.name)
    return ""


def _find_duplicate_counters(slices: Iterable[ResourceSlice]) -> str:
    seen = set()
    for slice_ in slices:
        for counter_set in slice_.spec.shared_counters or ():
            if counter_set.name in seen:
                return f"duplicate counter set name {counter_set.name}"
            seen.add(counter_set.name)
    return ""


def _find_unknown_counter(devices: Iterable[Published], counters: CounterSets) -> str:
    for each in devices:
        for consumption in each.device.consumes_counters or ():
            known = counters.get(consumption.counter_set)
            if known is None:
                return f"counter set {consumption.counter_set} not found"
            for name in sorted(consumption.counters or ()):
                if name not in known:
                    return f"counter {name} not found in counter set {consumption.counter_set}"
    return ""
