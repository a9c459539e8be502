"""Checks of the nodes and drivers of a cluster.

- Nodes: GPUs that nobody publishes, that two publish, and MIG that is not as it was asked for.
- Drivers: whether they run, publish devices, and have classes and definitions that fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

from dra_infra.client.kinds import CLASSES, DAEMON_SETS, DEFINITIONS, NODES, SLICES
from dra_infra.client.objects import full_name, labels_of, name_of, namespace_of, number, text
from dra_infra.cluster.evidence import Evidence, drivers_of_class
from dra_infra.cluster.kubelets import describe_old_kubelet, read_version
from dra_infra.cluster.nvidia import DOMAIN_DRIVER, GPU_DRIVER, drivers_of, has_gpus, version_of
from dra_infra.cutover.sides import find_twice, is_of_plugin
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import Node, NodeTaint, mapping, mappings, value_at
from dra_infra.kubernetes.scheduler import NodeFilter
from dra_infra.output.wording import count_of

_MIG_CONFIG: Final = "nvidia.com/mig.config"
_MIG_STATE: Final = "nvidia.com/mig.config.state"


def check_nodes(evidence: Evidence, drivers: set[str]) -> Iterator[Problem]:
    """Codes `driver-not-on-node`, `plugin-not-on-node`, `device-plugin-beside-dra`, `mig-state`, `kubelet-too-old`."""
    published = Counter[tuple[str, str]]()
    for spec in (mapping(each.get("spec")) for each in evidence.of(SLICES)):
        if (driver := text(spec.get("driver"))) in drivers:
            published[text(spec.get("nodeName")), driver] += len(mappings(spec.get("devices")))
    plugins = _plugins(evidence)
    kept = nodes_on_plugin(evidence)
    # A cluster without any device is told once, by `driver-missing`.
    some = evidence.saw(SLICES) and any(
        number for (_, driver), number in published.items() if driver == GPU_DRIVER
    )
    for node in evidence.of(NODES):
        name = name_of(node)
        yield from _old_kubelet(node, evidence)
        yield from find_twice(name, mapping(value_at(node, "status", "allocatable")), published)
        if GPU_DRIVER not in drivers:
            continue
        key = (name, GPU_DRIVER)
        has_any = has_gpus(node) and name not in kept
        if has_any and some and not published.get(key):
            yield _runs_without(node) if key in published else _not_published(node, plugins)
        elif has_any and plugins and (refusal := _refusal(node, plugins)):
            yield _cannot_run(node, plugins, refusal)
        yield from _mig(node)


def _old_kubelet(node: Mapping[str, Any], evidence: Evidence) -> Iterator[Problem]:
    """Yield that a kubelet cannot read claims, so that no pod with a claim starts on its node."""
    kubelet = text(value_at(node, "status", "nodeInfo", "kubeletVersion"))
    old = describe_old_kubelet(kubelet, evidence.served or ())
    if old:
        yield Problem(
            path=f"Node {name_of(node)}",
            code="kubelet-too-old",
            message=f"pods with claims do not start here: {old}",
            hint=f"upgrade the kubelet to {evidence.minor or '1.34'}, or start the API server with "
            f"--runtime-config=resource.k8s.io/{read_version(kubelet)}=true",
        )


def nodes_on_plugin(evidence: Evidence) -> frozenset[str]:
    """Nodes whose GPUs the device plugin gives out, that publish none, and that no DaemonSet of the driver chooses by their labels.

    They are on the plugin on purpose, as in a cut-over nodes are that have not left it.
    """
    published = {
        text(spec.get("nodeName"))
        for spec in (mapping(each.get("spec")) for each in evidence.of(SLICES))
        if spec.get("driver") == GPU_DRIVER and spec.get("devices")
    }
    plugins = _filters(_plugins(evidence))
    return frozenset(
        name_of(each)
        for each in evidence.of(NODES)
        if name_of(each) not in published
        and any(
            is_of_plugin(resource) and str(amount) not in ("", "0")
            for resource, amount in mapping(value_at(each, "status", "allocatable")).items()
        )
        and all(map(NodeFilter.refuse_labels, plugins, repeat(_node(each))))
    )


def _plugins(evidence: Evidence) -> list[Mapping[str, Any]]:
    return [each for each in evidence.of(DAEMON_SETS) if GPU_DRIVER in drivers_of(each)]


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
    reasons = [each.refusal(plain) for each in _filters(plugins)]
    return "" if not all(reasons) else reasons[0]


def _filters(plugins: Sequence[Mapping[str, Any]]) -> list[NodeFilter]:
    specs = (mapping(value_at(each, "spec", "template", "spec")) for each in plugins)
    return [NodeFilter(each, daemon=True) for each in specs]


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


_DOMAINS: Final = "computedomains.resource.nvidia.com"
_CLIQUES: Final = "computedomaincliques.resource.nvidia.com"
_WITHOUT_CLIQUES: Final = ("25.3", "25.8")
"""Releases before ComputeDomainCliques, which is on by default from 25.12 on."""


def check_drivers(evidence: Evidence, drivers: set[str], *, asked: str = "") -> Iterator[Problem]:
    """Codes `driver-missing`, `class-missing`, `class-without-devices`, `plugin-not-ready`, `namespace-refused`, `stale-definition`."""
    specs = [mapping(each.get("spec")) for each in evidence.of(SLICES)]
    published = {text(each.get("driver")) for each in specs if each.get("devices")}
    # A driver that finds no device shows by a slice without any that it runs (k8s.io/dynamic-resource-allocation asks for that).
    running = {text(each.get("driver")) for each in specs}
    installed = {name for each in evidence.of(DAEMON_SETS) for name in drivers_of(each)}
    with_class = {name for each in evidence.of(CLASSES) for name in drivers_of_class(each)}
    kept = nodes_on_plugin(evidence)
    is_before = bool(kept) and all(name_of(each) in kept for each in evidence.of(NODES) if has_gpus(each))
    # Before a cut-over the driver is to run on no node with GPUs.
    idle = {GPU_DRIVER, DOMAIN_DRIVER} - {*running, asked} if is_before else set()
    for driver in sorted(drivers):
        needed = driver in {asked, GPU_DRIVER, *installed}
        if evidence.saw(SLICES) and driver in idle:
            if driver == GPU_DRIVER:
                yield _idle(len(kept))
        elif evidence.saw(SLICES) and driver not in published and needed:
            yield _missing(
                driver,
                is_running=driver in running,
                is_installed=driver in installed,
                was_looked=evidence.saw(DAEMON_SETS),
            )
        if evidence.saw(CLASSES) and driver in published and driver not in with_class:
            yield Problem(
                path=f"driver {driver}",
                code="class-missing",
                message="it publishes devices, and no DeviceClass names it in a selector",
                hint=f'add a DeviceClass with the selector: device.driver == "{driver}"',
                severity="warning",
            )
    for each in evidence.of(CLASSES) if evidence.saw(SLICES) else ():
        named = drivers_of_class(each)
        if named and named <= drivers and not named & (published | idle):
            yield Problem(
                path=f"DeviceClass {name_of(each)}",
                code="class-without-devices",
                message=f"it is for {', '.join(sorted(named))}, which publishes no device: claims of it wait",
                hint="install the driver, or remove the class",
                severity="warning",
            )
    for each in evidence.of(DAEMON_SETS):
        if drivers_of(each) & drivers:
            yield from _daemon_set(each, may_idle=drivers_of(each) <= idle)
    yield from _definitions(evidence)


def _idle(nodes: int) -> Problem:
    return Problem(
        path=f"driver {GPU_DRIVER}",
        code="driver-missing",
        message=f"no node publishes devices of it: the device plugin gives out the GPUs of {count_of(nodes, 'node')}",
        hint="dra-infra migrate --plan says how nodes go from the plugin to the driver",
        severity="warning",
    )


def _missing(driver: str, *, is_running: bool, is_installed: bool, was_looked: bool) -> Problem:
    if is_running:
        message = "it runs, and none of its ResourceSlices has a device"
        hint = "see the log of its pods: they say where they look for devices, and what they find"
    elif is_installed:
        message = "its DaemonSet is there, and no node publishes devices"
        hint = "see the log of its pods: the init container says what it does not find under the driver root"
    else:
        message = "no node publishes devices of it" + (", and no DaemonSet runs it" if was_looked else "")
        hint = "install the driver's chart, with the GPUs switched on"
    return Problem(path=f"driver {driver}", code="driver-missing", message=message, hint=hint)


def _daemon_set(item: Mapping[str, Any], *, may_idle: bool) -> Iterator[Problem]:
    path = f"DaemonSet {full_name(item)}"
    status = mapping(item.get("status"))
    wanted, ready = (number(status.get(name)) for name in ("desiredNumberScheduled", "numberReady"))
    if wanted == 0 and may_idle:
        pass
    elif wanted == 0:
        yield Problem(
            path=path,
            code="plugin-not-ready",
            message="it wants to run on no node",
            hint="its node selector and affinity match none: label the GPU nodes, as nvidia.com/gpu.present=true",
        )
    elif ready < wanted:
        yield Problem(
            path=path,
            code="plugin-not-ready",
            message=f"{ready} of {count_of(wanted, 'pod')} are ready",
            hint=f"kubectl describe pods -n {namespace_of(item)}; the init container's log says what it waits for",
        )
    if namespace_of(item) == "default" and GPU_DRIVER in drivers_of(item):
        yield Problem(
            path=path,
            code="namespace-refused",
            message="NVIDIA's driver is in the namespace default, where its chart refuses to be",
            hint="install it in a namespace of its own, labelled pod-security.kubernetes.io/enforce=privileged",
            severity="warning",
        )


def _definitions(evidence: Evidence) -> Iterator[Problem]:
    if not evidence.saw(DEFINITIONS, DAEMON_SETS):
        return
    there = {name_of(each) for each in evidence.of(DEFINITIONS)}
    plugins = [each for each in evidence.of(DAEMON_SETS) if DOMAIN_DRIVER in drivers_of(each)]
    if _DOMAINS in there and not plugins:
        yield Problem(
            path=f"CustomResourceDefinition {_DOMAINS}",
            code="stale-definition",
            message="no DaemonSet runs compute-domain.nvidia.com, so nobody acts on ComputeDomains",
            hint="install the driver with computeDomains, or delete the definition and with it every ComputeDomain",
            severity="warning",
        )
    for each in plugins:
        version = version_of(each)
        line = ".".join(version.split(".")[:2])
        if version and line not in _WITHOUT_CLIQUES and _CLIQUES not in there:
            yield Problem(
                path=f"DaemonSet {full_name(each)}",
                code="stale-definition",
                message=f"release {version} needs {_CLIQUES}, which is not there: Helm never upgrades CRDs",
                hint="kubectl apply --server-side -f with the folder crds/ of the chart of that release",
            )
