"""Slices to pools per node: which devices a pod on a node can get, in the order in which the scheduler tries them.

Source: GatherPools and buildPool in k8s.io/dynamic-resource-allocation/structured/internal (1.36 and newer, where
pools are sorted).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dra_infra.model.fleet import Fleet, Node
from dra_infra.model.node_selector import NodeSelector
from dra_infra.model.resource_slice import Device, ResourceSlice
from dra_infra.simulation.node_selectors import matches_node_selector

PoolState = Literal["usable", "incomplete", "invalid"]


@dataclass(frozen=True, slots=True)
class PublishedDevice:
    """A device with where it was published.

    Args:
        driver: Driver of the slice.
        pool: Pool of the slice.
        device: The device itself.
        slice: The slice, for its node selection.
        not_modelled: Field of the device or slice that decides its allocation and is not modelled; empty for none.
    """

    driver: str
    pool: str
    device: Device
    slice: ResourceSlice
    not_modelled: str

    @property
    def path(self) -> str:
        """`driver/pool/device`, as the scheduler prints it."""
        return f"{self.driver}/{self.pool}/{self.device.name}"


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool as a node sees it.

    Args:
        name: `driver/pool`.
        state: Only usable pools give devices; any other blocks requests for all devices.
        reason: Why it is incomplete or invalid.
        devices: Indices into `Inventory.devices`, in the order of allocation; empty unless usable.
    """

    name: str
    state: PoolState
    reason: str = ""
    devices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """All devices of a fleet, and the pools of each of its nodes.

    Args:
        nodes: The nodes of the fleet, by name.
        devices: Every device that some node can use.
        pools: Per node, in the order of allocation.
        shared: Indices of devices that more than one node may use.
    """

    nodes: tuple[Node, ...]
    devices: tuple[PublishedDevice, ...]
    pools: tuple[tuple[Pool, ...], ...]
    shared: frozenset[int]

    def positions(self, node: int) -> tuple[int, ...]:
        """The devices that a pod on the node can get, in the order in which they are tried."""
        return tuple(index for pool in self.pools[node] for index in pool.devices)

    def nodes_of(self, device: int) -> frozenset[int]:
        """The nodes that can use the device, by its slice."""
        slice_ = self.devices[device].slice
        return frozenset(number for number, node in enumerate(self.nodes) if matches_slice(slice_, node))


@dataclass(slots=True)
class _Gathered:
    """The slices of one pool that a node can use, all of one generation."""

    slices: list[ResourceSlice]

    @property
    def generation(self) -> int:
        return self.slices[0].spec.pool.generation


class _Gathering:
    def __init__(self, fleet: Fleet) -> None:
        self.devices: list[PublishedDevice] = []
        self.indices: dict[int, tuple[int, ...]] = {}
        self.by_pool: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
        self.local: dict[str, list[ResourceSlice]] = defaultdict(list)
        self.network: list[ResourceSlice] = []
        for slice_ in fleet.slices:
            if _declares_compatibility_groups(slice_):
                # The gate is off by default, and then such slices are not there, which leaves their pool incomplete.
                continue
            self.by_pool[slice_.spec.driver, slice_.spec.pool.name].append(slice_)
            if slice_.spec.node_name:
                self.local[slice_.spec.node_name].append(slice_)
            else:
                self.network.append(slice_)

    def pools_of(self, node: Node) -> tuple[Pool, ...]:
        gathered: dict[tuple[str, str], _Gathered] = {}
        for slice_ in (*self.local.get(node.name, ()), *self.network):
            if _is_relevant(slice_, node):
                _add(gathered, slice_)
        first: list[Pool] = []
        last: list[Pool] = []
        for key in sorted(gathered):
            pool = self._build(key, gathered[key])
            if pool is not None:
                (last if self._has_binding_conditions(pool) else first).append(pool)
        return (*first, *last)

    def _build(self, key: tuple[str, str], gathered: _Gathered) -> Pool | None:
        name = "/".join(key)
        wanted = gathered.slices[0].spec.pool.resource_slice_count
        slices = others = gathered.slices
        if len(slices) != wanted:
            everywhere = self.by_pool[key]
            if any(slice_.spec.pool.generation > gathered.generation for slice_ in everywhere):
                return None
            others = [slice_ for slice_ in everywhere if slice_.spec.pool.generation == gathered.generation]
            if len(others) != wanted:
                return Pool(
                    name=name, state="incomplete", reason=f"{len(others)} of {wanted} slices are published"
                )
        invalid = _find_invalidity(slices, others)
        if invalid:
            return Pool(name=name, state="invalid", reason=invalid)
        ordered = sorted(slices, key=lambda slice_: slice_.metadata.name or "")
        return Pool(
            name=name,
            state="usable",
            devices=tuple(index for slice_ in ordered for index in self._indices_of(slice_)),
        )

    def _indices_of(self, slice_: ResourceSlice) -> tuple[int, ...]:
        known = self.indices.get(id(slice_))
        if known is None:
            start = len(self.devices)
            self.devices.extend(
                PublishedDevice(
                    driver=slice_.spec.driver,
                    pool=slice_.spec.pool.name,
                    device=device,
                    slice=slice_,
                    not_modelled=_find_unmodelled(slice_, device),
                )
                for device in slice_.spec.devices or ()
            )
            known = self.indices[id(slice_)] = tuple(range(start, len(self.devices)))
        return known

    def _has_binding_conditions(self, pool: Pool) -> bool:
        return any(self.devices[index].device.binding_conditions is not None for index in pool.devices)


def gather_inventory(fleet: Fleet) -> Inventory:
    """Gather the pools of every node of a fleet."""
    gathering = _Gathering(fleet)
    nodes = tuple(sorted(fleet.nodes, key=lambda node: node.name))
    pools = tuple(gathering.pools_of(node) for node in nodes)
    return Inventory(
        nodes=nodes,
        devices=tuple(gathering.devices),
        pools=pools,
        shared=frozenset(
            index for index, device in enumerate(gathering.devices) if not device.slice.spec.node_name
        ),
    )


def matches_slice(slice_: ResourceSlice, node: Node) -> bool:
    """Whether the slice as a whole is for the node; false where its devices say so one by one."""
    spec = slice_.spec
    if spec.node_name:
        return spec.node_name == node.name
    if spec.all_nodes:
        return True
    return _is_selected(spec.node_selector, node)


def _is_relevant(slice_: ResourceSlice, node: Node) -> bool:
    if slice_.spec.per_device_node_selection:
        return any(_matches_device(device, node) for device in slice_.spec.devices or ())
    return matches_slice(slice_, node)


def _matches_device(device: Device, node: Node) -> bool:
    if device.node_name:
        return device.node_name == node.name
    return bool(device.all_nodes) or _is_selected(device.node_selector, node)


def _is_selected(selector: NodeSelector | None, node: Node) -> bool:
    return selector is not None and matches_node_selector(selector.to_manifest(), node)


def _add(gathered: dict[tuple[str, str], _Gathered], slice_: ResourceSlice) -> None:
    pool = slice_.spec.pool
    key = (slice_.spec.driver, pool.name)
    known = gathered.get(key)
    if known is None or pool.generation > known.generation:
        gathered[key] = _Gathered([slice_])
    elif pool.generation == known.generation:
        known.slices.append(slice_)


def _find_invalidity(slices: Sequence[ResourceSlice], everywhere: Iterable[ResourceSlice]) -> str:
    """Why the pool is invalid, empty when it is valid; *everywhere* includes the slices of other nodes."""
    names = Counter(device.name for slice_ in slices for device in slice_.spec.devices or ())
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        return f"duplicate device name {twice[0]}"
    counters: dict[str, frozenset[str]] = {}
    for counter_set in (entry for slice_ in everywhere for entry in slice_.spec.shared_counters or ()):
        if counter_set.name in counters:
            return f"duplicate counter set name {counter_set.name}"
        counters[counter_set.name] = frozenset(counter_set.counters or ())
    for device in (device for slice_ in everywhere for device in slice_.spec.devices or ()):
        for consumption in device.consumes_counters or ():
            name = consumption.counter_set
            if name not in counters:
                return f"counter set {name} not found"
            unknown = sorted(set(consumption.counters or ()) - counters[name])
            if unknown:
                return f"counter {unknown[0]} not found in counter set {name}"
    return ""


def _declares_compatibility_groups(slice_: ResourceSlice) -> bool:
    return any(
        consumption.compatibility_groups
        for device in slice_.spec.devices or ()
        for consumption in device.consumes_counters or ()
    )


_MODELLED: Final = frozenset({"name", "attributes", "capacity", "taints"})


def _find_unmodelled(slice_: ResourceSlice, device: Device) -> str:
    """The field that decides how the device is allocated and that this version does not model."""
    for name, value in (
        ("perDeviceNodeSelection", slice_.spec.per_device_node_selection),
        ("skipNodeOperations", slice_.spec.skip_node_operations),
    ):
        if value:
            return f"ResourceSlice {slice_.metadata.name}: spec.{name}"
    if device.model_fields_set <= _MODELLED:
        return ""
    for name, value in sorted(device.to_manifest().items()):
        if value and name not in _MODELLED:
            return f"device {slice_.spec.driver}/{slice_.spec.pool.name}/{device.name}: {name}"
    return ""
