"""Pods and workloads with what the server adds; real servers are asked in tests/e2e/components/test_completion.py."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.kubernetes.apiserver.policies.completion import (
    NotKnown,
    add_daemon_tolerations,
    complete_pod,
    complete_workload,
    list_job_labels,
    list_unknown_fields,
)

POD = {"containers": [{"name": "a", "image": "i"}]}


def at(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data[int(step)] if isinstance(data, list) else data.get(step, "absent")
    return data


def a_pod(**spec: Any) -> dict[str, Any]:
    return complete_pod({**POD, **spec}, has_token=False)


def a_workload(kind: str, **spec: Any) -> dict[str, Any]:
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
    holder = (
        {"jobTemplate": {"spec": {"template": template}}} if kind == "CronJob" else {"template": template}
    )
    return complete_workload({"apiVersion": group, "kind": kind, "spec": {**holder, **spec}})


@pytest.mark.parametrize(
    ("spec", "path", "value"),
    [
        ({}, "restartPolicy", "Always"),
        ({}, "dnsPolicy", "ClusterFirst"),
        ({}, "terminationGracePeriodSeconds", 30),
        ({"terminationGracePeriodSeconds": 0}, "terminationGracePeriodSeconds", 0),
        ({}, "serviceAccountName", "default"),
        ({"serviceAccount": "x"}, "serviceAccountName", "x"),
        ({}, "securityContext", {}),
        ({}, "hostNetwork", "absent"),
        ({"hostNetwork": False}, "hostNetwork", "absent"),
        ({"hostNetwork": True}, "hostNetwork", True),
        ({"automountServiceAccountToken": False}, "automountServiceAccountToken", False),
        ({"nodeSelector": {}}, "nodeSelector", "absent"),
        ({"affinity": {}}, "affinity", {}),
        ({"priorityClassName": "system-node-critical"}, "priority", 2_000_001_000),
        ({}, "tolerations.0.key", "node.kubernetes.io/not-ready"),
        ({}, "tolerations.1.tolerationSeconds", 300),
        ({"tolerations": [{"operator": "Exists"}]}, "tolerations", [{"operator": "Exists"}]),
        ({}, "containers.0.resources", {}),
        ({}, "containers.0.imagePullPolicy", "Always"),
        ({"volumes": [{"name": "v"}]}, "volumes.0.emptyDir", {}),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "volumes.0.hostPath.type", ""),
        ({"volumes": []}, "volumes", "absent"),
    ],
)
def test_a_pod_has_the_defaults_of_the_server(spec: dict[str, Any], path: str, value: Any):
    assert at(a_pod(**spec), path) == value


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("r.example.com:5000/a", "Always"),
        ("a:1", "IfNotPresent"),
        ("r.example.com:5000/a:1", "IfNotPresent"),
        ("a@sha256:0", "IfNotPresent"),
        ("a:latest@sha256:0", "IfNotPresent"),
    ],
)
def test_an_image_without_a_tag_is_pulled_always(image: str, policy: str):
    found = complete_pod({"containers": [{"name": "a", "image": image}]}, has_token=False)
    assert found["containers"][0]["imagePullPolicy"] == policy


def test_a_limit_is_a_request_in_a_pod_and_not_in_a_template():
    spec = {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}]}
    limits = {"cpu": "1", "memory": "1Gi"}
    assert complete_pod(spec, has_token=False)["containers"][0]["resources"] == {
        "limits": limits,
        "requests": limits,
    }
    workload = complete_workload(
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": spec}}}
    )
    assert workload["template"]["spec"]["containers"][0]["resources"] == {"limits": limits}


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({}, "imagePullSecrets"),
        ({}, "priority"),
        ({"priorityClassName": "own"}, "priority"),
        ({"runtimeClassName": "kata"}, "overhead"),
        ({"runtimeClassName": "kata"}, "tolerations"),
        ({"schedulerName": UNKNOWN}, "schedulerName"),
        ({"containers": UNKNOWN}, "containers"),
        ({"volumes": [7]}, "volumes"),
        ({"resources": {"limits": {"cpu": "1"}}}, "resources"),
    ],
)
def test_what_others_decide_is_not_known(spec: dict[str, Any], path: str):
    assert isinstance(at(a_pod(**spec), path), NotKnown)


@pytest.mark.parametrize(
    ("kind", "spec", "path", "value"),
    [
        ("Deployment", {}, "replicas", 1),
        ("Deployment", {"replicas": 0}, "replicas", 0),
        ("Deployment", {}, "strategy.rollingUpdate.maxSurge", "25%"),
        ("Deployment", {"strategy": {"type": "Recreate"}}, "strategy", {"type": "Recreate"}),
        ("Deployment", {"paused": False}, "paused", "absent"),
        ("Deployment", {}, "template.spec.enableServiceLinks", "absent"),
        ("Deployment", {}, "template.spec.serviceAccountName", "absent"),
        ("Deployment", {}, "template.spec.tolerations", "absent"),
        ("Deployment", {}, "template.spec.containers.0.terminationMessagePolicy", "File"),
        ("DaemonSet", {}, "updateStrategy.rollingUpdate.maxUnavailable", 1),
        ("StatefulSet", {}, "updateStrategy.rollingUpdate.partition", 0),
        ("StatefulSet", {}, "persistentVolumeClaimRetentionPolicy.whenScaled", "Retain"),
        ("ReplicaSet", {}, "replicas", 1),
        ("Job", {}, "completions", 1),
        ("Job", {"parallelism": 2}, "completions", "absent"),
        ("Job", {}, "backoffLimit", 6),
        ("Job", {}, "suspend", False),
        ("CronJob", {}, "concurrencyPolicy", "Allow"),
        ("CronJob", {}, "jobTemplate.spec.backoffLimit", "absent"),
        ("CronJob", {}, "jobTemplate.spec.template.spec.restartPolicy", "Always"),
    ],
)
def test_a_workload_has_the_defaults_of_the_server(kind: str, spec: dict[str, Any], path: str, value: Any):
    assert at(a_workload(kind, **spec), path) == value


def test_the_selector_of_a_job_is_made_up_by_the_server():
    job = a_workload("Job")
    assert isinstance(job["selector"], NotKnown)
    labels = job["template"]["metadata"]["labels"]
    assert labels["a"] == "b"
    assert isinstance(labels["controller-uid"], NotKnown)


def test_a_job_without_labels_has_those_of_its_template():
    template = {"metadata": {"labels": {"a": "b"}}}
    job = {"metadata": {"name": "j"}, "spec": {"template": template}}
    labels, made_up = list_job_labels(job)
    assert labels == {"a": "b", "job-name": "j", "batch.kubernetes.io/job-name": "j"}
    assert made_up == {"controller-uid", "batch.kubernetes.io/controller-uid"}
    assert list_job_labels({"spec": {"template": template, "manualSelector": True}}) == (
        {"a": "b"},
        frozenset(),
    )
    assert list_job_labels({"spec": {}}) == ({}, frozenset())


def test_other_kinds_are_not_completed():
    assert complete_workload({"apiVersion": "v1", "kind": "Service", "spec": {}}) is None


def test_the_controller_of_a_daemon_set_adds_tolerations_once():
    own = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    keys = [each["key"] for each in add_daemon_tolerations({"tolerations": [own]})["tolerations"]]
    assert len(keys) == len(set(keys)) == 6
    assert len(add_daemon_tolerations({"hostNetwork": True})["tolerations"]) == 7


@pytest.mark.parametrize(
    ("kind", "spec", "names"),
    [
        ("Deployment", {}, set()),
        ("Job", {}, set()),
        ("Job", {"completionMode": "Indexed"}, {"hostname", "subdomain", "containers", "initContainers"}),
        ("StatefulSet", {}, {"hostname", "subdomain", "volumes"}),
        ("DaemonSet", {}, {"affinity"}),
    ],
)
def test_what_a_controller_writes_into_its_pods_is_not_known(
    kind: str, spec: dict[str, Any], names: set[str]
):
    assert set(list_unknown_fields(kind, spec)) == names


def test_a_controller_that_is_not_known_may_write_anything():
    assert list_unknown_fields("RayCluster", {}) is None
