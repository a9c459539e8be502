"""Slices that together have every field."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tests.support.parity.cases import Object

GROUP = "resource.k8s.io"
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


def whole_slices() -> Mapping[str, Object]:
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
