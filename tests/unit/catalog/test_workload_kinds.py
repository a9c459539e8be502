from __future__ import annotations

from typing import Any

import pytest

from dra_infra.catalog.workload_kinds import find_pod_templates, read_workload_kinds, workload_kinds
from dra_infra.errors import ProblemsError
from dra_infra.kubernetes.api import BUILT_IN_KINDS, UNKNOWN

POD = {"spec": {"containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}}
BARE = POD["spec"]


def an_object(group: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "ml"},
        "spec": spec,
    }


def ray(**more: Any) -> dict[str, Any]:
    groups = [
        {"groupName": "big", "replicas": 3, "maxReplicas": 5, "numOfHosts": 2, "template": POD},
        {"groupName": "none", "maxReplicas": 5, "template": POD},
    ]
    return {"headGroupSpec": {"template": POD}, "workerGroupSpecs": groups, **more}


RAY = {"head": (1, None), "big": (6, None), "none": (0, None)}
RAY_AUTOSCALED = {"head": (1, None), "big": (6, 10), "none": (0, 5)}
ROLES = {"Master": {"template": POD}, "Worker": {"replicas": 3, "template": POD}}
LWS = {"workerTemplate": POD, "size": 4}


@pytest.mark.parametrize(
    ("manifest", "parts"),
    [
        (
            an_object("leaderworkerset.x-k8s.io", "LeaderWorkerSet", leaderWorkerTemplate=LWS),
            {"leader": (1, None), "workers": (3, None)},
        ),
        (
            an_object("leaderworkerset.x-k8s.io", "LeaderWorkerSet", replicas=2, leaderWorkerTemplate=LWS),
            {"leader": (2, None), "workers": (6, None)},
        ),
        (
            an_object(
                "jobset.x-k8s.io",
                "JobSet",
                replicatedJobs=[
                    {"name": "driver", "template": {"spec": {"template": POD}}},
                    {
                        "name": "workers",
                        "replicas": 2,
                        "template": {"spec": {"parallelism": 4, "completions": 3, "template": POD}},
                    },
                ],
            ),
            {"driver": (1, None), "workers": (6, None)},
        ),
        (an_object("ray.io", "RayCluster", **ray()), RAY),
        (an_object("ray.io", "RayCluster", **ray(enableInTreeAutoscaling=True)), RAY_AUTOSCALED),
        (an_object("ray.io", "RayJob", rayClusterSpec=ray()), RAY),
        (an_object("ray.io", "RayService", rayClusterConfig=ray()), RAY),
        (an_object("ray.io", "RayCronJob", jobTemplate={"rayClusterSpec": ray()}), RAY),
        (
            an_object("kubeflow.org", "PyTorchJob", pytorchReplicaSpecs=ROLES),
            {"Master": (1, None), "Worker": (3, None)},
        ),
        (
            an_object(
                "kubeflow.org", "PyTorchJob", pytorchReplicaSpecs=ROLES, elasticPolicy={"maxReplicas": 8}
            ),
            {"Master": (1, None), "Worker": (3, 8)},
        ),
        (
            an_object("kubeflow.org", "TFJob", tfReplicaSpecs=ROLES),
            {"Master": (1, None), "Worker": (3, None)},
        ),
        (
            an_object(
                "kubeflow.org",
                "MPIJob",
                mpiReplicaSpecs={"Launcher": {"template": POD}, "Worker": {"template": POD}},
            ),
            {"Launcher": (1, None), "Worker": (0, None)},
        ),
        (an_object("kubeflow.org", "Notebook", template=POD), {"": (1, None)}),
        (
            an_object(
                "batch.volcano.sh",
                "Job",
                tasks=[{"name": "a", "replicas": 2, "template": POD}, {"name": "b", "template": POD}],
            ),
            {"a": (2, None), "b": (0, None)},
        ),
        (
            an_object(
                "serving.kserve.io",
                "InferenceService",
                predictor={**BARE, "minReplicas": 2, "maxReplicas": 6},
                transformer=BARE,
            ),
            {"predictor": (2, 6), "transformer": (1, None)},
        ),
        (
            an_object(
                "serving.kserve.io",
                "LLMInferenceService",
                replicas=2,
                template=BARE,
                worker=BARE,
                parallelism={"pipeline": 4},
            ),
            {"decode": (2, None), "decode-workers": (6, None)},
        ),
        (
            an_object(
                "sparkoperator.k8s.io",
                "SparkApplication",
                driver={"template": POD},
                executor={"instances": 4, "template": POD},
            ),
            {"driver": (1, None), "executors": (4, None)},
        ),
        (
            an_object("kubevirt.io", "VirtualMachine", template={"spec": {"domain": {}, **BARE}}),
            {"": (1, None)},
        ),
    ],
    ids=lambda each: each.get("kind", ""),
)
def test_the_pods_of_other_projects_kinds_are_counted(
    manifest: dict[str, Any], parts: dict[str, tuple[int, int | None]]
):
    found = list(find_pod_templates(manifest))
    assert {each.owner.part: (each.replicas, each.most) for each in found} == parts
    assert all(each.claims for each in found)


def test_kinds_of_kubernetes_stay_beside_those_of_others():
    assert set(BUILT_IN_KINDS.kinds) < set(workload_kinds().kinds)
    volcano, own = workload_kinds().kinds["batch.volcano.sh", "Job"], workload_kinds().kinds["batch", "Job"]
    assert (volcano.gang, own.gang) == ((), None)


OWN = {
    "kinds": [
        {
            "kind": "TrainingRun",
            "group": "ml.example.com",
            "parts": [
                {
                    "template": "spec.workers.*.template",
                    "name": "spec.workers.*.name",
                    "pods": ["spec.workers.*.count"],
                }
            ],
        }
    ]
}


def test_a_users_own_kind_is_placed_by_its_file():
    kinds = read_workload_kinds(OWN, "kinds.yaml")
    run = an_object("ml.example.com", "TrainingRun", workers=[{"name": "w", "count": 3, "template": POD}])
    (found,) = kinds.find_pod_templates(run)
    assert (str(found.owner), found.replicas) == ("TrainingRun ml/x/w", 3)
    assert list(find_pod_templates(run)) == []
    assert kinds.kinds["jobset.x-k8s.io", "JobSet"]


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({}, "kinds.yaml.kinds"),
        ({"kinds": [{"kind": "X"}]}, "kinds.yaml.kinds[0].group"),
        ({"kinds": [{"kind": "X", "group": "g.io", "part": []}]}, "kinds.yaml.kinds[0].part"),
        (
            {"kinds": [{"kind": "X", "group": "g.io", "parts": [{"template": "spec..x"}]}]},
            "kinds.yaml.kinds[0].parts[0].template",
        ),
        (
            {
                "kinds": [
                    {"kind": "X", "group": "g.io", "parts": [{"template": "spec.t", "pods": [{"less": 1}]}]}
                ]
            },
            "kinds.yaml.kinds[0].parts[0].pods[0].field",
        ),
    ],
)
def test_a_malformed_kind_is_named_with_its_place(document: dict[str, Any], path: str):
    with pytest.raises(ProblemsError) as caught:
        read_workload_kinds(document, "kinds.yaml")
    assert [(each.path, each.code) for each in caught.value.problems] == [(path, "workload-kind-malformed")]


@pytest.mark.parametrize(
    ("key", "hint"), [("templat", "did you mean template?"), ("zzz", "write kinds: with kind")]
)
def test_a_misspelt_key_gets_the_nearest_name(key: str, hint: str):
    kind = {"kind": "X", "group": "g.io", "parts": [{key: "spec.t"}]}
    with pytest.raises(ProblemsError) as caught:
        read_workload_kinds({"kinds": [kind]}, "kinds.yaml")
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == (
        f"kinds.yaml.kinds[0].parts[0].{key}",
        f"there is no {key} here",
    )
    assert problem.hint is not None
    assert problem.hint.startswith(hint)


PARTS: list[Any] = [{"template": "a..b"}]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "this is missing"),
        ({"kinds": 5}, "this is not a list, whose items begin with -"),
        ({"kinds": [5]}, "this is not a mapping, which has a name before each value"),
        ({"kinds": [{"kind": "x", "group": "g.io"}]}, "this is no kind, such as TrainingRun"),
        ({"kinds": [{"kind": "X", "group": "G io"}]}, "this is no API group, such as ml.example.com"),
        (
            {"kinds": [{"kind": "X", "group": "g.io", "parts": PARTS}]},
            "this is no path of fields, such as spec.workers.*.template",
        ),
        ({"kinds": [{"kind": "X", "group": "g.io", "parts": [{}] * 33}]}, "there are too many of these"),
        ({"kinds": [{"kind": "X", "group": "g.io", "gang": "x"}]}, "this is not true or false"),
    ],
)
def test_a_malformed_kind_is_told_in_plain_words(document: dict[str, Any], message: str):
    with pytest.raises(ProblemsError) as caught:
        read_workload_kinds(document, "kinds.yaml")
    assert [each.message for each in caught.value.problems] == [message]


CLAIM = {"resourceClaimTemplateName": "t"}


def a_nim(**spec: Any) -> dict[str, Any]:
    return an_object("apps.nvidia.com", "NIMService", draResources=[CLAIM], **spec)


@pytest.mark.parametrize(
    ("spec", "numbers"),
    [
        ({}, (1, None)),
        ({"replicas": 3}, (3, None)),
        ({"replicas": 2, "multiNode": {"parallelism": {"pipeline": 4}}}, (8, None)),
        ({"scale": {"enabled": True, "hpa": {"minReplicas": 2, "maxReplicas": 5}}}, (2, 5)),
        (
            {"replicas": 3, "scale": {"enabled": False, "hpa": {"minReplicas": 2, "maxReplicas": 5}}},
            (3, None),
        ),
    ],
)
def test_the_pods_of_a_nim_service_are_counted(spec: dict[str, Any], numbers: tuple[int, int | None]):
    (found,) = find_pod_templates(a_nim(**spec))
    assert (found.replicas, found.most) == numbers
    assert [each.template_name for each in found.claims] == ["t"]


def test_the_pod_spec_of_a_nim_service_is_composed_of_its_fields():
    service = a_nim(
        resources={"limits": {"cpu": "8"}},
        image={"tag": "1"},
        nodeSelector={"gpu": "h100"},
        sidecarContainers=[{"name": "logs", "image": {"tag": "2"}}],
        expose={"service": {"port": 8000}},
    )
    (found,) = find_pod_templates(service)
    assert found.spec == {
        "containers": [
            {"image": {"tag": "1"}, "resources": {"limits": {"cpu": "8"}}},
            {"name": "logs", "image": {"tag": "2"}},
        ],
        "resourceClaims": [{"name": "claim-0", **CLAIM}],
        "nodeSelector": {"gpu": "h100"},
    }
    assert found.at("containers[0].resources.limits") == "spec.resources.limits"
    assert found.at("containers[1].resources") == "spec.sidecarContainers[0].resources"
    assert found.at("resourceClaims[0].name") == "spec.draResources[0].name"
    assert found.at("tolerations") == "spec.tolerations"


STEPS = {
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "whole"}],
    "nodeSelector": {"pool": "whole"},
    "templates": [
        {"name": "all", "steps": [[{"name": "a", "template": "own"}]]},
        {"name": "wait", "suspend": {}},
        {"name": "own", "container": {"image": "a"}, "resourceClaims": [{"name": "gpu", **CLAIM}]},
        {
            "name": "set",
            "containerSet": {"containers": [{"name": "a"}, {"name": "b"}]},
            "sidecars": [{"name": "c"}],
            "initContainers": [{"name": "d"}],
            "nodeSelector": {"pool": "{{inputs.parameters.pool}}"},
            "metadata": {"labels": {"team": "ml"}},
        },
        {"name": "apply", "resource": {"action": "create", "manifest": "{}"}},
    ],
}


@pytest.mark.parametrize(
    ("kind", "spec", "at"),
    [("Workflow", STEPS, "spec"), ("CronWorkflow", {"workflowSpec": STEPS}, "spec.workflowSpec")],
)
def test_each_template_of_a_workflow_that_makes_pods_is_one(kind: str, spec: dict[str, Any], at: str):
    found = {each.owner.part: each for each in find_pod_templates(an_object("argoproj.io", kind, **spec))}
    assert {name: [each.template_name for each in one.claims] for name, one in found.items()} == {
        "own": ["t"],
        "set": ["whole"],
        "apply": ["whole"],
    }
    assert {each.replicas for each in found.values()} == {1}
    assert [each["name"] for each in found["set"].spec["containers"]] == ["a", "b", "c"]
    assert [each["name"] for each in found["set"].spec["initContainers"]] == ["d"]
    assert found["set"].spec["nodeSelector"] == {"pool": UNKNOWN}
    assert found["own"].spec["nodeSelector"] == {"pool": "whole"}
    assert found["set"].labels["team"] == "ml"
    assert found["own"].at("resourceClaims[0]") == f"{at}.templates[2].resourceClaims[0]"
    assert found["set"].at("resourceClaims[0]") == f"{at}.resourceClaims[0]"
    assert (
        found["set"].at("containers[1].resources")
        == f"{at}.templates[3].containerSet.containers[1].resources"
    )


def test_templates_of_workflows_make_no_pods_by_themselves():
    for kind in ("WorkflowTemplate", "ClusterWorkflowTemplate"):
        assert list(find_pod_templates(an_object("argoproj.io", kind, **STEPS))) == []


def a_composed(**compose: Any) -> dict[str, Any]:
    return {
        "kinds": [
            {"kind": "Server", "group": "ml.example.com", "parts": [{"spec": "spec", "compose": compose}]}
        ]
    }


def test_a_users_own_kind_may_compose_its_pod_spec():
    kinds = read_workload_kinds(
        a_composed(containers="spec.server", resourceClaims="spec.devices"), "kinds.yaml"
    )
    server = an_object("ml.example.com", "Server", server={"image": "a"}, devices=[CLAIM])
    (found,) = kinds.find_pod_templates(server)
    assert found.spec["containers"] == [{"image": "a"}]
    assert found.claims[0].template_name == "t"
    assert list(kinds.find_pod_templates(an_object("ml.example.com", "Server"))) == []


@pytest.mark.parametrize(
    ("compose", "path", "message"),
    [
        ({}, "containers", "this is missing"),
        ({"containers": []}, "containers", "there are none of these"),
        (
            {"containers": "spec.server", "nodeSelectr": "spec.nodes"},
            "nodeSelectr",
            "there is no nodeSelectr here",
        ),
    ],
)
def test_a_malformed_composition_is_named_with_its_place(compose: dict[str, Any], path: str, message: str):
    with pytest.raises(ProblemsError) as caught:
        read_workload_kinds(a_composed(**compose), "kinds.yaml")
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == (f"kinds.yaml.kinds[0].parts[0].compose.{path}", message)


@pytest.mark.parametrize("spec", [BARE, POD, {}, None, UNKNOWN, 7, [POD]], ids=repr)
def test_an_object_makes_pods_exactly_if_it_has_a_template(spec: Any):
    for group, name in workload_kinds().kinds:
        for manifest in (
            an_object(group, name, template=spec, jobTemplate={"spec": {"template": spec}}, replicas=1),
            an_object(
                group, name, headGroupSpec={"template": spec}, tfReplicaSpecs={"Worker": {"template": spec}}
            ),
            {**an_object(group, name), "apiVersion": f"{group}/v1".lstrip("/"), "spec": spec},
        ):
            templates = list(find_pod_templates(manifest))
            assert workload_kinds().makes_pods(manifest) == bool(templates), (name, manifest)
