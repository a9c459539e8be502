"""Pod shapes: the parts of a pod that decide where it and other pods can go beside each other.

Shapes are equal for the pods of a workload.

Source: newAffinityTerm and getNamespacesFromPodAffinityTerm in k8s.io/kube-scheduler/framework/types.go,
filterTopologySpreadConstraints of the podtopologyspread plugin, GetHostPorts in pkg/scheduler/util.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.kubernetes.api.label_selectors import LabelSelector, Namespaces, read_texts
from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.scheduler.node_filters import NodeFilter

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  (nothing is bound here)

POD_SHAPE_FIELDS: Final = ("affinity", "topologySpreadConstraints", "hostNetwork")
"""Fields of a pod spec that decide here, ports of containers aside."""


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods to be near to, or away from.

    Args:
        topology_key: Label of nodes; nodes with one value are one place.
        selector: Which pods.
        namespaces: In these namespaces.
        namespace_selector: And in those with such labels.
    """

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector

    def matches(self, pod: PodShape, namespaces: Namespaces) -> bool:
        """Checks that the term is about the pod."""
        return (
            pod.namespace in self.namespaces
            or self.namespace_selector.matches(namespaces.labels_of(pod.namespace))
        ) and self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One of `topologySpreadConstraints` with `DoNotSchedule`.

    Args:
        topology_key: Label of nodes; nodes with one value are one place.
        max_skew: How many more pods than in the emptiest place there may be.
        selector: Which pods count, of the pod's own namespace.
        min_domains: With fewer places than this, the emptiest counts as empty.
        honors_affinity: Whether only nodes count that the pod's selector and affinity let it go to.
        honors_taints: Whether only nodes count whose taints it tolerates.
    """

    topology_key: str
    max_skew: int
    selector: LabelSelector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, order=True, slots=True)
class HostPort:
    """A port of the node."""

    address: str
    protocol: str
    port: int

    def __str__(self) -> str:
        where = "" if self.address == ANY_ADDRESS else f" of {self.address}"
        return f"{self.port}/{self.protocol}{where}"

    def conflicts(self, other: HostPort) -> bool:
        """Checks that not both ports can be taken; every address conflicts with 0.0.0.0."""
        same = (self.port, self.protocol) == (other.port, other.protocol)
        return same and (self.address == other.address or ANY_ADDRESS in (self.address, other.address))


@dataclass(frozen=True, slots=True)
class PodShape:
    """Pods that are the same to the plugins that look at other pods; equal by `key`.

    Args:
        key: All of the other arguments as text.
        namespace: Where they are.
        labels: Theirs.
        near: Required affinity.
        apart: Required anti-affinity.
        spread: How they have to be spread.
        ports: Ports of the node that they take.
        filter: Their filters of single nodes.
        is_daemon: Whether each is bound to one node by its controller.
        is_going: Whether they are being deleted: spreading does not count them.
    """

    key: str
    namespace: str = field(compare=False)
    labels: Mapping[str, str] = field(compare=False)
    near: tuple[AffinityTerm, ...] = field(default=(), compare=False)
    apart: tuple[AffinityTerm, ...] = field(default=(), compare=False)
    spread: tuple[SpreadConstraint, ...] = field(default=(), compare=False)
    ports: tuple[HostPort, ...] = field(default=(), compare=False)
    filter: NodeFilter = field(default_factory=lambda: NodeFilter({}), compare=False)
    is_daemon: bool = field(default=False, compare=False)
    is_going: bool = field(default=False, compare=False)

    @property
    def asks(self) -> bool:
        """Other pods decide where it goes, by what it asks for itself."""
        return bool(self.near or self.apart or self.spread or self.ports)

    @property
    def only_fills(self) -> bool:
        """A node that refuses it goes on to do so while pods are added."""
        return not self.near and not self.spread


def read_shape(
    spec: Mapping[str, Any],
    namespace: str,
    labels: Mapping[str, str],
    *,
    is_daemon: bool = False,
    is_going: bool = False,
) -> PodShape:
    """Reads the parts of a pod spec and its labels that decide beside other pods.

    Args:
        spec: The pod spec.
        namespace: Of the pod.
        labels: All of them, those of its controller included.
        is_daemon: Whether it is one of a DaemonSet.
        is_going: Whether it is being deleted.
    """
    affinity = mapping(spec.get("affinity"))
    near, apart = (
        tuple(
            _read_term(term, namespace, labels)
            for term in mappings(mapping(affinity.get(name)).get(REQUIRED))
        )
        for name in ("podAffinity", "podAntiAffinity")
    )
    spread = tuple(
        _read_spread(each, labels)
        for each in mappings(spec.get("topologySpreadConstraints"))
        if each.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
    )
    ports = find_host_ports(spec)
    # Where it may go decides only what its spreading counts.
    of_nodes = {name: spec[name] for name in ("nodeSelector", "tolerations") if spec.get(name)}
    of_nodes["nodeAffinity"] = affinity.get("nodeAffinity")
    key = json.dumps(
        [
            namespace,
            labels,
            [affinity.get("podAffinity"), affinity.get("podAntiAffinity")] if near or apart else [],
            [spec.get("topologySpreadConstraints"), of_nodes] if spread else [],
            [str(port) for port in ports],
            is_daemon and bool(spread),
            is_going,
        ],
        sort_keys=True,
        default=str,
    )
    return PodShape(
        key=key,
        namespace=namespace,
        labels=dict(labels),
        near=near,
        apart=apart,
        spread=spread,
        ports=ports,
        filter=NodeFilter(spec, daemon=is_daemon),
        is_daemon=is_daemon,
        is_going=is_going,
    )


def find_host_ports(spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """The ports of the node that a pod takes: those of containers that run as long as it does.

    In the network of the host every port of a container is one, as the server fills in.
    """
    found: set[HostPort] = set()
    for kind in ("initContainers", "containers"):
        for container in mappings(spec.get(kind)):
            if kind == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            for port in mappings(container.get("ports")):
                number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0)
                if isinstance(number, (int, float)) and number > 0:
                    address = port.get("hostIP") or ANY_ADDRESS
                    protocol = port.get("protocol") or "TCP"
                    found.add(HostPort(str(address), str(protocol), int(number)))
    return tuple(sorted(found))


def _read_term(term: Mapping[str, Any], namespace: str, labels: Mapping[str, str]) -> AffinityTerm:
    names, selector = term.get("namespaces"), term.get("namespaceSelector")
    written = frozenset(str(name) for name in names) if isinstance(names, list) else frozenset[str]()
    return AffinityTerm(
        topology_key=str(term.get("topologyKey") or ""),
        selector=LabelSelector.read(term.get("labelSelector")).narrowed(
            labels,
            like=read_texts(term.get("matchLabelKeys")),
            unlike=read_texts(term.get("mismatchLabelKeys")),
        ),
        namespaces=written if written or selector is not None else frozenset((namespace,)),
        namespace_selector=LabelSelector.read(selector),
    )


def _read_spread(constraint: Mapping[str, Any], labels: Mapping[str, str]) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=str(constraint.get("topologyKey") or ""),
        max_skew=_number(constraint.get("maxSkew")),
        selector=LabelSelector.read(constraint.get("labelSelector")).narrowed(
            labels, like=read_texts(constraint.get("matchLabelKeys"))
        ),
        min_domains=_number(constraint.get("minDomains")),
        honors_affinity=constraint.get("nodeAffinityPolicy", "Honor") == "Honor",
        honors_taints=constraint.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )


def _number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) else 1
