"""GpuGuardrails: admission policies for what claims and pods may ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from dra_infra.components.component import Component, compiled_by
from dra_infra.specs.guardrails import plan_guardrails
from dra_infra.specs.requests import NamedClass
from dra_infra.target import ClusterTarget


class GpuGuardrails(Component):
    """ValidatingAdmissionPolicies for the whole cluster: what the API server refuses, whoever asks.

    They hold for claims and claim templates of every version of the API, for requests and their alternatives, and for claims that
    are made for pods. What is there already stays.

    Args:
        name: Name of the component, and what the names of the policies begin with.
        classes: Device classes that a namespace may use: `{"vision": [h100, "mig.nvidia.com"]}`. Pods that ask for a class as a
            resource, `deviceclass.resource.kubernetes.io/h100`, are held to it too. A namespace that is not named may use all.
        extended_resources: Extended resource names by which pods ask for classes that are not made here:
            `{"example.com/a100": "a100"}`. Those of a `GpuDeviceClass` in *classes* or here are known.
        most_devices: Devices that all requests of one claim may ask for, of alternatives the largest; All counts as 32.
        all_devices: False refuses requests for every device of a node.
        admin_access: Namespaces in which claims may have admin access: `[]` is none. Left out, the label of the namespace decides
            alone.
        admin_label: Who may set or take that label: `["group:platform", "user:alice@example.com"]`. Left out, whoever may change
            the Namespace.
        config_drivers: Drivers for which claims may bring a config of their own, which goes before that of the class: `[]` is none.
        without_device_plugin: Namespaces in which pods may not ask for `nvidia.com/gpu` and whatever else begins so.
        host_paths: Paths of nodes that pods of a namespace may mount by hostPath, as they are written:
            `{"vision": ["/mnt/datasets"]}`. Namespaces that are named here, in *classes* or in *without_device_plugin* may mount no
            other path, such as `/dev/nvidia0`, and their pods may not set `nodeName`.
        node_access: Namespaces whose pods may mount any path of their node and set `nodeName`, although *classes* or
            *without_device_plugin* names them: `["monitoring"]`.
        labels: Labels of the objects.
        annotations: Annotations of the objects.
        target: The cluster to compile for; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Example:
        ```python
        dra.GpuGuardrails("gpus", classes={"vision": [h100]}, most_devices=8, all_devices=False, admin_access=["monitoring"])
        ```
    """

    @compiled_by(plan_guardrails)
    def __init__(
        self,
        name: str,
        *,
        classes: Mapping[str, Sequence[NamedClass | str]] | None = None,
        most_devices: int | None = None,
        all_devices: bool = True,
        admin_access: Sequence[str] | None = None,
        admin_label: Sequence[str] | None = None,
        config_drivers: Sequence[str] | None = None,
        without_device_plugin: Sequence[str] = (),
        extended_resources: Mapping[str, NamedClass | str] | None = None,
        host_paths: Mapping[str, Sequence[str]] | None = None,
        node_access: Sequence[str] = (),
        labels: Mapping[str, pulumi.Input[str]] | None = None,
        annotations: Mapping[str, pulumi.Input[str]] | None = None,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...
