"""A fleet: the nodes, the device slices published for them, and the classes that come with their drivers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.resource_slice import ResourceSlice


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class NodeTaint:
    """Keeps pods without a matching toleration off a node."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """What the scheduler looks at on a node.

    Args:
        name: Name of the Node object.
        labels: Labels as they are on the object; nothing is added.
        allocatable: Quantities as written, by resource name, such as `{"cpu": "224", "pods": "110"}`.
        taints: Taints of `spec.taints`.
        unschedulable: `spec.unschedulable`, as `kubectl cordon` sets it.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    allocatable: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[NodeTaint, ...] = ()
    unschedulable: bool = False

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """Hardware to place pods on; every device and node in it is free.

    Args:
        name: What the user called it: `hgx-h100 x 4`, or the path of the file.
        nodes: The nodes, sorted by name.
        slices: The published devices, sorted by name of the slice object.
        classes: The device classes that the drivers of the fleet ship, sorted by name.
        notes: What was in the source and is not part of the answer, in the user's words.
    """

    name: str
    nodes: tuple[Node, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def device_count(self) -> int:
        """How many devices the slices hold, whatever their pool's state."""
        return sum(len(slice_.spec.devices or ()) for slice_ in self.slices)

    def to_manifests(self) -> tuple[dict[str, Any], ...]:
        """The fleet as Kubernetes objects: classes, then nodes, then slices."""
        return (
            *(class_.to_manifest() for class_ in self.classes),
            *(node.to_manifest() for node in self.nodes),
            *(slice_.to_manifest() for slice_ in self.slices),
        )


def _taint_manifest(taint: NodeTaint) -> dict[str, str]:
    manifest = {"key": taint.key, "effect": taint.effect}
    return {**manifest, "value": taint.value} if taint.value else manifest
