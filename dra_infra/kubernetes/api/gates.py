"""Feature gates of Kubernetes and fields of resource.k8s.io, by minor.

Gates are those that decide what a DRA object means. Source: `defaultVersionedKubernetesFeatureGates` in
pkg/features/kube_features.go of 1.34.10, 1.35.8, 1.36.4 and 1.37.1. Gates that no rule, placement or conversion looks
at are not listed. A gate that is on only from a higher --min-compatibility-version than the usual one (a minor before
its own) counts as off.

Fields came or went with a minor as k8s.io/api 0.34 to 0.37 have them. A server answers a field that it does not know
with a strict decoding error, or drops it with a warning. Every version of the API that a minor serves has the same
fields; only their arrangement differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dra_infra.kubernetes.api.patches import (
    PATCH_ROWS,
    PatchBehaviour,
    nearest_patch,
    newest_patch,
    patch_number,
)

_KNOWN_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "DeviceTaintRule": ("1.37 v1", "1.36 v1beta2", "1.34 v1alpha3"),
    "DeviceClass": ("1.34 v1", "1.34 v1beta2", "1.34 v1beta1"),
    "ResourceClaim": ("1.34 v1", "1.34 v1beta2", "1.34 v1beta1"),
    "ResourceClaimTemplate": ("1.34 v1", "1.34 v1beta2", "1.34 v1beta1"),
    "ResourceSlice": ("1.34 v1", "1.34 v1beta2", "1.34 v1beta1"),
    "ResourcePoolStatusRequest": ("1.36 v1alpha3",),
}
"""Kind to the oldest supported minor that can serve it in a version (k8s.io/api/resource/*/register.go)."""

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
    MutablePodResourcesForSuspendedJobs         |    | A- | B+ | B+
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


@dataclass(frozen=True, slots=True)
class Release:
    """One Kubernetes release with its gates resolved: what one API server is.

    Args:
        minor: One of `SUPPORTED_MINORS`.
        gates: The gates that are on.
        patch: The patch release, such as `1.37.2`; empty for the newest one that is known.
    """

    minor: str
    gates: frozenset[str]
    patch: str = ""
    number: int = field(init=False, repr=False, compare=False)
    """The minor as a number, 37 for 1.37."""

    def __post_init__(self) -> None:
        """Read the number once: every rule that changed asks for it."""
        object.__setattr__(self, "number", int(self.minor.partition(".")[2]))
        if not self.patch:
            object.__setattr__(self, "patch", newest_patch(self.minor))

    def enabled(self, gate: str) -> bool:
        """Looks up whether *gate* is on; one that this minor does not have is off."""
        return gate in self.gates

    @property
    def rules(self) -> str:
        """The patch release whose rules are followed, `1.36.5`: the nearest to `patch` that was read."""
        return nearest_patch(self.minor, patch_number(self.patch))

    def does(self, behaviour: PatchBehaviour) -> bool:
        """Look up a behaviour that differs between patches of a minor."""
        return PATCH_ROWS[behaviour].holds(self.number, patch_number(self.patch))

    def find_missing_needs(self, gate: str) -> list[str]:
        """Return the gates that are off and without which a server with *gate* does not start.

        Servers check that from 1.35 on.
        """
        if self.number < 35:
            return []
        return [each for each in NEEDS.get(gate, ()) if self.minor in GATES[each] and not self.enabled(each)]

    def knows(self, kind: str, version: str) -> bool:
        """Checks that this minor can serve *kind* of resource.k8s.io in *version*; beta versions are off by default."""
        for entry in _KNOWN_VERSIONS.get(kind, ()):
            since, _, known = entry.partition(" ")
            if known == version:
                return self.number >= int(since.partition(".")[2])
        return False

    def newest_version(self, kind: str) -> str:
        """Returns the newest version of resource.k8s.io in which this minor can serve *kind*; empty where there is none.

        Raises:
            KeyError: Such a kind is not known.
        """
        newest_first = (entry.partition(" ")[2] for entry in _KNOWN_VERSIONS[kind])
        return next((version for version in newest_first if self.knows(kind, version)), "")


NEWEST: Final = 37
"""The minor whose fields the records have."""

ANY: Final = 0
"""Stands for all supported minors together."""

FIELDS_SINCE: Final[Mapping[tuple[str, str], int]] = {
    ("DeviceAttribute", "ints"): 36,
    ("DeviceAttribute", "bools"): 36,
    ("DeviceAttribute", "strings"): 36,
    ("DeviceAttribute", "versions"): 36,
    ("Device", "nodeAllocatableResourceMappings"): 36,
    ("Device", "nodeAllocatableResources"): 37,
    ("BasicDevice", "nodeAllocatableResourceMappings"): 36,
    ("BasicDevice", "nodeAllocatableResources"): 37,
    ("ResourceSliceSpec", "partitionTypeAttribute"): 37,
    ("ResourceSliceSpec", "skipNodeOperations"): 37,
    ("DeviceCounterConsumption", "compatibilityGroups"): 37,
    ("ExactDeviceRequest", "derivedAttributes"): 37,
    ("DeviceSubRequest", "derivedAttributes"): 37,
    ("DeviceRequest", "derivedAttributes"): 37,
    ("DeviceRequestAllocationResult", "skipNodeOperations"): 37,
    ("DeviceTaintRule", "status"): 35,
}
"""(Go struct, JSON field) to the first minor that knows it; fields that are not here are older than 1.34."""

FIELDS_UNTIL: Final[Mapping[tuple[str, str], int]] = {
    ("DeviceTaintSelector", "deviceClassName"): 34,
    ("DeviceTaintSelector", "selectors"): 34,
    ("Device", "nodeAllocatableResourceMappings"): 36,
    ("BasicDevice", "nodeAllocatableResourceMappings"): 36,
}
"""(Go struct, JSON field) to the last minor that knows it; 1.37 replaced it without conversion."""


def is_known(struct: str, field: str, minor: int) -> bool:
    """Checks that a server of *minor* (37 for 1.37, or `ANY`) has *field* in *struct*; named as in JSON and Go."""
    key = (struct, field)
    return minor == ANY or FIELDS_SINCE.get(key, 0) <= minor <= FIELDS_UNTIL.get(key, minor)
