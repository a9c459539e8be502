"""Pods that ask device plugins for GPUs, rewritten to use claims."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from dra_infra.kubernetes.api import Node, mapping, mappings, value_at
from dra_infra.kubernetes.scheduler import NodeFilter
from dra_infra.migration.device_plugin import OLD_GPU, WHOLE_GPU, DevicePlugin, ReadLabels, find_other_form
from dra_infra.migration.needs import (
    ContainerNeeds,
    Need,
    Settings,
    asks_devices,
    containers_of,
    read_needs,
)
from dra_infra.migration.node_labels import NOTHING_SAID, Serving, labels_of_cards
from dra_infra.migration.node_selection import (
    DeviceSelection,
    configs_named,
    find_against,
    read_node_selection,
    read_pod_serving,
    refuse_named,
)
from dra_infra.migration.outcomes import Remark
from dra_infra.migration.pod_claims import NameTemplate, give_claims

_HIDES: Final = ("void", "none", "")
"""Values of NVIDIA_VISIBLE_DEVICES with which the runtime of NVIDIA gives a container no GPU."""

_RUNTIME_CLASSES: Final = ("nvidia", "nvidia-cdi", "nvidia-legacy")
"""Runtime classes that NVIDIA's GPU Operator makes."""

_OF_KUBELET: Final = ("/var/lib/kubelet/device-plugins", "/var/lib/kubelet/pod-resources")
_LISTED: Final = "/var/run/nvidia-container-devices"
"""Where mounts of a container name GPUs for NVIDIA's runtime (accept-nvidia-visible-devices-as-volume-mounts of its container toolkit)."""

_DEVICE_FILES: Final = ("/dev/nvidia", "/dev/dri", "/dev/kfd")
_DRIVER_FOLDERS: Final = ("/usr/local/nvidia", "/home/kubernetes/bin/nvidia", "/run/nvidia/driver")
"""Folders with the driver's libraries, of which the second is that of GKE's nodes, and the third that of the GPU Operator."""

_MPS_FOLDERS: Final = ("/run/nvidia/mps", "/tmp/nvidia-mps")  # noqa: S108  (of the node)


@dataclass(slots=True)
class MigratedPod:
    """A pod spec after the migration.

    Args:
        spec: The new pod spec.
        remarks: What became of its fields, with paths below the pod spec.
        needs: By path of a container: the devices that its limits asked for, and ask for no longer.
    """

    spec: dict[str, Any]
    remarks: list[Remark] = field(default_factory=list)
    needs: Mapping[str, Sequence[Need]] = field(default_factory=dict)


def migrate_pod(spec: Mapping[str, Any], settings: Settings, name_template: NameTemplate) -> MigratedPod:
    """Rewrites a pod spec; where somebody has to decide first, all of it stays as it is.

    A pod that was migrated in part would take devices from a plugin and from a driver, and run on no node that has one of them.

    Args:
        spec: Plain data.
        settings: What is known of the cluster.
        name_template: Names the claim templates that the pod uses.
    """
    serving = read_pod_serving(spec)
    settings = replace(settings, plugin=plugin_there(spec, serving, settings.plugin))
    found = [read_needs(path, container, settings) for path, container in containers_of(spec)]
    remarks = [remark for each in found for remark in each.remarks]
    if any(each.is_blocked for each in found):
        undecided = [each for each in remarks if each.outcome != "changed"]
        return MigratedPod(dict(spec), [*undecided, *_find_bypasses(spec, set())])
    served = [each for each in found if each.needs]
    needs = [need for each in served for need in each.needs]
    if refusal := _refuse_pod(spec, needs):
        return MigratedPod(dict(spec), [refusal])
    profiles = {need.requested.profile for need in needs}
    unread = labels_of_cards(settings.plugin) if any(profiles) else ()
    profile = profiles.pop() if len(profiles) == 1 else ""
    is_nvidia = any(each.is_nvidia for each in served)
    vendor = "nvidia.com" if is_nvidia or not needs else needs[0].requested.class_name
    per_node = settings.per_node
    selection = (
        read_node_selection(spec, vendor, serving, unread, profile, per_node=per_node) if needs else None
    )
    if selection is not None and (refusal := _refuse_labels(selection, serving, needs, settings.plugin)):
        return MigratedPod(dict(spec), [refusal])
    done = MigratedPod(dict(spec), remarks)
    given = give_claims(spec, served, selection, name_template, settings.mps_memory)
    done.remarks += given.remarks
    if given.entries:
        held = spec.get("resourceClaims")
        done.spec["resourceClaims"] = [*(held if isinstance(held, list) else ()), *given.entries]
    done.needs = {each.path: each.needs for each in served}
    for kind in ("initContainers", "containers"):
        if isinstance(spec.get(kind), list):
            by_path = {each.path: each for each in found}
            done.spec[kind] = [
                _strip(each, by_path[path], given.used.get(path, ()))
                if (path := f"{kind}[{index}]") in by_path
                else each
                for index, each in enumerate(spec[kind])
            ]
    if selection is not None:
        done.remarks += selection.remarks
        for key, value in selection.fields.items():
            done.spec[key] = value
            if value is None:
                del done.spec[key]
        done.remarks += _finish(spec, served, done.spec)
    done.remarks += _write_tolerations(spec, found, done.spec)
    done.remarks += _find_bypasses(spec, set(given.used))
    return done


def plugin_there(
    spec: Mapping[str, Any], serving: Serving, plugin: DevicePlugin | None
) -> DevicePlugin | None:
    """How a plugin serves the nodes that a pod selects, where their labels say more than those of all nodes or a configuration."""
    if plugin is None:
        return plugin
    named = configs_named(spec)
    if plugin.by_labels and (plugin.unclear or plugin.apart or named):
        chosen = {each: spec[each] for each in ("nodeSelector", "affinity") if each in spec}
        text = json.dumps(chosen, sort_keys=True, default=str)
        read = plugin.by_labels
        some = _read_some(plugin.nodes, text, read) or read(named) or plugin
        plugin = replace(some, numbers=plugin.numbers)
    if serving.shared or serving == NOTHING_SAID:
        message = f"its nodes share their GPUs, by {serving.shared}, and the plugin's configuration does not"
        # The strategy is that of a node, which may share its MIG devices alone.
        is_said = WHOLE_GPU in plugin.replicas or (plugin.replicas and serving.shared.endswith("-strategy"))
        if is_said or not serving.shared:
            if plugin.unclear or not (against := find_against(spec, plugin)):
                return plugin
            message = f"its nodes do not serve it as the plugin's configuration says, by {against}"
        return replace(plugin, unclear=message)
    if serving.profile:
        plugin = replace(plugin, strategy="single", profiles=(serving.profile,))
    if serving.replicas is not None:
        replicas = {**plugin.replicas, WHOLE_GPU: serving.replicas}
        # Labels of other pods may say another number.
        own = {serving.replicas.number, 0} if serving.replicas.way == "time-slicing" else set[int]()
        plugin = replace(plugin, replicas=replicas, numbers=plugin.numbers | own)
    return replace(plugin, unclear=serving.unclear)


@lru_cache(maxsize=1024)
def _read_some(nodes: tuple[Node, ...], chosen: str, read: ReadLabels) -> DevicePlugin | None:
    """How a plugin serves those of the nodes that node selectors choose, which are JSON; None where none of them has GPUs."""
    chooses = NodeFilter(json.loads(chosen))
    return read([each.labels for each in nodes if not chooses.refuse_labels(each)])


def _refuse_pod(spec: Mapping[str, Any], needs: Sequence[Need]) -> Remark | None:
    """Says why a pod as a whole cannot have claims for what its containers ask for."""
    if needs and (refusal := refuse_named(spec)):
        return refusal
    if len(needs) > 1 and (refused := next((each for each in needs if each.requested.is_under_mps), None)):
        message = (
            f"{refused.requested.resource} is a replica under MPS, and its pod asks for more than this one"
        )
        hint = "give each container a pod of its own, or use MIG"
        return Remark(refused.path, "decide", "mps-replicas", message, hint)
    return None


def _refuse_labels(
    selection: DeviceSelection, serving: Serving, needs: Sequence[Need], plugin: DevicePlugin | None
) -> Remark | None:
    """Says that labels of nodes name MIG devices or shares where containers are to get something else."""
    profiles = {need.requested.profile for need in needs}
    ways = {need.requested.replicas for need in needs}
    whole = (
        need
        for need in needs
        if need.requested.resource in (WHOLE_GPU, OLD_GPU) and not need.requested.replicas
    )
    if serving.shared and plugin and WHOLE_GPU in plugin.replicas and (need := next(whole, None)):
        message = f"its nodes share their GPUs, by {serving.shared}, and serve none of them by {need.requested.resource}"
        hint = "ask for nvidia.com/gpu.shared, or leave the label out"
        return Remark(need.path, "decide", "resource-not-clear", message, hint)
    if serving.replicas is not None and ways != {serving.replicas}:
        message = (
            "containers share the GPUs of its nodes, by labels of GKE, and it asks for others than these"
        )
        return Remark("nodeSelector", "decide", "resource-not-clear", message, "leave the labels out")
    by_name = all(need.requested.resource not in (WHOLE_GPU, OLD_GPU) for need in needs)
    named = profiles <= set(selection.profiles) if by_name else profiles == set(selection.profiles)
    if not selection.profiles or named:
        return None
    if form := find_other_form(f"amd.com/{selection.profiles[0]}"):
        message = f"{needs[0].requested.resource} of its nodes is {form.what}"
        return Remark("nodeSelector", "decide", "other-device-form", message, form.hint)
    message = f"its nodes have MIG devices of {', '.join(selection.profiles)} by their labels"
    hint = f"say --mig-profile {selection.profiles[0]}, if that is what nvidia.com/gpu is there"
    hint = "select nodes that have what it asks for, or leave the labels out" if by_name else hint
    return Remark("nodeSelector", "decide", "resource-not-clear", message, hint)


def _strip(
    container: Mapping[str, Any], needs: ContainerNeeds, used: Sequence[Mapping[str, str]]
) -> Mapping[str, Any]:
    """A container without the resources that are gone, with the claims of the pod that it uses."""
    if not needs.gone:
        return container
    resources: dict[str, Any] = {}
    for key, value in mapping(container.get("resources")).items():
        if key in ("limits", "requests") and isinstance(value, Mapping):
            left = {name: each for name, each in value.items() if name not in needs.gone}
            if left or not value:
                resources[key] = left
        else:
            resources[key] = value
    if used:
        held = resources.get("claims")
        resources["claims"] = [*(held if isinstance(held, list) else ()), *used]
    env = container.get("env")
    if used and needs.is_nvidia and isinstance(env, list):
        env = [each for each in env if not _shows_devices(each)]
    changed = {"resources": resources, "env": env}
    return {
        key: changed.get(key, value)
        for key, value in container.items()
        if key not in changed or changed[key] or not value
    }


def _shows_devices(entry: Any) -> bool:
    return (
        isinstance(entry, Mapping)
        and entry.get("name") == "NVIDIA_VISIBLE_DEVICES"
        and ("valueFrom" in entry or str(entry.get("value") or "") not in _HIDES)
    )


def _finish(spec: Mapping[str, Any], served: list[ContainerNeeds], new: dict[str, Any]) -> Iterator[Remark]:
    """Changes what a pod needs, or needs no longer, once claims give it the devices of NVIDIA's driver."""
    paths = {each.path for each in served}
    shown = [
        path
        for path, container in containers_of(spec)
        if path not in paths and any(map(_shows_devices, mappings(container.get("env"))))
    ]
    if spec.get("runtimeClassName") in _RUNTIME_CLASSES and shown:
        message = f"the runtime class stays, for {shown[0]} has GPUs by NVIDIA_VISIBLE_DEVICES; containers with claims have theirs by CDI"
        yield Remark("runtimeClassName", "kept", "runtime-class-left-out", message)
    elif spec.get("runtimeClassName") in _RUNTIME_CLASSES:
        del new["runtimeClassName"]
        message = "the kubelet gives devices by CDI, without a runtime class"
        yield Remark("runtimeClassName", "changed", "runtime-class-left-out", message)
    for each in served:
        for index, entry in enumerate(mappings(each.container.get("env")) if each.is_nvidia else ()):
            if _shows_devices(entry):
                yield _left_out(
                    f"{each.path}.env[{index}]", str(entry.get("value", "GPUs by a value from elsewhere"))
                )


def _left_out(at: str, value: str) -> Remark:
    # By CDI, all GPUs are called nvidia.com/gpu=all.
    if "all" in (each.strip().rpartition("=")[2] for each in value.split(",")):
        message = "NVIDIA_VISIBLE_DEVICES would show GPUs beside those of the claim, and is left out"
        return Remark(at, "changed", "visible-devices-left-out", message)
    message = (
        f"NVIDIA_VISIBLE_DEVICES chose {value[:80]} of the node, whatever the plugin gave, and is left out"
    )
    hint = "select the GPU in the claim, by dra.gpu.uuid, if it has to be this one"
    return Remark(at, "lost", "visible-devices-left-out", message, hint)


def _write_tolerations(
    spec: Mapping[str, Any], found: list[ContainerNeeds], new: dict[str, Any]
) -> Iterator[Remark]:
    """Writes what admission added for each resource (plugin/pkg/admission/extendedresourcetoleration/admission.go)."""
    # Nodes of today have the taint of the resource's name of today.
    claimed = {need.requested.resource.replace(OLD_GPU, WHOLE_GPU) for each in found for need in each.needs}
    # It reads the names of resources and not how many are asked for: zero of one has the toleration too.
    for key in sorted(claimed.union(*(each.gone for each in found)) - {OLD_GPU}):
        if not any(_tolerates(each, key) for each in mappings(spec.get("tolerations"))):
            held = new.get("tolerations")
            added = {"key": key, "operator": "Exists", "effect": "NoSchedule"}
            new["tolerations"] = [*(held if isinstance(held, list) else ()), added]
            why = "and not for claims" if key in claimed else "for zero of it too"
            message = f"the toleration of {key} is written: admission adds it for the resource, {why}"
            yield Remark("tolerations", "changed", "toleration-written", message)


def _tolerates(toleration: Mapping[str, Any], taint: str) -> bool:
    key, effect = toleration.get("key"), toleration.get("effect")
    # Admission added Exists; one that is Equal tolerates a taint of its value alone.
    matches = toleration.get("operator") == "Exists" and (not key or key == taint)
    return matches and effect in (None, "", "NoSchedule")


def _find_bypasses(spec: Mapping[str, Any], served: set[str]) -> Iterator[Remark]:
    """Ways by which a pod reaches GPUs that nobody gave it, and settings that claims do not have.

    Sources: internal/config/image of NVIDIA/nvidia-container-toolkit, and ENV in base/Dockerfile of NVIDIA's CUDA images.
    """
    hint = "give it a claim, or leave the GPUs alone"
    asks = asks_devices(spec)
    # Device plugins and what reads their sockets, such as monitors, see all GPUs and use none.
    paths = [str(value_at(each, "hostPath", "path")) for each in mappings(spec.get("volumes"))]
    has_own = asks or any(each.startswith(_OF_KUBELET) for each in paths)
    is_open = False
    for path, container in containers_of(spec):
        env = mappings(container.get("env"))
        has_own |= value_at(container, "resources", "claims") is not None
        is_open |= not any(each.get("name") == "NVIDIA_VISIBLE_DEVICES" for each in env)
        for index, each in enumerate(env if path not in served else ()):
            if _shows_devices(each):
                has_own = True
                message = "NVIDIA_VISIBLE_DEVICES gives GPUs that no plugin and no claim counts"
                yield Remark(f"{path}.env[{index}]", "decide", "devices-not-counted", message, hint)
        for index, each in enumerate(mappings(container.get("volumeMounts"))):
            if str(each.get("mountPath")).startswith(_LISTED):
                has_own = True
                message = f"a mount below {_LISTED} gives GPUs that no plugin and no claim counts"
                at = f"{path}.volumeMounts[{index}].mountPath"
                yield Remark(at, "decide", "devices-not-counted", message, hint)
        if asks_devices({"containers": [container]}):
            yield from _find_own_settings(path, container)
    if spec.get("runtimeClassName") in _RUNTIME_CLASSES and is_open and not has_own:
        message = "its runtime gives a container all GPUs where the image sets NVIDIA_VISIBLE_DEVICES, as NVIDIA's do, and nobody counts them"
        own = "give it a claim, or leave the class out, or write NVIDIA_VISIBLE_DEVICES: void into its containers"
        yield Remark("runtimeClassName", "decide", "devices-not-counted", message, own)
    for index, volume in enumerate(mappings(spec.get("volumes"))):
        source = value_at(volume, "hostPath", "path")
        if isinstance(source, str) and (why := _tell_mount(source.rstrip("/") or "/", asks=asks)):
            message = f"{source[:80]} of the node is mounted: {why}"
            yield Remark(f"volumes[{index}].hostPath.path", "decide", "devices-not-counted", message, hint)


def _find_own_settings(path: str, container: Mapping[str, Any]) -> Iterator[Remark]:
    """Settings of a container that asks for devices and reaches others by itself, or shares its own."""
    if value_at(container, "securityContext", "privileged") is True:
        message = "a privileged container has all devices of the node, whatever its claim gives"
        hint = "leave privileged out where a claim gives the devices"
        at = f"{path}.securityContext.privileged"
        yield Remark(at, "decide", "devices-not-counted", message, hint)
    for index, each in enumerate(mappings(container.get("env"))):
        name = str(each.get("name") or "")
        if name.startswith("CUDA_MPS_"):
            message = f"{name[:80]} is of an MPS daemon of the pod or the plugin; a claim has one by its config alone"
            hint = "leave it out where the plugin's daemon was meant, which dra.SharedGpu(..., sharing=dra.Mps(...)) has for claims"
            yield Remark(f"{path}.env[{index}]", "decide", "mps-variable", message, hint)


def _tell_mount(path: str, *, asks: bool) -> str:
    """Why a folder or file of the node reaches GPUs; empty where it does not.

    Args:
        path: Of the node.
        asks: Whether the pod asks for devices; others have `/dev` for other reasons.
    """
    if path.startswith(_DEVICE_FILES):
        return "a GPU that no plugin and no claim counts"
    if asks and path in ("/dev", "/"):
        return "all GPUs of the node, whatever the claim gives"
    if asks and path.startswith(_DRIVER_FOLDERS):
        return "the libraries of the driver, which claims bring along"
    if asks and path.startswith(_MPS_FOLDERS):
        return "the pipes of an MPS daemon that the plugin runs, and no claim"
    return ""
