"""The scheduler's filters that look at one node and one pod only: name, cordon, taints, selector, affinity, and allocated claims.

They run in the order of the default plugins. The first one that refuses gives the scheduler's reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dra_infra.kubernetes.api.label_selectors import matches_node_selector
from dra_infra.kubernetes.api.manifests import mapping, value_at
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.nodes import Node, NodeTaint

_CORDON = NodeTaint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

_ADMISSION_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute"}
    for state in ("not-ready", "unreachable")
)
"""Tolerations that the API server adds to every pod (admission plugin DefaultTolerationSeconds)."""

_DAEMON_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoSchedule"}
    for state in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
"""Tolerations that the DaemonSet controller adds to its pods (AddOrUpdateDaemonPodTolerations)."""

NODE_FILTER_FIELDS = ("nodeName", "nodeSelector", "affinity", "tolerations")
"""Fields of a pod spec that decide here."""


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why a pod may not run on a node.

    Args:
        text: The reason in the user's words.
        field: The field of the pod's spec that decides it; `unschedulable` for that of the node, empty where nothing can be changed for it.
        taint: The taint that no toleration takes.
        key: The label that the node selector wants otherwise, or the resource that is short.
    """

    text: str
    field: Literal[
        "", "affinity", "nodeName", "nodeSelector", "resources", "tolerations", "unschedulable"
    ] = ""
    taint: NodeTaint | None = None
    key: str = ""

    def __str__(self) -> str:
        return self.text


class NodeFilter:
    """The node filters of one pod spec.

    Args:
        spec: The pod spec.
        daemon: Whether a DaemonSet makes the pod.
        waits: Whether the pod has claims that only the scheduler allocates, and by which it is not placed where it names
            its node: the kubelet of that node waits for them.
        claims: Claims of the pod that are allocated, or on their way out.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        *,
        daemon: bool = False,
        waits: bool = False,
        claims: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._claims = claims
        self._node_name = spec.get("nodeName")
        self._waits = waits and bool(self._node_name)
        self._labels = mapping(spec.get("nodeSelector"))
        affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
        self._required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        written = spec.get("tolerations")
        self._tolerations: list[Mapping[str, Any]] = [
            *(item for item in (written if isinstance(written, list) else ()) if isinstance(item, Mapping)),
            *_ADMISSION_TOLERATIONS,
            *(_DAEMON_TOLERATIONS if daemon else ()),
        ]

    def refusal(self, node: Node) -> str:
        """The first reason why the pod may not run on the node, in the user's words; empty when it may."""
        return _first_text(self.refusals(node))

    def refusals(self, node: Node) -> Iterator[NodeRefusal]:
        """Yield all reasons why the pod may not run on the node, in order."""
        if self._waits:
            yield NodeRefusal(f"{goes_round(self._node_name)} allocates its claims", "nodeName")
        elif self._node_name and self._node_name != node.name:
            yield NodeRefusal(f"spec.nodeName asks for {self._node_name}")
        if node.unschedulable and not tolerates(self._tolerations, _CORDON):
            yield NodeRefusal("the node is cordoned", "unschedulable")
        yield from self._refuse_taints(node)
        yield from self._refuse_labels(node)
        for claim in self._claims:
            selector = value_at(claim, "status", "allocation", "nodeSelector")
            if value_at(claim, "metadata", "deletionTimestamp"):
                # No pod gets it any more: foreachPodResourceClaim of the plugin DynamicResources.
                yield NodeRefusal(f"{ObjectRef.of(claim)} is being deleted")
            elif selector is not None and not matches_node_selector(
                mapping(selector), node.labels, node.name
            ):
                yield NodeRefusal(f"{ObjectRef.of(claim)} is allocated, and not for this node")

    def refuse_taints(self, node: Node) -> str:
        """The first taint that is not tolerated; TaintToleration."""
        return _first_text(self._refuse_taints(node))

    def refuse_labels(self, node: Node) -> str:
        """The first part of node selector and required node affinity that the node does not match; NodeAffinity."""
        return _first_text(self._refuse_labels(node))

    def _refuse_taints(self, node: Node) -> Iterator[NodeRefusal]:
        for taint in node.taints:
            if taint.effect in ("NoSchedule", "NoExecute") and not tolerates(self._tolerations, taint):
                value = f"={taint.value}" if taint.value else ""
                text = f"taint {taint.key}{value}:{taint.effect} is not tolerated"
                yield NodeRefusal(text, "tolerations", taint=taint)

    def _refuse_labels(self, node: Node) -> Iterator[NodeRefusal]:
        for key, wanted in self._labels.items():
            value = node.labels.get(str(key))
            if value != str(wanted):
                found = "is not there" if value is None else f"is {value}"
                text = f"nodeSelector wants {key}={wanted}, and the label {found}"
                yield NodeRefusal(text, "nodeSelector", key=str(key))
        if self._required is not None and not matches_node_selector(
            mapping(self._required), node.labels, node.name
        ):
            yield NodeRefusal("required node affinity matches no term", "affinity")


def _first_text(refusals: Iterator[NodeRefusal]) -> str:
    return next((each.text for each in refusals), "")


def goes_round(node_name: object) -> str:
    """Tells that a pod which names its node lacks what the scheduler does; what that is follows."""
    return f"spec.nodeName {node_name} takes the pod round the scheduler, which alone"


def tolerates(tolerations: Sequence[Mapping[str, Any]], taint: NodeTaint) -> bool:
    """Checks that one of the tolerations takes the taint; ToleratesTaint of core/v1."""
    return any(_takes(toleration, taint) for toleration in tolerations)


def _takes(toleration: Mapping[str, Any], taint: NodeTaint) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    if toleration.get("key") and toleration["key"] != taint.key:
        return False
    if toleration.get("operator") in (None, "", "Equal"):
        return str(toleration.get("value") or "") == taint.value
    return toleration.get("operator") == "Exists"
