"""Nodes and ResourceSlices of a node group, as its driver release would publish them.

- `compute-domain.nvidia.com` publishes one channel and one daemon on a node, whatever the fabric.
- Labels of nodes are those of the kubelet, and those of GPU feature discovery that people select by.
- The example driver publishes GPUs, network cards or CPUs, by the profile of its chart. Source: internal/profiles in
  kubernetes-sigs/dra-example-driver v0.3.0 and v0.4.0, internal/discovery before.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dra_infra.catalog.drivers import DeviceType, DriverRelease, drivers
from dra_infra.catalog.gpu_publication import publish_dynamic_mig, static_mig_devices, vfio_device, whole_gpu
from dra_infra.catalog.gpus import systems
from dra_infra.catalog.node_groups import (
    DevicePattern,
    NodeGroup,
    PoolPattern,
    Seeded,
    SlicePattern,
    attributes_of,
    by_name,
    capacity_of,
    shareable_capacity,
    short_name,
)
from dra_infra.catalog.records import PublishedDevices, gpu_products
from dra_infra.kubernetes.api import (
    CapacityRequestPolicy,
    CELDeviceSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceCounterConsumption,
    DeviceSelector,
    Node,
    ObjectMeta,
    Quantity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

COMPUTE_DOMAIN_DRIVER: Final = "compute-domain.nvidia.com"
DRANET: Final = "dra.net"


def compute_domain_release(line: str) -> DriverRelease:
    """The driver's part for ComputeDomains in a release line; it comes with that for GPUs."""
    return drivers()[COMPUTE_DOMAIN_DRIVER].by_line[line]


def publish_compute_domains(line: str) -> PoolPattern:
    """The pool of a node whose IMEX daemons are the driver's; where the host has its own, there is no daemon-0."""
    devices = [
        DevicePattern(Device(name=type_.device_name.format(id=0), attributes=attributes_of(type_, {})))
        for type_ in compute_domain_release(line).devices.values()
    ]
    return PoolPattern(COMPUTE_DOMAIN_DRIVER, (SlicePattern(by_name(devices)),))


def group_labels(group: NodeGroup) -> dict[str, str]:
    """The labels that all nodes of the group have."""
    kind = group.kind
    labels = {
        "kubernetes.io/arch": systems()[kind.system].architecture if kind.system else "amd64",
        "kubernetes.io/os": "linux",
        **kind.labels,
    }
    if not kind.gpu:
        return labels
    product = gpu_products()[kind.gpu]
    major, minor, _ = product.cuda_compute_capability.split(".")
    found = {
        "nvidia.com/cuda.driver-version.full": kind.kernel_driver.driver_version
        if kind.kernel_driver
        else "",
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.count": str(group.devices),
        "nvidia.com/gpu.family": product.architecture.lower().replace(" ", "-"),
        "nvidia.com/gpu.memory": str(product.memory_mib or ""),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": kind.gpu.replace(" ", "-"),
        "nvidia.com/mig.capable": str(product.mig_capable).lower(),
    }
    return labels | {name: value for name, value in found.items() if value}


def rack_labels(group: NodeGroup, namespace: uuid.UUID, *, first: int, index: int) -> dict[str, str]:
    """The NVLink domain of a node of a rack: a cluster UUID and a clique id, both made up; empty where there is none.

    Args:
        group: The nodes.
        namespace: Of the UUIDs of the fleet.
        first: Number of the first node of the group.
        index: Number of the node within the group.
    """
    if not group.rack_nodes:
        return {}
    rack = first + index // group.rack_nodes * group.rack_nodes
    cluster = uuid.uuid5(namespace, f"{group.name}/rack/{rack}")
    return {"nvidia.com/gpu.clique": f"{cluster}.{group.kind.invented.clique}"}


_COUNTED = {"memory": "80Gi", "compute": "100"}
"""Counters of a GPU that is published with partitions."""

_STEPS = {"memory": "1Gi", "compute": "1"}
"""The least amount of a shareable GPU that a request takes, and its steps."""

_CPUS_PER_NUMA_NODE = "4"


def publish_example(group: NodeGroup) -> PoolPattern:
    """The pool of a node with the example driver."""
    slices = {"gpu": _gpu_slices, "nic": _nic_slices, "numa": _numa_slices}
    (type_,) = group.release.devices.values()
    return PoolPattern(type_.driver, slices[type_.name](group, type_))


def _gpu_slices(group: NodeGroup, type_: DeviceType) -> tuple[SlicePattern, ...]:
    if not group.partitions:
        devices = (_gpu(group, type_, index, f"gpu-{index}", 1, {}) for index in range(group.devices))
        return (SlicePattern(tuple(devices)),)
    counters = tuple(
        CounterSet(name=f"gpu-{index}-counters", counters=_counters(1)) for index in range(group.devices)
    )
    partitions = tuple(
        device for index in range(group.devices) for device in _partitions(group, type_, index)
    )
    # The layout of Kubernetes 1.35, on older ones too.
    return SlicePattern(counters=counters), SlicePattern(partitions)


def _partitions(group: NodeGroup, type_: DeviceType, index: int) -> list[DevicePattern]:
    parts = group.partitions
    devices = [
        _gpu(group, type_, index, f"gpu-{index}-partition-{number}", parts, {"partition": number})
        for number in range(parts)
    ]
    return [*devices, _gpu(group, type_, index, f"gpu-{index}-full", 1, {"full": True})]


def _gpu(
    group: NodeGroup, type_: DeviceType, index: int, name: str, parts: int, values: Mapping[str, Any]
) -> DevicePattern:
    seeded = (Seeded("uuid", "gpu-", f"gpu-{index}"),)
    amounts = {
        name: _share(entry.sample, parts)
        for name, entry in ((short_name(each, type_), entry) for each, entry in type_.capacity.items())
    }
    partitioned = {"partitionable": True, **values} if group.partitions else {}
    device = Device(
        name=name,
        attributes=attributes_of(type_, {"index": index, **partitioned}, seeded=seeded),
        capacity=capacity_of(type_, {key: _amount(key, amount, group) for key, amount in amounts.items()}),
    )
    added: dict[str, Any] = {"allow_multiple_allocations": True} if group.shareable else {}
    if group.partitions:
        consumed = DeviceCounterConsumption(counter_set=f"gpu-{index}-counters", counters=_counters(parts))
        added["consumes_counters"] = [consumed]
    return DevicePattern(device.changed(added) if added else device, seeded)


def _amount(name: str, amount: str, group: NodeGroup) -> str | DeviceCapacity:
    if not group.shareable:
        return amount
    return shareable_capacity(amount, default=amount, least=_STEPS[name], step=_STEPS[name])


def _counters(parts: int) -> dict[str, Counter]:
    return {name: Counter(value=_share(amount, parts)) for name, amount in _COUNTED.items()}


def _share(amount: str, parts: int) -> str:
    """An equal part of an amount, as Go prints a whole number of it."""
    whole = int(Quantity.parse(amount).value) // parts
    if not amount.endswith("i"):
        return str(whole)
    suffixes = ("", "Ki", "Mi", "Gi")
    power = max(each for each in range(len(suffixes)) if whole % 1024**each == 0)
    return f"{whole // 1024**power}{suffixes[power]}"


def _nic_slices(group: NodeGroup, type_: DeviceType) -> tuple[SlicePattern, ...]:
    one = CapacityRequestPolicy(default="1", valid_values=["1"])
    bandwidth = shareable_capacity("100G", default="1G", least="100M", step="1M")
    capacity = {
        "vfs": DeviceCapacity(value="100", request_policy=one),
        "ingressBandwidth": bandwidth,
        "egressBandwidth": bandwidth,
    }
    devices = []
    for index in range(group.devices):
        seeded = (Seeded("uuid", "net-", f"nic-{index}"),)
        values = {"index": index, "driverVersion": "1.0.0"}
        devices.append(
            DevicePattern(
                Device(
                    name=type_.device_name.format(index=index),
                    allow_multiple_allocations=True,
                    attributes=attributes_of(type_, values, seeded=seeded),
                    capacity=capacity_of(type_, capacity),
                ),
                seeded,
            )
        )
    return (SlicePattern(tuple(devices)),)


def _numa_slices(group: NodeGroup, type_: DeviceType) -> tuple[SlicePattern, ...]:
    # That its CPUs are the node's is an alpha field, which servers drop: it is left out.
    cpus = capacity_of(type_, {f"{type_.driver}/cpu": _CPUS_PER_NUMA_NODE})
    devices = (
        Device(
            name=type_.device_name.format(index=index),
            allow_multiple_allocations=True,
            attributes=attributes_of(type_, {"numaNodeID": index}),
            capacity=cpus,
        )
        for index in range(group.devices)
    )
    return (SlicePattern(tuple(map(DevicePattern, devices))),)


_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "fleets.dra-infra")
_TEXT = DeviceAttribute(string="")


class _Prototype(NamedTuple):
    """A slice of every node; a node's own differs in names and seeded attributes."""

    devices: tuple[DevicePattern, ...]
    slice: ResourceSlice


def pools_of(group: NodeGroup, *, separate_counters: bool = True) -> tuple[PoolPattern, ...]:
    """The pools that every node of a group publishes, per driver.

    Args:
        group: The nodes.
        separate_counters: Whether counter sets are in a slice of their own, as from Kubernetes 1.35 on.
    """
    listed = group.kind.published
    if not group.kind.gpu:
        own = listed.get(group.kind.driver)
        return (_publish_listed(group.release, own, group.devices) if own else publish_example(group),)
    gpus = (
        publish_dynamic_mig(group, separate_counters=separate_counters)
        if "DynamicMIG" in group.gates
        else _publish_gpus(group)
    )
    pools = [gpus]
    if group.compute_domains:
        pools.append(publish_compute_domains(group.line))
    if group.dranet:
        pools.append(_publish_listed(drivers()[DRANET].newest, listed[DRANET]))
    return tuple(pools)


def publish_nodes(
    group: NodeGroup, pools: Sequence[PoolPattern], *, first: int, width: int
) -> Iterator[tuple[Node, list[ResourceSlice]]]:
    """The nodes of a group with their slices.

    Args:
        group: The nodes.
        pools: What `pools_of` says of the group.
        first: Number of the first node.
        width: Digits of a number; it is padded with zeros so that names sort by number.
    """
    labels = group_labels(group)
    allocatable = {**group.kind.invented.node, **dict(group.allocatable)}
    prototypes = _prototypes(pools)
    for index in range(group.nodes):
        node = f"{group.name}-{first + index:0{width}}"
        yield (
            Node(
                name=node,
                labels={
                    **labels,
                    **rack_labels(group, _NAMESPACE, first=first, index=index),
                    **dict(group.labels),
                    "kubernetes.io/hostname": node,
                },
                allocatable=allocatable,
                taints=group.taints,
            ),
            [_slice(node, number, prototype) for number, prototype in prototypes],
        )


def publish_alone(node: str, pools: Sequence[PoolPattern]) -> list[ResourceSlice]:
    """The slices of one node, whatever it is called; UUIDs are made of its name."""
    return [_slice(node, number, prototype) for number, prototype in _prototypes(pools)]


def shipped_classes(group: NodeGroup) -> list[DeviceClass]:
    """The DeviceClasses that the charts of the group's drivers render."""
    releases = [group.release, *([compute_domain_release(group.line)] if group.compute_domains else [])]
    return [
        DeviceClass(
            metadata=ObjectMeta(name=shipped.name),
            spec=DeviceClassSpec(
                selectors=[DeviceSelector(cel=CELDeviceSelector(expression=shipped.expression))],
                extended_resource_name=shipped.extended_resource_name or None,
            ),
        )
        for release in releases
        for shipped in release.classes
    ]


def _publish_gpus(group: NodeGroup) -> PoolPattern:
    """One slice with all devices, and no counters."""
    devices: list[DevicePattern] = []
    for minor in range(group.devices):
        profiles = group.mig[minor] if minor < len(group.mig) else ()
        if profiles:
            devices.extend(static_mig_devices(group, minor, profiles))
            continue
        devices.append(whole_gpu(group, minor))
        if "PassthroughSupport" in group.gates:
            devices.append(vfio_device(group, minor))
    return PoolPattern(group.release.driver, (SlicePattern(by_name(devices)),))


def _publish_listed(release: DriverRelease, listed: PublishedDevices, most: int | None = None) -> PoolPattern:
    """The first devices of a list, in one slice, without what the release does not publish yet."""
    (type_,) = release.devices.values()
    devices = []
    for name, own in list(listed.devices.items())[:most]:
        attributes = {}
        for written, value in {**listed.attributes, **own}.items():
            entry = type_.attributes.get(written if "/" in written else f"{release.driver}/{written}")
            if entry is not None:
                attributes[written] = DeviceAttribute.model_validate({entry.type: value})
        capacity = capacity_of(type_, listed.capacity) or None
        device = Device(name=name, attributes=attributes, capacity=capacity)
        devices.append(DevicePattern(device))
    return PoolPattern(release.driver, (SlicePattern(tuple(devices)),))


def _prototypes(pools: Sequence[PoolPattern]) -> list[tuple[int, _Prototype]]:
    return [
        (number, _prototype(pool, pattern)) for pool in pools for number, pattern in enumerate(pool.slices)
    ]


def _prototype(pool: PoolPattern, pattern: SlicePattern) -> _Prototype:
    resource_pool = ResourcePool(name="", generation=1, resource_slice_count=len(pool.slices))
    spec = ResourceSliceSpec(driver=pool.driver, pool=resource_pool, node_name="")
    if pattern.counters:
        spec = spec.changed({"shared_counters": list(pattern.counters)})
    return _Prototype(pattern.devices, ResourceSlice(metadata=ObjectMeta(name=""), spec=spec))


def _slice(node: str, number: int, prototype: _Prototype) -> ResourceSlice:
    metadata, spec = prototype.slice.metadata, prototype.slice.spec
    # The driver's helper appends random characters; these are fixed, so that output is, and sort by publication.
    suffix = uuid.uuid5(_NAMESPACE, f"{node}/{spec.driver}").hex[:5]
    if spec.pool.resource_slice_count > 1:
        suffix = f"{suffix[:4]}{number:x}"
    values: dict[str, object] = {"pool": spec.pool.changed({"name": node}), "node_name": node}
    if prototype.devices:
        # A large fleet holds a million devices: their parts are checked once, in the pattern, and not for every node.
        values["devices"] = [_device(node, pattern) for pattern in prototype.devices]
    return prototype.slice.changed(
        {
            "metadata": metadata.changed({"name": f"{node}-{spec.driver}-{suffix}"}),
            "spec": spec.changed(values),
        }
    )


def _device(node: str, pattern: DevicePattern) -> Device:
    if not pattern.seeded:
        return pattern.device
    own = {
        each.attribute: _TEXT.changed(
            {"string": f"{each.prefix}{uuid.uuid5(_NAMESPACE, f'{node}/{each.seed}')}"}
        )
        for each in pattern.seeded
    }
    return pattern.device.changed({"attributes": {**(pattern.device.attributes or {}), **own}})
