"""How the processes that use a device share it: the part of a config that drivers have in common.

Upstream: `api/nvidia.com/resource/v1beta1/sharing.go` of the NVIDIA DRA driver, up to release 0.5, and
`api/example.com/resource/gpu/v1alpha1` of the example driver, up to 0.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

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
