"""Classes by which pods that ask for extended resources get devices of a DRA driver, without a change to any pod.

A DeviceClass with `spec.extendedResourceName` serves the resource on nodes whose kubelet does not (gate DRAExtendedResource).

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.kubernetes.api.device_class import DeviceClassSpec
from dra_infra.kubernetes.api.manifests import value_at
from dra_infra.migration.device_plugin import WHOLE_GPU, Asked
from dra_infra.migration.needs import ContainerNeeds, Settings, containers_of, read_needs
from dra_infra.migration.node_labels import NOTHING_SAID
from dra_infra.migration.node_selection import read_pod_serving
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.selectors.any_attribute import attribute
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import driver


def bridge_classes(objects: Sequence[Mapping[str, Any]], settings: Settings) -> list[Migrated]:
    """Leaves all objects as they are, and adds a class for each resource that their pods ask for.

    Args:
        objects: Manifests as plain data.
        settings: What is known of the cluster.
    """
    made = {
        str(value_at(each, "spec", "extendedResourceName")): str(value_at(each, "metadata", "name"))
        for each in objects
        if each.get("kind") == "DeviceClass"
    }
    return [_bridge(each, settings, made) for each in objects]


def _bridge(manifest: Mapping[str, Any], settings: Settings, made: dict[str, str]) -> Migrated:
    remarks: list[Remark] = []
    added: list[Mapping[str, Any]] = []
    for pods in find_pod_templates(manifest):
        serves_otherwise = read_pod_serving(pods.spec) != NOTHING_SAID
        for path, container in containers_of(pods.spec):
            found = read_needs(path, container, settings)
            remarks += [_placed(each, pods.at(each.path)) for each in _undecided(found)]
            for need in found.needs:
                at, asked = pods.at(need.path), need.asked
                if asked.replicas is not None:
                    remarks.append(_no_bridge(at, asked))
                    continue
                if serves_otherwise and asked.resource == WHOLE_GPU:
                    remarks.append(_other_there(at))
                    continue
                if asked.resource not in made:
                    made[asked.resource] = class_name(asked)
                    added.append(_device_class(asked))
                name = made[asked.resource]
                message = f"{asked.resource} stays, and is served by the class {name} where no device plugin serves it"
                remarks.append(Remark(at, "kept", "resource-bridged", message))
    return Migrated(manifest=manifest, remarks=tuple(remarks), added=tuple(added))


def class_name(asked: Asked) -> str:
    """The name of the class that bridges a resource: the resource's, as a name of an object."""
    return asked.resource.replace("/", "-").replace("_", "-").lower()


def _undecided(found: ContainerNeeds) -> list[Remark]:
    return [each for each in found.remarks if each.outcome in ("decide", "kept")]


def _placed(remark: Remark, path: str) -> Remark:
    return remark._replace(path=path)


def _no_bridge(at: str, asked: Asked) -> Remark:
    message = (
        f"{asked.resource} is a replica; a class with a name for an extended resource gives whole devices"
    )
    return Remark(
        at, "decide", "replica-not-bridged", message, "migrate these pods to claims: leave --to bridge out"
    )


def _other_there(at: str) -> Remark:
    message = f"{WHOLE_GPU} is something else on the nodes of this pod, by its node selectors; a class gives all pods the same"
    return Remark(
        at, "decide", "resource-not-clear", message, "migrate these pods to claims: leave --to bridge out"
    )


def _device_class(asked: Asked) -> dict[str, Any]:
    own = driver(asked.class_name if not asked.profile else "gpu.nvidia.com")
    if asked.class_name.endswith(".nvidia.com"):
        own = own & (gpu.type == ("mig" if asked.profile else "gpu"))
    selectors = [own]
    if asked.profile:
        selectors.append(gpu.profile == asked.profile)
    if asked.attribute:
        name, value = asked.attribute
        selectors.append(attribute(name, "string") == value)
    spec = DeviceClassSpec.from_manifest(
        {
            "selectors": [{"cel": {"expression": each.expression()}} for each in selectors],
            "extendedResourceName": asked.resource,
        }
    )
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": class_name(asked)},
        "spec": spec.to_manifest(),
    }
