"""Readiness as the status of each kind says it."""

from __future__ import annotations

from typing import Any

import pytest

from tools.kubernetes_provider.readiness import assess

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"generation": 2, "annotations": {"deployment.kubernetes.io/revision": "2"}},
    "spec": {"replicas": 2},
    "status": {
        "observedGeneration": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "conditions": [
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    },
}
STATEFUL_SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"generation": 1},
    "spec": {"replicas": 2},
    "status": {
        "observedGeneration": 1,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "currentRevision": "a",
        "updateRevision": "a",
    },
}
DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"generation": 1},
    "spec": {},
    "status": {
        "observedGeneration": 1,
        "desiredNumberScheduled": 3,
        "numberReady": 3,
        "updatedNumberScheduled": 3,
    },
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {},
    "spec": {},
    "status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {},
    "spec": {},
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "True"},
        ],
    },
}


def changed(obj: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {**obj, "status": {**obj["status"], **status}}


@pytest.mark.parametrize(
    "obj",
    [
        DEPLOYMENT,
        STATEFUL_SET,
        DAEMON_SET,
        JOB,
        POD,
        changed(POD, phase="Succeeded", conditions=[]),
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {}, "spec": {}},
        {**changed(DEPLOYMENT, updatedReplicas=0, readyReplicas=0), "spec": {"replicas": 0}},
    ],
    ids=lambda obj: obj["kind"],
)
def test_is_ready(obj: dict[str, Any]) -> None:
    assert assess(obj).ready


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(changed(DEPLOYMENT, observedGeneration=1), id="Deployment, change not seen"),
        pytest.param(changed(DEPLOYMENT, readyReplicas=1), id="Deployment, a pod not ready"),
        pytest.param(changed(DEPLOYMENT, updatedReplicas=1), id="Deployment, an old pod"),
        pytest.param(
            changed(
                DEPLOYMENT,
                conditions=[
                    {"type": "Available", "status": "True"},
                    {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
                ],
            ),
            id="Deployment, rolling over",
        ),
        pytest.param({**DEPLOYMENT, "status": {}}, id="Deployment, no status"),
        pytest.param(changed(STATEFUL_SET, updateRevision="b"), id="StatefulSet, rolling over"),
        pytest.param(changed(STATEFUL_SET, readyReplicas=1), id="StatefulSet, a pod not ready"),
        pytest.param(changed(DAEMON_SET, updatedNumberScheduled=2), id="DaemonSet, rolling over"),
        pytest.param(changed(JOB, conditions=[]), id="Job, running"),
        pytest.param(changed(POD, conditions=POD["status"]["conditions"][:2]), id="Pod, not ready"),
    ],
)
def test_is_not_ready(obj: dict[str, Any]) -> None:
    readiness = assess(obj)

    assert not readiness.ready
    assert not readiness.failed
    assert readiness.reasons


@pytest.mark.parametrize(
    ("reason", "failed"), [("BackoffLimitExceeded", True), ("DeadlineExceeded", True), ("Other", False)]
)
def test_a_job_has_failed_for_good_only_for_some_reasons(reason: str, failed: bool) -> None:
    job = changed(JOB, conditions=[{"type": "Failed", "status": "True", "reason": reason}])

    assert assess(job).failed is failed


def test_the_controllers_words_are_the_reasons() -> None:
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "cannot allocate all claims",
    }

    reasons = assess(changed(POD, phase="Pending", conditions=[unschedulable])).reasons

    assert reasons == ("phase Pending", "[Unschedulable] cannot allocate all claims")
