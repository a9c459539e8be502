"""Device: what a driver says about one device, and what it takes from counters (resource.k8s.io/v1)."""

from types import MappingProxyType
from typing import Annotated

from pydantic import ConfigDict, Field

from dra_infra.model.node_selector import NodeSelector
from dra_infra.model.record import (
    GoType,
    Integer,
    QualifiedName,
    QuantityText,
    Record,
    ResourceName,
    Text,
    Truth,
)
from dra_infra.model.toleration import DeviceTaint

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
    """What an allocated device takes from a counter set."""

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
    """What a device costs of a node's resource besides."""

    per_pod: QuantityText | None = None
    per_container: QuantityText | None = None


class NodeAllocatableResource(Record):
    """How a device counts against a resource of its node."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class NodeAllocatableResourceMapping(Record):
    """What 1.36 had in place of NodeAllocatableResource."""

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
