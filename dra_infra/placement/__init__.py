"""Slices, claims and pods to the scheduler's answer: which nodes can take a pod, with which devices, or why none.

Pure and deterministic. What is modelled and what is not stands in docs/placement.md.
"""

from dra_infra.kubernetes.scheduler.placed_pods import Taken
from dra_infra.placement.placement import DeviceChoice, NodePlacement, Placement, Reason, WorkloadPlacement
from dra_infra.placement.scheduling import place, place_claim

__all__ = [
    "DeviceChoice",
    "NodePlacement",
    "Placement",
    "Reason",
    "Taken",
    "WorkloadPlacement",
    "place",
    "place_claim",
]
