"""GpuDeviceClass: a named set of GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from dra_infra.components.component import Component, present, reports_unknown_arguments
from dra_infra.components.kubernetes_object import KubernetesObject
from dra_infra.components.report import warn
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.selectors.selector import Selector
from dra_infra.specs.device_classes import NVIDIA_DRIVER, compile_class
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.requests import NamedClass
from dra_infra.target import ClusterTarget


class GpuDeviceClass(Component, NamedClass):
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
        object_name: Name of the DeviceClass object.

    Example:
        ```python
        h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100") & (dra.gpu.memory >= "79Gi"))
        ```
    """

    object_name: str | pulumi.Output[str]

    @reports_unknown_arguments
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
    ) -> None:
        super().__init__(name, inputs={"driver": driver}, target=target, opts=opts)
        given = self._judge_secrets(
            {"object_name": object_name, "labels": labels, "annotations": annotations},
            lambda judged: self._check_inputs(**judged),
        )
        object_name, labels, annotations = given.values()
        self.object_name = object_name if object_name is not None else name  # type: ignore[assignment]  # Input is wider
        problems = self._check_inputs(**given)
        if object_name is None:
            problems += check_object_name(name, path="name")
        problems += self._object_options.check(("DeviceClass",))
        problems += self._object_options.check_import(self.object_name)
        warnings: list[Problem] = []
        try:
            pins = self._pins(driver_release)
            problems += self._unknown_gates(pins, driver_gates)
            spec = compile_class(
                select,
                driver=driver,
                configs=configs,
                extended_resource_name=extended_resource_name,
                pins=pins,
                gates=driver_gates,
                warnings=warnings,
            )
        except InvalidSpecError as error:
            problems += error.problems
        if problems or self._broken:
            self._report(problems)
            self.register_outputs({})
            return
        self.selects = (driver, "gpu") if driver == NVIDIA_DRIVER else None
        self.configs = tuple(configs)
        self.extended_resource_name = extended_resource_name
        manifest = {
            **DeviceClass(spec=spec).to_manifest(),
            "metadata": present({"name": self.object_name, "labels": labels, "annotations": annotations}),
        }
        if not self._is_accepted(manifest):
            self.register_outputs({})
            return
        if driver_release is not None:
            # Advice on the object is for the stack's release, and cannot tell what another one does.
            warn(self, self.label, warnings)
        child = KubernetesObject(name, manifest, pulumi.ResourceOptions(parent=self))
        self.resources = {"DeviceClass": child}
        self.register_outputs({"objectName": self.object_name})
