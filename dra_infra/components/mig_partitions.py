"""MigPartition: parts of GPUs, by MIG profile or by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from dra_infra.components.arguments import ClaimArgs, takes
from dra_infra.components.component import compiled_by
from dra_infra.components.device_claims import DeviceClaimComponent
from dra_infra.selectors.selector import Selector
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.mig_partitions import ask_for_mig_devices
from dra_infra.specs.mig_profiles import Profiles
from dra_infra.specs.requests import ClassArgument, Toleration


class MigPartition(DeviceClaimComponent):
    """MIG devices: parts of GPUs with memory and compute of their own.

    A ResourceClaimTemplate, so that every pod has its own devices, or with `shared=True` a ResourceClaim. It is met by
    static MIG devices as well as by those of DynamicMIG.

    Args:
        name: Name of the component, of the pods' entry, and the stem of the object's name: a DNS label.
        profile: A MIG profile, `"1g.10gb"`. Its request is named `mig`.
        profiles: Several: `["3g.40gb", "1g.10gb"]` are requests `mig-0` and `mig-1`; `{"1g.10gb": 7}` has counts;
            `{"train": "3g.40gb", "infer": "1g.10gb"}` names the requests, for `attach(..., request="train")`.
        memory: Instead of profiles: at least so much memory, `"20Gi"`, as NVML reports it. The smallest profile of each
            GPU that has it is taken, as an ordered list of alternatives.
        compute: Instead of profiles: at least so many compute slices, of the 7 or 4 of a GPU.
        count: How many devices of `profile`, or of that size; 1 when left out.
        gpu: The GPU, by its product name or a short one: `"H100"`, `"A100-80GB"`. Any that has the profile when left
            out.
        same_gpu: All devices are on one GPU; refused where they do not fit one.
        dynamic: True checks that driver and cluster have DynamicMIG, and that `select` reads nothing that only static
            devices have. What `driver_gates` say when left out.
        device_class: A class of MIG devices; the driver's own, `mig.nvidia.com`, when left out.
        select: A selector that each device must match, in addition to that.
        tolerations: Device taints to tolerate.
        configs: How the driver sets the devices up: `dra.MigDeviceConfig(sharing=dra.Mps())`.
        shared: Make a ResourceClaim: all pods that refer to it use the same devices, on one node.
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
        notebook = dra.MigPartition("notebook", profile="1g.10gb", namespace="ml")
        pair = dra.MigPartition("pair", profiles={"train": "3g.40gb", "infer": "1g.10gb"}, same_gpu=True)
        small = dra.MigPartition("small", memory="20Gi", compute=2)
        ```
    """

    @compiled_by(ask_for_mig_devices)
    @takes(ClaimArgs)
    def __init__(
        self,
        name: str,
        *,
        profile: str | None = None,
        profiles: Profiles | None = None,
        memory: str | None = None,
        compute: int | None = None,
        count: int | None = None,
        gpu: str | None = None,
        same_gpu: bool = False,
        dynamic: bool | None = None,
        device_class: ClassArgument | None = None,
        select: Selector | None = None,
        tolerations: Sequence[Toleration] = (),
        configs: Sequence[DeviceConfig] = (),
        shared: bool = False,
        **common: Unpack[ClaimArgs],
    ) -> None: ...
