"""DeviceTaint: a taint that an administrator puts on devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pulumi

from dra_infra.components.component import ObjectComponent, compiled_by
from dra_infra.specs.device_taints import plan_device_taint
from dra_infra.target import ClusterTarget


class DeviceTaint(ObjectComponent):
    """A DeviceTaintRule: devices that are kept from pods, or whose pods are evicted, for as long as the rule is there.

    It needs the gate DRADeviceTaintRules, which is on by default from Kubernetes 1.37. A pod that the effect `NoExecute` evicts is
    deleted, and PodDisruptionBudgets do not count. `dra-infra drain` writes such rules by hand, and shows first whose pods go.

    Args:
        name: Name of the component, and of the object unless `object_name` is given.
        key: Key of the taint, `"example.com/service"`, that claims tolerate.
        value: Value of the taint.
        effect: `NoExecute` evicts pods and keeps others away, `NoSchedule` keeps others away, and `None`, since 1.35, does nothing:
            the status of the rule then says how many pods would be evicted.
        driver: The driver of the devices.
        pool: Their pool, which is the name of the node for devices of one.
        device: Name of one device.
        object_name: Name of the DeviceTaintRule object; the component's name when left out.
        labels: Labels of the object.
        annotations: Annotations of the object.
        target: The cluster to compile for; else the parent's, else the stack's. It has to name a minor.
        opts: Pulumi resource options.

    Example:
        ```python
        dra.DeviceTaint("service-gpu-3", driver="gpu.nvidia.com", pool="node-7", device="gpu-3", key="example.com/service")
        ```
    """

    @compiled_by(plan_device_taint)
    def __init__(
        self,
        name: str,
        *,
        key: str,
        value: str = "",
        effect: Literal["None", "NoSchedule", "NoExecute"] = "NoExecute",
        driver: str | None = None,
        pool: str | None = None,
        device: str | None = None,
        object_name: pulumi.Input[str] | None = None,
        labels: Mapping[str, pulumi.Input[str]] | None = None,
        annotations: Mapping[str, pulumi.Input[str]] | None = None,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...
