"""What `resourcesPerNode` of a TrainJob does to the container of its runtime."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.advice.objects import validate
from dra_infra.target import ClusterTarget

API = "trainer.kubeflow.org/v1alpha1"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def a_runtime(
    resources: Any, *, container: str = "node", step: str = "trainer", cluster: bool = False
) -> Any:
    """A runtime with one job of one container."""
    metadata = {"name": "torch", **({} if cluster else {"namespace": "ml"})}
    pod = {
        "containers": [{"name": container, "image": "x", "resources": resources}],
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "t"}],
    }
    job = {
        "name": "node",
        "template": {"metadata": {"labels": {STEP: step}}, "spec": {"template": {"spec": pod}}},
    }
    kind = "ClusterTrainingRuntime" if cluster else "TrainingRuntime"
    spec = {"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": [job]}}}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def a_train_job(resources: Any = None, *, kind: str = "TrainingRuntime") -> Any:
    """TrainJob ml/tune."""
    trainer = {"numNodes": 2, **({} if resources is None else {"resourcesPerNode": resources})}
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": {"name": "tune", "namespace": "ml"},
        "spec": {"runtimeRef": {"name": "torch", "kind": kind}, "trainer": trainer},
    }


CLAIMS = {"claims": [{"name": "gpus"}]}
MEMORY = {"limits": {"memory": "64Gi"}}


def codes(*objects: Any) -> set[str]:
    """The codes of what is said of the TrainJob."""
    found = validate(objects, ClusterTarget(kubernetes="1.37"))
    assert all(each.severity == "warning" for each in found if each.code.startswith("trainer-"))
    return {each.code for each in found if each.path == "TrainJob ml/tune.spec.trainer.resourcesPerNode"}


@pytest.mark.parametrize(
    ("of_runtime", "own", "told"),
    [
        (CLAIMS, MEMORY, {"trainer-erases-claims"}),
        ({"requests": {"cpu": "150"}, **CLAIMS}, MEMORY, {"trainer-erases-claims", "trainer-release"}),
        ({"requests": {"cpu": "150"}}, MEMORY, {"trainer-release"}),
        ({"requests": {"cpu": "150"}}, {"requests": {"cpu": "8"}}, set()),
        ({"limits": {"memory": "1Gi"}}, MEMORY, set()),
        ({"limits": {"cpu": "4"}}, {"requests": {"cpu": "4"}}, {"trainer-release"}),
        ({}, MEMORY, set()),
        (CLAIMS, None, set()),
    ],
)
def test_claims_and_amounts_of_the_runtime_are_compared(of_runtime: Any, own: Any, told: set[str]):
    assert codes(a_runtime(of_runtime), a_train_job(own)) == told


def test_a_runtime_of_the_cluster_is_compared_too():
    runtime = a_runtime(CLAIMS, cluster=True)
    assert codes(runtime, a_train_job(MEMORY, kind="ClusterTrainingRuntime")) == {"trainer-erases-claims"}


@pytest.mark.parametrize("changes", [{"container": "sidecar"}, {"step": "model-initializer"}])
def test_other_containers_and_steps_keep_what_they_have(changes: dict[str, str]):
    assert codes(a_runtime(CLAIMS, **changes), a_train_job(MEMORY)) == set()


def test_a_runtime_that_is_not_in_the_input_says_nothing():
    assert codes(a_train_job(MEMORY)) == set()
