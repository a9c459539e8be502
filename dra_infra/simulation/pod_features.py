"""What a pod uses that the placement leaves out: scheduler plugins that are not modelled, by field path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dra_infra.model.pods import PodTemplate

_DEFAULT_SCHEDULER = "default-scheduler"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_FIELDS = {
    "overhead": "overhead of the runtime class",
    "preemptionPolicy": "preemption",
    "priority": "preemption",
    "priorityClassName": "preemption",
    "runtimeClassName": "overhead and node selector of the runtime class",
    "schedulingGates": "the pod waits until its gates are removed",
    "schedulingGroup": "gang scheduling",
    "workloadRef": "gang scheduling",
}

_VOLUMES = {
    "awsElasticBlockStore": "volume limits and zones",
    "azureDisk": "volume limits and zones",
    "ephemeral": "volume binding and zones",
    "gcePersistentDisk": "volume limits and zones",
    "iscsi": "one node at a time",
    "persistentVolumeClaim": "volume binding and zones",
    "rbd": "one node at a time",
}


def find_unmodelled(template: PodTemplate, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Field paths with what they would have the scheduler do, sorted."""
    found = {f"{template.path}.{path} ({why})" for path, why in _find(template.spec)}
    if _mapping(manifest.get("spec")).get("volumeClaimTemplates"):
        found.add("spec.volumeClaimTemplates (volume binding and zones)")
    return tuple(sorted(found))


def _find(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, why) for name, why in _FIELDS.items() if spec.get(name))
    if spec.get("nodeName"):
        yield "nodeName", "the pod goes round the scheduler, so a claim that is not allocated stays so"
    if spec.get("schedulerName", _DEFAULT_SCHEDULER) not in ("", _DEFAULT_SCHEDULER):
        yield "schedulerName", "the answer is that of the default scheduler"
    yield from _find_other_pods(spec)
    for index, volume in enumerate(_objects(spec.get("volumes"))):
        for name in sorted(set(volume) & set(_VOLUMES)):
            yield f"volumes[{index}].{name}", _VOLUMES[name]
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(_objects(spec.get(kind))):
            ports = _objects(container.get("ports"))
            if any(port.get("hostPort") for port in ports) or (ports and spec.get("hostNetwork")):
                yield f"{kind}[{index}].ports", "ports of the node"


def _find_other_pods(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    affinity = _mapping(spec.get("affinity"))
    for name in ("podAffinity", "podAntiAffinity"):
        if _mapping(affinity.get(name)).get(_REQUIRED):
            yield f"affinity.{name}", "where other pods run"
    spread = _objects(spec.get("topologySpreadConstraints"))
    if any(constraint.get("whenUnsatisfiable") != "ScheduleAnyway" for constraint in spread):
        yield "topologySpreadConstraints", "where other pods run"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
