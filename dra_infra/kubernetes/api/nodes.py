"""Nodes, as far as the scheduler looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class NodeTaint:
    """Keeps pods without a matching toleration off a node."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A node, as far as the scheduler looks at it.

    Args:
        name: Name of the Node object.
        labels: Labels as they are on the object; nothing is added.
        allocatable: Quantities as written, by resource name, such as `{"cpu": "224", "pods": "110"}`.
        taints: Taints of `spec.taints`.
        unschedulable: `spec.unschedulable`, as `kubectl cordon` sets it.
        kubelet: `status.nodeInfo.kubeletVersion`; the scheduler does not look at it, nor at `is_ready`.
        is_ready: Whether the condition `Ready` is True; None where the node has no such condition.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    allocatable: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[NodeTaint, ...] = ()
    unschedulable: bool = False
    kubelet: str = field(default="", compare=False)
    is_ready: bool | None = field(default=None, compare=False)

    def to_manifest(self) -> dict[str, Any]:
        """The Node object with a Ready condition; a server takes `status` only through its own subresource."""
        spec: dict[str, Any] = {}
        if self.unschedulable:
            spec["unschedulable"] = True
        if self.taints:
            spec["taints"] = [_taint_manifest(taint) for taint in self.taints]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": dict(self.labels)},
            "spec": spec,
            "status": {
                "capacity": dict(self.allocatable),
                "allocatable": dict(self.allocatable),
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }


def _taint_manifest(taint: NodeTaint) -> dict[str, str]:
    manifest = {"key": taint.key, "effect": taint.effect}
    return {**manifest, "value": taint.value} if taint.value else manifest
