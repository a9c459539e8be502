"""Required affinity and anti-affinity between pods, counted per place: the InterPodAffinity plugin.

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, with the gate InterPodAffinityHostnameFastPath
off, as all four minors have it by default; with it on, the answers are meant to be the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dra_infra.simulation.namespaces import Namespaces
from dra_infra.simulation.node_topology import NodeTopology, Places
from dra_infra.simulation.pod_shapes import PodShape


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
        """Between two shapes."""
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

    def add(self, topology: NodeTopology, key: str, node: int, delta: int) -> None:
        found = self.by_key.get(key)
        if found is None:
            places = topology.places(key)
            found = self.by_key[key] = places, [0] * len(places.names)
        place = found[0].of[node]
        if place >= 0:
            found[1][place] += delta
            self.total += delta

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
    """What the pods that run mean for one shape of pods, kept up to date.

    Args:
        shape: The pods that come.
        topology: The nodes.
        namespaces: For namespace selectors.
    """

    shape: PodShape
    topology: NodeTopology
    namespaces: Namespaces
    _near: _Counts = field(default_factory=_Counts)
    _apart: _Counts = field(default_factory=_Counts)
    _kept_off: _Counts = field(default_factory=_Counts)

    def count(self, ties: AffinityTies, node: int, delta: int) -> None:
        """Take note of *delta* pods more or less on a node."""
        if ties.is_near:
            for term in self.shape.near:
                self._near.add(self.topology, term.topology_key, node, delta)
        for key in ties.apart:
            self._apart.add(self.topology, key, node, delta)
        for key in ties.kept_off:
            self._kept_off.add(self.topology, key, node, delta)

    @property
    def is_idle(self) -> bool:
        """Whether it refuses no node."""
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
        """Those of the nodes that it does not refuse, in order."""
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
        """The same, to be changed apart from this one."""
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
        """Whether it is the first of a series that is to be together: it finds none and may go anywhere."""
        return not self._near.total and AffinityTies.find(self.shape, self.shape, self.namespaces).is_near
