"""Device configs: how a driver sets a device up for a claim, typed, by the names of the drivers.

Kubernetes hands them on as opaque parameters and checks nothing. Sharing strategies are the part of a config that
drivers have in common: how the processes that use a device share it.

Upstream: `api/nvidia.com/resource/v1beta1` of the NVIDIA DRA driver, up to release 0.5 (sharing:
`api/nvidia.com/resource/v1beta1/sharing.go`), and `api/example.com/resource/gpu/v1alpha1` of the example driver, up
to 0.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Places = Mapping[str, tuple[str, ...]]
"""Arguments of a record, each with the place of its value in the parameters."""


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """How the processes that use a device share it."""

    strategy: ClassVar[str]
    places: ClassVar[Places]
    """Arguments, each with the place of its value in `sharing` of the parameters."""


@dataclass(frozen=True, kw_only=True)
class TimeSlicing(Sharing):
    """Processes take turns on whole GPUs.

    The length of a slice is a setting of the GPU and so holds for all that use it. NVIDIA's driver needs its feature
    gate TimeSlicingSettings, and GPUs of compute capability 7.0 or newer.

    Args:
        interval: Length of a slice, as `nvidia-smi compute-policy --set-timeslice` knows it.
    """

    strategy = "TimeSlicing"
    places = {"interval": ("timeSlicingConfig", "interval")}  # noqa: RUF012  (the base says what it is)

    interval: Literal["Default", "Short", "Medium", "Long"] = "Default"


@dataclass(frozen=True, kw_only=True)
class Mps(Sharing):
    """Processes share GPUs or MIG devices at the same time, through NVIDIA's Multi-Process Service.

    The driver starts one control daemon per claim and config. Needs its feature gate MPSSupport, and excludes
    DynamicMIG and ConsumableShares.

    Args:
        active_thread_percentage: Part of the threads that each process may use, 0 to 100; None for no limit.
        pinned_device_memory_limit: Device memory that each process may pin, `"10Gi"`, at least 1Mi; None for no limit.
        per_device_pinned_memory_limit: The same by device, over the one before: by UUID, or by the index of the device
            in the alphabetical order of the UUIDs that share the config, which nobody knows before.
        multi_user: Whether processes of different users may share; from driver 0.5 on, compute capability 7.0.
    """

    strategy = "MPS"
    places = {  # noqa: RUF012
        "active_thread_percentage": ("mpsConfig", "defaultActiveThreadPercentage"),
        "pinned_device_memory_limit": ("mpsConfig", "defaultPinnedDeviceMemoryLimit"),
        "per_device_pinned_memory_limit": ("mpsConfig", "defaultPerDevicePinnedMemoryLimit"),
        "multi_user": ("mpsConfig", "multiUser"),
    }

    active_thread_percentage: int | None = None
    pinned_device_memory_limit: str | None = None
    per_device_pinned_memory_limit: Mapping[str, str] | Mapping[int, str] | None = None
    multi_user: bool | None = None


@dataclass(frozen=True, kw_only=True)
class SpacePartitioning(Sharing):
    """The example driver's pretence of equal parts of a GPU.

    Args:
        partition_count: Number of parts, from 0 on.
    """

    strategy = "SpacePartitioning"
    places = {"partition_count": ("spacePartitioningConfig", "partitionCount")}  # noqa: RUF012

    partition_count: int = 1


@dataclass(frozen=True, kw_only=True)
class DeviceConfig:
    """Base of all configs. Of the configs for one device only the last one counts, whole: fields are not merged.

    Args:
        requests: Names of the requests of the claim that it is for, alternatives as `request/alternative`. Without any
            it is for every device of the claim that its kind fits. A config of a class has none.
    """

    api_version: ClassVar[str] = "resource.nvidia.com/v1beta1"
    kind_name: ClassVar[str] = ""
    places: ClassVar[Places] = {}
    """Arguments, each with the place of its value in the parameters."""
    strategies: ClassVar[tuple[type[Sharing], ...]] = ()
    """What `sharing` may be."""

    driver: str
    requests: Sequence[str] = ()

    @property
    def kind(self) -> str:
        """The kind that the driver decodes; empty where that is not known."""
        return self.kind_name

    def to_parameters(self) -> Any:
        """Values for `opaque.parameters`, with Pulumi Outputs where they were given."""
        return {"apiVersion": self.api_version, "kind": self.kind_name, **_nested(self)}

    def argument(self, path: Sequence[str]) -> str:
        """The argument that a field of the parameters comes from, `sharing.interval`; empty for the config itself."""
        return _argument(self, tuple(path))


@dataclass(frozen=True, kw_only=True)
class GpuConfig(DeviceConfig):
    """How whole GPUs of NVIDIA's driver are shared by the processes that use them.

    Args:
        sharing: `TimeSlicing(...)` or `Mps(...)`; None leaves the GPUs as they are.
    """

    kind_name = "GpuConfig"
    places = {"sharing": ("sharing",)}  # noqa: RUF012
    strategies = (TimeSlicing, Mps)

    driver: str = field(default="gpu.nvidia.com", init=False)
    sharing: TimeSlicing | Mps | None = None


@dataclass(frozen=True, kw_only=True)
class MigDeviceConfig(DeviceConfig):
    """How MIG devices of NVIDIA's driver are shared by the processes that use them.

    Args:
        sharing: `Mps(...)`; slices of time are set for whole GPUs only. None leaves the devices as they are.
    """

    kind_name = "MigDeviceConfig"
    places = {"sharing": ("sharing",)}  # noqa: RUF012
    strategies = (Mps,)

    driver: str = field(default="gpu.nvidia.com", init=False)
    sharing: Mps | None = None


@dataclass(frozen=True, kw_only=True)
class VfioDeviceConfig(DeviceConfig):
    """How GPUs are handed to virtual machines, from driver 25.12 on with the feature gate PassthroughSupport.

    All VFIO devices of a claim have one and the same. The driver's webhook, where it is on, refuses it in claims: give
    it to the class then.

    Args:
        backend_policy: `LegacyOnly`, which the driver takes without one, or `PreferIommuFD`; from driver 0.4 on.
        enable_api_device: Whether containers get `/dev/vfio/vfio` or `/dev/iommu`; from driver 0.4 on.
    """

    kind_name = "VfioDeviceConfig"
    places = {  # noqa: RUF012
        "backend_policy": ("iommu", "backendPolicy"),
        "enable_api_device": ("iommu", "enableAPIDevice"),
    }

    driver: str = field(default="gpu.nvidia.com", init=False)
    backend_policy: Literal["LegacyOnly", "PreferIommuFD"] | None = None
    enable_api_device: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ComputeDomainChannelConfig(DeviceConfig):
    """The ComputeDomain that a channel belongs to.

    The driver's controller writes it into the claim template that a ComputeDomain names; write it yourself for a claim
    that several pods of a node share. The claim must be in the namespace of the ComputeDomain.

    Args:
        domain_id: UID of the ComputeDomain, most often a Pulumi Output.
        allocation_mode: `Single` channel, or `All` of the domain; from driver 25.8 on.
    """

    kind_name = "ComputeDomainChannelConfig"
    places = {"domain_id": ("domainID",), "allocation_mode": ("allocationMode",)}  # noqa: RUF012

    driver: str = field(default="compute-domain.nvidia.com", init=False)
    domain_id: Any
    allocation_mode: Literal["Single", "All"] | None = None


@dataclass(frozen=True, kw_only=True)
class ExampleGpuConfig(DeviceConfig):
    """The `GpuConfig` of the DRA example driver, which changes nothing but variables in the containers.

    Args:
        driver: Its name, which the chart value `driverName` may change.
        sharing: `TimeSlicing(...)` or `SpacePartitioning(...)`; None for slices of the default length.
    """

    api_version = "gpu.resource.example.com/v1alpha1"
    kind_name = "GpuConfig"
    places = {"sharing": ("sharing",)}  # noqa: RUF012
    strategies = (TimeSlicing, SpacePartitioning)

    driver: str = "gpu.example.com"
    sharing: TimeSlicing | SpacePartitioning | None = None


@dataclass(frozen=True, kw_only=True)
class OpaqueConfig(DeviceConfig):
    """Parameters as a driver reads them, for drivers and kinds that have no type here.

    Args:
        driver: Name of the DRA driver.
        parameters: A JSON object, by custom with `apiVersion` and `kind`.
    """

    driver: str
    parameters: Any

    @property
    def kind(self) -> str:
        """The kind as it is written."""
        kind = self.parameters.get("kind") if isinstance(self.parameters, Mapping) else None
        return kind if isinstance(kind, str) else ""

    def to_parameters(self) -> Any:
        """The parameters as they were given."""
        return self.parameters

    def argument(self, path: Sequence[str]) -> str:
        """The field itself."""
        return ".".join(("parameters", *path))


def _nested(record: DeviceConfig | Sharing) -> dict[str, Any]:
    """The values of the arguments that are given, each at its place."""
    found: dict[str, Any] = {}
    for name, place in record.places.items():
        value = getattr(record, name)
        if value is None:
            continue
        if isinstance(value, Sharing):
            value = {"strategy": value.strategy, **_nested(value)}
        around = found
        for step in place[:-1]:
            around = around.setdefault(step, {})
        around[place[-1]] = value
    return found


def _argument(record: DeviceConfig | Sharing, path: tuple[str, ...]) -> str:
    for name, place in record.places.items():
        value = getattr(record, name)
        if path[: len(place)] == place:
            rest = path[len(place) :]
            if isinstance(value, Sharing):
                return ".".join(filter(None, (name, _argument(value, rest))))
            return name + "".join(f"[{key!r}]" for key in rest)
        if path and place[: len(path)] == path and value is not None:
            return name
    return ""
