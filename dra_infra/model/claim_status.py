"""The status of a ResourceClaim: which devices it got, who uses them, and how they are (resource.k8s.io/v1)."""

from typing import Annotated

from pydantic import Field

from dra_infra.model.device_class import Opaque
from dra_infra.model.metadata import Condition
from dra_infra.model.node_selector import NodeSelector
from dra_infra.model.record import (
    UID,
    GoType,
    QualifiedName,
    QuantityText,
    RawExtension,
    Record,
    Text,
    Time,
    Truth,
)
from dra_infra.model.toleration import DeviceToleration

SkipNodeOperation = Annotated[Text, GoType("@.SkipNodeOperation")]
"""`NodePrepareResources`, `NodeUnprepareResources` or `*`."""


class DeviceRequestAllocationResult(Record):
    """One device that was allocated for a request."""

    WRITTEN_EMPTY = ("request", "driver", "pool", "device")

    request: Text = ""
    driver: Text = ""
    pool: Text = ""
    device: Text = ""
    admin_access: Truth | None = None
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[Text] | None = None
    binding_failure_conditions: list[Text] | None = None
    share_id: UID | None = Field(default=None, alias="shareID")
    consumed_capacity: dict[QualifiedName, QuantityText] | None = None
    skip_node_operations: list[SkipNodeOperation] | None = None


class DeviceAllocationConfiguration(Record):
    """Configuration of allocated devices, and whether it comes from the claim or from a class."""

    WRITTEN_EMPTY = ("source",)

    source: Annotated[Text, GoType("@.AllocationConfigSource")] = ""
    requests: list[Text] | None = None
    opaque: Opaque = None


class DeviceAllocationResult(Record):
    """The devices of an allocation."""

    results: list[DeviceRequestAllocationResult] | None = None
    config: list[DeviceAllocationConfiguration] | None = None


class AllocationResult(Record):
    """What was allocated, and where it can be used; no node selector means everywhere."""

    devices: DeviceAllocationResult = Field(default=DeviceAllocationResult.empty())
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None


class ResourceClaimConsumerReference(Record):
    """An object, usually a pod, that may use the claim now."""

    WRITTEN_EMPTY = ("resource", "name", "uid")

    api_group: Text = ""
    resource: Text = ""
    name: Text = ""
    uid: UID = ""


class NetworkDeviceData(Record):
    """Network facts of an allocated device."""

    interface_name: Text = ""
    ips: list[Text] | None = None
    hardware_address: Text = ""


class AllocatedDeviceStatus(Record):
    """What the driver says about one allocated device."""

    WRITTEN_EMPTY = ("driver", "pool", "device", "conditions")

    driver: Text = ""
    pool: Text = ""
    device: Text = ""
    share_id: Text | None = Field(default=None, alias="shareID")
    conditions: list[Condition] | None = None
    data: RawExtension = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Record):
    """What became of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] | None = None
    devices: list[AllocatedDeviceStatus] | None = None
