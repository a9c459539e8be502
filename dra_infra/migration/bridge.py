"""Classes by which pods that ask for extended resources get devices of a DRA driver, without a change to any pod.

A DeviceClass with `spec.extendedResourceName` serves the resource on nodes whose kubelet does not (gate DRAExtendedResource).

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go; what counts these pods, and the claims that the
scheduler makes for them: pkg/quota/v1/evaluator/core of Kubernetes and pkg/dra/extended_resources.go of Kueue 0.19.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.catalog.drivers import ShippedClass
from dra_infra.kubernetes.api import mapping, show_steps, value_at
from dra_infra.kubernetes.apiserver import QuotaKey
from dra_infra.migration.accounts import migrate_account
from dra_infra.migration.chart_releases import find_installations, merge_values
from dra_infra.migration.chart_values import find_asked
from dra_infra.migration.device_plugin import WHOLE_GPU, RequestedDevices, is_device, read_resource
from dra_infra.migration.mentions import find_mentions, refuse_schedulers
from dra_infra.migration.needs import ContainerNeeds, Settings, asks_devices, containers_of, read_needs
from dra_infra.migration.node_labels import NOTHING_SAID
from dra_infra.migration.node_selection import read_node_selection, read_pod_serving, refuse_named
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.migration.pods import plugin_there
from dra_infra.selectors.any_attribute import attribute
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import driver

_INSTEAD: Final = "migrate these pods to claims: leave --to bridge out"
_OF_CHART: Final = (
    "the chart of the driver installs that class; the one that NVIDIA's GPU operator has by its name serves no resource, and with "
    "--context NAME or --snapshot FILE of its cluster a class is added"
)
_QUEUE: Final = (
    "Kueue counts pods as before; where its deviceClassMappings name their class, by the name there"
)
_STAYS: Final = {
    "ResourceQuota": "the quota counts pods as before, wherever they run, and without scopes claims of their class too",
    "LimitRange": "the LimitRange limits pods as before",
    "HorizontalPodAutoscaler": "pods go on asking for it; DCGM's metrics need KUBERNETES_ENABLE_DRA to name pods",
    "ClusterQueue": _QUEUE,
    "Cohort": _QUEUE,
}
"""By kind, the outcome for objects that count or watch resources while pods ask for them as before."""

_IN_LIMITS: Final = re.compile(r"\.(?:limits|requests)\[([^\]/]+/[^\]]+)\]\Z")
"""The end of a path to the amount of a resource, which is an extended one where its name has a domain."""

_IN_VALUES: Final = re.compile(r"\[([^\]/]+/[^\]]+)\]\Z")
"""The same in values of charts, which call limits in many ways, such as extra_resource_guarantees."""

_Made = dict[str, tuple[str, str]]
"""The class that serves each resource, with a hint where it may not be there."""


def bridge_classes(
    objects: Sequence[Mapping[str, Any]],
    settings: Settings,
    there: Iterable[Mapping[str, Any]] = (),
    shipped: Iterable[ShippedClass] = (),
) -> list[Migrated]:
    """Leaves all objects as they are, and adds a class for each resource that pods ask for and that no class serves.

    Args:
        objects: Manifests as plain data.
        settings: What is known of the cluster.
        there: Its classes, as plain data.
        shipped: Classes that charts of drivers install, unless there is one of the name.
    """
    # Of several classes with one resource the newest serves, or the first by name.
    by_name = sorted(there, key=lambda each: str(value_at(each, "metadata", "name")), reverse=True)
    by_age = sorted(by_name, key=lambda each: str(value_at(each, "metadata", "creationTimestamp")))
    classes = {
        str(value_at(each, "metadata", "name")): value_at(each, "spec", "extendedResourceName")
        for each in (*by_age, *objects)
        if each.get("kind") == "DeviceClass"
    }
    made: _Made = {
        each.extended_resource_name: (each.name, _OF_CHART)
        for each in shipped
        if each.extended_resource_name and each.name not in classes
    }
    made |= {str(resource): (name, "") for name, resource in classes.items() if resource}
    found = [_bridge(each, settings, made, frozenset(classes)) for each in objects]
    # A quota may stand before the pods that need a class.
    names = [name for name, _ in made.values()]
    return [
        replace(each, remarks=(*each.remarks, *_tell_account(was, settings, names)))
        for each, was in zip(found, objects, strict=True)
    ]


def _bridge(manifest: Mapping[str, Any], settings: Settings, made: _Made, taken: frozenset[str]) -> Migrated:
    remarks: list[Remark] = []
    added: list[Mapping[str, Any]] = []
    read: set[str] = set()
    templates = list(settings.kinds.find_pod_templates(manifest))
    asking = {each.path: asks_devices(each.spec) for each in templates}
    schedulers = refuse_schedulers(manifest, asking) if templates else {}
    for pods in templates:
        serving = read_pod_serving(pods.spec)
        there = plugin_there(pods.spec, serving, settings.plugin)
        is_there, is_said = (read_resource(WHOLE_GPU, each) for each in (there, settings.plugin))
        serves_otherwise = is_there != is_said or serving != NOTHING_SAID
        for path, container in containers_of(pods.spec):
            found = read_needs(path, container, replace(settings, plugin=there))
            remarks += [each._replace(path=pods.at(each.path)) for each in _undecided(found)]
            for need in found.needs:
                vendor = "nvidia.com" if found.is_nvidia else need.requested.class_name
                selected = read_node_selection(pods.spec, vendor, NOTHING_SAID)
                is_other = serves_otherwise and need.requested.resource == WHOLE_GPU
                is_other = is_other or (
                    selected.profiles != () and need.requested.profile not in selected.profiles
                )
                at = pods.at(need.path)
                named = refuse_named(pods.spec)
                read.add(at)
                refused = named._replace(path=pods.at(named.path)) if named else schedulers.get(pods.path)
                remarks.append(refused or _serve(at, need.requested, made, added, taken, is_other=is_other))
    is_file = not manifest.get("kind")
    told = {each.path for each in remarks} | read
    for path, name, number in _find_others(manifest, told):
        reading = read_needs("", {"resources": {"limits": {name: number}}}, settings)
        remarks += [remark._replace(path=path) for remark in _undecided(reading)]
        for need in reading.needs:
            # A file of values has no place for a class.
            missing = _name_missing(path, need.requested, made) if is_file else None
            remarks.append(missing or _serve(path, need.requested, made, added, taken))
    return Migrated(manifest=manifest, remarks=tuple(remarks), added=tuple(added))


def _find_others(manifest: Mapping[str, Any], told: Collection[str]) -> Iterator[tuple[str, str, Any]]:
    """Yield path, name and number of resources in values of charts, and in fields and texts of objects that are not known."""
    paths = set[str]()
    for installed in find_installations(manifest):
        places = [show_steps(each.at) for each in installed.values]
        paths.update(places)
        for path, name, number in _find_others(merge_values(installed.values), ()):
            yield f"{places[-1]}.{path}", name, number
    for path, name, number in find_asked(manifest):
        paths |= {path, f"{path}Type"}
        if is_device(name):
            yield path, name, number
    at_end = _IN_LIMITS if manifest.get("kind") else _IN_VALUES
    for each in find_mentions(manifest, {*told, *paths}):
        match = at_end.search(each.path)
        if match and each.outcome != "kept" and not any(each.path.startswith(f"{path}.") for path in paths):
            yield each.path, match[1], 1


def _name_missing(path: str, requested: RequestedDevices, made: _Made) -> Remark | None:
    """Remark on a resource in a file of values that no class serves; None where one does."""
    if requested.resource in made or requested.replicas is not None:
        return None
    message = f"{requested.resource} needs a class, for which a file of values has no place"
    hint = f"make a DeviceClass with extendedResourceName: {requested.resource}, as --to bridge makes it for an object with these values"
    return Remark(path, "decide", "resource-bridged", message, hint)


def _undecided(found: ContainerNeeds) -> list[Remark]:
    return [each for each in found.remarks if each.outcome in ("decide", "kept")]


def _serve(
    at: str,
    requested: RequestedDevices,
    made: _Made,
    added: list[Mapping[str, Any]],
    taken: frozenset[str],
    *,
    is_other: bool = False,
) -> Remark:
    """Adds the class for a resource that has none, unless its name is taken, and remarks on what becomes of it."""
    if is_other:
        message = f"{requested.resource} is something else on the nodes of this pod, by its node selectors; a class gives all pods the same"
        return Remark(at, "decide", "resource-not-clear", message, _INSTEAD)
    if requested.replicas is not None:
        message = f"{requested.resource} is a replica; a class with a name for an extended resource gives whole devices"
        return Remark(at, "decide", "replica-not-bridged", message, _INSTEAD)
    if requested.resource not in made and class_name(requested) in taken:
        message = f"{requested.resource} needs a class, and the DeviceClass {class_name(requested)} that is there serves no resource"
        hint = f"write extendedResourceName: {requested.resource} into its spec, or give it another name"
        return Remark(at, "decide", "resource-bridged", message, hint)
    if requested.resource not in made:
        made[requested.resource] = class_name(requested), ""
        added.append(_device_class(requested))
    name, hint = made[requested.resource]
    message = (
        f"{requested.resource} stays, and is served by the class {name} where no device plugin serves it"
    )
    return Remark(at, "kept", "resource-bridged", message, hint)


def class_name(requested: RequestedDevices) -> str:
    """The name of the class that bridges a resource: the resource's, as a name of an object."""
    return requested.resource.replace("/", "-").replace("_", "-").lower()


def _tell_account(
    manifest: Mapping[str, Any], settings: Settings, classes: Collection[str]
) -> Iterator[Remark]:
    """Says that what counts a resource goes on counting it, and which keys of a quota count the scheduler's claims beside it."""
    kind = str(manifest.get("kind"))
    if kind not in _STAYS or not classes:
        return
    found = migrate_account(manifest, settings)
    for path in dict.fromkeys(each.path for each in found.remarks) if found else ():
        yield Remark(path, "kept", "resource-bridged", _STAYS[kind])
    keys = [QuotaKey.CLAIMS, *(key for each in classes for key in QuotaKey.list_of_class(each))]
    for key in filter(mapping(value_at(manifest, "spec", "hard")).__contains__, keys):
        message = f"{key} counts the claim that the scheduler makes for each pod on a node of the driver, too"
        hint = "raise it for these pods, or they wait: each key of a quota limits alone"
        yield Remark(f"spec.hard[{key}]", "lost", "quota-kept", message, hint)


def _device_class(requested: RequestedDevices) -> dict[str, Any]:
    own = driver(requested.class_name if not requested.profile else "gpu.nvidia.com")
    if requested.class_name.endswith(".nvidia.com"):
        own = own & (gpu.type == ("mig" if requested.profile else "gpu"))
    selectors = [own]
    if requested.profile:
        selectors.append(gpu.profile == requested.profile)
    if requested.attribute:
        name, value = requested.attribute
        selectors.append(attribute(name, "string") == value)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": class_name(requested)},
        "spec": {
            "extendedResourceName": requested.resource,
            "selectors": [{"cel": {"expression": each.expression()}} for each in selectors],
        },
    }
