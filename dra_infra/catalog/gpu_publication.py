"""Whole GPUs and VFIO devices, as the release of the NVIDIA driver publishes them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from dra_infra.catalog.device_patterns import (
    DevicePattern,
    Seeded,
    attributes_of,
    capacity_of,
    mebibytes,
)
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.catalog.records import gpu_products
from dra_infra.model.device import CapacityRequestPolicy, CapacityRequestPolicyRange
from dra_infra.model.resource_slice import Device, DeviceCapacity

_PARTITIONS = ("gpuModuleID", "partition1", "partition2", "partition4", "partition8")
_NVIDIA_VENDOR = "0x10de"


def whole_gpu(
    group: NodeGroup,
    minor: int,
    *,
    capacity: Mapping[str, str] | None = None,
    without: Iterable[str] = (),
) -> DevicePattern:
    """The GPU as one device.

    Args:
        group: The nodes.
        minor: Number of the GPU.
        capacity: What DynamicMIG makes of its capacity.
        without: Attributes that it lacks.
    """
    type_ = group.release.devices["gpu"]
    memory = gpu_products()[group.kind.gpu].memory_mib
    uuid_ = gpu_uuid("uuid", minor)
    values = {
        **parent_values(group, minor),
        **_fabric_values(group, minor),
        "index": minor,
        "minor": minor,
        **dict.fromkeys(without),
    }
    device = Device(
        name=type_.device_name.format(minor=minor),
        attributes=attributes_of(type_, values, seeded=(uuid_,)),
        capacity=capacity_of(type_, capacity or {"memory": mebibytes(memory) if memory else None}),
    )
    return DevicePattern(shared(device, group.shares), (uuid_,))


def vfio_device(group: NodeGroup, minor: int) -> DevicePattern:
    """The GPU as a device that is passed through; it is published beside the whole GPU."""
    type_ = group.release.devices["vfio"]
    kind = group.kind
    parent = parent_values(group, minor)
    bus, _, numa = kind.invented.pci[minor]
    values = {
        **_fabric_values(group, minor),
        **{name: parent[name] for name in parent if name.startswith("resource.kubernetes.io/")},
        # The same on every node: it is made of the PCI address alone.
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, bus)),
        "deviceID": f"0x{(gpu_products()[kind.gpu].device_id or '').lower()}",
        "vendorID": _NVIDIA_VENDOR,
        "productName": kind.pci_name,
        "iommuFDEnabled": True,
        "numa": numa,
    }
    return DevicePattern(
        Device(
            name=type_.device_name.format(index=minor),
            attributes=attributes_of(type_, values),
            capacity=capacity_of(type_, {"addressableMemory": kind.invented.addressable_memory}),
        )
    )


def gpu_uuid(attribute: str, minor: int) -> Seeded:
    """The UUID of a GPU, under the name of an attribute."""
    return Seeded(attribute, "GPU-", f"gpu-{minor}")


def parent_values(group: NodeGroup, minor: int) -> dict[str, Any]:
    """What a GPU and its MIG devices have in common, by the names of all release lines."""
    kind = group.kind
    product = gpu_products()[kind.gpu]
    bus, root, numa = kind.invented.pci[minor]
    assert kind.kernel_driver is not None  # noqa: S101  (a kind with a product has one; the data test checks it)
    return {
        "productName": kind.gpu,
        "brand": product.brand or kind.invented.brand or None,
        "architecture": product.architecture,
        "cudaComputeCapability": product.cuda_compute_capability,
        "driverVersion": kind.kernel_driver.driver_version,
        "cudaDriverVersion": kind.kernel_driver.cuda_driver_version,
        "addressingMode": product.addressing_mode,
        "resource.kubernetes.io/pciBusID": bus,
        "pcieBusID": bus,
        "resource.kubernetes.io/pcieRoot": root,
        "resource.kubernetes.io/numaNode": [numa] if "DRAListTypeAttributes" in group.gates else numa,
    }


def shared(device: Device, shares: str) -> Device:
    """The device with what the driver's value `consumableShares` adds (applyConsumableShares, driver 0.5)."""
    if not shares:
        return device
    capacity = dict(device.capacity or {})
    if memory := capacity.get("memory"):
        all_ = memory.value
        least = "1Mi" if shares == "memory" else "0"
        capacity["memory"] = _ranged(
            all_, default=all_ if shares == "memory" else "0", least=least, step="1Mi"
        )
        if shares.isdigit():
            capacity["shares"] = _ranged(shares, default="1", least="1", step="1")
    return device.changed({"allow_multiple_allocations": True, "capacity": capacity})


def _ranged(value: str, *, default: str, least: str, step: str) -> DeviceCapacity:
    return DeviceCapacity(
        value=value,
        request_policy=CapacityRequestPolicy(
            default=default, valid_range=CapacityRequestPolicyRange(min=least, max=value, step=step)
        ),
    )


def _fabric_values(group: NodeGroup, minor: int) -> dict[str, Any]:
    if "FabricManagerPartitioning" not in group.gates:
        return {}
    return dict(zip(_PARTITIONS, group.kind.invented.fabric[minor], strict=True))
