"""ResourceSlice: the devices that a driver publishes for a pool (resource.k8s.io/v1).

A Device is what a driver says about one device, and what it takes from counters. A NodeSelector (k8s.io/api/core/v1)
says which nodes devices can be used from.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from dra_infra.kubernetes.api.device_class import API_VERSION
from dra_infra.kubernetes.api.device_taints import DeviceTaint
from dra_infra.kubernetes.api.metadata import ObjectMeta
from dra_infra.kubernetes.api.record import (
    CoreRecord,
    FullyQualifiedName,
    GoType,
    Integer,
    KubernetesObject,
    QualifiedName,
    QuantityText,
    Record,
    ResourceName,
    Text,
    Truth,
)


class NodeSelectorRequirement(CoreRecord):
    """A test of one label or field of a node."""

    TAGGED_INSIDE = False
    WRITTEN_EMPTY = ("key", "operator")

    key: Text = ""
    operator: Annotated[Text, GoType("v1.NodeSelectorOperator")] = ""
    values: list[Text] | None = None


class NodeSelectorTerm(CoreRecord):
    """Tests that must all be true."""

    TAGGED_INSIDE = False

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(CoreRecord):
    """Terms of which one must be true."""

    TAGGED_INSIDE = False
    WRITTEN_EMPTY = ("node_selector_terms",)

    node_selector_terms: list[NodeSelectorTerm] | None = None


SkipNodeOperation = Annotated[Text, GoType("@.SkipNodeOperation")]
"""`NodePrepareResources`, `NodeUnprepareResources` or `*`."""


class DeviceAttribute(Record):
    """The value of an attribute: exactly one field is set."""

    GO_FIELDS = MappingProxyType(
        {
            "int": "IntValue",
            "bool": "BoolValue",
            "string": "StringValue",
            "version": "VersionValue",
            "ints": "IntValues",
            "bools": "BoolValues",
            "strings": "StringValues",
            "versions": "VersionValues",
        }
    )

    int_: Integer | None = Field(default=None, alias="int")
    bool_: Truth | None = Field(default=None, alias="bool")
    string: Text | None = None
    version: Text | None = None
    ints: list[Integer] | None = None
    bools: list[Truth] | None = None
    strings: list[Text] | None = None
    versions: list[Text] | None = None


class CapacityRequestPolicyRange(Record):
    """Amounts from `min` to `max` in steps."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(Record):
    """How much of a capacity one request of a shareable device takes."""

    WRITTEN_EMPTY = ("default",)

    default: QuantityText | None = None
    valid_values: list[QuantityText] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Record):
    """An amount that the device offers, and how much of it a request takes."""

    WRITTEN_EMPTY = ("value",)

    value: QuantityText = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(Record):
    """An amount of something that devices share."""

    WRITTEN_EMPTY = ("value",)

    value: QuantityText = "0"


class CounterSet(Record):
    """Counters that the devices of a pool draw on."""

    WRITTEN_EMPTY = ("name",)

    name: Text = ""
    counters: dict[Text, Counter] | None = None


class DeviceCounterConsumption(Record):
    """Counters of one counter set that an allocated device takes."""

    WRITTEN_EMPTY = ("counter_set",)

    counter_set: Text = ""
    counters: dict[Text, Counter] | None = None
    compatibility_groups: list[Text] | None = None


class NodeAllocatableMapping(Record):
    """How much of a node's resource the device stands for."""

    capacity_key: QualifiedName | None = None
    capacity_multiplier: QuantityText | None = None
    device_multiplier: QuantityText | None = None


class NodeAllocatableOverhead(Record):
    """Amounts of a node's resource that a device costs besides."""

    per_pod: QuantityText | None = None
    per_container: QuantityText | None = None


class NodeAllocatableResource(Record):
    """How a device counts against a resource of its node."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class NodeAllocatableResourceMapping(Record):
    """A resource of the node that a device counts against, as 1.36 had it in place of NodeAllocatableResource."""

    capacity_key: QualifiedName | None = None
    allocation_multiplier: QuantityText | None = None


class Device(Record):
    """One device. Attribute and capacity names without a domain belong to the driver's domain."""

    # A placement has to see that a device of a newer cluster has fields that it does not know.
    model_config = ConfigDict(extra="allow")

    WRITTEN_EMPTY = ("name",)

    name: Text = ""
    attributes: dict[QualifiedName, DeviceAttribute] | None = None
    capacity: dict[QualifiedName, DeviceCapacity] | None = None
    consumes_counters: list[DeviceCounterConsumption] | None = None
    node_name: Text | None = None
    node_selector: NodeSelector | None = None
    all_nodes: Truth | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: Truth | None = None
    binding_conditions: list[Text] | None = None
    binding_failure_conditions: list[Text] | None = None
    allow_multiple_allocations: Truth | None = None
    node_allocatable_resource_mappings: dict[ResourceName, NodeAllocatableResourceMapping] | None = None
    node_allocatable_resources: dict[ResourceName, NodeAllocatableResource] | None = None


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
