"""Objects as servers give them out: only what people wrote is migrated, without what servers wrote."""

from __future__ import annotations

import json
from typing import Any

from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.needs import Settings
from dra_infra.sources.cluster_objects import migrate_read, without_written
from tests.unit.sources.test_patches import WHOLE

SETTINGS = Settings(plugin=DevicePlugin())


def read(kind: str, name: str, *, of: tuple[str, str] | None = None, gpus: int = 1) -> dict[str, Any]:
    """An object of a cluster."""
    made = json.loads(json.dumps(WHOLE))
    made["kind"] = kind
    made["metadata"] = {
        "name": name,
        "namespace": "ml",
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
        "labels": {"app": "serve"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "ml"},
    }
    made["status"] = {"replicas": 1}
    if not gpus:
        del made["spec"]["template"]["spec"]["containers"][0]["resources"]
    if of:
        owner = {"apiVersion": "apps/v1", "kind": of[0], "name": of[1], "uid": "u", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
    if kind == "Pod":
        made |= {"apiVersion": "v1", "spec": made["spec"]["template"]["spec"]}
    return made


def test_an_object_is_written_without_what_servers_wrote():
    (done,) = migrate_read([read("Deployment", "serve")], SETTINGS)
    assert done.manifest is not None
    assert done.manifest["metadata"] == {
        "name": "serve",
        "namespace": "ml",
        "labels": {"app": "serve"},
        "annotations": {"team": "ml"},
    }
    assert "status" not in done.manifest
    assert ("written-by-server", "metadata") in [(each.code, each.path) for each in done.remarks]


def test_a_quota_is_written_without_what_servers_wrote():
    hard = {"requests.nvidia.com/gpu": "4"}
    quota = {
        **read("ResourceQuota", "q"),
        "apiVersion": "v1",
        "spec": {"hard": hard},
        "status": {"hard": hard},
    }
    (done,) = migrate_read([quota], SETTINGS)
    assert done.manifest is not None
    assert done.manifest.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert done.manifest["metadata"].keys() == {"name", "namespace", "labels", "annotations"}
    assert ("written-by-server", "metadata") in [(each.code, each.path) for each in done.remarks]


TOKEN = "kube-api-access-x7k2p"
WRITTEN_TOLERATIONS = [
    {
        "key": f"node.kubernetes.io/{key}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for key in ("not-ready", "unreachable")
]


def test_a_pod_is_written_without_its_node_and_what_admission_added():
    pod = read("Pod", "bare")
    token = {"name": TOKEN, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    data = {"name": "data", "mountPath": "/data"}
    pod["spec"] |= {
        "nodeName": "n1",
        "volumes": [{"name": TOKEN, "projected": {}}, {"name": "data", "emptyDir": {}}],
        "tolerations": [*WRITTEN_TOLERATIONS, {"key": "team", "operator": "Exists"}],
    }
    pod["spec"]["containers"][0]["volumeMounts"] = [token, data]
    (done,) = migrate_read([pod], SETTINGS)
    assert done.manifest is not None
    spec = done.manifest["spec"]
    assert "nodeName" not in spec
    assert spec["volumes"] == [{"name": "data", "emptyDir": {}}]
    assert spec["containers"][0]["volumeMounts"] == [data]
    assert [each["key"] for each in spec["tolerations"]] == ["team", "nvidia.com/gpu"]


def test_a_job_is_written_without_the_selector_that_servers_refuse():
    job = read("Job", "train") | {"apiVersion": "batch/v1"}
    labels = {
        "controller-uid": "u",
        "batch.kubernetes.io/controller-uid": "u",
        "job-name": "train",
        "app": "a",
    }
    job["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    job["spec"]["template"]["metadata"] = {"creationTimestamp": None, "labels": labels}
    (done,) = migrate_read([job], SETTINGS)
    assert done.manifest is not None
    assert "selector" not in done.manifest["spec"]
    assert done.manifest["spec"]["template"]["metadata"] == {"labels": {"app": "a"}}
    job["spec"]["manualSelector"] = True
    (done,) = migrate_read([job], SETTINGS)
    assert done.manifest is not None
    assert done.manifest["spec"]["selector"] == job["spec"]["selector"]
    assert done.manifest["spec"]["template"]["metadata"] == {"labels": labels}


def test_what_servers_write_into_single_kinds_is_left_out():
    space = read("Namespace", "ml") | {"apiVersion": "v1", "spec": {"finalizers": ["kubernetes"]}}
    space["metadata"]["labels"]["kubernetes.io/metadata.name"] = "ml"
    assert without_written(space)["metadata"]["labels"] == {"app": "serve"}
    assert "spec" not in without_written(space)
    daemons = read("DaemonSet", "d")
    daemons["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = "1"
    daemons["spec"]["template"]["spec"] |= {"serviceAccount": "a", "serviceAccountName": "a"}
    assert without_written(daemons)["metadata"]["annotations"] == {"team": "ml"}
    assert without_written(daemons)["spec"]["template"]["spec"].keys() == {"containers", "serviceAccountName"}
    job = read("Job", "train")
    job["metadata"]["labels"] |= {"controller-uid": "u", "batch.kubernetes.io/job-name": "train"}
    assert without_written(job)["metadata"]["labels"] == {"app": "serve"}
    job["spec"]["manualSelector"] = True
    assert without_written(job)["metadata"]["labels"] == job["metadata"]["labels"]


def test_claims_and_their_templates_are_read_without_what_servers_wrote():
    claim = {**read("ResourceClaim", "c"), "apiVersion": "resource.k8s.io/v1", "spec": {"devices": {}}}
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    assert "finalizers" not in without_written(claim)["metadata"]
    claim["metadata"]["finalizers"].append("example.com/mine")
    assert without_written(claim)["metadata"]["finalizers"] == ["example.com/mine"]
    for metadata in ({}, {"creationTimestamp": None}):
        template = read("ResourceClaimTemplate", "t") | {"spec": {"metadata": metadata, "spec": {}}}
        assert without_written(template)["spec"] == {"spec": {}}


def test_what_controllers_made_of_the_input_is_left_out_and_takes_no_name():
    objects = [
        read("Pod", "serve-1-a", of=("ReplicaSet", "serve-1")),
        read("ReplicaSet", "serve-1", of=("Deployment", "serve")),
        read("Deployment", "serve"),
    ]
    pod, replica_set, deployment = migrate_read(objects, SETTINGS)
    for each in (pod, replica_set):
        assert each.manifest is None
        assert not each.added
        assert [(one.code, one.path) for one in each.remarks] == [
            ("owned-object", "metadata.ownerReferences")
        ]
    assert [each["metadata"]["name"] for each in deployment.added] == ["serve-gpu"]


def test_the_node_that_the_scheduler_gave_a_pod_is_nothing_to_decide():
    pod = read("Pod", "serve-1-a", of=("ReplicaSet", "serve-1"))
    pod["spec"]["nodeName"] = "n1"
    (done, _) = migrate_read([pod, read("ReplicaSet", "serve-1")], SETTINGS)
    assert [(each.code, each.outcome) for each in done.remarks] == [("owned-object", "changed")]


def test_what_was_made_of_something_else_stays_and_is_to_decide():
    pod = read("Pod", "serve-1-a", of=("ReplicaSet", "serve-1"))
    (done,) = migrate_read([pod], SETTINGS)
    assert done.manifest is pod
    assert [(each.code, each.outcome) for each in done.remarks] == [("owned-object", "decide")]


def test_an_owner_in_another_namespace_is_another():
    pod = read("Pod", "serve-1-a", of=("ReplicaSet", "serve-1"))
    other = read("ReplicaSet", "serve-1")
    other["metadata"]["namespace"] = "other"
    assert [each.outcome for each in migrate_read([pod, other], SETTINGS)[0].remarks] == ["decide"]


def test_objects_with_nothing_to_migrate_are_the_very_ones():
    objects = [read("Deployment", "serve", gpus=0), read("Pod", "a", of=("Job", "b"), gpus=0), WHOLE]
    done = migrate_read(objects, SETTINGS)
    assert done[0].manifest is objects[0]
    assert done[1].manifest is objects[1]
    assert not done[0].remarks
    assert not done[1].remarks
    assert "written-by-server" not in [each.code for each in done[2].remarks]


def test_owners_and_metadata_of_strangers_do_no_harm():
    for metadata in (
        {"ownerReferences": 3, "uid": {}},
        {"ownerReferences": [3, None, {"controller": True, "kind": [], "name": {}}], "uid": "a"},
        {"annotations": [], "uid": "a"},
        [],
        None,
    ):
        (done,) = migrate_read([{**WHOLE, "metadata": metadata}], SETTINGS)
        assert done.remarks
