"""ResourceClaim and ResourceClaimTemplate (resource.k8s.io/v1)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dra_infra.model.device_class import API_VERSION, DeviceSelector, OpaqueDeviceConfiguration
from dra_infra.model.metadata import ObjectMeta
from dra_infra.model.record import Record

AllocationMode = Literal["ExactCount", "All"]


class DeviceToleration(Record):
    """Lets a request take devices with matching taints."""

    key: str | None = None
    operator: Literal["Equal", "Exists"] | None = None
    value: str | None = None
    effect: Literal["None", "NoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class CapacityRequirements(Record):
    """Least capacity per device, by qualified capacity name."""

    requests: dict[str, str] | None = None


class DerivedAttribute(Record):
    """A virtual attribute, computed by CEL, for constraints only (1.37, gate DRADerivedAttributes)."""

    name: str
    expression: str


class ExactDeviceRequest(Record):
    """Devices of one class, all of which must pass every selector."""

    device_class_name: str
    selectors: list[DeviceSelector] | None = None
    allocation_mode: AllocationMode | None = None
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class DeviceSubRequest(Record):
    """One alternative of a prioritized list."""

    name: str
    device_class_name: str
    selectors: list[DeviceSelector] | None = None
    allocation_mode: AllocationMode | None = None
    count: int | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class DeviceRequest(Record):
    """One named request: `exactly` one kind of devices, or the `first_available` of several."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None


class DeviceConstraint(Record):
    """What the devices of the named requests (all when none is named) must share, or must not share."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Record):
    """Driver configuration for the devices of the named requests; ignored while allocating."""

    requests: list[str] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Record):
    """The devices part of a claim."""

    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[DeviceClaimConfiguration] | None = None


class ResourceClaimSpec(Record):
    """What is asked for; immutable on the server."""

    devices: DeviceClaim = Field(default_factory=DeviceClaim)


class ResourceClaim(Record):
    """Devices that live independently of a pod; several pods may share them."""

    api_version: Literal["resource.k8s.io/v1"] = API_VERSION
    kind: Literal["ResourceClaim"] = "ResourceClaim"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = Field(default_factory=ResourceClaimSpec)
    status: dict[str, Any] | None = None


class ResourceClaimTemplateSpec(Record):
    """What each generated claim gets: labels and annotations, and the claim's spec."""

    metadata: ObjectMeta | None = None
    spec: ResourceClaimSpec = Field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(Record):
    """From this the control plane makes one claim per pod and entry."""

    api_version: Literal["resource.k8s.io/v1"] = API_VERSION
    kind: Literal["ResourceClaimTemplate"] = "ResourceClaimTemplate"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: ResourceClaimTemplateSpec = Field(default_factory=ResourceClaimTemplateSpec)
