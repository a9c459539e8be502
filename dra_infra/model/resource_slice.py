"""ResourceSlice: the devices that a driver publishes for a pool (resource.k8s.io/v1)."""

from typing import Literal

from pydantic import ConfigDict, Field

from dra_infra.model.device import CounterSet, Device, DeviceAttribute, DeviceCapacity, SkipNodeOperation
from dra_infra.model.device_class import API_VERSION
from dra_infra.model.metadata import ObjectMeta
from dra_infra.model.node_selector import NodeSelector
from dra_infra.model.record import FullyQualifiedName, Integer, KubernetesObject, Record, Text, Truth
from dra_infra.model.toleration import DeviceTaint

__all__ = [
    "CounterSet",
    "Device",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceTaint",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]


class ResourcePool(Record):
    """The pool that a slice is part of; complete when `resource_slice_count` slices of a generation are there."""

    WRITTEN_EMPTY = ("name", "generation", "resource_slice_count")

    name: Text = ""
    generation: Integer = 0
    resource_slice_count: Integer = 0


class ResourceSliceSpec(Record):
    """Devices of one driver and pool, and the nodes from which they can be used."""

    # A placement has to see that a slice of a newer cluster has fields that it does not know.
    model_config = ConfigDict(extra="allow")

    WRITTEN_EMPTY = ("driver", "pool")

    driver: Text = ""
    pool: ResourcePool = Field(default=ResourcePool.empty())
    node_name: Text | None = None
    node_selector: NodeSelector | None = None
    all_nodes: Truth | None = None
    devices: list[Device] | None = None
    per_device_node_selection: Truth | None = None
    shared_counters: list[CounterSet] | None = None
    partition_type_attribute: FullyQualifiedName | None = None
    skip_node_operations: list[SkipNodeOperation] | None = None


class ResourceSlice(KubernetesObject):
    """One published list of devices, cluster-scoped."""

    WRITTEN_EMPTY = ("spec",)

    api_version: Literal["resource.k8s.io/v1"] = API_VERSION
    kind: Literal["ResourceSlice"] = "ResourceSlice"
    metadata: ObjectMeta = Field(default=ObjectMeta.empty())
    spec: ResourceSliceSpec = Field(default=ResourceSliceSpec.empty())
