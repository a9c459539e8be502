"""The node that comes nearest to taking a pod that waits, and what is missing there."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dra_infra.catalog.machines import INSTANCE_TYPE
from dra_infra.kubernetes.api import ExactDeviceRequest, Node
from dra_infra.output.wording import count_of
from dra_infra.placement.cluster_state import ClusterState
from dra_infra.placement.demand import Demand, PodPlan
from dra_infra.placement.free_fleet import FreeFleet
from dra_infra.placement.outcomes import Chosen

MOST_STATES: Final = 256
"""Nodes in different states that are looked at, in order of name."""

_KIND_LABELS: Final = (INSTANCE_TYPE, "nvidia.com/gpu.product")


@dataclass(frozen=True, kw_only=True, slots=True)
class NearestNode:
    """The node that comes nearest to taking a pod that waits, and what is missing there.

    Args:
        nodes: How many nodes could take it if no other pod were there.
        node: Name of the nearest one.
        kind: What its labels say it is: its instance type, else its GPU product; may be empty.
        asked: Devices that the pod asks for; None where they are not all of one request.
        free: How many of them it would get there.
        refused: Why the node does not take it although it has the devices: `has too little cpu left`.
    """

    nodes: int
    node: str
    kind: str = ""
    asked: int | None = None
    free: int = 0
    refused: str = ""

    def __str__(self) -> str:
        named = f"{self.node} ({self.kind})" if self.kind else self.node
        best = "the only node" if self.nodes == 1 else f"the best of {self.nodes:,} nodes"
        where = f"{named}, {best} that could take it,"
        if self.refused:
            return f"{where} {self.refused}"
        if self.asked is None:
            return f"{where} has not all of its devices free"
        missing = self.asked - self.free
        said = f"{count_of(self.asked, 'device')}, and {where} has {self.free:,} free"
        return f"it asks for {said}: {missing:,} {'is' if missing == 1 else 'are'} missing"


def find_nearest_node(
    free: FreeFleet, state: ClusterState, plan: PodPlan, among: Collection[int] | None = None
) -> NearestNode | None:
    """Find the node that comes nearest to taking a pod; None where no node takes it even while nothing else runs.

    Args:
        free: The fleet while nothing else runs.
        state: The fleet as it is, on which no node takes the pod.
        plan: What the pod asks for.
        among: The numbers of the nodes that are looked at; None for all.
    """
    candidates = [each for each in free.answer(plan).candidates if among is None or each in among]
    found: list[NearestNode] = []
    seen: set[Hashable] = set()
    for number in candidates:
        demands = state.open_demands(plan.at(free.cluster.offered[number]))
        shape = free.attempts.shapes(demands)[number]
        key = (tuple(each.key for each in demands), shape, id(free.amounts[number]), state.key_of(number))
        if key in seen or len(seen) == MOST_STATES:
            continue
        seen.add(key)
        asked = _count(demands)
        node = free.cluster.nodes[number]
        refused, most = "", 0
        if isinstance(free.attempts.attempt(number, demands, state.in_use), Chosen):
            short = state.find_shortage(plan, number)
            refused = f"has too little {short} left" if short else "is closed to it by other pods"
        elif asked is not None:
            most = _most(free, state, number, demands, asked)
        found.append(
            NearestNode(
                nodes=len(candidates),
                node=node.name,
                kind=_kind(node),
                asked=asked,
                free=most,
                refused=refused,
            )
        )
    return max(found, key=lambda each: (bool(each.refused), each.free), default=None)


def _kind(node: Node) -> str:
    return next((node.labels[label] for label in _KIND_LABELS if label in node.labels), "")


def _count(demands: Sequence[Demand]) -> int | None:
    """Devices of the one request that *demands* have; None where they have none, several, or one without a number."""
    requests = [each for demand in demands for each in demand.devices.requests or ()]
    exactly = requests[0].exactly if len(requests) == 1 else None
    return exactly.count if exactly is not None and exactly.allocation_mode == "ExactCount" else None


def _most(free: FreeFleet, state: ClusterState, node: int, demands: Sequence[Demand], asked: int) -> int:
    """The most devices that a node has for the one request of *demands*, which are fewer than *asked*."""
    for count in range(asked - 1, 0, -1):
        if isinstance(free.attempts.attempt(node, [_asking(demands, count)], state.in_use), Chosen):
            return count
    return 0


def _asking(demands: Sequence[Demand], count: int) -> Demand:
    """The one request of *demands*, with another number of devices."""
    demand, (request,) = next((each, each.devices.requests) for each in demands if each.devices.requests)
    exactly: ExactDeviceRequest = request.exactly.changed({"count": count})  # type: ignore[union-attr]  # it has one
    devices = demand.devices.changed({"requests": [request.changed({"exactly": exactly})]})
    return replace(demand, devices=devices, key=f"{demand.key} with a count of {count}")
