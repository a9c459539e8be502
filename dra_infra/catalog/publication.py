"""The nodes and slices of a group: what the release of its driver would publish there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dra_infra.catalog.compute_domain_publication import compute_domain_release, publish_compute_domains
from dra_infra.catalog.device_patterns import DevicePattern, PoolPattern, SlicePattern, by_name
from dra_infra.catalog.example_publication import publish_example
from dra_infra.catalog.gpu_publication import vfio_device, whole_gpu
from dra_infra.catalog.mig_publication import publish_dynamic_mig, static_mig_devices
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.catalog.node_labels import group_labels, rack_labels
from dra_infra.model.device_class import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from dra_infra.model.fleet import Node
from dra_infra.model.metadata import ObjectMeta
from dra_infra.model.resource_slice import (
    Device,
    DeviceAttribute,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "fleets.dra-infra")
_TEXT = DeviceAttribute(string="")


class _Prototype(NamedTuple):
    """A slice of every node; a node's own differs in names and seeded attributes."""

    devices: tuple[DevicePattern, ...]
    slice: ResourceSlice


def pools_of(group: NodeGroup, *, separate_counters: bool = True) -> tuple[PoolPattern, ...]:
    """What every node of a group publishes, per driver.

    Args:
        group: The nodes.
        separate_counters: Whether counter sets are in a slice of their own, as from Kubernetes 1.35 on.
    """
    if not group.kind.gpu:
        return (publish_example(group),)
    gpus = (
        publish_dynamic_mig(group, separate_counters=separate_counters)
        if "DynamicMIG" in group.gates
        else _publish_gpus(group)
    )
    return (gpus, publish_compute_domains(group.line)) if group.compute_domains else (gpus,)


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
