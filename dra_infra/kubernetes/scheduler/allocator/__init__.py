"""The scheduler's allocator: which devices of a node the claims of a pod get, as each Kubernetes minor chooses them.

`Allocator` answers for one node at a time, from values that are never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_infra.kubernetes.front_door import find_homes, load_late

if TYPE_CHECKING:
    from dra_infra.kubernetes.scheduler.allocator.allocator import Allocator as Allocator
    from dra_infra.kubernetes.scheduler.allocator.capacity import CapacityError as CapacityError
    from dra_infra.kubernetes.scheduler.allocator.capacity import Requested as Requested
    from dra_infra.kubernetes.scheduler.allocator.capacity import consumed_amounts as consumed_amounts
    from dra_infra.kubernetes.scheduler.allocator.capacity import fits_capacity as fits_capacity
    from dra_infra.kubernetes.scheduler.allocator.constraints import attribute_values as attribute_values
    from dra_infra.kubernetes.scheduler.allocator.constraints import scalar_value as scalar_value
    from dra_infra.kubernetes.scheduler.allocator.constraints import static_attribute as static_attribute
    from dra_infra.kubernetes.scheduler.allocator.counters import CounterAvailability as CounterAvailability
    from dra_infra.kubernetes.scheduler.allocator.identity import Allocated as Allocated
    from dra_infra.kubernetes.scheduler.allocator.identity import AllocationError as AllocationError
    from dra_infra.kubernetes.scheduler.allocator.identity import Cannot as Cannot
    from dra_infra.kubernetes.scheduler.allocator.identity import DeviceID as DeviceID
    from dra_infra.kubernetes.scheduler.allocator.identity import Failed as Failed
    from dra_infra.kubernetes.scheduler.allocator.identity import Outcome as Outcome
    from dra_infra.kubernetes.scheduler.allocator.identity import PoolID as PoolID
    from dra_infra.kubernetes.scheduler.allocator.identity import Published as Published
    from dra_infra.kubernetes.scheduler.allocator.identity import published_devices as published_devices
    from dra_infra.kubernetes.scheduler.allocator.matching import Matching as Matching
    from dra_infra.kubernetes.scheduler.allocator.node_selectors import find_parse_error as find_parse_error
    from dra_infra.kubernetes.scheduler.allocator.pools import Pool as Pool
    from dra_infra.kubernetes.scheduler.allocator.pools import claimed_counts as claimed_counts
    from dra_infra.kubernetes.scheduler.allocator.pools import describe_counts as describe_counts
    from dra_infra.kubernetes.scheduler.allocator.refusals import Check as Check
    from dra_infra.kubernetes.scheduler.allocator.refusals import Refusal as Refusal
    from dra_infra.kubernetes.scheduler.allocator.requests import RequestKey as RequestKey
    from dra_infra.kubernetes.scheduler.allocator.requests import Wanted as Wanted
    from dra_infra.kubernetes.scheduler.allocator.selection import CelEvaluator as CelEvaluator
    from dra_infra.kubernetes.scheduler.allocator.selection import DeviceKinds as DeviceKinds
    from dra_infra.kubernetes.scheduler.allocator.selection import Trouble as Trouble
    from dra_infra.kubernetes.scheduler.allocator.selection import passes_selectors as passes_selectors
    from dra_infra.kubernetes.scheduler.allocator.slices import device_matches_node as device_matches_node
    from dra_infra.kubernetes.scheduler.allocator.state import NO_USE as NO_USE
    from dra_infra.kubernetes.scheduler.allocator.state import AllocatedState as AllocatedState
    from dra_infra.kubernetes.scheduler.allocator.state import Usage as Usage
    from dra_infra.kubernetes.scheduler.allocator.taking import find_missing_feature as find_missing_feature
    from dra_infra.kubernetes.scheduler.allocator.taking import list_untolerated as list_untolerated
    from dra_infra.kubernetes.scheduler.allocator.variants import Quirk as Quirk
    from dra_infra.kubernetes.scheduler.allocator.variants import Variant as Variant
    from dra_infra.kubernetes.scheduler.allocator.variants import choose_variant as choose_variant

# The source: a name is public when it stands here, behind its module.
_HOMES = find_homes(
    {
        "allocator": ("Allocator",),
        "capacity": (
            "CapacityError",
            "Requested",
            "consumed_amounts",
            "fits_capacity",
        ),
        "constraints": (
            "attribute_values",
            "scalar_value",
            "static_attribute",
        ),
        "counters": ("CounterAvailability",),
        "identity": (
            "Allocated",
            "AllocationError",
            "Cannot",
            "DeviceID",
            "Failed",
            "Outcome",
            "PoolID",
            "Published",
            "published_devices",
        ),
        "matching": ("Matching",),
        "node_selectors": ("find_parse_error",),
        "pools": (
            "Pool",
            "claimed_counts",
            "describe_counts",
        ),
        "refusals": (
            "Check",
            "Refusal",
        ),
        "requests": (
            "RequestKey",
            "Wanted",
        ),
        "selection": (
            "CelEvaluator",
            "DeviceKinds",
            "Trouble",
            "passes_selectors",
        ),
        "slices": ("device_matches_node",),
        "state": (
            "AllocatedState",
            "NO_USE",
            "Usage",
        ),
        "taking": (
            "find_missing_feature",
            "list_untolerated",
        ),
        "variants": (
            "Quirk",
            "Variant",
            "choose_variant",
        ),
    }
)

__all__ = sorted(_HOMES)  # noqa: PLE0605  (the table is the source)

if not TYPE_CHECKING:
    # Type checkers would take any name for one that there is.
    __getattr__, __dir__ = load_late(__name__, _HOMES)
