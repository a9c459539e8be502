"""A fleet: the nodes, the ResourceSlices published for them, and the classes that come with their drivers.

DeviceTaintRules put their taints on devices, and the scheduler sees the slices with them. Upstream:
staging/src/k8s.io/dynamic-resource-allocation/resourceslice/tracker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.kubernetes.api.device_taints import DeviceTaintRule, DeviceTaintSelector
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.resource_slice import Device, ResourceSlice
from dra_infra.kubernetes.problems import Problem


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


GATE: Final = "DRADeviceTaintRules"


def with_taint_rules(
    slices: Sequence[ResourceSlice], manifests: Iterable[Mapping[str, Any]], release: Release
) -> tuple[list[ResourceSlice], list[Problem]]:
    """The slices with the taints of rules, and `not-modelled` for rules whose devices are not found here."""
    rules, problems = [], []
    for manifest in manifests:
        if manifest.get("kind") != "DeviceTaintRule" or not release.enabled(GATE):
            continue
        try:
            rule = DeviceTaintRule.from_manifest({**manifest, "apiVersion": "resource.k8s.io/v1"})
        except ValidationError:
            rule = None
        selector = rule.spec.device_selector if rule is not None else None
        if rule is None or (selector and (selector.device_class_name or selector.selectors)):
            metadata = manifest.get("metadata")
            name = metadata.get("name") if isinstance(metadata, Mapping) else None
            problems.append(
                Problem(
                    path=f"DeviceTaintRule {name}",
                    code="not-modelled",
                    message="its selector is not understood, so its taint is on no device here",
                    hint="driver, pool and device are",
                    severity="warning",
                )
            )
        elif selector is not None:
            rules.append((selector, rule))
    return [_tainted(each, rules) for each in slices] if rules else list(slices), problems


def _tainted(
    slice_: ResourceSlice, rules: Sequence[tuple[DeviceTaintSelector, DeviceTaintRule]]
) -> ResourceSlice:
    spec = slice_.spec
    here = [
        (selector, rule)
        for selector, rule in rules
        if selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name)
    ]
    if not here or not spec.devices:
        return slice_
    devices = [_device(each, here) for each in spec.devices]
    return slice_.changed({"spec": spec.changed({"devices": devices})})


def _device(device: Device, rules: Sequence[tuple[DeviceTaintSelector, DeviceTaintRule]]) -> Device:
    added = [rule.spec.taint for selector, rule in rules if selector.device in (None, device.name)]
    return device.changed({"taints": [*(device.taints or ()), *added]}) if added else device
