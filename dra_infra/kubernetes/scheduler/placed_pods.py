"""Pods that have a node, and where they let others go: affinity, anti-affinity, spreading and host ports.

Everything is counted per place, never per pod, and kept up to date from pod to pod.

Host ports follow the NodePorts plugin. Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go, HostPortInfo
in k8s.io/kube-scheduler/framework.

`Taken` is what of a fleet is taken before anything is placed: by pods and claims that the question is not about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dra_infra.kubernetes.api.label_selectors import Namespaces
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.nodes import Node
from dra_infra.kubernetes.api.pod_containers import Amounts
from dra_infra.kubernetes.api.workload_kinds import PodTemplate
from dra_infra.kubernetes.apiserver.admission import Use
from dra_infra.kubernetes.scheduler.allocator.identity import DeviceID
from dra_infra.kubernetes.scheduler.allocator.state import AllocatedState
from dra_infra.kubernetes.scheduler.pod_shapes import HostPort, PodShape
from dra_infra.kubernetes.scheduler.pod_topology import (
    AffinityRecord,
    AffinityTies,
    NodeTopology,
    SpreadRecord,
    SpreadTies,
    find_spread_ties,
)


class PortRecord:
    """The ports in use on each node."""

    def __init__(self) -> None:
        self._used: dict[int, set[HostPort]] = {}

    def count(self, ports: Iterable[HostPort], node: int) -> None:
        """Counts a pod more on a node."""
        self._used.setdefault(node, set()).update(ports)

    def refusal(self, ports: Iterable[HostPort], node: int) -> str:
        """Names the port that is taken, in the user's words; empty when none is."""
        used = self._used.get(node)
        if used:
            for port in ports:
                if any(port.conflicts(other) for other in used):
                    return f"host port {port} is taken"
        return ""

    def open_nodes(self, ports: Sequence[HostPort], nodes: Iterable[int]) -> list[int]:
        """Nodes on which the ports are free, in order."""
        taken = {node for node in self._used if self.refusal(ports, node)}
        return [node for node in nodes if node not in taken]

    def copy(self) -> PortRecord:
        """Copies it, to be changed apart from this one."""
        copied = PortRecord()
        copied._used = {node: set(used) for node, used in self._used.items()}
        return copied


@dataclass(frozen=True, slots=True)
class _Ties:
    """How pods of one shape count for another."""

    affinity: AffinityTies
    spread: SpreadTies

    @property
    def are_none(self) -> bool:
        affinity = self.affinity
        return not (affinity.is_near or affinity.apart or affinity.kept_off or self.spread)


_NONE = _Ties(AffinityTies(is_near=False, apart=(), kept_off=()), ())


@dataclass(slots=True)
class _Watch:
    """The records for one shape of pods that come."""

    affinity: AffinityRecord
    spread: SpreadRecord | None

    def count(self, ties: _Ties, node: int, number: int) -> None:
        self.affinity.count(ties.affinity, node, number)
        if self.spread is not None:
            self.spread.count(ties.spread, node, number)

    def copy(self) -> _Watch:
        return _Watch(self.affinity.copy(), self.spread.copy() if self.spread else None)


class PlacedPods:
    """The pods on the nodes of a fleet.

    Args:
        nodes: The nodes; they are named by their number.
        namespaces: For namespace selectors of affinity terms.
    """

    def __init__(self, nodes: Sequence[Node], namespaces: Namespaces | None = None) -> None:
        self._topology = NodeTopology(nodes)
        self._namespaces = namespaces or Namespaces()
        self._ports = PortRecord()
        self._placed: dict[PodShape, dict[int, int]] = {}
        self._watches: dict[PodShape, _Watch] = {}
        self._ties: dict[tuple[PodShape, PodShape], _Ties] = {}
        self._touched: dict[PodShape, list[tuple[PodShape, _Ties]]] = {}

    def copy(self) -> PlacedPods:
        """Copies the pods, to be changed apart from these."""
        copied = object.__new__(PlacedPods)
        copied._topology, copied._namespaces = self._topology, self._namespaces
        copied._ports = self._ports.copy()
        copied._placed = {shape: dict(nodes) for shape, nodes in self._placed.items()}
        copied._watches = {shape: watch.copy() for shape, watch in self._watches.items()}
        # What shapes mean to each other never changes, so it is found once for all copies.
        copied._ties = self._ties
        copied._touched = dict(self._touched)
        return copied

    def on_node(self, node: int) -> PlacedPods:
        """Copies the pods of one node."""
        copied = object.__new__(PlacedPods)
        copied._topology, copied._namespaces = self._topology, self._namespaces
        copied._ports = PortRecord()
        copied._placed = {}
        copied._watches = {}
        copied._ties = self._ties
        copied._touched = {}
        for shape, nodes in self._placed.items():
            if node in nodes:
                copied._count(shape, node, nodes[node])
        return copied

    def add(self, shape: PodShape, node: int) -> None:
        """Put a pod on a node, whether or not it may be there."""
        self._count(shape, node, 1)

    def refusal(self, shape: PodShape, node: int) -> str:
        """Why the pods that are there keep one off a node, in the user's words; empty when they do not.

        In the order of the plugins, so the first that refuses; NodeResourcesFit has its turn behind the ports.
        """
        watch = self._watch(shape)
        return (
            self._ports.refusal(shape.ports, node)
            or (watch.spread.refusal(node) if watch.spread else "")
            or watch.affinity.refusal(node)
        )

    def open_nodes(self, shape: PodShape, nodes: Iterable[int]) -> Iterable[int]:
        """Nodes from which the pods that are there do not keep one off, in order."""
        watch = self._watch(shape)
        if shape.ports:
            nodes = self._ports.open_nodes(shape.ports, nodes)
        if watch.spread:
            nodes = watch.spread.open_nodes(nodes)
        return nodes if watch.affinity.is_idle else watch.affinity.open_nodes(nodes)

    def is_free(self, shape: PodShape) -> bool:
        """No pod that is there, nor one more of this shape, keeps one off any node."""
        return not shape.asks and self._watch(shape).affinity.is_idle

    @property
    def nodes(self) -> frozenset[int]:
        """The nodes that have pods."""
        return frozenset(node for nodes in self._placed.values() for node in nodes)

    @property
    def apart_keys(self) -> frozenset[str]:
        """Topology keys of the required anti-affinity of pods that are there."""
        return frozenset(term.topology_key for shape in self._placed for term in shape.apart)

    def has_near(self, shape: PodShape) -> bool:
        """A pod is there that the required affinity of the shape names, on any node."""
        return any(self._find_ties(shape, other).affinity.is_near for other in self._placed)

    def _count(self, shape: PodShape, node: int, number: int) -> None:
        nodes = self._placed.setdefault(shape, {})
        nodes[node] = nodes.get(node, 0) + number
        if shape.ports:
            self._ports.count(shape.ports, node)
        touched = self._touched.get(shape)
        if touched is None:
            # A program has thousands of shapes, and most say nothing of other pods: those are not put side by side.
            watched = self._watches if shape.apart else filter(_looks_at_pods, self._watches)
            touched = self._touched[shape] = [
                (other, ties) for other in watched if not (ties := self._find_ties(other, shape)).are_none
            ]
        for other, ties in touched:
            self._watches[other].count(ties, node, number)

    def _watch(self, shape: PodShape) -> _Watch:
        watch = self._watches.get(shape)
        if watch is None:
            watch = self._watches[shape] = _Watch(
                AffinityRecord(shape, self._topology, self._namespaces),
                SpreadRecord(shape, self._topology) if shape.spread else None,
            )
            looks = _looks_at_pods(shape)
            for other in self._placed if looks else [each for each in self._placed if each.apart]:
                ties = self._find_ties(shape, other)
                if not ties.are_none:
                    for node, number in self._placed[other].items():
                        watch.count(ties, node, number)
            for other in [each for each in self._touched if looks or each.apart]:
                del self._touched[other]
        return watch

    def _find_ties(self, coming: PodShape, running: PodShape) -> _Ties:
        if not running.apart and not _looks_at_pods(coming):
            return _NONE
        ties = self._ties.get((coming, running))
        if ties is None:
            ties = self._ties[coming, running] = _Ties(
                AffinityTies.find(coming, running, self._namespaces), find_spread_ties(coming, running)
            )
        return ties


def _looks_at_pods(shape: PodShape) -> bool:
    """Pods of the shape are placed by those that run."""
    return bool(shape.near or shape.apart or shape.spread)


PlacedDevice: TypeAlias = tuple[str, str, str]
"""Driver, pool and name."""
PlacedShare: TypeAlias = tuple[PlacedDevice, Mapping[str, str] | None]
"""A device, and what a share takes of it by capacity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Devices and node resources that are not free.

    Args:
        devices: Devices that one claim has to itself, by driver, pool and name; those that the fleet does not publish
            are passed over.
        shares: Devices of which claims have shares, in the same way, each with what a share takes by capacity.
        amounts: What running pods take of each node, by its name.
        pods: Running pods with the names of their nodes; None when it is not known which run.
        policies: Namespaces, LimitRanges, ResourceQuotas, RuntimeClasses and DeviceTaintRules.
        templates: ResourceClaimTemplates of others, and their ResourceClaims, which pods may name.
        made: What others' claims and pods count for in quotas, by namespace.
        grouped: How many of the pods are in each PodGroup, by its namespace and name.
        evicted: Pods of others that have lost their node or devices and are not among *pods*, as controllers make them anew.
        gone: These pods and others that no controller replaces, and the claims that they leave.
        notes: Who these are, in the user's words.
    """

    devices: frozenset[PlacedDevice] = frozenset()
    shares: tuple[PlacedShare, ...] = field(default=(), hash=False)
    amounts: Mapping[str, Amounts] = field(default_factory=dict, hash=False)
    pods: tuple[tuple[str, PodShape], ...] | None = None
    policies: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    templates: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    made: Mapping[str, Use] = field(default_factory=dict, hash=False)
    grouped: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)
    evicted: tuple[PodTemplate, ...] = ()
    gone: frozenset[ObjectRef] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> AllocatedState:
        """Devices that are in use, for the allocator."""
        whole = AllocatedState(DeviceID(*each) for each in sorted(self.devices))
        return whole.with_devices((DeviceID(*each), consumed, True) for each, consumed in self.shares)

    def left_of(self, node: str, amounts: Amounts) -> Amounts:
        """Amounts that a node with *amounts* has left; less than none counts as none."""
        taken = self.amounts.get(node)
        if not taken:
            return amounts
        return {name: max(amount - taken.get(name, 0), 0) for name, amount in amounts.items()}


NOTHING_TAKEN = Taken()
"""No devices, no claims and no pods on any node."""
