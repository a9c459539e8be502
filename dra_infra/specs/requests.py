"""Device requests, constraints between them, and classes by name, as people ask for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Literal, Protocol

from dra_infra.errors import InvalidSpecError
from dra_infra.selectors.attributes import Attribute
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import is_one_of, known_text
from dra_infra.specs.device_configs import DeviceConfig


class NumberOutput(Protocol):
    """A Pulumi Output of a number, for type checkers: nothing here knows Pulumi."""

    def apply(self, func: Callable[[int], Any], /) -> Any:
        """Return an Output of what *func* makes of the number."""


Count = int | Literal["all"] | NumberOutput | Awaitable[int]
"""How many devices: a number from 1 on, or every device of the node that the class and selectors match.

A number may be a Pulumi Input, and is checked as soon as it is known.
"""


class NamedClass:
    """Anything that names a DeviceClass: a `GpuDeviceClass`, or what `class_ref` returns."""

    object_name: Any
    """Name of the DeviceClass object: a string, or a Pulumi Output of one."""

    selects: tuple[str, str] | None = None
    """Driver and type of the devices, `("gpu.nvidia.com", "gpu")`; None where that is not known."""

    configs: Sequence[DeviceConfig] = ()
    """The configs of the class, as far as they are known."""

    extended_resource_name: str | None = None
    """What pods may ask for in place of a claim; None where there is no such name, or it is not known."""


class TextOutput(Protocol):
    """A Pulumi Output of a text, for type checkers: nothing here knows Pulumi."""

    def apply(self, func: Callable[[str], Any], /) -> Any:
        """Return an Output of what *func* makes of the text."""


ClassArgument = NamedClass | str | TextOutput
"""A DeviceClass: a component or `class_ref(...)`, or its name, which may be a Pulumi Output."""


def class_name_of(device_class: object) -> Any:
    """Return the name behind `device_class=`: a string, or a Pulumi Output of one."""
    return known_text(device_class.object_name if isinstance(device_class, NamedClass) else device_class)


@dataclass(frozen=True)
class ClassRef(NamedClass):
    """A DeviceClass that another program, a chart or a driver owns, by its name."""

    object_name: Any


def class_ref(name: Any) -> ClassRef:
    """Name a DeviceClass that this program does not make.

    Its selectors are not known here, so placement needs a fleet that carries the class (the built-in fleets carry
    the classes that their driver ships) or a file that stands in for it, else the answer says *class not known here*. `synth` warns of an unknown name
    that is given as a text, and not of one that is given by this.

    Args:
        name: Name of the DeviceClass, or a Pulumi Output of it such as a StackReference's.

    Example:
        >>> class_ref("gpu.nvidia.com").object_name
        'gpu.nvidia.com'
    """
    return ClassRef(name)


@dataclass(frozen=True, kw_only=True)
class Toleration:
    """Lets a request take devices with taints that match, such as those of a driver's health check.

    Needs the gate DRADeviceTaints, which is on by default from Kubernetes 1.36.

    Args:
        key: Key of the taint, `"gpu.nvidia.com/xid"`; empty matches all keys, and needs `operator="Exists"`.
        operator: `Exists` for any value, `Equal` for *value*.
        value: Value of the taint under `Equal`.
        effect: `NoSchedule` or `NoExecute`; None matches both for the scheduler, and does not keep pods from being evicted.
        seconds: How long a taint `NoExecute` is tolerated; None for ever.
    """

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str = ""
    effect: Literal["NoSchedule", "NoExecute"] | None = None
    seconds: int | None = None


@dataclass(frozen=True)
class Alternative:
    """One way to meet a request, of those that `DeviceRequest(first_available=[...])` lists.

    Args:
        name: Name of the alternative, a DNS label; configs and constraints refer to it as `request/alternative`.
        device_class: A `GpuDeviceClass`, `class_ref(...)`, or the name of a class.
        count: Number of devices, which may be a Pulumi Output, or `"all"` for every matching device of the node.
        select: A selector that each device must match, in addition to the class.
        tolerations: Device taints to tolerate, at most 16.
        capacity: What each device must have left, and what is taken of one that several claims share:
            `{"memory": "20Gi"}`.
    """

    name: str
    _: KW_ONLY
    device_class: ClassArgument
    count: Count = 1
    select: Selector | None = None
    tolerations: Sequence[Toleration] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceRequest:
    """One named request of a claim: devices of one class, or the first of several alternatives that can be had.

    Args:
        name: Name of the request, a DNS label; containers refer to it by `attach(..., request=name)`.
        device_class: A `GpuDeviceClass`, `class_ref(...)`, or the name of a class as a string.
        count: Number of devices, which may be a Pulumi Output, or `"all"` for every matching device of the node.
        select: A selector that each device must match, in addition to the class.
        first_available: Alternatives instead of a class, the best first, at most 8.
        tolerations: Device taints to tolerate, at most 16.
        capacity: What each device must have left, and what is taken of one that several claims share:
            `{"memory": "20Gi"}`. Needs the gate DRAConsumableCapacity, on by default from Kubernetes 1.36.
        admin_access: Look at devices that others use, for monitoring, in a namespace with the label
            `resource.kubernetes.io/admin-access: "true"`.
    """

    name: str
    _: KW_ONLY
    device_class: ClassArgument | None = None
    count: Count = 1
    select: Selector | None = None
    first_available: Sequence[Alternative] = ()
    tolerations: Sequence[Toleration] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    admin_access: bool = False


@dataclass(frozen=True)
class MatchAttribute:
    """All devices of the named requests (of all when none is named) have the same value of an attribute.

    Args:
        attribute: `dra.gpu.product`, or a name with its domain such as `"gpu.nvidia.com/productName"`.
        requests: Names of requests, alternatives as `request/alternative`; none for all.

    A device without the attribute never satisfies the constraint.
    """

    attribute: Attribute | str
    requests: Sequence[str] = ()


@dataclass(frozen=True)
class DistinctAttribute:
    """No two devices of the named requests (of all when none is named) have the same value of an attribute.

    Needs the gate DRAConsumableCapacity, which is on by default from Kubernetes 1.36.

    Args:
        attribute: `dra.gpu.pcie_root`, or a name with its domain.
        requests: Names of requests, alternatives as `request/alternative`; none for all.
    """

    attribute: Attribute | str
    requests: Sequence[str] = ()


Constraint = MatchAttribute | DistinctAttribute

_PAIRED_ON: Final = {
    "pcie-root": "resource.kubernetes.io/pcieRoot",
    "numa-node": "resource.kubernetes.io/numaNode",
}
"""Standard attributes that drivers of several vendors publish (k8s.io/dynamic-resource-allocation/deviceattribute)."""


def pair(
    *requests: DeviceRequest | str, on: Literal["pcie-root", "numa-node"] = "pcie-root"
) -> MatchAttribute:
    """Devices of several requests near each other, such as a GPU beside the network card that feeds it.

    Every driver must publish the attribute: NVIDIA's publishes the PCIe root in all releases and the NUMA node from 0.5
    on. A device without it, or with another one, is never paired.

    Args:
        requests: The requests, or their names.
        on: What the devices have in common.

    Raises:
        InvalidSpecError: `wrong-type` when *on* is none of the two.

    Example:
        >>> pair("gpu", "nic").attribute
        'resource.kubernetes.io/pcieRoot'
    """
    if not is_one_of(on, _PAIRED_ON):
        message = f"{on!r} is nothing that devices can be paired on"
        hint = f"write one of {', '.join(map(repr, _PAIRED_ON))}"
        raise InvalidSpecError.of(path="pair.on", code="wrong-type", message=message, hint=hint)
    names = [each.name if isinstance(each, DeviceRequest) else each for each in requests]
    return MatchAttribute(_PAIRED_ON[on], requests=names)
