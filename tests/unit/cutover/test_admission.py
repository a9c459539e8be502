"""Objects with the tolerations that admission adds to their pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dra_infra.catalog.train_jobs import with_runtime
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.cutover.admission import admit_all

GPU = {"limits": {"nvidia.com/gpu": 1}}
ADDED = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
OWN = {"key": "team", "operator": "Exists"}


def tolerated(*objects: Any) -> list[Any]:
    """Return the tolerations of the pods of admitted objects, as placement reads them."""
    admitted = admit_all(objects, workload_kinds())
    whole = [with_runtime(each, admitted) for each in admitted]
    pods = [pods for each in whole for pods in workload_kinds().find_pod_templates(each)]
    return [each.spec.get("tolerations") for each in pods]


def pod(resources: Any = GPU, **spec: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": resources}], **spec}


def deployment(spec: Any, kind: str = "Deployment") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": {"template": {"spec": spec}},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (pod(), [ADDED]),
        (pod(tolerations=[OWN]), [OWN, ADDED]),
        (pod(tolerations=[ADDED]), [ADDED]),
        (pod({"limits": {"cpu": 1}}), None),
        (
            pod({"requests": {"b.example.com/x": 1, "a.example.com/x": 1}}),
            ["a.example.com/x", "b.example.com/x"],
        ),
        (pod(tolerations="[secret]"), "[secret]"),
    ],
)
def test_pods_tolerate_the_names_of_their_resources(spec: Any, expected: Any) -> None:
    (found,) = tolerated(deployment(spec))
    is_named = isinstance(expected, list) and isinstance(expected[0], str)
    assert ([each["key"] for each in found] if is_named else found) == expected


def test_pods_of_a_daemon_set_stay_as_they_are() -> None:
    assert tolerated(deployment(pod(), "DaemonSet")) == [None]


def test_nothing_that_is_given_is_changed() -> None:
    given = deployment(pod(tolerations=[OWN]))
    before = copy.deepcopy(given)
    (admitted,) = admit_all([given], workload_kinds())
    assert given == before
    assert admit_all([admitted], workload_kinds()) == [admitted] != [given]


@pytest.mark.parametrize("of_template", [True, False])
def test_a_pod_spec_that_a_controller_composes_has_them_where_it_reads_them(of_template: bool) -> None:
    template = {"name": "t", "container": {"image": "i", "resources": GPU}}
    flow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}}
    spec: dict[str, Any] = {"templates": [template]}
    (template if of_template else spec)["tolerations"] = [OWN]
    assert tolerated({**flow, "spec": spec}) == [[OWN, ADDED]]


def test_a_train_job_has_them_for_what_it_requests_itself() -> None:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    node = {"spec": {"containers": [{"name": "node"}]}}
    job = {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"template": node}}}
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }
    train = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t", "namespace": "ml"},
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"resourcesPerNode": GPU}},
    }
    assert [ADDED] in tolerated(runtime, train)
