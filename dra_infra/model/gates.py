"""Feature gates of Kubernetes that decide what a DRA object means, by minor.

Source: `defaultVersionedKubernetesFeatureGates` in pkg/features/kube_features.go of 1.34.10, 1.35.8, 1.36.4 and
1.37.1. Gates that no rule, placement or conversion looks at are not listed. A gate that is on only from a higher
--min-compatibility-version than the usual one (a minor before its own) counts as off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

SUPPORTED_MINORS: Final = ("1.34", "1.35", "1.36", "1.37")
"""The Kubernetes minors whose rules are known here, oldest first."""


class GateState(NamedTuple):
    """How one minor ships a gate.

    Args:
        stage: `alpha`, `beta` or `ga`.
        default: Whether it is on when nobody says otherwise.
        locked: Whether the server refuses to start with another value than the default.
    """

    stage: str
    default: bool
    locked: bool


_STAGES: Final = {"A": "alpha", "B": "beta", "G": "ga"}

# One column per minor: A, B, G = stage, + and - = default, L = locked on; empty where the minor has no such gate.
_TABLE: Final = """
    DynamicResourceAllocation                   | G+ | GL | GL | GL
    DRAAdminAccess                              | B+ | B+ | GL | GL
    DRAResourceClaimDeviceStatus                | B+ | B+ | B+ | GL
    DRAPrioritizedList                          | B+ | B+ | G+ | GL
    DRAPartitionableDevices                     | A- | A- | B+ | B+
    DRADeviceTaints                             | A- | A- | B+ | G+
    DRADeviceTaintRules                         |    | A- | B- | G+
    DRAExtendedResource                         | A- | A- | B+ | GL
    DRAConsumableCapacity                       | A- | A- | B+ | B+
    DRADeviceBindingConditions                  | A- | A- | B+ | B+
    DRASchedulerFilterTimeout                   | B+ | B+ | B+ | B+
    DRAListTypeAttributes                       |    |    | A- | A-
    DRANodeAllocatableResources                 |    |    | A- | A-
    DRAResourcePoolStatus                       |    |    | A- | A-
    DRAResourceClaimGranularStatusAuthorization |    |    | B+ | B+
    DRAWorkloadResourceClaims                   |    |    | A- | B-
    DRAFractionalCapacityRange                  |    |    |    | B-
    DRADerivedAttributes                        |    |    |    | A-
    DRADeviceCompatibilityGroups                |    |    |    | A-
    DRAOptionalNodeOperations                   |    |    |    | A-
    DRAPartitionableDevicesType                 |    |    |    | A-
    GenericWorkload                             |    | A- | A- | B-
"""


def _read_table() -> Mapping[str, Mapping[str, GateState]]:
    gates: dict[str, dict[str, GateState]] = {}
    for line in _TABLE.strip().splitlines():
        name, *cells = (cell.strip() for cell in line.split("|"))
        gates[name] = {
            minor: GateState(stage=_STAGES[cell[0]], default=cell[1] != "-", locked=cell[1] == "L")
            for minor, cell in zip(SUPPORTED_MINORS, cells, strict=True)
            if cell
        }
    return gates


GATES: Final[Mapping[str, Mapping[str, GateState]]] = _read_table()
"""Gate name to minor to how that minor ships it."""

NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus",),
    "DRAResourceClaimGranularStatusAuthorization": ("DRAResourceClaimDeviceStatus",),
    "DRADeviceCompatibilityGroups": ("DRAPartitionableDevices",),
    "DRAPartitionableDevicesType": ("DRAPartitionableDevices", "DRAResourcePoolStatus"),
    "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
}
"""Gates that must be on for a gate to be on; the server refuses to start otherwise (1.35 and newer)."""
