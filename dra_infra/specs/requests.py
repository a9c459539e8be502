"""What people ask for: device requests, constraints between them, and classes by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from dra_infra.cel import Attribute, Selector

Count = int | Literal["all"]
"""How many devices: a number from 1 on, or every device of the node that the class and selectors match."""


class NamedClass:
    """Anything that names a DeviceClass: a `GpuDeviceClass`, or what `class_ref` returns."""

    object_name: Any
    """Name of the DeviceClass object: a string, or a Pulumi Output of one."""


@dataclass(frozen=True)
class ClassRef(NamedClass):
    """A DeviceClass that another program, a chart or a driver owns, by its name."""

    object_name: Any


def class_ref(name: Any) -> ClassRef:
    """Name a DeviceClass that this program does not make.

    Its selectors are not known here, so placement needs a fleet that carries the class (the built-in fleets carry
    the classes that their driver ships), else the answer says *class not known here*.

    Args:
        name: Name of the DeviceClass, or a Pulumi Output of it such as a StackReference's.

    Example:
        >>> class_ref("gpu.nvidia.com").object_name
        'gpu.nvidia.com'
    """
    return ClassRef(name)


@dataclass(frozen=True)
class DeviceRequest:
    """One named request of a claim.

    Args:
        name: Name of the request, a DNS label; containers refer to it by `attach(..., request=name)`.
        device_class: A `GpuDeviceClass`, `class_ref(...)`, or the name of a class as a string.
        count: Number of devices, or `"all"` for every matching device of the node.
        select: What each device must pass beyond the class.
    """

    name: str
    _: KW_ONLY
    device_class: NamedClass | str
    count: Count = 1
    select: Selector | None = None


@dataclass(frozen=True)
class MatchAttribute:
    """All devices of the named requests (of all when none is named) have the same value of an attribute.

    Args:
        attribute: `dra.gpu.product`, or a name with its domain such as `"gpu.nvidia.com/productName"`.
        requests: Names of requests.

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
        requests: Names of requests.
    """

    attribute: Attribute | str
    requests: Sequence[str] = ()


Constraint = MatchAttribute | DistinctAttribute
