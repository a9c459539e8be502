"""Device taints, tolerations and DeviceTaintRule (resource.k8s.io).

A DeviceTaintRule taints devices that a selector picks, whoever published them (resource.k8s.io/v1 since 1.37, v1beta2
since 1.36, v1alpha3).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dra_infra.kubernetes.api.device_class import API_VERSION, DeviceSelector
from dra_infra.kubernetes.api.metadata import Condition, ObjectMeta
from dra_infra.kubernetes.api.record import GoType, Integer, KubernetesObject, Record, Text, Time

TaintEffect = Annotated[Text, GoType("@.DeviceTaintEffect")]
"""`NoSchedule`, `NoExecute`, or `None`, which does nothing."""


class DeviceToleration(Record):
    """Lets a request take devices with matching taints; an empty operator means `Equal`, an empty effect all."""

    key: Text = ""
    operator: Annotated[Text, GoType("@.DeviceTolerationOperator")] = ""
    value: Text = ""
    effect: TaintEffect = ""
    toleration_seconds: Integer | None = None


class DeviceTaint(Record):
    """Keeps requests without a matching toleration away from the device."""

    WRITTEN_EMPTY = ("key", "effect")

    key: Text = ""
    value: Text = ""
    effect: TaintEffect = ""
    time_added: Time | None = None


class DeviceTaintSelector(Record):
    """Devices that a taint rule is for; every criterion that is given must match."""

    device_class_name: Text | None = None
    driver: Text | None = None
    pool: Text | None = None
    device: Text | None = None
    selectors: list[DeviceSelector] | None = None


class DeviceTaintRuleSpec(Record):
    """The taint, and the devices that get it; no selector means none."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = Field(default=DeviceTaint.empty())


class DeviceTaintRuleStatus(Record):
    """How far the eviction is."""

    conditions: list[Condition] | None = None


class DeviceTaintRule(KubernetesObject):
    """A taint that an administrator puts on devices, cluster-scoped."""

    WRITTEN_EMPTY = ("spec",)

    api_version: Literal["resource.k8s.io/v1"] = API_VERSION
    kind: Literal["DeviceTaintRule"] = "DeviceTaintRule"
    metadata: ObjectMeta = Field(default=ObjectMeta.empty())
    spec: DeviceTaintRuleSpec = Field(default=DeviceTaintRuleSpec.empty())
    status: DeviceTaintRuleStatus = Field(default_factory=DeviceTaintRuleStatus)
