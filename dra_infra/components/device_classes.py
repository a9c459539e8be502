"""GpuDeviceClass: a named set of GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from dra_infra.components.component import ObjectComponent, compiled_by
from dra_infra.components.known_outputs import holds_unknown, output_of, text_of
from dra_infra.components.kubernetes_object import KubernetesObject
from dra_infra.errors import Problem
from dra_infra.selectors.selector import Selector
from dra_infra.specs.component_plans import PlannedObject
from dra_infra.specs.device_classes import NVIDIA_DRIVER, plan_device_class
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.requests import NamedClass
from dra_infra.target import ClusterTarget


class GpuDeviceClass(ObjectComponent, NamedClass):
    """A DeviceClass: the GPUs of one driver that pass a selector, under a name that claims refer to.

    A class is cluster-scoped and its spec can change in place; claims that are already allocated keep their devices.

    Args:
        name: Name of the component, and of the object unless `object_name` is given.
        select: What each GPU must pass, such as `dra.gpu.product.contains("H100")`. None takes all of the driver's.
        driver: The DRA driver. For `gpu.nvidia.com` the class takes whole GPUs, as the driver's own class does.
        configs: How the driver sets the GPUs up, unless a claim says otherwise:
            `[dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))]`.
        extended_resource_name: What pods may ask for in place of a claim, such as `example.com/h100`. Needs the gate
            DRAExtendedResource, on by default from Kubernetes 1.36.
        driver_release: Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest.
        driver_gates: Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": True}`. What needs a
            gate is checked against them; left out, nothing is said of gates.
        object_name: Name of the DeviceClass object; the component's name when left out.
        labels: Labels of the object.
        annotations: Annotations of the object.
        target: The cluster to compile for; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Attributes:
        driver: Name of the driver of the devices.
        object_name: Name of the DeviceClass object.

    Example:
        ```python
        h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100") & (dra.gpu.memory >= "79Gi"))
        ```
    """

    driver: pulumi.Output[str]
    object_name: pulumi.Output[str]

    @compiled_by(plan_device_class)
    def __init__(
        self,
        name: str,
        *,
        select: Selector | None = None,
        driver: str = NVIDIA_DRIVER,
        configs: Sequence[DeviceConfig] = (),
        extended_resource_name: str | None = None,
        driver_release: str | None = None,
        driver_gates: Mapping[str, bool] | None = None,
        object_name: pulumi.Input[str] | None = None,
        labels: Mapping[str, pulumi.Input[str]] | None = None,
        annotations: Mapping[str, pulumi.Input[str]] | None = None,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...

    def _show(self, name: str, arguments: Mapping[str, Any]) -> None:
        super()._show(name, arguments)
        self.driver = output_of(arguments["driver"])

    def _make_objects(self, objects: Sequence[PlannedObject]) -> dict[str, KubernetesObject]:
        made = super()._make_objects(objects)
        name = text_of(self.object_name)
        if name is None or holds_unknown(name):
            self.object_name = made["DeviceClass"].returned_name
        return made

    def _check_options(self) -> list[Problem]:
        return [
            *self._object_options.check(("DeviceClass",)),
            *self._object_options.check_import(self.object_name),
        ]
