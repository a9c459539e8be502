"""Objects that are stored for good and read back in every version that the server has."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.parity import bases, generation
from tests.e2e.parity.cases import ADMIN, RESOURCES, Object
from tests.e2e.parity.server import Server

GROUP = "resource.k8s.io"
VERSIONS: Mapping[str, tuple[str, ...]] = {
    "DeviceClass": ("v1", "v1beta2", "v1beta1"),
    "ResourceClaim": ("v1", "v1beta2", "v1beta1"),
    "ResourceClaimTemplate": ("v1", "v1beta2", "v1beta1"),
    "ResourceSlice": ("v1", "v1beta2", "v1beta1"),
    "DeviceTaintRule": ("v1", "v1beta2"),
}
"""Versions of a kind that are converted, newest first; alphas are not."""

_PLURALS = {
    **{kind: plural for kind, (plural, _) in RESOURCES.items()},
    "ResourceSlice": "resourceslices",
    "DeviceTaintRule": "devicetaintrules",
}
_NAMESPACED = ("ResourceClaim", "ResourceClaimTemplate")


@dataclass(frozen=True, kw_only=True)
class RoundTrip:
    """One object in all versions.

    Args:
        id: What it is.
        versions: The object as the server gives it out, by version.
    """

    id: str
    versions: Mapping[str, Object]


def round_trips(server: Server, count: int, *, seed: int) -> Iterator[RoundTrip]:
    """Store objects with every field and *count* generated ones, and read each back in every version."""
    for index, (name, built) in enumerate(_objects(count, seed)):
        kind = built["kind"]
        namespace = "" if kind not in _NAMESPACED else ADMIN
        path = _path(built["apiVersion"], kind, namespace)
        spec = {key: value for key, value in built.items() if key != "status"}
        metadata = {**built["metadata"], "name": f"stored-{index}"}
        created = {**spec, "metadata": metadata}
        answer = server.send("POST", path, created, field_validation="Warn", dry_run=False)
        if answer.stored is None:
            continue
        if status := built.get("status"):
            body = {**answer.stored, "status": status}
            server.send("PUT", f"{path}/stored-{index}/status", body, field_validation="Warn", dry_run=False)
        found = {}
        for version in VERSIONS[kind]:
            read = server.read(f"{_path(f'{GROUP}/{version}', kind, namespace)}/stored-{index}")
            if read is not None:
                found[version] = read
        yield RoundTrip(id=name, versions=found)


def _path(api_version: str, kind: str, namespace: str) -> str:
    root = f"/apis/{api_version}"
    return f"{root}/namespaces/{namespace}/{_PLURALS[kind]}" if namespace else f"{root}/{_PLURALS[kind]}"


def _objects(count: int, seed: int) -> Iterator[tuple[str, Object]]:
    yield "whole claim", bases.claim()
    yield "whole claim for every minor", bases.claim(derived=False, distinct=False)
    yield "whole template", bases.template()
    yield "whole class", bases.device_class()
    yield "allocated claim", bases.allocated_claim()
    yield from (("slice " + name, built) for name, built in slices().items())
    yield from (("taint rule in " + version, taint_rule(version)) for version in VERSIONS["DeviceTaintRule"])
    for name in generation.names(seed, count):
        case = generation.case(name)
        if case.kind in VERSIONS and isinstance(case.object.get("metadata"), dict):
            yield name, case.object


_NODES = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "a/b", "operator": "In", "values": ["x", ""]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}],
        }
    ]
}
_POOL = {"name": "node-a", "generation": 0, "resourceSliceCount": 2}
_TAINT = {"key": "a/broken", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}


def slices() -> Mapping[str, Object]:
    """Slices that together have every field."""
    shared: Mapping[str, Any] = {
        "of a node": {
            "nodeName": "node-a",
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"a": {"int": 0}, "b": {"bool": False}, "c": {"string": ""}, "gpu.example.com/d": {"version": "1.2.3-a+b"}},
                    "capacity": {
                        "memory": {"value": "1024Mi"},
                        "cores": {"value": "10", "requestPolicy": {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}}},
                        "slots": {"value": "8", "requestPolicy": {"default": "2", "validValues": ["1", "2"]}},
                    },
                    "allowMultipleAllocations": True,
                    "taints": [_TAINT, {"key": "b", "value": "c", "effect": "NoSchedule", "timeAdded": "2026-01-02T03:04:05Z"}],
                },
                {"name": "gpu-1", "bindsToNode": True, "bindingConditions": ["a/ready"], "bindingFailureConditions": ["a/failed"]},
                {"name": "gpu-2", "allowMultipleAllocations": False, "attributes": {}, "capacity": {}},
            ],
        },
        "of parts": {
            "perDeviceNodeSelection": True,
            "devices": [
                {"name": "part-0", "nodeName": "node-a", "consumesCounters": [{"counterSet": "gpu", "counters": {"memory": {"value": "1Gi"}}}]},
                {"name": "part-1", "nodeSelector": _NODES},
                {"name": "part-2", "allNodes": True},
            ],
        },
        "of counters": {"allNodes": True, "sharedCounters": [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}, "cores": {"value": "0.5"}}}]},
        "by selector": {"nodeSelector": _NODES, "devices": [{"name": "a"}]},
        "of nothing": {"allNodes": True},
        "of lists": {
            "allNodes": True,
            "devices": [{"name": "a", "attributes": {"i": {"ints": [1, -1]}, "b": {"bools": [True]}, "s": {"strings": ["", "é"]}, "v": {"versions": ["1.0.0"]}}}],
        },
        "of alphas": {
            "allNodes": True,
            "skipNodeOperations": ["NodePrepareResources", "NodeUnprepareResources"],
            "partitionTypeAttribute": "gpu.example.com/profile",
            "devices": [
                {
                    "name": "a",
                    "attributes": {"profile": {"string": "1g"}},
                    "capacity": {"memory": {"value": "1Gi"}},
                    "consumesCounters": [{"counterSet": "gpu", "counters": {"m": {"value": "1"}}, "compatibilityGroups": ["x"]}],
                    "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "2"}, "overhead": {"perPod": "1", "perContainer": "100m"}}},
                }
            ],
        },
    }  # fmt: skip
    return {
        name: {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "slice"},
            "spec": {"driver": "gpu.example.com", "pool": dict(_POOL), **copy.deepcopy(spec)},
        }
        for name, spec in shared.items()
    }


def taint_rule(version: str) -> Object:
    """A rule about one device."""
    selector = {"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": selector, "taint": dict(_TAINT)},
    }
