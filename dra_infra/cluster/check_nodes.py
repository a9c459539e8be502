"""Nodes: GPUs that nobody publishes, that two publish, and MIG that is not as it was asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.cluster.evidence import Evidence
from dra_infra.cluster.kinds import DAEMON_SETS, NODES, SLICES
from dra_infra.cluster.nvidia import GPU_DRIVER, PLUGIN_RESOURCE, drivers_of, has_gpus
from dra_infra.cluster.objects import full_name, labels_of, mapping, mappings, name_of, text
from dra_infra.errors import Problem
from dra_infra.model.fleet import Node, NodeTaint
from dra_infra.simulation.node_filters import NodeFilter

_MIG_CONFIG: Final = "nvidia.com/mig.config"
_MIG_STATE: Final = "nvidia.com/mig.config.state"
_MIG_RESOURCE: Final = "nvidia.com/mig-"


def check_nodes(evidence: Evidence, drivers: set[str]) -> Iterator[Problem]:
    """Codes `driver-not-on-node`, `plugin-not-on-node`, `device-plugin-beside-dra`, `mig-state`."""
    if GPU_DRIVER not in drivers:
        return
    published: defaultdict[str, int] = defaultdict(int)
    for each in evidence.of(SLICES):
        spec = mapping(each.get("spec"))
        if spec.get("driver") == GPU_DRIVER:
            published[text(spec.get("nodeName"))] += len(mappings(spec.get("devices")))
    plugins = [each for each in evidence.of(DAEMON_SETS) if GPU_DRIVER in drivers_of(each)]
    for node in evidence.of(NODES):
        name = name_of(node)
        # A cluster without any device is told once, by `driver-missing`.
        if evidence.saw(SLICES) and any(published.values()) and has_gpus(node) and not published.get(name):
            yield _runs_without(node) if name in published else _not_published(node, plugins)
        elif has_gpus(node) and plugins and (refusal := _refusal(node, plugins)):
            yield _cannot_run(node, plugins, refusal)
        if published.get(name):
            yield from _twice(node, published[name])
        yield from _mig(node)


def _not_published(node: Mapping[str, Any], plugins: Sequence[Mapping[str, Any]]) -> Problem:
    refusal = _refusal(node, plugins) if plugins else ""
    if refusal:
        return _cannot_run(node, plugins, refusal)
    return Problem(
        path=f"Node {name_of(node)}",
        code="driver-not-on-node",
        message="its labels say that it has NVIDIA GPUs, and no ResourceSlice of gpu.nvidia.com is for it",
        hint="see the driver's pod on that node: it registers with the kubelet, and then publishes",
    )


def _runs_without(node: Mapping[str, Any]) -> Problem:
    """A driver that finds no device shows by a slice without any that it runs (k8s.io/dynamic-resource-allocation asks for that)."""
    return Problem(
        path=f"Node {name_of(node)}",
        code="driver-not-on-node",
        message="its labels say that it has NVIDIA GPUs, and its ResourceSlices of gpu.nvidia.com have no device",
        hint="the driver's pod on that node runs and offers none: see its log",
    )


def _cannot_run(node: Mapping[str, Any], plugins: Sequence[Mapping[str, Any]], refusal: str) -> Problem:
    fix = (
        "add the toleration to kubeletPlugin.tolerations"
        if "taint" in refusal
        else "label the node, in the template of its pool"
    )
    return Problem(
        path=f"Node {name_of(node)}",
        code="plugin-not-on-node",
        message=f"DaemonSet {full_name(plugins[0])} cannot run on it: {refusal}",
        hint=f"{fix}; values of the driver's chart",
    )


def _refusal(node: Mapping[str, Any], plugins: Sequence[Mapping[str, Any]]) -> str:
    """Why no pod of the DaemonSets may run on a node; empty when one may."""
    plain = _node(node)
    reasons = [
        NodeFilter(
            mapping(mapping(mapping(each.get("spec")).get("template")).get("spec")), daemon=True
        ).refusal(plain)
        for each in plugins
    ]
    return "" if not all(reasons) else reasons[0]


def _twice(node: Mapping[str, Any], devices: int) -> Iterator[Problem]:
    allocatable = mapping(mapping(node.get("status")).get("allocatable"))
    for resource in sorted(allocatable):
        if resource != PLUGIN_RESOURCE and not resource.startswith(_MIG_RESOURCE):
            continue
        if str(allocatable[resource]) not in ("", "0"):
            yield Problem(
                path=f"Node {name_of(node)}",
                code="device-plugin-beside-dra",
                message=f"the device plugin gives out {resource}: {allocatable[resource]}, and slices have "
                f"{devices} devices of the same GPUs: they are given out twice",
                hint="switch the device plugin off on this node, or the GPUs of the DRA driver",
            )


def _mig(node: Mapping[str, Any]) -> Iterator[Problem]:
    labels = labels_of(node)
    state = labels.get(_MIG_STATE)
    if state in ("failed", "pending", "rebooting"):
        failed = state == "failed"
        yield Problem(
            path=f"Node {name_of(node)}",
            code="mig-state",
            message=f"{_MIG_CONFIG}={labels.get(_MIG_CONFIG, '')} is {state}",
            hint="see the log of the MIG manager's pod on that node; afterwards restart the driver's pod, which does not "
            "notice static MIG devices by itself",
            severity="error" if failed else "warning",
        )


def _node(item: Mapping[str, Any]) -> Node:
    spec = mapping(item.get("spec"))
    return Node(
        name=name_of(item),
        labels={key: str(value) for key, value in labels_of(item).items()},
        allocatable={},
        taints=tuple(
            NodeTaint(
                key=text(each.get("key")), value=text(each.get("value")), effect=text(each.get("effect"))
            )
            for each in mappings(spec.get("taints"))
        ),
        unschedulable=spec.get("unschedulable") is True,
    )
