"""What a driver takes where a config says nothing (nvidia driver: `Default...Config` and `Normalize`; nothing is merged)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_infra.catalog.driver_gates import gate_states, gates_of

_NVIDIA: Final = "gpu.nvidia.com"
_EXAMPLE: Final = "gpu.example.com"
_GATE: Final = "TimeSlicingSettings"

_ALWAYS_SLICED: Final = "25.3"
"""The line that has no gates, and sets slices of time on every whole GPU."""

_SLICED_WITH_GATE: Final = frozenset({"25.8", "25.12"})
"""Lines that do so where the gate TimeSlicingSettings is on; 0.4.1 and newer touch nothing."""

_WITHOUT_IOMMU: Final = frozenset({"25.12"})
"""Lines in which a VfioDeviceConfig has no fields."""

_SLICED: Final = {"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Default"}}}


def built_in(driver: str, line: str, type_: str, gates: Mapping[str, bool] | None) -> Mapping[str, Any]:
    """What counts for a device that no config is for."""
    if driver == _EXAMPLE or (driver == _NVIDIA and type_ == "gpu" and _slices(line, gates)):
        return _SLICED
    return {}


def with_defaults(
    driver: str,
    line: str,
    kind: str,
    type_: str,
    values: Mapping[str, Any],
    gates: Mapping[str, bool] | None,
) -> Mapping[str, Any]:
    """A config with what its driver fills in."""
    if kind == "VfioDeviceConfig" and line not in _WITHOUT_IOMMU:
        iommu = {"backendPolicy": "LegacyOnly", "enableAPIDevice": False, **_said(values.get("iommu"))}
        return {**values, "iommu": iommu}
    if kind not in ("GpuConfig", "MigDeviceConfig"):
        return values
    sharing = _said(values.get("sharing"))
    if not sharing:
        return built_in(driver, line, type_, gates)
    blocks: dict[str, Any] = {}
    strategy = sharing.get("strategy")
    if strategy == "TimeSlicing" and kind == "GpuConfig":
        blocks["timeSlicingConfig"] = {"interval": "Default"} | _said(sharing.get("timeSlicingConfig"))
    elif strategy == "MPS":
        blocks["mpsConfig"] = _said(sharing.get("mpsConfig"))
    elif strategy == "SpacePartitioning":
        blocks["spacePartitioningConfig"] = {"partitionCount": 1} | _said(
            sharing.get("spacePartitioningConfig")
        )
    return {**values, "sharing": {**sharing, **blocks}}


def _slices(line: str, gates: Mapping[str, bool] | None) -> bool:
    if line == _ALWAYS_SLICED:
        return True
    on = gates is not None and _GATE in gates_of(line) and gate_states(line, gates)[_GATE]
    return line in _SLICED_WITH_GATE and on


def _said(value: Any) -> dict[str, Any]:
    """The fields of an object that are there: null is as good as nothing."""
    found = value if isinstance(value, Mapping) else {}
    return {name: each for name, each in found.items() if each is not None}
