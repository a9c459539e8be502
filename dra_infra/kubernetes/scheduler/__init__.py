"""What the scheduler does with a pod: which nodes it passes, and what it takes there. `allocator` has the devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_infra.kubernetes.front_door import find_homes, load_late

if TYPE_CHECKING:
    from dra_infra.kubernetes.scheduler.device_amounts import DeviceAmounts as DeviceAmounts
    from dra_infra.kubernetes.scheduler.device_evictions import NO_EXECUTE as NO_EXECUTE
    from dra_infra.kubernetes.scheduler.device_evictions import Eviction as Eviction
    from dra_infra.kubernetes.scheduler.device_evictions import find_evictions as find_evictions
    from dra_infra.kubernetes.scheduler.device_evictions import find_tainted as find_tainted
    from dra_infra.kubernetes.scheduler.extended_resources import (
        CLASS_RESOURCE_PREFIX as CLASS_RESOURCE_PREFIX,
    )
    from dra_infra.kubernetes.scheduler.extended_resources import (
        EXTENDED_CLAIM_ANNOTATION as EXTENDED_CLAIM_ANNOTATION,
    )
    from dra_infra.kubernetes.scheduler.extended_resources import EXTENDED_CLAIM_ENTRY as EXTENDED_CLAIM_ENTRY
    from dra_infra.kubernetes.scheduler.extended_resources import (
        EXTENDED_RESOURCES_GATE as EXTENDED_RESOURCES_GATE,
    )
    from dra_infra.kubernetes.scheduler.extended_resources import ExtendedDemand as ExtendedDemand
    from dra_infra.kubernetes.scheduler.extended_resources import ServedResources as ServedResources
    from dra_infra.kubernetes.scheduler.node_filters import NODE_FILTER_FIELDS as NODE_FILTER_FIELDS
    from dra_infra.kubernetes.scheduler.node_filters import NodeFilter as NodeFilter
    from dra_infra.kubernetes.scheduler.node_filters import NodeRefusal as NodeRefusal
    from dra_infra.kubernetes.scheduler.node_filters import goes_round as goes_round
    from dra_infra.kubernetes.scheduler.placed_pods import NOTHING_TAKEN as NOTHING_TAKEN
    from dra_infra.kubernetes.scheduler.placed_pods import PlacedDevice as PlacedDevice
    from dra_infra.kubernetes.scheduler.placed_pods import PlacedPods as PlacedPods
    from dra_infra.kubernetes.scheduler.placed_pods import PlacedShare as PlacedShare
    from dra_infra.kubernetes.scheduler.placed_pods import Taken as Taken
    from dra_infra.kubernetes.scheduler.pod_resources import find_shortage as find_shortage
    from dra_infra.kubernetes.scheduler.pod_resources import find_shortages as find_shortages
    from dra_infra.kubernetes.scheduler.pod_resources import node_amounts as node_amounts
    from dra_infra.kubernetes.scheduler.pod_resources import pod_requests as pod_requests
    from dra_infra.kubernetes.scheduler.pod_resources import show_amount as show_amount
    from dra_infra.kubernetes.scheduler.pod_shapes import POD_SHAPE_FIELDS as POD_SHAPE_FIELDS
    from dra_infra.kubernetes.scheduler.pod_shapes import PodShape as PodShape
    from dra_infra.kubernetes.scheduler.pod_shapes import read_shape as read_shape
    from dra_infra.kubernetes.scheduler.taint_rules import TAINT_RULES_GATE as TAINT_RULES_GATE
    from dra_infra.kubernetes.scheduler.taint_rules import with_taint_rules as with_taint_rules
    from dra_infra.kubernetes.scheduler.unmodelled import find_unmodelled as find_unmodelled

# The source: a name is public when it stands here, behind its module.
_HOMES = find_homes(
    {
        "device_amounts": ("DeviceAmounts",),
        "device_evictions": (
            "Eviction",
            "NO_EXECUTE",
            "find_evictions",
            "find_tainted",
        ),
        "extended_resources": (
            "CLASS_RESOURCE_PREFIX",
            "EXTENDED_CLAIM_ANNOTATION",
            "EXTENDED_CLAIM_ENTRY",
            "EXTENDED_RESOURCES_GATE",
            "ExtendedDemand",
            "ServedResources",
        ),
        "node_filters": (
            "NODE_FILTER_FIELDS",
            "NodeFilter",
            "NodeRefusal",
            "goes_round",
        ),
        "placed_pods": (
            "NOTHING_TAKEN",
            "PlacedDevice",
            "PlacedPods",
            "PlacedShare",
            "Taken",
        ),
        "pod_resources": (
            "find_shortage",
            "find_shortages",
            "node_amounts",
            "pod_requests",
            "show_amount",
        ),
        "pod_shapes": (
            "POD_SHAPE_FIELDS",
            "PodShape",
            "read_shape",
        ),
        "taint_rules": (
            "TAINT_RULES_GATE",
            "with_taint_rules",
        ),
        "unmodelled": ("find_unmodelled",),
    }
)

__all__ = sorted(_HOMES)  # noqa: PLE0605  (the table is the source)

if not TYPE_CHECKING:
    # Type checkers would take any name for one that there is.
    __getattr__, __dir__ = load_late(__name__, _HOMES)
