"""Topology spread with DoNotSchedule, counted per place: the PodTopologySpread plugin.

Source: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go and common.go, which agree in all four minors.
The defaults of a cluster only prefer (systemDefaultConstraints), so pods without constraints are free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from dra_infra.simulation.node_topology import NodeTopology
from dra_infra.simulation.pod_shapes import PodShape, SpreadConstraint

SpreadTies: TypeAlias = tuple[int, ...]
"""The constraints of a pod that comes, by number, that count a pod that runs."""


def find_spread_ties(coming: PodShape, running: PodShape) -> SpreadTies:
    """Which constraints of one shape count another."""
    if running.is_going or running.namespace != coming.namespace:
        return ()
    return tuple(
        index
        for index, each in enumerate(coming.spread)
        # An empty selector matches the pod that comes, but counts none (countPodsMatchSelector).
        if not each.selector.matches_all and each.selector.matches(running.labels)
    )


class _Constraint:
    """One constraint: pods per place, and the least of them."""

    def __init__(
        self, constraint: SpreadConstraint, shape: PodShape, topology: NodeTopology, counted: list[bool]
    ) -> None:
        self.told = constraint
        self.counted = counted
        """Per node, whether pods on it count."""
        self.places = topology.places(constraint.topology_key)
        self.own = int(constraint.selector.matches(shape.labels))
        self.numbers = [0] * len(self.places.names)
        self.domains = {place for node, place in enumerate(self.places.of) if counted[node]}
        self.levels = Counter({0: len(self.domains)}) if self.domains else Counter[int]()
        self.least = 0

    @property
    def most(self) -> int:
        """How many pods a place may hold before one more comes."""
        scarce = len(self.domains) < self.told.min_domains
        return self.told.max_skew + (0 if scarce else self.least) - self.own

    def count(self, node: int, delta: int) -> None:
        if not self.counted[node]:
            return
        place = self.places.of[node]
        old = self.numbers[place]
        new = self.numbers[place] = old + delta
        self.levels[old] -= 1
        self.levels[new] += 1
        if new < self.least:
            self.least = new
        while not self.levels[self.least]:
            self.least += 1

    def copy(self) -> _Constraint:
        copied = object.__new__(_Constraint)
        copied.told, copied.counted, copied.places = self.told, self.counted, self.places
        copied.own, copied.domains, copied.least = self.own, self.domains, self.least
        copied.numbers, copied.levels = list(self.numbers), Counter(self.levels)
        return copied


class SpreadRecord:
    """What the pods that run mean for the spreading of one shape of pods, kept up to date.

    Args:
        shape: The pods that come.
        topology: The nodes.
    """

    def __init__(self, shape: PodShape, topology: NodeTopology) -> None:
        self.shape = shape
        self._on_node: dict[int, Counter[int]] = {}
        places = [topology.places(each.topology_key) for each in shape.spread]
        # A node counts for no constraint unless it has the labels of all of them.
        labelled = [all(each.of[node] >= 0 for each in places) for node in range(len(topology.nodes))]
        self._constraints = [
            _Constraint(each, shape, topology, _find_counted(each, shape, topology, labelled))
            for each in shape.spread
        ]

    def count(self, ties: SpreadTies, node: int, delta: int) -> None:
        """Take note of *delta* pods more or less on a node."""
        for index in ties:
            self._constraints[index].count(node, delta)
        if ties and self.shape.is_daemon:
            self._on_node.setdefault(node, Counter()).update(dict.fromkeys(ties, delta))

    def refusal(self, node: int) -> str:
        """Why spreading keeps one off a node, in the user's words; empty when it does not."""
        for index, each in enumerate(self._constraints):
            key = each.told.topology_key
            place = each.places.of[node]
            if place < 0:
                return f"topology spread goes by label {key}, which the node does not have"
            if not self._has_room(index, node):
                return f"topology spread: one more in the same {key} passes maxSkew {each.told.max_skew}"
        return ""

    def open_nodes(self, nodes: Iterable[int]) -> list[int]:
        """Those of the nodes that it does not refuse, in order."""
        left = list(nodes)
        for index, each in enumerate(self._constraints):
            if self._is_bound(each):
                left = [node for node in left if each.places.of[node] >= 0 and self._has_room(index, node)]
            else:
                of, numbers, most = each.places.of, each.numbers, each.most
                left = [node for node in left if of[node] >= 0 and numbers[of[node]] <= most]
        return left

    def copy(self) -> SpreadRecord:
        """The same, to be changed apart from this one."""
        copied = object.__new__(SpreadRecord)
        copied.shape = self.shape
        copied._on_node = {node: Counter(each) for node, each in self._on_node.items()}
        copied._constraints = [each.copy() for each in self._constraints]
        return copied

    def _is_bound(self, constraint: _Constraint) -> bool:
        """Whether the only node that counts is the one that the controller names in the pod's affinity."""
        return self.shape.is_daemon and constraint.told.honors_affinity

    def _has_room(self, index: int, node: int) -> bool:
        each = self._constraints[index]
        if not self._is_bound(each):
            return each.numbers[each.places.of[node]] <= each.most
        here = self._on_node.get(node, Counter())[index] if each.counted[node] else 0
        least = here if each.told.min_domains <= int(each.counted[node]) else 0
        return here + each.own - least <= each.told.max_skew


def _find_counted(
    constraint: SpreadConstraint, shape: PodShape, topology: NodeTopology, labelled: list[bool]
) -> list[bool]:
    """Per node, whether pods on it count: matchNodeInclusionPolicies."""
    return [
        has_labels
        and (not constraint.honors_affinity or not shape.filter.refuse_labels(node))
        and (not constraint.honors_taints or not shape.filter.refuse_taints(node))
        for node, has_labels in zip(topology.nodes, labelled, strict=True)
    ]
