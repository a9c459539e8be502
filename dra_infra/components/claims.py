"""GpuClaim and GpuClaimTemplate: devices for pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from dra_infra.components.arguments import ClaimArgs, takes
from dra_infra.components.component import compiled_by
from dra_infra.components.device_claims import DeviceClaimComponent
from dra_infra.selectors.selector import Selector
from dra_infra.specs.claims import AskedDevices, ask_for_devices
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.requests import (
    Alternative,
    ClassArgument,
    Constraint,
    Count,
    DeviceRequest,
    Toleration,
)


class _RequestedDevices(DeviceClaimComponent):
    """Base of `GpuClaim` and `GpuClaimTemplate`, which take the same arguments."""

    _is_abstract = True

    @compiled_by(ask_for_devices)
    @takes(ClaimArgs)
    def __init__(
        self,
        name: str,
        *,
        device_class: ClassArgument | None = None,
        count: Count | None = None,
        select: Selector | None = None,
        first_available: Sequence[Alternative] | None = None,
        tolerations: Sequence[Toleration] | None = None,
        capacity: Mapping[str, str] | None = None,
        admin_access: bool | None = None,
        requests: Sequence[DeviceRequest] | None = None,
        constraints: Sequence[Constraint] = (),
        configs: Sequence[DeviceConfig] = (),
        **common: Unpack[ClaimArgs],
    ) -> None: ...


class GpuClaim(_RequestedDevices):
    """A ResourceClaim: devices that live independently of pods; pods that refer to it share them, on one node.

    Arguments and outputs are those of `GpuClaimTemplate`.
    """

    def _make(self, asked: AskedDevices) -> None:
        super()._make(replace(asked, shared=True))


class GpuClaimTemplate(_RequestedDevices):
    """A ResourceClaimTemplate: every pod that refers to it gets devices of its own.

    The 90 % case needs no list: `device_class`, `count`, `select` make one request, named `gpu`. `requests` is for
    the rest and excludes them.

    Args:
        name: Name of the component, of the pods' entry, and the stem of the object's name: a DNS label.
        device_class: A `GpuDeviceClass`, `dra.class_ref(...)`, or the name of a class.
        count: Number of devices, at most 32 (1 when left out), or `"all"` for every matching device of a node. An Output is checked
            as soon as its value is known.
        select: A selector that each device must match, in addition to the class.
        first_available: Alternatives instead of a class, the best first: `dra.Alternative("h100", device_class=...)`.
        tolerations: Device taints to tolerate: `[dra.Toleration(key="gpu.nvidia.com/xid", effect="NoSchedule")]`. Needs the gate
            DRADeviceTaints, on by default from Kubernetes 1.36.
        capacity: What each device must have left, and what is taken of one that several claims share, as Kubernetes
            quantities: `{"memory": "20Gi"}`. Needs the gate DRAConsumableCapacity, on by default from Kubernetes 1.36.
        admin_access: Look at devices that others use, for monitoring, in a namespace with the label
            `resource.kubernetes.io/admin-access: "true"`.
        requests: Several `dra.DeviceRequest`, or one with a name of your own, at most 32.
        constraints: What the devices share or must not share: `[dra.MatchAttribute(dra.gpu.product)]`,
            `[dra.pair("gpu", "nic")]`.
        configs: How drivers set the devices up: `dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))`.
        namespace: Namespace of the object; the provider's default when left out.
        object_name: Name of the object. Left out, it is the component's name and a hash of the spec, so that a
            change makes a new object and workloads roll over to it. An explicit name is kept, and a change of the
            spec is then refused by the API server unless `replace="delete-first"`.
        labels: Labels of the object.
        annotations: Annotations of the object.
        replace: `"delete-first"` deletes an object with an explicit name before it makes the new one.
        driver_release: Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest.
        driver_gates: Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": True}`. What needs a
            gate is checked against them; left out, nothing is said of gates.
        target: The cluster to compile for; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Attributes:
        object_name: Name of the object.
        namespace: Namespace of the object.

    Example:
        ```python
        trainer = dra.GpuClaimTemplate("trainer", device_class=h100, count=4, namespace="ml")
        k8s.batch.v1.Job("train", spec={"template": {"spec": trainer.attach(pod_spec)}})
        ```
    """
