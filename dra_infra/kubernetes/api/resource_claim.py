"""ResourceClaim, its status, and ResourceClaimTemplate (resource.k8s.io/v1).

The status of a claim says which devices it got, who uses them, and how they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from dra_infra.kubernetes.api.device_class import API_VERSION, DeviceSelector, Opaque
from dra_infra.kubernetes.api.device_taints import DeviceToleration
from dra_infra.kubernetes.api.metadata import Condition, ObjectMeta
from dra_infra.kubernetes.api.record import (
    UID,
    Embedded,
    FullyQualifiedName,
    GoType,
    Integer,
    KubernetesObject,
    QualifiedName,
    QuantityText,
    RawExtension,
    Record,
    Text,
    Time,
    Truth,
)
from dra_infra.kubernetes.api.resource_slice import NodeSelector, SkipNodeOperation

CLAIM_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate")
"""Kinds of objects that ask for devices."""


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
    """Allocated devices, and the nodes where they can be used; no node selector means everywhere."""

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
    """The driver's report about one allocated device."""

    WRITTEN_EMPTY = ("driver", "pool", "device", "conditions")

    driver: Text = ""
    pool: Text = ""
    device: Text = ""
    share_id: Text | None = Field(default=None, alias="shareID")
    conditions: list[Condition] | None = None
    data: RawExtension = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Record):
    """Status of a claim: its allocation, who it is reserved for, and what drivers say of its devices."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] | None = None
    devices: list[AllocatedDeviceStatus] | None = None


AllocationMode = Annotated[Text, GoType("@.DeviceAllocationMode")]
"""`ExactCount` or `All`; empty means `ExactCount`."""


class CapacityRequirements(Record):
    """Least capacity per device, by qualified capacity name."""

    requests: dict[QualifiedName, QuantityText] | None = None


class DerivedAttribute(Record):
    """A virtual attribute, computed by CEL, for constraints only (1.37, gate DRADerivedAttributes)."""

    GO_NAME = "DeviceDerivedAttribute"
    WRITTEN_EMPTY = ("name", "expression")

    name: FullyQualifiedName = ""
    expression: Text = ""


class ExactDeviceRequest(Record):
    """Devices of one class. Each must pass every selector. A `count` of 0 means that none was written."""

    WRITTEN_EMPTY = ("device_class_name",)

    device_class_name: Text = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: AllocationMode = ""
    count: Integer = 0
    admin_access: Truth | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class DeviceSubRequest(Record):
    """One alternative of a prioritized list."""

    WRITTEN_EMPTY = ("name", "device_class_name")

    name: Text = ""
    device_class_name: Text = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: AllocationMode = ""
    count: Integer = 0
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class DeviceRequest(Record):
    """One named request: `exactly` one kind of devices, or the `first_available` of several."""

    WRITTEN_EMPTY = ("name",)

    name: Text = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None

    @property
    def leaves(self) -> Iterator[tuple[str, str, ExactDeviceRequest | DeviceSubRequest]]:
        """Yields each request, by itself or as one of alternatives: its name in results, its field, and its record."""
        if self.exactly is not None:
            yield self.name, "exactly", self.exactly
        for index, entry in enumerate(self.first_available or ()):
            yield f"{self.name}/{entry.name}", f"firstAvailable[{index}]", entry


class DeviceConstraint(Record):
    """An attribute that the devices of the named requests (all when none is named) must share, or differ in."""

    requests: list[Text] | None = None
    match_attribute: FullyQualifiedName | None = None
    distinct_attribute: FullyQualifiedName | None = None


class DeviceClaimConfiguration(Record):
    """Driver configuration for the devices of the named requests; ignored while allocating."""

    requests: list[Text] | None = None
    opaque: Opaque = None


class DeviceClaim(Record):
    """The devices part of a claim."""

    WRITTEN_EMPTY = ("requests",)

    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[DeviceClaimConfiguration] | None = None


class ResourceClaimSpec(Record):
    """Spec of a claim: the devices that it asks for; immutable on the server."""

    WRITTEN_EMPTY = ("devices",)

    devices: DeviceClaim = Field(default=DeviceClaim.empty())


class ResourceClaim(KubernetesObject):
    """Devices that live independently of a pod; several pods may share them."""

    WRITTEN_EMPTY = ("spec",)

    api_version: Literal["resource.k8s.io/v1"] = API_VERSION
    kind: Literal["ResourceClaim"] = "ResourceClaim"
    metadata: ObjectMeta = Field(default=ObjectMeta.empty())
    spec: ResourceClaimSpec = Field(default=ResourceClaimSpec.empty())
    status: ResourceClaimStatus = Field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(Record):
    """Labels, annotations and spec of each generated claim."""

    WRITTEN_EMPTY = ("spec",)

    metadata: Annotated[ObjectMeta, Embedded("ObjectMeta", is_field=True)] = Field(default=ObjectMeta.empty())
    spec: ResourceClaimSpec = Field(default=ResourceClaimSpec.empty())


class ResourceClaimTemplate(KubernetesObject):
    """From this the control plane makes one claim per pod and entry."""

    WRITTEN_EMPTY = ("spec",)

    api_version: Literal["resource.k8s.io/v1"] = API_VERSION
    kind: Literal["ResourceClaimTemplate"] = "ResourceClaimTemplate"
    metadata: ObjectMeta = Field(default=ObjectMeta.empty())
    spec: ResourceClaimTemplateSpec = Field(default=ResourceClaimTemplateSpec.empty())
