"""SharedGpu: one GPU for several containers, pods or claims."""

from __future__ import annotations

from typing import Unpack

from dra_infra.components.arguments import ClaimArgs, takes
from dra_infra.components.component import compiled_by
from dra_infra.components.device_claims import DeviceClaimComponent
from dra_infra.selectors.selector import Selector
from dra_infra.specs.device_classes import NVIDIA_DRIVER
from dra_infra.specs.device_configs import Mps, TimeSlicing
from dra_infra.specs.requests import ClassArgument
from dra_infra.specs.shared_gpus import Across, ask_for_shared_gpu


class SharedGpu(DeviceClaimComponent):
    """One GPU for several.

    - `across="containers"`: the containers of a pod share a GPU that is the pod's own.
    - `across="pods"`: pods share one GPU through one claim, all on the node that has it, at most 256 at a time.
    - `memory=` or `shares=`: each pod gets a claim of its own, which takes a part of a GPU; from driver 0.5 and
      Kubernetes 1.36 on. Nothing limits what a process uses: the parts are book-keeping of the scheduler.

    Args:
        name: Name of the component, of the pods' entry, and the stem of the object's name: a DNS label.
        device_class: A `GpuDeviceClass`, `dra.class_ref(...)`, or the name of a class.
        select: What the GPU must pass beyond the class.
        across: Who shares a whole GPU: the `"containers"` of each pod, or `"pods"` on one node.
        consumers: How many pods will use it, at most 256, to be checked; under `across="pods"`.
        sharing: How the driver divides a whole GPU: `dra.TimeSlicing(interval="Long")` or
            `dra.Mps(active_thread_percentage=25)`; left out, processes take turns as the GPU does by default.
        memory: Memory of the GPU that each claim takes, a Kubernetes quantity: `"20Gi"`.
        shares: Shares of the GPU that each claim takes, of those that the driver is set to make (`consumableShares`).
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
        gpu = dra.SharedGpu("assistants", across="pods", sharing=dra.TimeSlicing(interval="Short"), namespace="ml")
        ```
    """

    @compiled_by(ask_for_shared_gpu)
    @takes(ClaimArgs)
    def __init__(
        self,
        name: str,
        *,
        device_class: ClassArgument = NVIDIA_DRIVER,
        select: Selector | None = None,
        across: Across = "containers",
        consumers: int | None = None,
        sharing: TimeSlicing | Mps | None = None,
        memory: str | None = None,
        shares: int | None = None,
        **common: Unpack[ClaimArgs],
    ) -> None: ...
