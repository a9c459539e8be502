"""Fields of a pod that the scheduler acts on by plugins that are not ported, with what they would have it do.

What a pod uses of them is found by field path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.api.workload_kinds import PodTemplate
from dra_infra.kubernetes.apiserver.admission import PodAdmission
from dra_infra.kubernetes.scheduler.pod_shapes import REQUIRED, find_host_ports

_DEFAULT_SCHEDULER: Final = "default-scheduler"

_PREEMPTION: Final = "preemption"
_NOT_FOR_DEVICES: Final = (
    "preemption for cpu, memory and slots; no scheduler up to 1.38 preempts a pod for its devices"
)

_FIELDS: Final = {
    "preemptionPolicy": _PREEMPTION,
    "priority": _PREEMPTION,
    "priorityClassName": _PREEMPTION,
    "schedulingGates": "the pod waits until its gates are removed",
    "schedulingGroup": "gang scheduling",
    "workloadRef": "gang scheduling",
}

_VOLUMES: Final = {
    "awsElasticBlockStore": "volume limits and zones",
    "azureDisk": "volume limits and zones",
    "ephemeral": "volume binding and zones",
    "gcePersistentDisk": "volume limits and zones",
    "iscsi": "one node at a time",
    "persistentVolumeClaim": "volume binding and zones",
    "rbd": "one node at a time",
}


def find_unmodelled(
    template: PodTemplate, manifest: Mapping[str, Any], admission: PodAdmission | None = None
) -> tuple[str, ...]:
    """Field paths with what they would have the scheduler do, sorted.

    Args:
        template: The pods.
        manifest: The object that makes them.
        admission: The runtime classes that are known; None where neither these nor other pods are looked at, which is
            named then too.
    """
    found = {f"{template.at(path)} ({why})" for path, why in _find(template.spec)}
    if template.spec.get("resourceClaims"):
        # PreFilterExtensions in dynamicresources.go is nil, so a dry run without a victim finds no device freed.
        found = {each.replace(f"({_PREEMPTION})", f"({_NOT_FOR_DEVICES})") for each in found}
    if admission is None:
        found |= {f"{template.at(path)} ({why})" for path, why in _find_other_pods(template.spec)}
    runtime = template.spec.get("runtimeClassName")
    if runtime and not (admission and admission.knows_runtime(str(runtime))):
        found.add(f"{template.at('runtimeClassName')} (overhead and nodes of the runtime class)")
    found |= {f"{path} ({why})" for path, why in template.unmodelled}
    if mapping(manifest.get("spec")).get("volumeClaimTemplates"):
        found.add("spec.volumeClaimTemplates (volume binding and zones)")
    return tuple(sorted(found))


def _find(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, why) for name, why in _FIELDS.items() if spec.get(name))
    if spec.get("schedulerName", _DEFAULT_SCHEDULER) not in ("", _DEFAULT_SCHEDULER):
        yield "schedulerName", "the answer is that of the default scheduler"
    for index, volume in enumerate(mappings(spec.get("volumes"))):
        for name in sorted(set(volume) & set(_VOLUMES)):
            yield f"volumes[{index}].{name}", _VOLUMES[name]


def _find_other_pods(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    affinity = mapping(spec.get("affinity"))
    for name in ("podAffinity", "podAntiAffinity"):
        if mapping(affinity.get(name)).get(REQUIRED):
            yield f"affinity.{name}", "where other pods run"
    spread = mappings(spec.get("topologySpreadConstraints"))
    if any(constraint.get("whenUnsatisfiable") != "ScheduleAnyway" for constraint in spread):
        yield "topologySpreadConstraints", "where other pods run"
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(mappings(spec.get(kind))):
            if find_host_ports({**spec, "initContainers": [], "containers": [], kind: [container]}):
                yield f"{kind}[{index}].ports", "ports of the node"
