"""The hand-written rules for what a device counts against its node (validateNodeAllocatableResources, validation.go)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dra_infra.model.device import (
    Device,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResourceMapping,
)
from dra_infra.model.go_json import go_json
from dra_infra.model.go_quantity import Amount
from dra_infra.model.target import Release
from dra_infra.validation.field_errors import FieldError, Printed, invalid, not_found, required

_POSITIVE = "must be positive"


def check_node_resources(device: Device, path: str, release: Release) -> Iterator[FieldError]:
    """Check what *device* says of cpu, memory and huge pages of its node; 1.36 has it in another shape."""
    keys = device.capacity or {}
    if release.number >= 37:
        yield from _check_resources(device, f"{path}.nodeAllocatableResources", keys)
    else:
        for name, mapping in (device.node_allocatable_resource_mappings or {}).items():
            at = f"{path}.nodeAllocatableResourceMappings[{name}]"
            if "/" in name and "kubernetes.io/" not in name:
                yield _no_node_resource(name, at)
            yield from _check_old_mapping(mapping, at, keys)


def _no_node_resource(name: str, path: str) -> FieldError:
    return invalid(
        "node-resources.name", path, Printed(go_json(name)), "must be a node allocatable resource name"
    )


def _check_resources(device: Device, path: str, keys: Collection[str]) -> Iterator[FieldError]:
    for name, resource in (device.node_allocatable_resources or {}).items():
        at = f"{path}[{name}]"
        if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
            yield _no_node_resource(name, at)
        if resource.mapping is None and resource.overhead is None:
            yield required("node-resources.empty", at, "at least one of mapping or overhead must be set")
        if resource.mapping is not None:
            yield from _check_mapping(resource.mapping, f"{at}.mapping", keys)
        if resource.overhead is not None:
            yield from _check_overhead(resource.overhead, f"{at}.overhead")


def _check_old_mapping(
    mapping: NodeAllocatableResourceMapping, path: str, keys: Collection[str]
) -> Iterator[FieldError]:
    yield from _check_positive(mapping.allocation_multiplier, f"{path}.allocationMultiplier")
    yield from _check_key(mapping.capacity_key, f"{path}.capacityKey", keys)


def _check_mapping(mapping: NodeAllocatableMapping, path: str, keys: Collection[str]) -> Iterator[FieldError]:
    multiplier = mapping.capacity_multiplier
    if mapping.capacity_key is not None:
        yield from _check_key(mapping.capacity_key, f"{path}.capacityKey", keys)
        if multiplier is None:
            told = "capacityMultiplier is required when capacityKey is set"
            yield required("node-resources.multiplier-required", f"{path}.capacityMultiplier", told)
        yield from _check_positive(multiplier, f"{path}.capacityMultiplier")
    elif multiplier is not None:
        told = "capacityKey is required when capacityMultiplier is set"
        yield required("node-resources.key-required", f"{path}.capacityKey", told)
    yield from _check_positive(mapping.device_multiplier, f"{path}.deviceMultiplier")


def _check_key(key: str | None, path: str, keys: Collection[str]) -> Iterator[FieldError]:
    if key == "":
        told = "capacityKey must not be an empty string"
        yield invalid("node-resources.key-empty", path, "", told)
    elif key is not None and key not in keys:
        yield not_found("node-resources.key-unknown", path, Printed(go_json(key)))


def _check_positive(amount: str | None, path: str) -> Iterator[FieldError]:
    if amount is not None and (read := Amount(amount)).value <= 0:
        yield invalid("node-resources.positive", path, str(read), _POSITIVE)


def _check_overhead(overhead: NodeAllocatableOverhead, path: str) -> Iterator[FieldError]:
    if overhead.per_pod is None and overhead.per_container is None:
        told = "at least one of perPod or perContainer must be set"
        yield invalid("node-resources.overhead-empty", path, "", told)
    for name, amount in (("perPod", overhead.per_pod), ("perContainer", overhead.per_container)):
        if amount is not None and (read := Amount(amount)).value < 0:
            yield invalid(
                "node-resources.overhead-negative", f"{path}.{name}", str(read), "must be non-negative"
            )
