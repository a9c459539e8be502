"""ResourceSlice: the devices that a driver publishes (resource.k8s.io/v1)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from dra_infra.model.device_class import API_VERSION
from dra_infra.model.metadata import ObjectMeta
from dra_infra.model.record import Record


class DeviceAttribute(Record):
    """One value of an attribute: exactly one field is set."""

    int_: int | None = Field(default=None, alias="int")
    bool_: bool | None = Field(default=None, alias="bool")
    string: str | None = None
    version: str | None = None
    ints: list[int] | None = None
    bools: list[bool] | None = None
    strings: list[str] | None = None
    versions: list[str] | None = None


class DeviceCapacity(Record):
    """An amount that the device offers, and how much of it a request takes."""

    value: str
    request_policy: dict[str, Any] | None = None


class DeviceTaint(Record):
    """Keeps requests without a matching toleration away from the device."""

    key: str
    value: str | None = None
    effect: str
    time_added: str | None = None


class Device(Record):
    """One device. Attribute and capacity names without a domain belong to the driver's domain."""

    # Counters, binding conditions and the like are kept as read until the allocator models them.
    model_config = ConfigDict(extra="allow")

    name: str
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    taints: list[DeviceTaint] | None = None


class ResourcePool(Record):
    """The pool that a slice is part of; complete when `resource_slice_count` slices of a generation are there."""

    name: str
    generation: int = 1
    resource_slice_count: int = 1


class ResourceSliceSpec(Record):
    """Devices of one driver and pool, and the nodes from which they can be used."""

    # Shared counters and newer fields are kept as read until the allocator models them.
    model_config = ConfigDict(extra="allow")

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: dict[str, Any] | None = None
    all_nodes: bool | None = None
    devices: list[Device] | None = None


class ResourceSlice(Record):
    """One published list of devices, cluster-scoped."""

    api_version: Literal["resource.k8s.io/v1"] = API_VERSION
    kind: Literal["ResourceSlice"] = "ResourceSlice"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: ResourceSliceSpec
