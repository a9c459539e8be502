"""What damaged documents are made from: the objects of the examples, a small cluster as its server sends it, fleets,
and the answers of both forges.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, Final

import yaml

from dra_infra.documents.yaml import read_manifests
from tests.support.cluster import samples

_EXAMPLES: Final = Path(__file__).parents[3] / "examples"
_OWN: Final = Path(__file__).with_name("seeds.yaml")

NODE_GROUPS: Final[tuple[Any, ...]] = (
    {
        "nodeGroups": [
            {
                "kind": "hgx-h100",
                "count": 2,
                "name": "training",
                "labels": {"pool": "training"},
                "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
                "allocatable": {"cpu": "64", "memory": "512Gi"},
            },
            {"kind": "a100-80gb", "count": 1},
        ]
    },
)


_PLUGIN_CONFIG: Final = {
    "version": "v1",
    "flags": {"migStrategy": "mixed"},
    "sharing": {
        "timeSlicing": {
            "renameByDefault": False,
            "failRequestsGreaterThanOne": True,
            "resources": [{"name": "nvidia.com/gpu", "replicas": 4}, {"name": "mig-1g.10gb", "replicas": 2}],
        }
    },
}
PLUGIN_CONFIGS: Final[tuple[Any, ...]] = (
    _PLUGIN_CONFIG,
    {"version": "v1", "sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}},
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "plugin", "namespace": "gpu-operator"},
        "data": {"config.yaml": json.dumps(_PLUGIN_CONFIG)},
    },
)
"""Configurations of NVIDIA's device plugin."""


SERVED: Final[Any] = {
    "groups": [{"name": "ray.io", "preferredVersion": {"groupVersion": "ray.io/v1", "version": "v1"}}],
    "resources": [
        {"kind": "RayCluster", "name": "rayclusters", "namespaced": True, "verbs": ["list"]},
        {"kind": "ReplicationController", "name": "replicationcontrollers", "namespaced": True},
    ],
}
"""What a server says that it serves: its groups, and the kinds of each of their versions."""


@functools.cache
def examples() -> tuple[tuple[dict[str, Any], ...], ...]:
    """The objects of each example, and of each of our own documents that hold what no example does."""
    files = [*sorted(_EXAMPLES.glob("*/expected.yaml")), _OWN]
    return tuple(read_manifests(file.read_text("utf-8")) for file in files)


@functools.cache
def estates() -> tuple[tuple[dict[str, Any], ...], ...]:
    """What people have before a migration: the inputs of the rows of the docs' tables."""
    folder = Path(__file__).parents[1] / "migration" / "cases"
    files = [each for each in sorted(folder.glob("*.yaml")) if not each.stem.endswith("_outputs")]
    rows = [row for file in files for row in yaml.safe_load(file.read_text("utf-8"))]
    # Rows share objects by anchors, which mutations must not see.
    return tuple(tuple(json.loads(json.dumps(row["input"]))) for row in rows)


@functools.cache
def cluster() -> dict[str, tuple[dict[str, Any], ...]]:
    """Objects by plural, without kind and version, as a list of the API has them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for kind, items in samples.healthy().objects.items():
        found.setdefault(kind.plural, []).extend(json.loads(json.dumps(items)))
    found["pods"].append(json.loads(json.dumps(samples.pod("waits", "Pending", templates=["t"]))))
    found["events"] = [
        {
            "metadata": {"name": "e", "namespace": "ml"},
            "type": "Warning",
            "reason": "FailedScheduling",
            "message": "0/1 nodes are available",
            "involvedObject": {"kind": "Pod", "name": "waits", "namespace": "ml", "uid": "uid-waits"},
        }
    ]
    plurals = {
        "Deployment": "deployments",
        "Job": "jobs",
        "ResourceQuota": "resourcequotas",
        "LimitRange": "limitranges",
        "ResourceClaimTemplate": "resourceclaimtemplates",
        "Namespace": "namespaces",
        "PriorityClass": "priorityclasses",
        "ReplicaSet": "replicasets",
        "DeviceTaintRule": "devicetaintrules",
    }
    for each in read_manifests(_OWN.read_text("utf-8")):
        if each["kind"] in plurals:
            item = {key: value for key, value in each.items() if key not in ("apiVersion", "kind")}
            found.setdefault(plurals[each["kind"]], []).append(item)
    ray = next(each for estate in estates() for each in estate if each.get("kind") == "RayCluster")
    found["rayclusters"] = [{key: each for key, each in ray.items() if key not in ("apiVersion", "kind")}]
    return {plural: tuple(items) for plural, items in found.items()}


@functools.cache
def snapshot() -> tuple[dict[str, Any], ...]:
    """The same cluster as the objects of a snapshot."""
    kinds = {
        "nodes": ("v1", "Node"),
        "pods": ("v1", "Pod"),
        "resourceslices": ("resource.k8s.io/v1", "ResourceSlice"),
        "deviceclasses": ("resource.k8s.io/v1", "DeviceClass"),
        "resourceclaims": ("resource.k8s.io/v1", "ResourceClaim"),
        "daemonsets": ("apps/v1", "DaemonSet"),
    }
    return (
        *(
            {"apiVersion": version, "kind": kind, **item}
            for plural, (version, kind) in kinds.items()
            for item in cluster()[plural]
        ),
        *read_manifests(_OWN.read_text("utf-8")),
    )


COMMENTS: Final[tuple[Any, ...]] = (
    [
        {
            "id": 1001,
            "body": "<!-- dra-infra review infra/prod -->\n### all well\n",
            "user": {"login": "github-actions[bot]", "type": "Bot"},
            "author": {"username": "github-actions[bot]"},
            "system": False,
            "html_url": "https://forge.invalid/team/infra/pull/42#issuecomment-1001",
        },
        {
            "id": 1002,
            "body": "looks good",
            "user": {"login": "ann", "type": "User"},
            "author": {"username": "ann"},
        },
    ],
    {"login": "reviewer", "username": "reviewer", "id": 7},
    {"message": "Validation Failed", "errors": [{"message": "body is too long"}], "error": "no"},
)
