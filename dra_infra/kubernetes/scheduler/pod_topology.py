"""Required pod affinity and anti-affinity, and topology spread with DoNotSchedule, counted per place.

Places come from labels of nodes: nodes with one value of a label are one place.

The InterPodAffinity plugin. Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, with the gate
InterPodAffinityHostnameFastPath off, as all four minors have it by default; with it on, the answers are meant to be
the same.

The PodTopologySpread plugin. Source: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go and common.go,
which agree in all four minors. The defaults of a cluster only prefer (systemDefaultConstraints), so pods without
constraints are free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dra_infra.kubernetes.api.label_selectors import Namespaces
from dra_infra.kubernetes.api.nodes import Node
from dra_infra.kubernetes.scheduler.pod_shapes import PodShape, SpreadConstraint


class Places:
    """The nodes of a fleet by one label."""

    def __init__(self, nodes: Sequence[Node], key: str) -> None:
        self.key = key
        seen: dict[str, int] = {}
        self.of: list[int] = []
        """The place of each node; -1 for one without the label."""
        for node in nodes:
            value = node.labels.get(key)
            self.of.append(-1 if value is None else seen.setdefault(value, len(seen)))
        self.names: tuple[str, ...] = tuple(seen)


class NodeTopology:
    """The places of all labels that are asked for."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._places: dict[str, Places] = {}

    def places(self, key: str) -> Places:
        """The places of a label."""
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = Places(self.nodes, key)
        return places


@dataclass(frozen=True, slots=True)
class AffinityTies:
    """How pods that run count for one that comes.

    Args:
        is_near: Whether they are what it wants to be near to.
        apart: Topology keys of its terms that keep it away from them, one for each term.
        kept_off: Topology keys of their terms that keep it away.
    """

    is_near: bool
    apart: tuple[str, ...]
    kept_off: tuple[str, ...]

    @classmethod
    def find(cls, coming: PodShape, running: PodShape, namespaces: Namespaces) -> AffinityTies:
        """The ties between two shapes."""
        return cls(
            # One pod has to match all terms at once.
            is_near=bool(coming.near) and all(term.matches(running, namespaces) for term in coming.near),
            apart=tuple(each.topology_key for each in coming.apart if each.matches(running, namespaces)),
            kept_off=tuple(each.topology_key for each in running.apart if each.matches(coming, namespaces)),
        )


class _Counts:
    """A number per place, for some labels."""

    def __init__(self) -> None:
        self.by_key: dict[str, tuple[Places, list[int]]] = {}
        self.total = 0

    def add(self, topology: NodeTopology, key: str, node: int, number: int) -> None:
        found = self.by_key.get(key)
        if found is None:
            places = topology.places(key)
            found = self.by_key[key] = places, [0] * len(places.names)
        place = found[0].of[node]
        if place >= 0:
            found[1][place] += number
            self.total += number

    def at(self, key: str, node: int) -> int:
        found = self.by_key.get(key)
        if found is None:
            return 0
        place = found[0].of[node]
        return found[1][place] if place >= 0 else 0

    def numbers(self, key: str) -> list[int]:
        found = self.by_key.get(key)
        return found[1] if found else []

    def copy(self) -> _Counts:
        copied = _Counts()
        copied.by_key = {key: (places, list(counts)) for key, (places, counts) in self.by_key.items()}
        copied.total = self.total
        return copied


@dataclass(slots=True)
class AffinityRecord:
    """Counts of running pods that decide by affinity about one shape of pods, kept up to date."""

    shape: PodShape
    topology: NodeTopology
    namespaces: Namespaces
    _near: _Counts = field(default_factory=_Counts)
    _apart: _Counts = field(default_factory=_Counts)
    _kept_off: _Counts = field(default_factory=_Counts)

    def count(self, ties: AffinityTies, node: int, number: int) -> None:
        """Counts *number* pods more on a node."""
        if ties.is_near:
            for term in self.shape.near:
                self._near.add(self.topology, term.topology_key, node, number)
        for key in ties.apart:
            self._apart.add(self.topology, key, node, number)
        for key in ties.kept_off:
            self._kept_off.add(self.topology, key, node, number)

    @property
    def is_idle(self) -> bool:
        """No node is refused."""
        return not self.shape.near and not self._apart.total and not self._kept_off.total

    def refusal(self, node: int) -> str:
        """Why the pods that run keep one off a node, in the user's words; empty when they do not."""
        if missing := self._missing_label(node):
            return f"required pod affinity goes by label {missing}, which the node does not have"
        if not self._is_near(node):
            keys = ", ".join(dict.fromkeys(term.topology_key for term in self.shape.near))
            return f"required pod affinity: no pod that it names runs in the same {keys}"
        for term in self.shape.apart:
            if self._apart.at(term.topology_key, node):
                return f"required pod anti-affinity: a pod that it names runs in the same {term.topology_key}"
        for key in self._kept_off.by_key:
            if self._kept_off.at(key, node):
                return f"the required anti-affinity of a pod that runs in the same {key} keeps it away"
        return ""

    def open_nodes(self, nodes: Iterable[int]) -> list[int]:
        """Nodes that are not refused, in order."""
        left = list(nodes)
        is_first = self._is_first() if self.shape.near else False
        for key in dict.fromkeys(term.topology_key for term in self.shape.near):
            of = self.topology.places(key).of
            numbers = self._near.numbers(key)
            if is_first:
                left = [node for node in left if of[node] >= 0]
            else:
                left = [node for node in left if of[node] >= 0 and numbers and numbers[of[node]]]
        for counts in (self._apart, self._kept_off):
            for places, numbers in counts.by_key.values() if counts.total else ():
                of = places.of
                left = [node for node in left if of[node] < 0 or not numbers[of[node]]]
        return left

    def copy(self) -> AffinityRecord:
        """Copies it, to be changed apart from this one."""
        return AffinityRecord(
            self.shape,
            self.topology,
            self.namespaces,
            self._near.copy(),
            self._apart.copy(),
            self._kept_off.copy(),
        )

    def _missing_label(self, node: int) -> str:
        keys = (term.topology_key for term in self.shape.near)
        return next((key for key in keys if self.topology.places(key).of[node] < 0), "")

    def _is_near(self, node: int) -> bool:
        if all(self._near.at(term.topology_key, node) for term in self.shape.near):
            return True
        return self._is_first()

    def _is_first(self) -> bool:
        """It is the first of a series that is to be together: it finds none and may go anywhere."""
        return not self._near.total and AffinityTies.find(self.shape, self.shape, self.namespaces).is_near


SpreadTies: TypeAlias = tuple[int, ...]
"""The constraints of a pod that comes, by number, that count a pod that runs."""


def find_spread_ties(coming: PodShape, running: PodShape) -> SpreadTies:
    """The spread constraints of one shape that count pods of another."""
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

    def count(self, node: int, number: int) -> None:
        if not self.counted[node]:
            return
        place = self.places.of[node]
        old = self.numbers[place]
        new = self.numbers[place] = old + number
        self.levels[old] -= 1
        self.levels[new] += 1
        while not self.levels[self.least]:
            self.least += 1

    def copy(self) -> _Constraint:
        copied = object.__new__(_Constraint)
        copied.told, copied.counted, copied.places = self.told, self.counted, self.places
        copied.own, copied.domains, copied.least = self.own, self.domains, self.least
        copied.numbers, copied.levels = list(self.numbers), Counter(self.levels)
        return copied


class SpreadRecord:
    """Counts of running pods that decide how one shape of pods spreads, kept up to date."""

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

    def count(self, ties: SpreadTies, node: int, number: int) -> None:
        """Counts *number* pods more on a node."""
        for index in ties:
            self._constraints[index].count(node, number)
        if ties and self.shape.is_daemon:
            self._on_node.setdefault(node, Counter()).update(dict.fromkeys(ties, number))

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
        """Nodes that are not refused, in order."""
        left = list(nodes)
        for index, each in enumerate(self._constraints):
            if self._is_bound(each):
                left = [node for node in left if each.places.of[node] >= 0 and self._has_room(index, node)]
            else:
                of = each.places.of
                numbers = each.numbers
                most = each.most
                left = [node for node in left if of[node] >= 0 and numbers[of[node]] <= most]
        return left

    def copy(self) -> SpreadRecord:
        """Copies it, to be changed apart from this one."""
        copied = object.__new__(SpreadRecord)
        copied.shape = self.shape
        copied._on_node = {node: Counter(each) for node, each in self._on_node.items()}
        copied._constraints = [each.copy() for each in self._constraints]
        return copied

    def _is_bound(self, constraint: _Constraint) -> bool:
        """The only node that counts is the one that the controller names in the pod's affinity."""
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
