"""What a pod uses that the placement leaves out: scheduler plugins that are not modelled, by field path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dra_infra.model.pods import PodTemplate
from dra_infra.simulation.pod_admission import PodAdmission

_DEFAULT_SCHEDULER = "default-scheduler"

_FIELDS = {
    "preemptionPolicy": "preemption",
    "priority": "preemption",
    "priorityClassName": "preemption",
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


def find_unmodelled(
    template: PodTemplate, manifest: Mapping[str, Any], admission: PodAdmission
) -> tuple[str, ...]:
    """Field paths with what they would have the scheduler do, sorted.

    Args:
        template: The pods.
        manifest: The object that makes them.
        admission: The runtime classes that are known.
    """
    found = {f"{template.path}.{path} ({why})" for path, why in _find(template.spec)}
    runtime = template.spec.get("runtimeClassName")
    if runtime and not admission.knows_runtime(str(runtime)):
        why = "overhead and nodes of the runtime class, which is not in this input"
        found.add(f"{template.path}.runtimeClassName ({why})")
    if _mapping(manifest.get("spec")).get("volumeClaimTemplates"):
        found.add("spec.volumeClaimTemplates (volume binding and zones)")
    return tuple(sorted(found))


def _find(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, why) for name, why in _FIELDS.items() if spec.get(name))
    if spec.get("nodeName"):
        yield "nodeName", "the pod goes round the scheduler, so a claim that is not allocated stays so"
    if spec.get("schedulerName", _DEFAULT_SCHEDULER) not in ("", _DEFAULT_SCHEDULER):
        yield "schedulerName", "the answer is that of the default scheduler"
    for index, volume in enumerate(_objects(spec.get("volumes"))):
        for name in sorted(set(volume) & set(_VOLUMES)):
            yield f"volumes[{index}].{name}", _VOLUMES[name]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
