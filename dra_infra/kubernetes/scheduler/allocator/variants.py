"""Variants of Kubernetes' allocator: which one runs, how it differs, and its bugs by minor.

Each minor has three copies of the allocator: stable, incubating and experimental. The scheduler takes the first of
them that has all features that its gates ask for. Here is one allocator; `Variant` says what a copy does otherwise.

Source: NewAllocator in k8s.io/dynamic-resource-allocation/structured/allocator.go, `SupportedFeatures` of the copies,
and AllocatorFeatures in pkg/scheduler/framework/plugins/dynamicresources of 1.34.10, 1.35.8, 1.36.4 and 1.37.1.

Bugs of the real allocators are part of the answer: the scheduler of such a minor does what is said here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.patches import PatchBehaviour


class Quirk(Enum):
    """One bug, in the words of an answer."""

    DISTINCT_BY_POINTER = "distinctAttribute takes equal values of two devices for distinct"
    DISTINCT_FORGETS = "distinctAttribute compares only with the last device of each request"
    LISTS_STAY_NARROW = "matchAttribute keeps what a device had in common after the device is given back"
    ALL_GOES_ON_WITH_FIRST = (
        "mode All in a later entry of a prioritized list goes on with the first entry after one device"
    )
    ALL_SHARES_MATCHES = (
        "mode All in a later entry of a prioritized list takes what the entry before it selected"
    )
    REFUSED_KEEPS = "a device that is refused for a taint, a constraint or its capacity keeps its counters"
    CAPACITY_OF_ANOTHER = (
        "the capacity of another device of the slice is checked, and beyond the slice the scheduler panics"
    )
    COUNTERS_BY_POOL_NAME = "drivers with pools of one name share the counters of the first"
    SHARES_PAY_AGAIN = "every share of a device takes the counters of the device again"
    EMPTY_SHARES_PAY_AGAIN = (
        "a share without capacity is not seen, so the next one takes the counters of the device again"
    )
    CONFIG_FOR_EACH = "configuration is there once for each request that it names"
    INCOMPLETE_IS_USED = "devices of incomplete pools are given away"
    COUNTS_OVERFLOW = "device counts of a claim are added up in 64 bits and overflow"


_LAST: Final = {
    Quirk.DISTINCT_BY_POINTER: (34, 34),
    Quirk.DISTINCT_FORGETS: (34, 36),
    Quirk.LISTS_STAY_NARROW: (36, 36),
    Quirk.ALL_GOES_ON_WITH_FIRST: (34, 35),
    Quirk.ALL_SHARES_MATCHES: (34, 35),
    Quirk.REFUSED_KEEPS: (34, 35),
    Quirk.CAPACITY_OF_ANOTHER: (34, 34),
    Quirk.COUNTERS_BY_POOL_NAME: (35, 35),
    Quirk.SHARES_PAY_AGAIN: (34, 34),
    Quirk.EMPTY_SHARES_PAY_AGAIN: (35, 36),
    Quirk.CONFIG_FOR_EACH: (34, 36),
    Quirk.INCOMPLETE_IS_USED: (34, 34),
}
"""The first and the last minor that has the bug. A bug that ends with a patch is a row in `kubernetes.api.patches`."""


def quirks_of(release: Release) -> frozenset[Quirk]:
    """The bugs of a release."""
    quirks = {quirk for quirk, (first, last) in _LAST.items() if first <= release.number <= last}
    if not release.does(PatchBehaviour.REFUSES_OVERFLOWING_COUNTS):
        quirks.add(Quirk.COUNTS_OVERFLOW)
    return frozenset(quirks)


Channel = str
"""`stable`, `incubating` or `experimental`."""

_SINCE: Final[Mapping[str, int]] = {
    "DRAAdminAccess": 34,
    "DRAPrioritizedList": 34,
    "DRAPartitionableDevices": 34,
    "DRADeviceTaints": 34,
    "DRADeviceBindingConditions": 34,
    "DRAResourceClaimDeviceStatus": 34,
    "DRAConsumableCapacity": 34,
    # The gate is there in 1.36 and so is the code, but the scheduler never tells the allocator about the gate.
    "DRAListTypeAttributes": 37,
    "DRAFractionalCapacityRange": 37,
    "DRAOptionalNodeOperations": 37,
    "DRADerivedAttributes": 37,
    "DRADeviceCompatibilityGroups": 37,
}
"""Gates that the scheduler passes on to the allocator, and the first minor that does."""

_BINDING: Final = frozenset({"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"})
_BASIC: Final = frozenset(
    {"DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints"}
)
_STABLE: Final = {34: frozenset[str](), 35: frozenset[str](), 36: _BASIC, 37: _BASIC}
_INCUBATING: Final = {
    34: _BASIC,
    35: _BASIC,
    36: _BASIC | _BINDING | {"DRAConsumableCapacity"},
    37: _BASIC | _BINDING | {"DRAConsumableCapacity", "DRAFractionalCapacityRange"},
}


@dataclass(frozen=True, slots=True)
class Features:
    """Features of the allocator that the scheduler's gates switch on; names as in `structured.Features`."""

    admin_access: bool = False
    prioritized_list: bool = False
    partitionable_devices: bool = False
    device_taints: bool = False
    binding_conditions: bool = False
    consumable_capacity: bool = False
    fractional_capacity_range: bool = False
    list_attributes: bool = False
    optional_node_operations: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False


@dataclass(frozen=True, slots=True)
class Variant:
    """One copy of the allocator in one minor, with the features that are on.

    Args:
        number: The minor as a number, 37 for 1.37.
        channel: Which copy.
        features: What is on.
        gates: The gates that are on, by which CEL is compiled.
        quirks: The bugs of the minor.
    """

    number: int
    channel: Channel
    features: Features
    gates: frozenset[str]
    quirks: frozenset[Quirk] = frozenset()

    @property
    def is_extended(self) -> bool:
        """The copy has shares, distinctAttribute, bindsToNode and binding conditions in its code."""
        return self.channel == "experimental" or (self.number >= 36 and self.channel == "incubating")

    @property
    def sorts_pools(self) -> bool:
        """Pools and slices are tried in order of their names; else that of a Go map, which is random."""
        return self.number >= 36 and self.channel != "stable"

    @property
    def picks_combinations(self) -> bool:
        """The next device of a request comes after the one before; else every order is tried."""
        return self.number >= 36 and self.channel != "stable"

    @property
    def groups_binding_conditions(self) -> bool:
        """Pools with binding conditions come last."""
        return self.is_extended

    @property
    def simple_pools(self) -> bool:
        """Pools are the slices of the node alone, and counters belong to a slice."""
        return self.number == 34 or (self.number == 35 and self.channel == "stable")

    def has(self, quirk: Quirk) -> bool:
        """Checks that the minor has a bug."""
        return quirk in self.quirks


def asked_features(release: Release) -> frozenset[str]:
    """The gates of *release* that its scheduler passes on to the allocator."""
    asked = frozenset(gate for gate, since in _SINCE.items() if release.number >= since) & release.gates
    if release.number >= 35 and not asked >= _BINDING:
        # From 1.35 on the two gates are one feature; before, each is one.
        asked -= _BINDING
    return asked


@lru_cache(maxsize=256)
def choose_variant(release: Release, *, asked: frozenset[str] | None = None) -> Variant:
    """The allocator that the scheduler of *release* runs.

    Args:
        release: The minor and its gates.
        asked: Gates to pass on to the allocator in place of those that the scheduler passes on.
    """
    gates = asked_features(release) if asked is None else asked
    number = release.number
    if gates <= _STABLE[number]:
        channel = "stable"
    elif gates <= _INCUBATING[number]:
        channel = "incubating"
    else:
        channel = "experimental"
    features = Features(
        admin_access="DRAAdminAccess" in gates,
        prioritized_list="DRAPrioritizedList" in gates,
        partitionable_devices="DRAPartitionableDevices" in gates,
        device_taints="DRADeviceTaints" in gates,
        binding_conditions=gates >= _BINDING,
        consumable_capacity="DRAConsumableCapacity" in gates,
        fractional_capacity_range="DRAFractionalCapacityRange" in gates,
        list_attributes="DRAListTypeAttributes" in gates,
        optional_node_operations="DRAOptionalNodeOperations" in gates,
        derived_attributes="DRADerivedAttributes" in gates,
        compatibility_groups="DRADeviceCompatibilityGroups" in gates,
    )
    return Variant(
        number=number, channel=channel, features=features, gates=release.gates, quirks=quirks_of(release)
    )
