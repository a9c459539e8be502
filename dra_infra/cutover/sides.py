"""The two sides of a cluster in a cut-over: nodes of the device plugin, and nodes of the DRA driver.

On a node of the plugin its resources are in the allocatable, and there are no slices of the GPU driver. On a node of the driver there
are slices, and the kubelet keeps the plugin's resources with an amount of 0 (kubernetes/kubernetes#133784).
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from dra_infra.catalog import load_fleet
from dra_infra.catalog.machines import INSTANCE_TYPE, node_kinds
from dra_infra.catalog.records import fleet_kinds
from dra_infra.errors import FleetError, Problem
from dra_infra.fleet import Fleet, renamed_slice
from dra_infra.kubernetes.api import (
    Device,
    DeviceAttribute,
    Node,
    NodeTaint,
    PodTemplate,
    Quantity,
    ResourceSlice,
    Semver,
    find_all,
)
from dra_infra.kubernetes.scheduler import NODE_FILTER_FIELDS, NodeFilter, node_amounts, pod_requests
from dra_infra.migration.device_plugin import OTHERS, WHOLE_GPU, DevicePlugin, read_node_labels
from dra_infra.migration.plugin_configs import as_discovered
from dra_infra.output.wording import join_words

GPU_DRIVER: Final = "gpu.nvidia.com"
AWAY: Final = NodeTaint(key="dra-infra/cut-over")
"""The taint of nodes that change sides: pods of DaemonSets tolerate a cordon."""

LABEL: Final = "nvidia.com/dra-kubelet-plugin"
"""The label of nodes on which the driver runs. Source: NVIDIA's guide on the DRA driver under the GPU Operator."""

OPERATOR: Final = "nvidia.com/gpu.deploy.device-plugin"
MOVED: Final = MappingProxyType({OPERATOR: "false", LABEL: "true"})
"""The labels that nodes on the driver's side get."""

_PRODUCT: Final = "nvidia.com/gpu.product"
_MIG: Final = "nvidia.com/mig-"
_COUNT: Final = "nvidia.com/gpu.count"
_SPREAD: Final = (
    ("topologySpreadConstraints", "*"),
    ("affinity", "*", "requiredDuringSchedulingIgnoredDuringExecution", "*"),
)
"""Where a pod spec has labels of nodes by which pods keep together or apart."""

_OWN: Final = frozenset({"uuid", "parentUUID", "driverVersion", "cudaDriverVersion"})
"""Attributes that are different on every node, and those that nodes of one kind may differ in."""


def is_of_plugin(resource: str) -> bool:
    """True for a resource that NVIDIA's device plugin serves."""
    return resource in (WHOLE_GPU, f"{WHOLE_GPU}.shared") or resource.startswith(_MIG)


def find_twice(
    node: str, allocatable: Mapping[str, Any], published: Mapping[tuple[str, str], int]
) -> Iterator[Problem]:
    """The problems of a node whose GPUs a plugin and a driver give out: `device-plugin-beside-dra`; devices by node and driver."""
    for resource, amount in sorted(allocatable.items()):
        name = "amd.com/gpu" if resource.startswith("amd.com/") else resource
        driver = OTHERS[name].class_name if name in OTHERS else ""
        if is_of_plugin(resource):
            driver = GPU_DRIVER
        devices = published.get((node, driver), 0)
        if devices and str(amount) not in ("", "0"):
            yield Problem(
                path=f"Node {node}",
                code="device-plugin-beside-dra",
                message=f"the device plugin gives out {resource}: {amount}, and slices have "
                f"{devices} devices of the same GPUs: they are given out twice",
                hint="switch the device plugin off on this node, or the GPUs of the DRA driver",
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """The nodes of a cluster, each of which is on one of the two sides.

    Args:
        fleet: All nodes, with the slices that each of them has once it is on the driver's side.
        offered: What the plugin gives out, by node; nodes that begin on the driver's side, or have no GPU, are not in it.
        problems: Nodes of both sides.
        doubts: Why it is not known that the driver runs on some of the nodes.
        notes: How it is known what nodes will publish.
        made: Names of slices that nodes of the plugin have only once they are on the driver's side, beside those of GPUs.
    """

    fleet: Fleet
    offered: Mapping[str, Mapping[str, str]] = field(hash=False)
    problems: tuple[Problem, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    made: frozenset[str] = frozenset()

    def at(self, on_dra: frozenset[str], *, without: frozenset[str] = frozenset()) -> Fleet:
        """The fleet while these nodes of the plugin are on the driver's side, with its labels, and others take no pods."""
        nodes = []
        labelled = on_dra.union(self.on_driver)
        for each in self.fleet.nodes:
            offered = self.offered.get(each.name, {})
            amounts = dict.fromkeys(offered, "0") if each.name in on_dra else offered
            labels = {**each.labels, **(MOVED if each.name in labelled else {})}
            node = replace(each, labels=labels, allocatable={**each.allocatable, **amounts})
            away = each.name in without
            nodes.append(replace(node, unschedulable=True, taints=(*node.taints, AWAY)) if away else node)
        kept = self.offered.keys() - on_dra
        slices = [
            each
            for each in self.fleet.slices
            if each.spec.node_name not in kept
            or (each.spec.driver != GPU_DRIVER and each.metadata.name not in self.made)
        ]
        return replace(self.fleet, nodes=tuple(nodes), slices=tuple(slices))

    @property
    def on_driver(self) -> tuple[str, ...]:
        """The nodes that have the driver alone before any other leaves the plugin."""
        found = {each.spec.node_name or "" for each in self.fleet.slices if each.spec.driver == GPU_DRIVER}
        return tuple(sorted(found - self.offered.keys() - {""}))

    @property
    def has_domains(self) -> bool:
        """True where nodes have the driver for ComputeDomains beside the plugin."""
        kept = (each for each in self.at(frozenset()).slices if each.spec.node_name in self.offered)
        return any(each.spec.driver == "compute-domain.nvidia.com" for each in kept)

    @property
    def on_both(self) -> tuple[str, ...]:
        """The nodes of the plugin that have the driver, too."""
        named = {each.path.removeprefix("Node ") for each in self.problems}
        return tuple(sorted(self.offered.keys() & named))

    def alike(self, pods: Sequence[PodTemplate]) -> tuple[list[tuple[str, ...]], bool]:
        """The nodes of the plugin, those together that let in the same pods, and as many of each; and whether pods of several see no difference.

        Nodes of a real cluster differ in a few KiB of memory and in labels that nobody selects.
        """
        published: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in self.fleet.slices:
            published[each.spec.node_name or ""] += map(_describe, each.spec.devices or ())
        filters = dict[str, NodeFilter]()
        spread = set[str]()
        asked = set[tuple[str, int]]()
        for pod in pods:
            daemon = pod.owner.kind == "DaemonSet"
            decisive = json.dumps(
                [daemon, *map(pod.spec.get, NODE_FILTER_FIELDS)], sort_keys=True, default=str
            )
            filters.setdefault(decisive, NodeFilter(pod.spec, daemon=daemon))
            for path in _SPREAD:
                spread |= {str(key) for _, key in find_all(pod.spec, (*path, "topologyKey")) if key}
            with suppress(ValueError):
                asked |= {(name, amount) for name, amount in pod_requests(pod.spec).items() if amount}
        found: defaultdict[str, list[str]] = defaultdict(list)
        exact = set[str]()
        for node in self.fleet.nodes:
            if node.name in self.offered:
                domains = {key: node.labels.get(key) for key in spread if node.labels.get(key) != node.name}
                amounts = node_amounts(node.allocatable)
                most = amounts.get("pods", sys.maxsize)
                room = [min(amounts.get(name, 0) // amount, most) for name, amount in sorted(asked)]
                lets_in = [not each.refusal(node) for each in filters.values()]
                same = domains, lets_in, room, dict(self.offered[node.name]), published[node.name]
                found[key := json.dumps(same, sort_keys=True)].append(node.name)
                exact.add(f"{key}{_versions_of(node)}{[amounts.get(name) for name, _ in sorted(asked)]}")
        return [tuple(sorted(each)) for each in found.values()], len(exact) == len(found)


def all_on_plugin(fleet: Fleet, plugin: DevicePlugin) -> Sides:
    """A fleet of which nobody runs anything yet, with all nodes on the plugin's side."""
    offered: dict[str, Mapping[str, str]] = {}
    for node in fleet.nodes:
        if amounts := _amounts(_devices_of(fleet, node.name), plugin):
            offered[node.name] = amounts
    found = Sides(fleet=fleet, offered=offered)
    note = "the driver for ComputeDomains is taken to run beside the plugin, and the one for GPUs to come"
    return replace(found, notes=(note,)) if found.has_domains else found


def as_it_is(
    fleet: Fleet,
    hardware: Fleet | None = None,
    *,
    load: Callable[[str], Fleet] = load_fleet,
    has_shares: bool = True,
    kernel_driver: str = "",
) -> Sides:
    """A cluster with its nodes on the side where they are.

    Args:
        fleet: As it was read.
        hardware: Nodes with slices, of which those with the labels of a node say what it will publish, before machines of the
            catalogue do.
        load: Gives a machine of the catalogue by name, as the driver's release publishes it.
        has_shares: Whether the driver shares the GPUs of a machine that the plugin shares by time slicing.
        kernel_driver: NVIDIA's oldest kernel driver that the driver names; empty where it names none.

    Raises:
        FleetError: `hardware-not-known`.
    """
    published = Counter[tuple[str, str]]()
    for each in fleet.slices:
        published[each.spec.node_name or "", each.spec.driver] += len(each.spec.devices or ())
    offered: dict[str, Mapping[str, str]] = {}
    twice: list[Problem] = []
    unknown: list[Problem] = []
    slices: list[ResourceSlice] = []
    taken_for: defaultdict[str, list[str]] = defaultdict(list)
    too_old: list[str] = []
    for node in fleet.nodes:
        twice += find_twice(node.name, node.allocatable, published)
        amounts = node.allocatable.items()
        given = {name: each for name, each in amounts if is_of_plugin(name) and each not in ("", "0")}
        if not given:
            continue
        offered[node.name] = given
        version = _versions_of(node).get("driverVersion", DeviceAttribute()).version or ""
        if kernel_driver and version and int(version.partition(".")[0]) < int(kernel_driver):
            too_old.append(f"{node.name} ({version})")
        if published[node.name, GPU_DRIVER]:
            continue
        like = _find_like(node, given, hardware, load, has_shares=has_shares)
        if like is None:
            unknown.append(_not_known(node, given))
            continue
        name, made = like
        slices += (each for each in made if not published[node.name, each.spec.driver])
        taken_for[name].append(node.name)
    if unknown:
        raise FleetError(unknown)
    whole = replace(fleet, slices=(*fleet.slices, *slices))
    if hardware is not None:
        whole = whole.with_classes(hardware.classes)
    elif taken_for:
        whole = whole.with_classes(load(next(iter(taken_for))).classes)
    notes = [
        f"{len(names)} of the nodes, such as {names[0]}, {'are' if len(names) > 1 else 'is'} taken to publish what {name} does, "
        "by their labels"
        for name, names in sorted(taken_for.items())
    ]
    doubt = f"the DRA driver names {kernel_driver} as NVIDIA's oldest kernel driver: update {join_words(too_old, most=12)} before that"
    names = frozenset(each.metadata.name for each in slices)
    notes += _tell_nodes(whole, offered)
    sides = Sides(fleet=whole, offered=offered, problems=tuple(twice), notes=tuple(notes), made=names)
    return replace(sides, doubts=(doubt,)) if too_old else sides


def _tell_nodes(fleet: Fleet, offered: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Nodes that a reader has to look at: with fewer GPUs than they should have, or cordoned already."""
    published = [each.spec for each in fleet.slices if each.spec.driver == GPU_DRIVER]
    whole = (each.node_name for each in published for it in each.devices or () if _text(it, "type") == "gpu")
    gpus = Counter(whole)
    fewer = list[str]()
    for node, given in offered.items():
        if WHOLE_GPU in given and Quantity.parse(given[WHOLE_GPU]).value < gpus[node]:
            fewer.append(f"{node} ({given[WHOLE_GPU]} of {gpus[node]})")
    cordoned = [each.name for each in fleet.nodes if each.unschedulable and each.name in offered]
    if fewer:
        yield f"{join_words(fewer, most=12)}: the plugin gives out fewer GPUs than the driver would; see whether one is broken"
    if cordoned:
        yield f"{join_words(cordoned, most=12)}: cordoned today, and given back behind the exchange; cordon again what has to stay so"


def _devices_of(fleet: Fleet, node: str) -> list[Device]:
    slices = (each.spec for each in fleet.slices if each.spec.node_name == node)
    return [device for each in slices if each.driver == GPU_DRIVER for device in each.devices or ()]


def _amounts(devices: Sequence[Device], plugin: DevicePlugin) -> dict[str, str]:
    """The resources of the plugin for the devices that the driver would publish."""
    whole = [each for each in devices if _text(each, "type") == "gpu"]
    cards = {_text(each, "uuid") for each in whole}
    counted = Counter[str]({WHOLE_GPU: len(whole)} if whole else {})
    for each in devices:
        # Partitions of a card that is published whole are made on demand, by the driver alone.
        if (
            _text(each, "type") == "mig"
            and not each.consumes_counters
            and _text(each, "parentUUID") not in cards
        ):
            profile = _text(each, "profile").replace("+me", ".me")
            counted[WHOLE_GPU if plugin.strategy == "single" else f"nvidia.com/mig-{profile}"] += 1
    found: dict[str, str] = {}
    for name, number in counted.items():
        shared = plugin.replicas.get(name)
        called = f"{name}.shared" if shared is not None and shared.renamed else name
        found[called] = str(number * (shared.number if shared is not None else 1))
    return found


def _find_like(
    node: Node,
    given: Mapping[str, str],
    hardware: Fleet | None,
    load: Callable[[str], Fleet],
    *,
    has_shares: bool,
) -> tuple[str, list[ResourceSlice]] | None:
    """The machine that has a node's labels, and the slices that the node would have."""
    labels = as_discovered(node.labels)
    product, _, profile = str(labels.get(_PRODUCT) or "").removesuffix("-SHARED").partition("-MIG-")
    # With a profile the label counts MIG devices, and GKE's is not on every node.
    count = "" if profile else str(labels.get(_COUNT) or "")
    plugin = DevicePlugin(strategy="single" if profile else "mixed")
    if hardware is not None and product:
        for each in hardware.nodes:
            own = each.labels.get(_PRODUCT), each.labels.get(_COUNT)
            served = _amounts(_devices_of(hardware, each.name), plugin)
            parts = (WHOLE_GPU,) if profile else [it for it in {**served, **given} if it.startswith(_MIG)]
            if own == (product, count or own[1]) and all(served.get(it) == given.get(it) for it in parts):
                return hardware.name, _slices_as(hardware, each.name, node)
    if not product:
        return None
    machine = str(labels.get(INSTANCE_TYPE) or "")
    known = _known()
    found: dict[str, tuple[str, list[ResourceSlice]]] = {}
    for name in (machine, *known) if machine in node_kinds() else known:
        its_product, gpus = known.get(name, _labels_of(name))
        is_meant = name == machine or count or (profile and machine not in node_kinds())
        if its_product == product and is_meant and count in ("", gpus) and gpus not in found:
            options = _options_of(node, labels, int(gpus), has_shares=has_shares)
            # A machine may have no room for so many MIG devices.
            with suppress(FleetError):
                made = load(f"{name}{options}") if options is not None else None
                if made is not None:
                    found[gpus] = f"{name}{options}", _slices_as(made, made.nodes[0].name, node)
            if name == machine:
                break
    return next(iter(found.values())) if len(found) == 1 else None


def _options_of(node: Node, labels: Mapping[str, str], gpus: int, *, has_shares: bool) -> str | None:
    """Returns what a machine's name needs behind it for the MIG devices and shares of a node; None where they are not known."""
    served = read_node_labels([labels]) or DevicePlugin()
    shared = served.replicas.get(WHOLE_GPU)
    options = ""
    held = {name: at for name, at in node.allocatable.items() if is_of_plugin(name) and at not in ("", "0")}
    if parts := {name: Quantity.parse(at).value / gpus for name, at in held.items() if name.startswith(_MIG)}:
        # Machines have the same MIG devices on each GPU, and whole GPUs beside these are none of them.
        is_even = all(number.denominator == 1 for number in parts.values())
        if not is_even or parts.keys() != held.keys() or parts.keys() & served.replicas.keys():
            return None
        said = (f"{name.removeprefix(_MIG)}*{number}" for name, number in sorted(parts.items()))
        return f" mig={'+'.join(said)}"
    for profile in served.profiles:
        name = f"{WHOLE_GPU}.shared" if shared is not None and shared.renamed else WHOLE_GPU
        devices = (
            Quantity.parse(node.allocatable.get(name, "0")).value / (shared.number if shared else 1) / gpus
        )
        if devices.denominator != 1 or not devices:
            return None
        options += f" mig={profile}*{devices}"
    return f"{options} shares={shared.number}" if shared and shared.way != "mps" and has_shares else options


def _slices_as(fleet: Fleet, like: str, node: Node) -> list[ResourceSlice]:
    """The slices of one node of a fleet as another has them, with its name, and with the versions that its labels say."""
    versions = _versions_of(node)
    found = list[ResourceSlice]()
    own = (each for each in fleet.slices if each.spec.node_name == like)
    for each in (renamed_slice(each, {like: node.name}) for each in own):
        devices = list[Device]()
        for device in each.spec.devices or ():
            known = (device.attributes or {}).items()
            attributes = {name: versions.get(name, at) for name, at in known}
            devices.append(device.changed({"attributes": attributes or None}))
        found.append(each.changed({"spec": each.spec.changed({"devices": devices or None})}))
    return found


def _versions_of(node: Node) -> dict[str, DeviceAttribute]:
    """Versions of the kernel driver and of CUDA by attribute, as labels of GPU feature discovery say them."""
    found: dict[str, DeviceAttribute] = {}
    for attribute, name in (("driverVersion", "driver"), ("cudaDriverVersion", "runtime")):
        parts = (node.labels.get(f"nvidia.com/cuda.{name}.{part}") for part in ("major", "minor", "rev"))
        full = node.labels.get(f"nvidia.com/cuda.{name}-version.full") or ".".join(filter(None, parts))
        with suppress(ValueError):
            numbers = Semver.parse_normalized(full).numbers
            found[attribute] = DeviceAttribute(version=".".join(map(str, numbers)))
    return found


def _not_known(node: Node, given: Mapping[str, str]) -> Problem:
    labels = as_discovered(node.labels)
    product, count = labels.get(_PRODUCT), labels.get(_COUNT)
    parts = join_words([f"{name}: {amount}" for name, amount in sorted(given.items())], most=12)
    message = f"it gives out GPUs by the plugin, and no machine is known with {_PRODUCT} {product!r} and {_COUNT} {count!r}"
    if (product, count) in _known().values():
        message = f"it gives out {parts} by the plugin, and no machine with its labels has these as the same devices on each of {count} GPUs"
    return Problem(
        path=f"Node {node.name}",
        code="hardware-not-known",
        message=f"{message}, so nobody knows what the driver will publish there",
        hint="name hardware with these labels by --fleet: a file of one node and its slices, or 'a100-80gb x 1 mig=1g.10gb*7' for MIG devices",
    )


@cache
def _known() -> Mapping[str, tuple[str, str]]:
    return {name: labels for name in fleet_kinds() if (labels := _labels_of(name))[0]}


@cache
def _labels_of(name: str) -> tuple[str, str]:
    labels = load_fleet(name).nodes[0].labels
    return labels.get(_PRODUCT, ""), labels.get(_COUNT, "")


def _text(device: Device, attribute: str) -> str:
    found = (device.attributes or {}).get(attribute)
    return str(found.string or "") if found is not None else ""


def _describe(device: Device) -> dict[str, Any]:
    manifest = device.to_manifest()
    kept = {name: value for name, value in (manifest.get("attributes") or {}).items() if name not in _OWN}
    return {**manifest, "attributes": kept}
