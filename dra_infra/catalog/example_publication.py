"""What the example driver publishes on a node, by the profile of its chart: GPUs, network cards or CPUs.

Source: internal/profiles in kubernetes-sigs/dra-example-driver v0.3.0 and v0.4.0, internal/discovery before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dra_infra.catalog.device_patterns import (
    DevicePattern,
    PoolPattern,
    Seeded,
    SlicePattern,
    attributes_of,
    capacity_of,
    short_name,
)
from dra_infra.catalog.drivers import DeviceType
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.model.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    DeviceCounterConsumption,
)
from dra_infra.model.quantity import Quantity
from dra_infra.model.resource_slice import Device, DeviceCapacity

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
    step = _STEPS[name]
    return DeviceCapacity(
        value=amount,
        request_policy=CapacityRequestPolicy(
            default=amount, valid_range=CapacityRequestPolicyRange(min=step, max=amount, step=step)
        ),
    )


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
    bandwidth = DeviceCapacity(
        value="100G",
        request_policy=CapacityRequestPolicy(
            default="1G", valid_range=CapacityRequestPolicyRange(min="100M", max="100G", step="1M")
        ),
    )
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
    cpus = {
        f"{type_.driver}/{name}": capacity
        for name, capacity in capacity_of(type_, {"cpu": _CPUS_PER_NUMA_NODE}).items()
    }
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
