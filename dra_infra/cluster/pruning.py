"""Prunes objects for a snapshot: named fields are kept and no others, so that nothing secret comes along.

Environment variables, commands, arguments, images, files and annotations of pods are not among them; no placement
reads them. Texts that are kept go through the mask of `SecretMask` once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.output.secrets import SecretMask

Fields = Mapping[str, Any]
"""Fields that are kept: True for all of a value, a mapping for fields of it or of each item of a list."""

_OWNERS: Final = {"apiVersion": True, "kind": True, "name": True, "uid": True, "controller": True}
_METADATA: Final[Fields] = {
    "name": True,
    "namespace": True,
    "uid": True,
    "labels": True,
    "ownerReferences": _OWNERS,
    "creationTimestamp": True,
    "deletionTimestamp": True,
    "generation": True,
}
_KEPT_ANNOTATIONS: Final = ("resource.kubernetes.io/",)
"""Those by which Kubernetes tells claims apart: whose pod's, for an extended resource."""

_CONDITIONS: Final[Fields] = {"type": True, "status": True, "reason": True, "lastTransitionTime": True}
_SAID: Final[Fields] = {**_CONDITIONS, "message": True}
_CONTAINERS: Final[Fields] = {
    "name": True,
    "resources": True,
    "restartPolicy": True,
    "ports": {"hostPort": True, "hostIP": True, "containerPort": True, "protocol": True},
}
_POD_SPEC: Final[Fields] = {
    "nodeName": True,
    "nodeSelector": True,
    "affinity": True,
    "tolerations": True,
    "topologySpreadConstraints": True,
    "schedulerName": True,
    "schedulingGates": True,
    "schedulingGroup": True,
    "priority": True,
    "priorityClassName": True,
    "preemptionPolicy": True,
    "restartPolicy": True,
    "hostNetwork": True,
    "overhead": True,
    "resources": True,
    "resourceClaims": True,
    "containers": _CONTAINERS,
    "initContainers": _CONTAINERS,
    "volumes": {"name": True, "persistentVolumeClaim": {"claimName": True}},
}
_TEMPLATE: Final[Fields] = {"metadata": {"labels": True}, "spec": _POD_SPEC}


def _all_of(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, True)


_WORKLOAD: Final[Fields] = {
    "spec": _all_of(
        "replicas",
        "selector",
        "strategy",
        "updateStrategy",
        "podManagementPolicy",
        "serviceName",
        "minReadySeconds",
        "parallelism",
        "completions",
        "completionMode",
        "backoffLimit",
        "suspend",
        "schedule",
        "concurrencyPolicy",
    )
    | {
        "template": _TEMPLATE,
        "jobTemplate": {"spec": {"parallelism": True, "completions": True, "template": _TEMPLATE}},
    },
    "status": _all_of(
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "active",
        "ready",
        "succeeded",
        "failed",
    )
    | {"conditions": _CONDITIONS},
}

_KEPT: Final[Mapping[str, Fields]] = {
    "Node": {
        "spec": {"taints": True, "unschedulable": True},
        "status": {
            "allocatable": True,
            "capacity": True,
            "conditions": _CONDITIONS,
            "declaredFeatures": True,
            "nodeInfo": {"kubeletVersion": True, "architecture": True, "operatingSystem": True},
        },
    },
    "ResourceSlice": {"spec": True},
    "DeviceClass": {"spec": True},
    "DeviceTaintRule": {"spec": True, "status": {"conditions": _CONDITIONS}},
    "ResourceClaim": {
        "spec": True,
        "status": {
            "allocation": True,
            "reservedFor": True,
            "devices": {"driver": True, "pool": True, "device": True, "shareID": True, "conditions": _SAID},
        },
    },
    "ResourceClaimTemplate": {"spec": True},
    "Pod": {
        "spec": _POD_SPEC,
        "status": {
            "phase": True,
            "nominatedNodeName": True,
            "resourceClaimStatuses": True,
            "extendedResourceClaimStatus": True,
            "nodeAllocatableResourceClaimStatuses": True,
        },
    },
    "Namespace": {},
    "ResourceQuota": {"spec": True, "status": True},
    "LimitRange": {"spec": True},
    "ValidatingAdmissionPolicy": {"spec": True},
    "ValidatingAdmissionPolicyBinding": {"spec": True},
    "PriorityClass": {"value": True, "globalDefault": True, "preemptionPolicy": True},
    "CustomResourceDefinition": {},
}


def prune(item: Mapping[str, Any], mask: SecretMask) -> dict[str, Any] | None:
    """Cut *item* down to what a snapshot keeps; None for an object that says nothing about what runs."""
    kind = str(item.get("kind"))
    if kind == "ReplicaSet" and not _runs(item):
        # Deployments keep ten old ones each.
        return None
    fields = _KEPT.get(kind, _WORKLOAD)
    kept = _keep(item, {"apiVersion": True, "kind": True, "metadata": _METADATA, **fields})
    annotations = mapping(mapping(item.get("metadata")).get("annotations"))
    known = {name: text for name, text in annotations.items() if name.startswith(_KEPT_ANNOTATIONS)}
    if known:
        kept["metadata"]["annotations"] = known
    if kind == "Pod":
        _keep_why_it_waits(item, kept)
    return dict(mask.values(_without_parameters(kept, mask)))


def _keep(value: Any, fields: Fields) -> Any:
    if isinstance(value, list):
        return [_keep(each, fields) for each in value if isinstance(each, Mapping)]
    if not isinstance(value, Mapping):
        return None
    kept = {}
    for name, wanted in fields.items():
        if value.get(name) is None:
            continue
        found = value[name] if wanted is True else _keep(value[name], wanted)
        if found not in ({}, [], None):
            kept[name] = found
    return kept


def _keep_why_it_waits(item: Mapping[str, Any], kept: dict[str, Any]) -> None:
    conditions = mapping(item.get("status")).get("conditions")
    waits = [
        _keep(each, _SAID)
        for each in (conditions if isinstance(conditions, list) else ())
        if isinstance(each, Mapping) and each.get("type") == "PodScheduled"
    ]
    if waits:
        kept.setdefault("status", {})["conditions"] = waits


def _without_parameters(value: Any, mask: SecretMask) -> Any:
    """Texts of opaque configs are hidden where their names say that they are secret."""
    return _replace(value, "parameters", lambda found: mask.values(found, by_name=True))


def _replace(value: Any, name: str, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: change(each) if key == name and isinstance(each, Mapping) else _replace(each, name, change)
            for key, each in value.items()
        }
    return [_replace(each, name, change) for each in value] if isinstance(value, list) else value


def _runs(item: Mapping[str, Any]) -> bool:
    return bool(mapping(item.get("spec")).get("replicas") or mapping(item.get("status")).get("replicas"))
