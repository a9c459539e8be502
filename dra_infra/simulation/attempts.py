"""Attempts of the scheduler on nodes, each kind of node with the same things in use searched once."""

from __future__ import annotations

from collections.abc import Sequence

from dra_infra.simulation.cluster import Cluster
from dra_infra.simulation.demand import Demand
from dra_infra.simulation.in_use import InUse
from dra_infra.simulation.outcomes import Outcome
from dra_infra.simulation.shapes import Looks, NodeShapes, Shapes


class Attempts:
    """The outcomes of searches, remembered for all states of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._shapes = NodeShapes(cluster)
        self._looks: dict[tuple[str, ...], Looks] = {}
        self._known: dict[tuple[object, ...], Outcome] = {}

    def shapes(self, demands: Sequence[Demand]) -> Shapes:
        """The shapes of the nodes for claims that are still to be allocated."""
        key = tuple(demand.key for demand in demands)
        looks = self._looks.get(key)
        if looks is None:
            looks = self._looks[key] = Looks.of(demands)
        return self._shapes.of(looks)

    def attempt(self, node: int, demands: Sequence[Demand], in_use: InUse) -> Outcome:
        """What a node gives claims that are not allocated yet, beside what is in use."""
        shape = self.shapes(demands).numbers[node]
        key = (tuple(demand.key for demand in demands), shape, in_use.of(node))
        outcome = self._known.get(key)
        if outcome is None:
            outcome = self._known[key] = self.cluster.search(node, demands, in_use.state)
        return outcome
