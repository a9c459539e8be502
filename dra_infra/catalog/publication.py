"""The nodes and slices of a named fleet: what the pinned release of its driver would publish there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dra_infra.catalog.drivers import DeviceType, DriverRelease, drivers
from dra_infra.catalog.records import FleetKind, gpu_products
from dra_infra.model.device_class import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from dra_infra.model.fleet import Node
from dra_infra.model.metadata import ObjectMeta
from dra_infra.model.quantity import Quantity
from dra_infra.model.resource_slice import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "fleets.dra-infra")
_SEEDED = "uuid"
"""The attribute that differs per node; all others are shared between the nodes of a kind."""


@dataclass(frozen=True, slots=True)
class _DevicePattern:
    """A device of every node of a kind, without what differs per node."""

    name: str
    uuid_prefix: str
    attributes: Mapping[str, DeviceAttribute]
    capacity: dict[str, DeviceCapacity]


def publish_nodes(name: str, kind: FleetKind, count: int) -> Iterator[tuple[Node, ResourceSlice]]:
    """The nodes of a fleet with their slices; names are padded with zeros so that they sort by number."""
    release = _release(kind)
    patterns = sorted(_device_patterns(kind, release.devices["gpu"]), key=lambda pattern: pattern.name)
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        **(_feature_labels(kind) if kind.gpu else {}),
    }
    width = len(str(count - 1))
    for index in range(count):
        node = f"{name}-{index:0{width}}"
        yield (
            Node(
                name=node,
                labels={**labels, "kubernetes.io/hostname": node},
                allocatable=kind.invented.node,
            ),
            _slice(node, release.driver, patterns),
        )


def shipped_classes(kind: FleetKind) -> list[DeviceClass]:
    """The DeviceClasses that the chart of the fleet's driver renders."""
    return [
        DeviceClass(
            metadata=ObjectMeta(name=shipped.name),
            spec=DeviceClassSpec(
                selectors=[DeviceSelector(cel=CELDeviceSelector(expression=shipped.expression))],
                extended_resource_name=shipped.extended_resource_name or None,
            ),
        )
        for shipped in _release(kind).classes
    ]


def _release(kind: FleetKind) -> DriverRelease:
    return drivers()[kind.driver].by_line[kind.line]


def _device_patterns(kind: FleetKind, type_: DeviceType) -> list[_DevicePattern]:
    return [
        _gpu_pattern(kind, type_, index) if kind.gpu else _example_pattern(type_, index)
        for index in range(kind.count)
    ]


def _gpu_pattern(kind: FleetKind, type_: DeviceType, minor: int) -> _DevicePattern:
    product = gpu_products()[kind.gpu]
    bus, root = kind.invented.pci[minor]
    assert kind.kernel_driver is not None  # noqa: S101  (a fleet with a product has one; the data test checks it)
    values = {
        "productName": kind.gpu,
        "brand": product.brand,
        "architecture": product.architecture,
        "cudaComputeCapability": product.cuda_compute_capability,
        "driverVersion": kind.kernel_driver.driver_version,
        "cudaDriverVersion": kind.kernel_driver.cuda_driver_version,
        "addressingMode": product.addressing_mode,
        "resource.kubernetes.io/pciBusID": bus,
        "resource.kubernetes.io/pcieRoot": root,
    }
    return _DevicePattern(
        name=type_.device_name.format(minor=minor),
        uuid_prefix="GPU-",
        attributes=_attributes(type_, values),
        capacity={"memory": DeviceCapacity(value=Quantity.parse(f"{product.memory_mib}Mi").canonical())},
    )


def _example_pattern(type_: DeviceType, index: int) -> _DevicePattern:
    return _DevicePattern(
        name=type_.device_name.format(index=index),
        uuid_prefix="gpu-",
        attributes=_attributes(type_, {"index": index}),
        capacity={
            _short(name, type_): DeviceCapacity(value=entry.sample) for name, entry in type_.capacity.items()
        },
    )


def _attributes(type_: DeviceType, values: Mapping[str, Any]) -> dict[str, DeviceAttribute]:
    """What every such device publishes, with the given values, and of what only some publish that which has one."""
    attributes = {}
    for qualified, entry in type_.attributes.items():
        name = _short(qualified, type_)
        value = values.get(name, entry.value if entry.value is not None else entry.sample or None)
        if name != _SEEDED and (value is not None or not entry.absent):
            attributes[name] = DeviceAttribute.model_validate({entry.type: value})
    return attributes


def _short(qualified: str, type_: DeviceType) -> str:
    """The name as the driver writes it into a slice."""
    return qualified.removeprefix(f"{type_.driver}/")


def _slice(node: str, driver: str, patterns: list[_DevicePattern]) -> ResourceSlice:
    # The driver's helper appends five random characters; these are fixed, so that output is.
    suffix = uuid.uuid5(_NAMESPACE, f"{node}/{driver}").hex[:5]
    # A large fleet holds a million devices: their parts are checked once, in the pattern, and not for every node.
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{node}-{driver}-{suffix}"),
        spec=ResourceSliceSpec.model_construct(
            driver=driver,
            pool=ResourcePool.model_construct(name=node, generation=1, resource_slice_count=1),
            node_name=node,
            devices=[_device(node, pattern) for pattern in patterns],
        ),
    )


def _device(node: str, pattern: _DevicePattern) -> Device:
    seeded = f"{pattern.uuid_prefix}{uuid.uuid5(_NAMESPACE, f'{node}/{pattern.name}')}"
    return Device.model_construct(
        name=pattern.name,
        attributes={**pattern.attributes, _SEEDED: DeviceAttribute.model_construct(string=seeded)},
        capacity=pattern.capacity,
    )


def _feature_labels(kind: FleetKind) -> dict[str, str]:
    """The labels of GPU feature discovery that people select nodes by."""
    product = gpu_products()[kind.gpu]
    major, minor, _ = product.cuda_compute_capability.split(".")
    return {
        "nvidia.com/cuda.driver-version.full": kind.kernel_driver.driver_version
        if kind.kernel_driver
        else "",
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.count": str(kind.count),
        "nvidia.com/gpu.family": product.architecture.lower().replace(" ", "-"),
        "nvidia.com/gpu.memory": str(product.memory_mib),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": kind.gpu.replace(" ", "-"),
        "nvidia.com/mig.capable": str(product.mig_capable).lower(),
    }
