"""Taints of devices and what tolerates them (resource.k8s.io/v1)."""

from typing import Annotated

from dra_infra.model.record import GoType, Integer, Record, Text, Time

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
