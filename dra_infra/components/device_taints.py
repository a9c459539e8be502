"""DeviceTaint: a taint that an administrator puts on devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pulumi

from dra_infra.components.component import Component, present, reports_unknown_arguments
from dra_infra.components.kubernetes_object import KubernetesObject
from dra_infra.specs.device_taints import check_taint_rule, compile_taint_rule
from dra_infra.specs.object_names import check_object_name
from dra_infra.target import ClusterTarget


class DeviceTaint(Component):
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

    object_name: str | pulumi.Output[str]

    @reports_unknown_arguments
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
    ) -> None:
        super().__init__(name, inputs={}, target=target, opts=opts)
        given = self._judge_secrets(
            {"object_name": object_name, "labels": labels, "annotations": annotations},
            lambda judged: self._check_inputs(**judged),
        )
        self.object_name = name if object_name is None else given["object_name"]
        selector = {"driver": driver, "pool": pool, "device": device}
        taint = {"key": key, "value": value, "effect": effect}
        self._report(
            [
                *self._check_inputs(**given),
                *(check_object_name(name, path="name") if object_name is None else ()),
                *check_taint_rule({**selector, **taint}, self.target),
            ]
        )
        if self._broken or self.target.kubernetes is None:
            self.register_outputs({})
            return
        metadata = present(
            {"name": self.object_name, "labels": given["labels"], "annotations": given["annotations"]}
        )
        manifest = compile_taint_rule(taint, selector, metadata, release=self.target.releases[0])
        if not self._is_accepted(manifest):
            self.register_outputs({})
            return
        child = KubernetesObject(name, manifest, pulumi.ResourceOptions(parent=self))
        self.resources = {"DeviceTaintRule": child}
        self.register_outputs({"objectName": self.object_name})
