"""ResourceSlices of a cluster, indexed by node and by pool, and which of them a node can use.

Source: NewAllocator, the first half of GatherPools, and NodeMatches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import copy

from dra_infra.kubernetes.api.label_selectors import matches_node_selector
from dra_infra.kubernetes.api.nodes import Node
from dra_infra.kubernetes.api.resource_slice import Device, NodeSelector, ResourceSlice
from dra_infra.kubernetes.scheduler.allocator.identity import PoolID, Published, published_devices
from dra_infra.kubernetes.scheduler.allocator.node_selectors import find_parse_error
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant


def matches_node(
    node: Node, name: str | None, *, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    """NodeMatches: whether a slice or a device with these fields is for the node."""
    if name:
        return node.name == name
    if all_nodes:
        return True
    return selector is not None and matches_node_selector(selector.to_manifest(), node.labels, node.name)


def device_matches_node(device: Device, node: Node) -> bool:
    """NodeMatches of a device that says for itself which nodes it is for."""
    return matches_node(node, device.node_name, all_nodes=device.all_nodes, selector=device.node_selector)


def has_binding_conditions(devices: Iterable[Device]) -> bool:
    """A device has the field, even with an empty list in it."""
    return any(device.binding_conditions is not None for device in devices)


_Numbered = list[tuple[int, ResourceSlice]]


class SliceIndex:
    """Slices in the order in which they are given, which decides for the copies that do not sort."""

    def __init__(self, slices: Sequence[ResourceSlice], variant: Variant) -> None:
        self._variant = variant
        self._local: dict[str, _Numbered] = {}
        self._shared: _Numbered = []
        self._by_pool: dict[PoolID, list[ResourceSlice]] = defaultdict(list)
        self._devices: dict[int, tuple[Published, ...]] = {}
        self._grouped: set[int] = set()
        # Shared by the copies that `under` makes, for it takes a look at all slices.
        self._counts_by_node: dict[Variant, bool] = {}
        self._settled: dict[Variant, tuple[dict[str, _Numbered], _Numbered]] = {}
        self._unparsed = [each for each in slices if any(map(find_parse_error, _list_selectors(each)))]
        for number, slice_ in enumerate(slices):
            self._by_pool[PoolID.of(slice_)].append(slice_)
            if _uses_compatibility_groups(slice_):
                self._grouped.add(id(slice_))
            if not slice_.spec.node_name or self._is_for_all(slice_):
                self._shared.append((number, slice_))
            else:
                self._local.setdefault(slice_.spec.node_name, []).append((number, slice_))

    def under(self, variant: Variant) -> SliceIndex:
        """The same slices for another variant of the same minor and copy."""
        other = copy(self)
        other._variant = variant  # noqa: SLF001
        return other

    def devices(self, slice_: ResourceSlice) -> tuple[Published, ...]:
        """The devices of a slice, in order; the same objects at each call."""
        known = self._devices.get(id(slice_))
        if known is None:
            known = self._devices[id(slice_)] = published_devices(slice_)
        return known

    def settle(self, is_quiet: Callable[[PoolID, list[ResourceSlice]], bool]) -> None:
        """Leave slices with counters to their own node where no other can tell that they are there.

        In 1.35 and 1.36 each node sees the counters of all others, so a fleet of partitioned devices would cost the
        square of its size.

        Args:
            is_quiet: Whether a pool is complete, valid and without devices for a node that sees only these slices of it.
        """
        known = self._settled.get(self._variant)
        if known is None:
            known = self._settled[self._variant] = self._settle(is_quiet)
        self._local, self._shared = known

    def _settle(
        self, is_quiet: Callable[[PoolID, list[ResourceSlice]], bool]
    ) -> tuple[dict[str, _Numbered], _Numbered]:
        by_pool: dict[PoolID, _Numbered] = defaultdict(list)
        for number, slice_ in self._shared:
            if slice_.spec.node_name:
                by_pool[PoolID.of(slice_)].append((number, slice_))
        local = dict(self._local)
        settled: set[int] = set()
        for pool, numbered in by_pool.items():
            seen = [slice_ for _, slice_ in numbered]
            if self._is_at_one_node(self._by_pool[pool]) and is_quiet(pool, seen):
                settled |= {number for number, _ in numbered}
                node = seen[0].spec.node_name or ""
                local[node] = [*local.get(node, ()), *numbered]
        return local, [entry for entry in self._shared if entry[0] not in settled]

    def _is_at_one_node(self, slices: Sequence[ResourceSlice]) -> bool:
        """All slices of a pool are of one generation and for one node."""
        places = {(each.spec.node_name, each.spec.pool.generation) for each in slices}
        return len(places) == 1 and not any(map(self._is_ignored, slices))

    def relevant(self, node: Node) -> list[ResourceSlice]:
        """The slices that the node can use, in the order in which upstream adds them to their pools."""
        numbered = [*self._local.get(node.name, ()), *self._shared]
        if not self._variant.sorts_pools:
            numbered.sort(key=lambda entry: entry[0])
        found = [slice_ for _, slice_ in numbered if self._is_relevant(slice_, node)]
        if self._variant.channel == "experimental" and self._variant.number < 36:
            # Those with binding conditions come to their pool after all others.
            found.sort(key=lambda slice_: has_binding_conditions(slice_.spec.devices or ()))
        return found

    def find_parse_error(self, node: Node) -> str:
        """Return the error on a slice, of whichever driver, that keeps the pools of a node from being gathered; empty for none."""
        for slice_ in self._unparsed:
            if self._is_left_out(slice_) or self._is_for_all(slice_):
                continue
            if error := _find_parse_error(slice_, node):
                return f"gather pool information: failed to perform node selection for {error}"
        return ""

    def everywhere(self, pool: PoolID, generation: int) -> list[ResourceSlice] | None:
        """All slices of a pool and generation in the cluster; None when there is a newer generation."""
        slices = self._by_pool[pool]
        if any(slice_.spec.pool.generation > generation for slice_ in slices):
            return None
        return [
            slice_
            for slice_ in slices
            if slice_.spec.pool.generation == generation and not self._is_ignored(slice_)
        ]

    def counts_by_node(self) -> bool:
        """Counters depend on the node that asks first: those of pools that nodes see differently."""
        found = self._counts_by_node.get(self._variant)
        if found is None:
            found = self._counts_by_node[self._variant] = self._find_counts_by_node()
        return found

    def _find_counts_by_node(self) -> bool:
        if not self._variant.features.partitionable_devices:
            return False
        seen: set[str] = set()
        for pool, slices in self._by_pool.items():
            if not any(map(_has_counters, slices)):
                continue
            if self._variant.simple_pools:
                names = [slice_.metadata.name or "" for slice_ in slices]
            else:
                if self._is_seen_in_parts(slices):
                    return True
                names = [pool.pool] if self._variant.has(Quirk.COUNTERS_BY_POOL_NAME) else []
            if len(set(names)) < len(names) or not seen.isdisjoint(names):
                return True
            seen.update(names)
        return False

    def _is_seen_in_parts(self, slices: Sequence[ResourceSlice]) -> bool:
        """A node may take a part of a pool for all of it."""
        if not any(map(self._is_for_all, slices)) and {each.spec.node_name or "" for each in slices} == {
            slices[0].spec.node_name
        }:
            return False
        counts = {(each.spec.pool.generation, each.spec.pool.resource_slice_count) for each in slices}
        shown = sum(not self._is_ignored(each) for each in slices)
        return len(counts) > 1 or shown > slices[0].spec.pool.resource_slice_count

    def _is_for_all(self, slice_: ResourceSlice) -> bool:
        """A slice with counters is taken for every node, which 1.37 no longer does."""
        variant = self._variant
        if variant.simple_pools or (variant.number >= 37 and variant.channel != "stable"):
            return False
        return bool(slice_.spec.shared_counters)

    def _is_ignored(self, slice_: ResourceSlice) -> bool:
        """Compatibility groups that the allocator cannot check make their slice invisible."""
        return self._ignores_groups and id(slice_) in self._grouped

    @property
    def _ignores_groups(self) -> bool:
        return self._variant.number >= 37 and not self._variant.features.compatibility_groups

    def _is_partitioned_without_gate(self, slice_: ResourceSlice) -> bool:
        spec = slice_.spec
        return not self._variant.features.partitionable_devices and (
            spec.per_device_node_selection is not None
            or (bool(spec.shared_counters) and not self._variant.simple_pools)
        )

    def ignored_for(self, slice_: ResourceSlice) -> str:
        """Return the gate that is off, because of which the scheduler ignores a slice on every node; empty if none is."""
        if self._is_partitioned_without_gate(slice_):
            return "DRAPartitionableDevices"
        has_groups = _uses_compatibility_groups(slice_) and self._ignores_groups
        return "DRADeviceCompatibilityGroups" if has_groups else ""

    def _is_relevant(self, slice_: ResourceSlice, node: Node) -> bool:
        spec = slice_.spec
        if self._is_left_out(slice_):
            return False
        if self._is_for_all(slice_):
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return matches_node(node, spec.node_name, all_nodes=spec.all_nodes, selector=spec.node_selector)
        return bool(spec.per_device_node_selection) and any(
            device_matches_node(device, node) for device in spec.devices or ()
        )

    def _is_left_out(self, slice_: ResourceSlice) -> bool:
        """A slice that the allocator never looks at, for want of a feature."""
        return self._is_partitioned_without_gate(slice_) or self._is_ignored(slice_)


def _list_selectors(slice_: ResourceSlice) -> list[NodeSelector]:
    spec = slice_.spec
    if spec.node_selector is not None:
        return [spec.node_selector]
    if not spec.per_device_node_selection:
        return []
    return [each.node_selector for each in spec.devices or () if each.node_selector is not None]


def _find_parse_error(slice_: ResourceSlice, node: Node) -> str:
    """Return the slice or device of which the node selector is not parsed, with the error; empty if a node needs none parsed."""
    spec = slice_.spec
    if spec.node_name or spec.all_nodes:
        return ""
    if spec.node_selector is not None:
        error = find_parse_error(spec.node_selector)
        return f"slice {slice_.metadata.name}: {error}" if error else ""
    for device in spec.devices or ():
        # Devices are looked at in order, up to the first that is for the node.
        parsed = not (device.node_name or device.all_nodes) and device.node_selector
        if parsed and (error := find_parse_error(parsed)):
            return f"device {device.name} in slice {slice_.metadata.name}: {error}"
        if device_matches_node(device, node):
            break
    return ""


def _has_counters(slice_: ResourceSlice) -> bool:
    spec = slice_.spec
    return bool(spec.shared_counters) or any(device.consumes_counters for device in spec.devices or ())


def _uses_compatibility_groups(slice_: ResourceSlice) -> bool:
    return any(
        consumption.compatibility_groups
        for device in slice_.spec.devices or ()
        for consumption in device.consumes_counters or ()
    )
