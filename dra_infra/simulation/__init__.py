"""Slices, claims and pods to the scheduler's answer: which nodes can take a pod, with which devices, or why none.

Pure and deterministic. What is modelled and what is not stands in docs/placement.md.
"""

from dra_infra.simulation.placement import (
    DeviceChoice,
    NodePlacement,
    Placement,
    Reason,
    WorkloadPlacement,
)
from dra_infra.simulation.scheduling import place, place_claim
from dra_infra.simulation.taken import Taken

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
