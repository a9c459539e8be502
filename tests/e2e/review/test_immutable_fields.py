"""What a review of manifests calls immutable, and what the real API server says to the same changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.review.replacement import find_immutable_fields
from dra_infra.target import ClusterTarget
from tools.cluster import Api
from tools.cluster.api import ApiError

pytestmark = pytest.mark.e2e

Json = dict[str, Any]

LABELS = {"app": "immutable"}
TEMPLATE: Json = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "c", "image": "example.invalid/c:1"}]},
}
ONCE: Json = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
OTHER: Json = {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "example.invalid/c:2"}]}}
SELECTOR = {"matchLabels": LABELS}
DEVICES: Json = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}}
MORE: Json = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "count": 2}}]}}
RULES: Json = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
DEPLOYED: Json = {"selector": SELECTOR, "template": TEMPLATE, "replicas": 0}
SET: Json = {"selector": SELECTOR, "template": TEMPLATE, "serviceName": "a", "replicas": 0}
DISK: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

# Kind, the parts of the object, and the parts that the change sets.
CHANGES: dict[str, tuple[str, Json, Json]] = {
    "deployment template": (
        "apps/v1/Deployment",
        {"spec": DEPLOYED},
        {"spec": {**DEPLOYED, "template": OTHER}},
    ),
    "deployment selector": (
        "apps/v1/Deployment",
        {"spec": DEPLOYED},
        {"spec": {**DEPLOYED, "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}},
    ),
    "daemon set selector": (
        "apps/v1/DaemonSet",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        {
            "spec": {
                "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                "template": TEMPLATE,
            }
        },
    ),
    "stateful set template": ("apps/v1/StatefulSet", {"spec": SET}, {"spec": {**SET, "template": OTHER}}),
    "stateful set service": ("apps/v1/StatefulSet", {"spec": SET}, {"spec": {**SET, "serviceName": "b"}}),
    "stateful set management": (
        "apps/v1/StatefulSet",
        {"spec": SET},
        {"spec": {**SET, "podManagementPolicy": "Parallel"}},
    ),
    "stateful set volumes": (
        "apps/v1/StatefulSet",
        {"spec": SET},
        {"spec": {**SET, "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": DISK}]}},
    ),
    "job template": (
        "batch/v1/Job",
        {"spec": {"template": ONCE, "parallelism": 0}},
        {
            "spec": {
                "template": {"spec": {**OTHER["spec"], "restartPolicy": "Never"}},
                "parallelism": 0,
            }
        },
    ),
    "job parallelism": (
        "batch/v1/Job",
        {"spec": {"template": ONCE, "parallelism": 0}},
        {"spec": {"template": ONCE, "parallelism": 1}},
    ),
    "job completions": (
        "batch/v1/Job",
        {"spec": {"template": ONCE, "parallelism": 0, "completions": 3}},
        {"spec": {"template": ONCE, "parallelism": 0, "completions": 5}},
    ),
    "job completions that were not written": (
        "batch/v1/Job",
        {"spec": {"template": ONCE}},
        {"spec": {"template": ONCE, "completions": 3}},
    ),
    "job completions and parallelism": (
        "batch/v1/Job",
        {"spec": {"template": ONCE, "parallelism": 2, "completions": 2, "completionMode": "Indexed"}},
        {"spec": {"template": ONCE, "parallelism": 1, "completions": 1, "completionMode": "Indexed"}},
    ),
    "job completions without parallelism": (
        "batch/v1/Job",
        {"spec": {"template": ONCE, "parallelism": 2, "completions": 2, "completionMode": "Indexed"}},
        {"spec": {"template": ONCE, "parallelism": 2, "completions": 1, "completionMode": "Indexed"}},
    ),
    "job success policy": (
        "batch/v1/Job",
        {"spec": {"template": ONCE, "parallelism": 1, "completions": 1, "completionMode": "Indexed"}},
        {
            "spec": {
                "template": ONCE,
                "parallelism": 1,
                "completions": 1,
                "completionMode": "Indexed",
                "successPolicy": {"rules": [{"succeededCount": 1}]},
            }
        },
    ),
    "job mode": (
        "batch/v1/Job",
        {"spec": {"template": ONCE, "parallelism": 0, "completions": 1}},
        {"spec": {"template": ONCE, "parallelism": 0, "completions": 1, "completionMode": "Indexed"}},
    ),
    "config map": ("v1/ConfigMap", {"data": {"a": "1"}}, {"data": {"a": "2"}}),
    "config map that is immutable": (
        "v1/ConfigMap",
        {"data": {"a": "1"}, "immutable": True},
        {"data": {"a": "2"}, "immutable": True},
    ),
    "config map that becomes mutable": (
        "v1/ConfigMap",
        {"data": {"a": "1"}, "immutable": True},
        {"data": {"a": "1"}},
    ),
    "secret": ("v1/Secret", {"stringData": {"a": "1"}}, {"stringData": {"a": "2"}}),
    "secret type": ("v1/Secret", {"type": "a/b"}, {"type": "a/c"}),
    "volume claim modes": (
        "v1/PersistentVolumeClaim",
        {"spec": DISK},
        {"spec": {**DISK, "accessModes": ["ReadOnlyMany"]}},
    ),
    "role of a binding": (
        "rbac.authorization.k8s.io/v1/RoleBinding",
        {"roleRef": RULES},
        {"roleRef": {**RULES, "name": "b"}},
    ),
    "provisioner": (
        "storage.k8s.io/v1/StorageClass",
        {"provisioner": "a.example.com"},
        {"provisioner": "b.example.com"},
    ),
    "parameters": (
        "storage.k8s.io/v1/StorageClass",
        {"provisioner": "a.example.com"},
        {"provisioner": "a.example.com", "parameters": {"a": "b"}},
    ),
    "claim": ("resource.k8s.io/v1/ResourceClaim", {"spec": DEVICES}, {"spec": MORE}),
    "claim template": (
        "resource.k8s.io/v1/ResourceClaimTemplate",
        {"spec": {"spec": DEVICES}},
        {"spec": {"spec": MORE}},
    ),
    "class": (
        "resource.k8s.io/v1/DeviceClass",
        {"spec": {}},
        {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    ),
    "node of a pod": (
        "v1/Pod",
        {"spec": {**TEMPLATE["spec"], "nodeName": "gone-a"}},
        {"spec": {**TEMPLATE["spec"], "nodeName": "gone-b"}},
    ),
    "image of a pod": ("v1/Pod", {"spec": TEMPLATE["spec"]}, {"spec": OTHER["spec"]}),
}
CLUSTERED = ("DeviceClass", "StorageClass")

NODES: Json = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
    }
}
APART: Json = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": LABELS}}
    ]
}
CONTAINER: Json = ONCE["spec"]["containers"][0]
SUSPENDED: Mapping[str, Json] = {
    "annotations": {"metadata": {"annotations": {"a": "b"}}},
    "labels": {"metadata": {"labels": LABELS}},
    "node selector": {"spec": {"nodeSelector": {"a": "b"}}},
    "tolerations": {"spec": {"tolerations": [{"operator": "Exists"}]}},
    "scheduling gates": {"spec": {"schedulingGates": [{"name": "example.com/a"}]}},
    "node affinity": {"spec": {"affinity": {"nodeAffinity": NODES}}},
    "pod affinity": {"spec": {"affinity": {"podAntiAffinity": APART}}},
    "both affinities": {"spec": {"affinity": {"nodeAffinity": NODES, "podAntiAffinity": APART}}},
    "empty affinity": {"spec": {"affinity": {}}},
    "resources": {"spec": {"containers": [{**CONTAINER, "resources": {"limits": {"cpu": "1"}}}]}},
    "image": {"spec": {"containers": [{**CONTAINER, "image": "example.invalid/c:2"}]}},
    "name": {"spec": {"containers": [{**CONTAINER, "name": "d", "resources": {"limits": {"cpu": "1"}}}]}},
    "claims": {"spec": {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}},
    "deadline": {"spec": {"activeDeadlineSeconds": 5}},
}
"""Parts that a change adds to the template of a Job."""
for _name, _parts in SUSPENDED.items():
    # Only the schema tells that an empty affinity is another than none, so the change of a Job that runs is not known to be one.
    for _is_suspended in (True, False) if _name != "empty affinity" else (True,):
        _job: Json = {"template": ONCE, "suspend": _is_suspended, "parallelism": 0}
        _spec = {**ONCE["spec"], **_parts.get("spec", {})}
        CHANGES[f"job {_name} {'while suspended' if _is_suspended else 'while it runs'}"] = (
            "batch/v1/Job",
            {"spec": _job},
            {"spec": {**_job, "template": {**_parts, "spec": _spec}}},
        )


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_the_server_refuses_what_the_review_calls_immutable(cluster_api: Api, name: str) -> None:
    kind, before, after = CHANGES[name]
    releases = ClusterTarget(kubernetes=SUPPORTED_MINORS[-1]).releases
    head = {"apiVersion": kind.rpartition("/")[0], "kind": kind.rpartition("/")[2]}
    metadata = {"name": f"immutable-{name.replace(' ', '-')}"}
    if head["kind"] not in CLUSTERED:
        metadata["namespace"] = "default"
    cluster_api.apply({**head, "metadata": metadata, **before})
    try:
        refused = ""
        try:
            cluster_api.apply({**head, "metadata": metadata, **after})
        except ApiError as error:
            refused = str(error)
        found = find_immutable_fields({**head, **before}, {**head, **after}, releases)
        assert bool(found) == bool(refused), refused
    finally:
        cluster_api.delete(kind, metadata["name"], namespace=metadata.get("namespace"))
