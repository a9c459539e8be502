"""Names of claim templates, each of one claim spec alone, and settings of controllers that counted limits."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from dra_infra.catalog.workload_kinds import read_workload_kinds, workload_kinds
from dra_infra.kubernetes.api.names import is_dns_subdomain
from dra_infra.migration.claim_templates import ClaimTemplates
from dra_infra.migration.device_plugin import DevicePlugin, Replicas
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.migration.report import judge
from dra_infra.migration.workloads import find_kind, find_no_texts
from dra_infra.target import ClusterTarget

WHOLE = Settings(plugin=DevicePlugin())


def pod_spec(*counts: int) -> dict[str, Any]:
    containers = [
        {
            "name": f"c{number}",
            "image": "registry.example.com/a:1",
            "resources": {"limits": {"nvidia.com/gpu": each}},
        }
        for number, each in enumerate(counts)
    ]
    return {"containers": containers}


def workload(kind: str, name: str, *counts: int, namespace: str = "ml") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    spec = {"template": {"spec": pod_spec(*counts)}}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}


def job_set(*counts: int) -> dict[str, Any]:
    jobs = [
        {"name": f"j{number}", "template": {"spec": {"template": {"spec": pod_spec(each)}}}}
        for number, each in enumerate(counts)
    ]
    metadata = {"name": "set", "namespace": "ml"}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {"replicatedJobs": jobs},
    }


def made(*objects: dict[str, Any]) -> list[dict[str, int]]:
    """By object: the number of devices of each new template, by its name."""
    return [
        {
            each["metadata"]["name"]: each["spec"]["spec"]["devices"]["requests"][0]["exactly"].get(
                "count", 1
            )
            for each in done.added
        }
        for done in migrate_objects(objects, WHOLE)
    ]


def test_parts_of_an_object_with_other_numbers_have_templates_of_their_own():
    assert made(job_set(8, 4, 8)) == [{"set-gpu": 8, "set-gpu-2": 4}]


def test_each_part_names_the_template_with_its_number():
    (done,) = migrate_objects([job_set(8, 4, 8)], WHOLE)
    assert done.manifest is not None
    names = [
        each["template"]["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]
        for each in done.manifest["spec"]["replicatedJobs"]
    ]
    assert names == ["set-gpu", "set-gpu-2", "set-gpu"]


def test_containers_with_other_numbers_have_templates_by_their_names():
    assert made(workload("Deployment", "serve", 1, 2)) == [{"serve-gpu": 1, "serve-c1-gpu": 2}]


def test_owners_of_one_name_have_templates_by_their_kinds():
    assert made(workload("Deployment", "train", 1), workload("Job", "train", 8)) == [
        {"train-gpu": 1},
        {"train-job-gpu": 8},
    ]


def test_an_owner_that_is_there_twice_has_one_name_in_both():
    assert made(workload("Job", "train", 8), workload("Job", "train", 8)) == [
        {"train-gpu": 8},
        {"train-gpu": 8},
    ]


def test_a_copy_that_was_migrated_before_keeps_its_template_to_itself():
    job = workload("Job", "train", 8)
    (first,) = migrate_objects([job], WHOLE)
    assert first.manifest is not None
    *_, copy = migrate_objects([first.manifest, *first.added, job], WHOLE)
    assert (copy.manifest, copy.added) == (first.manifest, first.added)


def volcano_job(name: str, count: int) -> dict[str, Any]:
    tasks = [{"name": "worker", "template": {"spec": pod_spec(count)}}]
    metadata = {"name": name, "namespace": "ml"}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"tasks": tasks},
    }


def generated(*counts: int) -> list[dict[str, Any]]:
    metadata = {"generateName": "train-", "namespace": "ml"}
    return [{**workload("Job", "", each), "metadata": metadata} for each in counts]


def test_objects_that_the_server_names_are_no_copies_and_share_a_template_that_is_there():
    (first,) = migrate_objects(generated(8), WHOLE)
    assert first.manifest is not None
    *_, other = migrate_objects([first.manifest, *first.added, *generated(8)], WHOLE)
    assert (other.manifest, other.added) == (first.manifest, ())


@pytest.mark.parametrize(
    "objects",
    [
        generated(1, 8),
        [workload("Job", "train", 1), volcano_job("train", 8)],
        [workload("Job", "train", 1), workload("Job", "train", 8)],
        [workload("Job", "train", 1), *generated(8)],
    ],
)
def test_a_name_is_given_to_one_claim_spec_alone(objects: list[dict[str, Any]]):
    assert made(*objects) == [{"train-gpu": 1}, {"train-job-gpu": 8}]


def test_an_object_may_have_thousands_of_templates():
    templates = ClaimTemplates([], workload_kinds()).of(job_set())
    claims = [
        {"devices": {"requests": [{"name": "gpu", "exactly": {"count": each}}]}} for each in range(1, 2001)
    ]
    names = [templates.name("gpu", each) for each in claims]
    assert (len(set(names)), names[0], names[-1]) == (2000, "set-gpu", "set-gpu-2000")


def test_containers_without_names_have_entries_that_are_names():
    nameless = {"image": "registry.example.com/a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    sidecar = {**nameless, "restartPolicy": "Always"}
    spec = {"initContainers": [sidecar], "containers": [nameless, nameless]}
    (done,) = migrate_objects([{"kind": "Pod", "apiVersion": "v1", "metadata": {}, "spec": spec}], WHOLE)
    assert done.manifest is not None
    assert [each["name"] for each in done.manifest["spec"]["resourceClaims"]] == [
        "init-container-0-gpu",
        "container-0-gpu",
        "container-1-gpu",
    ]


def test_what_leaders_and_workers_have_in_common_is_told_once():
    metadata = {"name": "serve", "namespace": "ml"}
    spec = {"leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": pod_spec(1)}}}
    group = "leaderworkerset.x-k8s.io/v1"
    (done,) = migrate_objects(
        [{"apiVersion": group, "kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec}], WHOLE
    )
    codes = [each.code for each in done.remarks]
    assert codes == ["controller-release-needed", "resource-to-claim", "toleration-written"]


@pytest.mark.parametrize(
    ("limits", "held", "added"),
    [
        (["amd.com/gpu"], [], ["amd.com/gpu"]),
        (["habana.ai/gaudi"], [], ["habana.ai/gaudi"]),
        (["gpu.intel.com/xe"], [{"key": "nvidia.com/gpu", "operator": "Exists"}], ["gpu.intel.com/xe"]),
        (["nvidia.com/mig-2g.20gb", "amd.com/gpu"], [], ["amd.com/gpu", "nvidia.com/mig-2g.20gb"]),
        (["alpha.kubernetes.io/nvidia-gpu"], [], ["nvidia.com/gpu"]),
        (["amd.com/gpu"], [{"operator": "Exists"}], []),
        # What goes on asking for the resource goes on being given the toleration by admission.
        (["nvidia.com/gpu", "aws.amazon.com/neuron"], [], ["nvidia.com/gpu"]),
    ],
)
def test_each_resource_that_goes_leaves_the_toleration_that_admission_added(
    limits: list[str], held: list[dict[str, str]], added: list[str]
):
    container = {
        "name": "c",
        "image": "registry.example.com/a:1",
        "resources": {"limits": dict.fromkeys(limits, 1)},
    }
    spec = {"containers": [container], "tolerations": held}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    (done,) = migrate_objects([pod], WHOLE)
    assert done.manifest is not None
    assert done.manifest["spec"]["tolerations"] == [
        *held,
        *({"key": each, "operator": "Exists", "effect": "NoSchedule"} for each in added),
    ]
    told = [each.message for each in done.remarks if each.code == "toleration-written"]
    assert [each.split()[3] for each in told] == added


@pytest.mark.parametrize(
    ("requests", "added"),
    [
        ({"nvidia.com/gpu": 0, "amd.com/gpu": "0"}, ["amd.com/gpu", "nvidia.com/gpu"]),
        ({"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 1}, ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"]),
        # Admission takes names with kubernetes.io for those of resources of Kubernetes itself.
        ({"alpha.kubernetes.io/nvidia-gpu": 0}, []),
    ],
)
def test_zero_of_a_resource_leaves_the_toleration_that_admission_added_for_it(
    requests: dict[str, Any], added: list[str]
):
    container = {"name": "c", "image": "registry.example.com/a:1", "resources": {"requests": requests}}
    spec = {"initContainers": [container], "containers": [{**container, "resources": {}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    (done,) = migrate_objects([pod], WHOLE)
    assert done.manifest is not None
    assert [each["key"] for each in done.manifest["spec"].get("tolerations", [])] == added


@pytest.mark.parametrize(
    ("limits", "written"),
    [
        ({"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-1g.10gb.me": 1}, {"num-gpus": "2"}),
        # KubeRay takes the first by name, and no sum.
        ({"nvidia.com/mig-2g.20gb": 1, "nvidia.com/mig-1g.10gb": 3}, {"num-gpus": "3"}),
        ({"nvidia.com/mig-1g.10gb.me": 1}, {}),
    ],
)
def test_ray_is_told_of_as_many_gpus_as_kuberay_counted(limits: dict[str, int], written: dict[str, str]):
    spec = {"containers": [{"name": "worker", "image": "i", "resources": {"limits": limits}}]}
    group = {"groupName": "g", "rayStartParams": {}, "template": {"spec": spec}}
    cluster = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "r"}}
    (done,) = migrate_objects(
        [cluster | {"spec": {"workerGroupSpecs": [group]}}], Settings(plugin=DevicePlugin(strategy="mixed"))
    )
    assert done.manifest is not None
    assert done.manifest["spec"]["workerGroupSpecs"][0]["rayStartParams"] == written


@pytest.mark.parametrize(
    ("resources", "params", "written"),
    [
        ({"CPU": "8"}, {}, {"resources": {"CPU": "8", "GPU": "4"}, "rayStartParams": {}}),
        ({"gpu": "2"}, {}, {"resources": {"gpu": "2"}, "rayStartParams": {}}),
        ({}, {}, {"resources": {}, "rayStartParams": {"num-gpus": "4"}}),
        ({}, {"num-gpus": "1"}, {"resources": {}, "rayStartParams": {"num-gpus": "1"}}),
    ],
)
def test_ray_is_told_of_gpus_beside_the_resources_of_a_group(
    resources: dict[str, str], params: dict[str, str], written: dict[str, Any]
):
    group = {"rayStartParams": params, "resources": resources, "template": {"spec": pod_spec(4)}}
    cluster = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "r"}}
    (done,) = migrate_objects([cluster | {"spec": {"headGroupSpec": group}}], WHOLE)
    assert done.manifest is not None
    head = done.manifest["spec"]["headGroupSpec"]
    assert {name: head[name] for name in written} == written


def nim(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "n", "namespace": "ml"}
    return {
        "apiVersion": "apps.nvidia.com/v1alpha1",
        "kind": "NIMService",
        "metadata": metadata,
        "spec": spec,
    }


LIMITS = {"limits": {"nvidia.com/gpu": 2, "memory": "1Gi"}, "requests": {"cpu": 1}}


def test_a_nim_service_keeps_all_but_what_its_claim_takes_the_place_of():
    env = [{"name": "A", "value": "b"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    was = nim(
        env=env, resources=LIMITS, nodeSelector={"nvidia.com/gpu.family": "hopper", "pool": "a"}, replicas=2
    )
    (done,) = migrate_objects([was], WHOLE)
    assert done.manifest is not None
    assert done.manifest["spec"] == {
        "env": env[:1],
        "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": 1}},
        "nodeSelector": {"pool": "a"},
        "replicas": 2,
        "tolerations": [TOLERATION],
        "draResources": [{"resourceClaimTemplateName": "n-gpu"}],
    }
    assert list(done.manifest["spec"])[:4] == ["env", "resources", "nodeSelector", "replicas"]
    (template,) = done.added
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["count"] == 2
    assert "Hopper" in request["exactly"]["selectors"][0]["cel"]["expression"]
    assert [(each.path, each.code) for each in done.remarks] == [
        ("spec.resources.limits[nvidia.com/gpu]", "resource-to-claim"),
        ("spec.nodeSelector[nvidia.com/gpu.family]", "node-label-to-selector"),
        ("spec.env[1]", "visible-devices-left-out"),
        ("spec.tolerations", "toleration-written"),
        ("spec.draResources", "controller-setting-written"),
    ]
    assert migrate_objects([done.manifest, *done.added], WHOLE)[0].manifest is done.manifest


@pytest.mark.parametrize(
    ("was", "codes"),
    [
        (nim(resources=LIMITS, draResources=[{"resourceClaimName": "c"}]), ["kind-not-rewritten"]),
        (
            nim(resources={"limits": {"nvidia.com/gpu": 0}}, storage={"nimCache": {"profile": "p"}}),
            ["kind-not-rewritten"],
        ),
        (nim(resources={"limits": {"nvidia.com/gpu": "${N}"}}), ["quantity-not-a-number"]),
        (
            nim(storage={"nimCache": {"profile": "p"}}, runtimeClassName="nvidia"),
            ["kind-not-rewritten"],
        ),
        (nim(storage={"nimCache": {"name": "c"}}), []),
        (nim(draResources=[{"resourceClaimName": "c"}], storage={"nimCache": {"profile": "p"}}), []),
        (nim() | {"spec": None}, []),
        (nim() | {"kind": "NIMPipeline", "spec": {"services": "x"}}, []),
    ],
)
def test_a_nim_service_stays_where_it_asks_for_no_devices_or_somebody_has_to_decide(
    was: dict[str, Any], codes: list[str]
):
    (done,) = migrate_objects([was], WHOLE)
    assert done.manifest is was
    assert [each.code for each in done.remarks] == codes


def test_spark_that_runs_later_has_its_settings_told_too():
    conf = {"spark.executor.resource.gpu.amount": "1", "spark.executor.resource.gpu.vendor": "nvidia.com"}
    group = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "metadata": {"name": "s"}}
    later = {**group, "kind": "ScheduledSparkApplication", "spec": {"template": {"sparkConf": conf}}}
    connect = {**group, "kind": "SparkConnect", "spec": {"sparkConf": conf}}
    found = [each.path for done in migrate_objects([later, connect], WHOLE) for each in done.remarks]
    key = "sparkConf[spark.executor.resource.gpu.amount]"
    assert found == [f"spec.template.{key}", f"spec.{key}"]


def test_owners_in_other_namespaces_do_not_meet():
    assert made(workload("Job", "a", 1), workload("Deployment", "a", 2, namespace="other")) == [
        {"a-gpu": 1},
        {"a-gpu": 2},
    ]


def test_a_template_that_is_there_is_used_where_it_says_the_same_and_else_left_alone():
    (first,) = migrate_objects([workload("Job", "train", 1)], WHOLE)
    (template,) = first.added
    again = migrate_objects([dict(template), workload("Job", "train", 1)], WHOLE)
    assert [each.added for each in again] == [(), ()]
    assert made(dict(template), workload("Job", "train", 2)) == [{}, {"train-job-gpu": 2}]


def test_pods_without_a_name_have_a_template_called_after_what_it_is():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "run-"}, "spec": pod_spec(1)}
    nameless = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": pod_spec(2)}
    assert made(pod, nameless) == [{"run-gpu": 1}, {"gpu": 2}]


def runtime(policy: dict[str, Any], *counts: int) -> dict[str, Any]:
    held = job_set(*counts)
    spec = {"mlPolicy": policy, "template": {"spec": held["spec"]}}
    metadata = {"name": "r", "namespace": "ml"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("policy", "written"),
    [
        ({"mpi": {"numProcPerNode": 1}}, {"mpi": {"numProcPerNode": 4}}),
        ({"mpi": {}}, {"mpi": {"numProcPerNode": 4}}),
        ({"mpi": {"numProcPerNode": 2}}, {"mpi": {"numProcPerNode": 2}}),
        ({"torch": {}}, {"torch": {}}),
        ({"torch": {"numProcPerNode": "auto"}}, {"torch": {"numProcPerNode": 4}}),
        ({"torch": {"numProcPerNode": "cpu"}}, {"torch": {"numProcPerNode": "cpu"}}),
        ({"numNodes": 2}, {"numNodes": 2}),
    ],
)
def test_a_runtime_has_the_number_that_its_controller_read_off_limits(
    policy: dict[str, Any], written: dict[str, Any]
):
    (done,) = migrate_objects([runtime(policy, 4)], WHOLE)
    assert done.manifest is not None
    assert done.manifest["spec"]["mlPolicy"] == written
    needed = [each for each in done.remarks if each.code == "controller-setting-needed"]
    assert [(each.outcome, each.path) for each in needed] == (
        [("lost", "spec.mlPolicy.torch")] if policy == {"torch": {}} else []
    )


@pytest.mark.parametrize(
    ("version", "code"), [("0.9.0-gpu", "kind-not-rewritten"), ("0.9.0", "resource-in-text")]
)
def test_a_version_of_kserve_that_needs_a_limit_is_told(version: str, code: str):
    served = {"runtimeVersion": version, "resources": {"limits": {"nvidia.com/gpu": 1}}}
    metadata = {"name": "s", "namespace": "ml"}
    spec = {"predictor": {"pytorch": served}}
    (done,) = migrate_objects(
        [
            {
                "apiVersion": "serving.kserve.io/v1beta1",
                "kind": "InferenceService",
                "metadata": metadata,
                "spec": spec,
            }
        ],
        WHOLE,
    )
    assert [each.code for each in done.remarks] == [code]


def test_settings_of_spark_for_devices_of_no_plugin_are_left_alone():
    conf = {"spark.executor.resource.gpu.amount": "1", "spark.driver.resource.fpga.vendor": "example.com"}
    spark = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s"},
        "spec": {"sparkConf": conf},
    }
    (done,) = migrate_objects([spark], WHOLE)
    assert done.remarks == ()


def train_job(namespace: str | None, **ref: str) -> dict[str, Any]:
    metadata = {"name": "t"} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": {"runtimeRef": {"name": "r", **ref}},
    }


def template_places(done: Migrated) -> list[tuple[str | None, str]]:
    return [(each["metadata"].get("namespace"), each["metadata"]["name"]) for each in done.added]


def test_a_runtime_of_no_namespace_has_its_templates_where_its_jobs_are():
    cluster = runtime({"torch": {"numProcPerNode": "auto"}}, 4) | {"kind": "ClusterTrainingRuntime"}
    others = [train_job("else", name="other"), train_job("own", kind="TrainingRuntime")]
    done, *jobs = migrate_objects(
        [cluster, train_job("a"), train_job("b", kind="ClusterTrainingRuntime"), train_job("a"), *others],
        WHOLE,
    )
    assert template_places(done) == [("a", "r-gpu"), ("b", "r-gpu")]
    assert done.manifest is not None
    assert done.manifest["spec"]["mlPolicy"]["torch"]["numProcPerNode"] == 4
    (told,) = [each for each in done.remarks if not each.path]
    assert told.outcome == "kept"
    assert "in a and b, " in told.message
    assert all(not each.remarks for each in jobs)


def test_a_runtime_of_no_namespace_is_told_for_its_claims_are_of_one():
    cluster = runtime({"torch": {}}, 4) | {"kind": "ClusterTrainingRuntime"}
    (done,) = migrate_objects([cluster], WHOLE)
    assert done.manifest is cluster
    assert [(each.code, each.outcome) for each in done.remarks] == [("kind-not-rewritten", "decide")]


def test_templates_that_are_there_in_one_namespace_are_made_in_the_other():
    cluster = runtime({}, 4) | {"kind": "ClusterTrainingRuntime"}
    done, *_ = migrate_objects([cluster, train_job("a"), train_job("b")], WHOLE)
    again, *_ = migrate_objects([cluster, train_job("a"), train_job("b"), done.added[0]], WHOLE)
    assert template_places(again) == [("b", "r-gpu")]


def test_a_config_of_kserve_has_its_templates_where_it_is_used():
    spec = {"template": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}}
    config = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceServiceConfig",
        "metadata": {"name": "base", "namespace": "kserve"},
        "spec": spec,
    }
    service = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "llm", "namespace": "ml"},
        "spec": {"baseRefs": [{"name": "base"}]},
    }
    done, _ = migrate_objects([config, service], WHOLE)
    assert template_places(done) == [("kserve", "base-gpu"), ("ml", "base-gpu")]


def test_a_model_of_kserve_is_a_container_behind_the_others():
    container = {"name": "proxy", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    model = {"modelFormat": {"name": "a"}, "resources": {"limits": {"nvidia.com/gpu": 2}}}
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": "s",
            "namespace": "ml",
            "annotations": {"serving.kserve.io/deploymentMode": "RawDeployment"},
        },
        "spec": {"predictor": {"model": model, "containers": [container]}},
    }
    (done,) = migrate_objects([service], WHOLE)
    assert done.manifest is not None
    predictor = done.manifest["spec"]["predictor"]
    assert list(predictor)[:2] == ["model", "containers"]
    assert predictor["model"] == {
        "modelFormat": {"name": "a"},
        "resources": {"claims": [{"name": "model-gpu"}]},
    }
    assert [each["resources"] for each in predictor["containers"]] == [{"claims": [{"name": "proxy-gpu"}]}]
    assert {each.outcome for each in done.remarks} == {"changed"}
    init = {"initContainers": [{"name": "i", "resources": model["resources"]}]}
    (lent,) = migrate_objects([{**service, "spec": {"predictor": {"model": model, **init}}}], WHOLE)
    (told,) = [each.message for each in lent.remarks if each.code == "init-container-shares"]
    assert told.startswith("it uses devices of model, ")
    assert "spec.predictor.model.resources.limits[nvidia.com/gpu]" in [each.path for each in done.remarks]


STANDARD = {"serving.kserve.io/deploymentMode": "Standard"}


def test_a_release_that_two_parts_of_a_service_need_is_named_once():
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "s", "namespace": "ml", "annotations": STANDARD},
        "spec": {"predictor": {"model": GPU}, "transformer": {"containers": [{"name": "t", **GPU}]}},
    }
    (done,) = migrate_objects([service], WHOLE)
    assert [each.code for each in done.remarks].count("resource-to-claim") == 2
    assert [each.code for each in done.remarks].count("controller-release-needed") == 1


def config_of_kserve(mode: str) -> dict[str, Any]:
    data = {"deploy": json.dumps({"defaultDeploymentMode": mode})}
    metadata = {"name": "inferenceservice-config", "namespace": "kserve"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def chart_of_kserve(mode: str) -> dict[str, Any]:
    values = {"kserve": {"controller": {"deploymentMode": mode}}}
    spec = {"chart": {"spec": {"chart": "kserve"}}, "values": values}
    version = "helm.toolkit.fluxcd.io/v2"
    return {"apiVersion": version, "kind": "HelmRelease", "metadata": {"name": "kserve"}, "spec": spec}


@pytest.mark.parametrize("part", ["model", "huggingface", "triton", "containers", "initContainers"])
@pytest.mark.parametrize(
    ("annotation", "beside", "is_migrated"),
    [
        ("", [], False),
        ("Standard", [], True),
        ("RawDeployment", [], True),
        ("Knative", [], False),
        ("Serverless", [config_of_kserve("Standard")], False),
        ("", [config_of_kserve("Standard")], True),
        ("", [config_of_kserve("RawDeployment")], True),
        ("", [config_of_kserve("Knative")], False),
        ("", [chart_of_kserve("Standard")], True),
        ("", [chart_of_kserve("Knative")], False),
        ("Standard", [config_of_kserve("Knative")], True),
        ("ModelMesh", [], False),
    ],
)
def test_a_service_gets_claims_where_somebody_says_that_it_is_a_deployment(
    part: str, annotation: str, beside: list[dict[str, Any]], *, is_migrated: bool
):
    annotations = {"serving.kserve.io/deploymentMode": annotation} if annotation else {}
    container = {"name": "m", "image": "x:1", **GPU}
    predictor = {part: [container]} if part.endswith("ontainers") else {part: GPU}
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "s", "namespace": "ml", "annotations": annotations},
        "spec": {"predictor": predictor},
    }
    done, *_ = migrate_objects([service, *beside], WHOLE)
    assert bool(done.added) == is_migrated
    decided = [each.code for each in done.remarks if each.outcome == "decide"]
    assert decided == ([] if is_migrated else ["kind-not-rewritten"])


def test_the_mode_that_a_service_has_counts_before_all_others():
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "s", "namespace": "ml", "annotations": STANDARD},
        "spec": {"predictor": {"model": GPU}},
        "status": {"deploymentMode": "Serverless"},
    }
    (done,) = migrate_objects([service], WHOLE)
    assert [(each.path, each.code) for each in done.remarks] == [("spec.predictor", "kind-not-rewritten")]


@pytest.mark.parametrize("containers", [None, 5, {}])
def test_a_predictor_whose_containers_are_no_list_keeps_them(containers: Any):
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "s", "namespace": "ml"},
        "spec": {"predictor": {"model": {"resources": {}}, "containers": containers}},
    }
    (done,) = migrate_objects([service], WHOLE)
    assert done.manifest is service


def shared(kind: str = "Deployment", *, containers: int = 1, count: int = 1, **spec: Any) -> dict[str, Any]:
    held = [
        {"name": f"c{number}", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": count}}}
        for number in range(containers)
    ]
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "s", "namespace": "ml"},
        "spec": {"template": {"spec": {"containers": held}}, **spec},
    }


def under_mps(number: int, memory: int = 15360, resource: str = "nvidia.com/gpu") -> Settings:
    replicas = {resource: Replicas("mps", number, renamed=False, one_each=True)}
    return Settings(plugin=DevicePlugin(replicas=replicas), mps_memory=memory)


@pytest.mark.parametrize(
    ("workload", "number", "limits"),
    [
        (shared(replicas=2), 4, (25, "3840Mi")),
        (shared(), 3, (33, "5120Mi")),
        (shared("StatefulSet", replicas=48), 48, (2, "320Mi")),
        (shared("Job", parallelism=2, completions=8), 2, (50, "7680Mi")),
    ],
)
def test_pods_of_a_workload_share_a_claim_with_the_limits_of_their_replicas(
    workload: dict[str, Any], number: int, limits: tuple[int, str]
):
    (done,) = migrate_objects([workload], under_mps(number))
    (claim,) = done.added
    assert claim["kind"] == "ResourceClaim"
    (config,) = claim["spec"]["devices"]["config"]
    sharing = config["opaque"]["parameters"]["sharing"]
    assert tuple(sharing["mpsConfig"].values()) == limits
    assert done.manifest is not None
    (entry,) = done.manifest["spec"]["template"]["spec"]["resourceClaims"]
    assert entry == {"name": "gpu", "resourceClaimName": "s-gpu"}
    (told,) = [each for each in done.remarks if each.code == "mps-replicas"]
    assert (told.outcome, told.hint.endswith(f"has to stop at {number}")) == ("lost", True)
    (again,) = migrate_objects([done.manifest], under_mps(number))
    assert again.manifest is done.manifest


@pytest.mark.parametrize(
    ("workload", "settings"),
    [
        (shared(replicas=5), under_mps(4)),
        (shared(replicas=2, containers=2), under_mps(4)),
        (shared(replicas=2, count=2), under_mps(4)),
        (shared(replicas=2), under_mps(49)),
        (shared(replicas=2), under_mps(4, memory=0)),
        (shared(replicas="many"), under_mps(4)),
        (shared("DaemonSet"), under_mps(4)),
    ],
)
def test_pods_that_one_claim_does_not_give_what_they_had_stay_as_they_are(
    workload: dict[str, Any], settings: Settings
):
    (done,) = migrate_objects([workload], settings)
    assert done.manifest is workload
    assert {(each.code, each.outcome) for each in done.remarks} == {("mps-replicas", "decide")}


def test_each_template_of_an_object_has_a_claim_that_its_own_pods_share():
    jobs = job_set(1, 1)
    for each in jobs["spec"]["replicatedJobs"]:
        each["template"]["spec"] |= {"parallelism": 4, "completions": 4}
    (done,) = migrate_objects([jobs], under_mps(4))
    assert template_places(done) == [("ml", "set-gpu"), ("ml", "set-gpu-2")]
    assert done.manifest is not None
    names = [
        each["template"]["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimName"]
        for each in done.manifest["spec"]["replicatedJobs"]
    ]
    assert names == ["set-gpu", "set-gpu-2"]


@pytest.mark.parametrize(
    ("replicas", "size", "fits"), [(1, 4, True), (2, 2, True), (4, 1, True), (2, 3, False)]
)
def test_leaders_and_workers_of_one_template_are_counted_together(replicas: int, size: int, *, fits: bool):
    group = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "s", "namespace": "ml"},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": {"spec": pod_spec(1)}},
        },
    }
    (done,) = migrate_objects([group], under_mps(4))
    assert template_places(done) == ([("ml", "s-gpu")] if fits else [])
    assert "mps-replicas" in [each.code for each in done.remarks]


@pytest.mark.parametrize(
    ("workload", "settings", "why"),
    [
        (shared(count=2), under_mps(4), "no more than one"),
        (shared(), under_mps(49), "at most 48 on one GPU, and these are 49"),
        (shared(), under_mps(4, memory=3), "less than 1Mi for each of 4"),
        (shared(replicas="many"), under_mps(4), "is not fixed"),
        (shared(replicas=5), under_mps(4), "5 pods are more"),
    ],
)
def test_each_reason_for_no_claim_is_told(workload: dict[str, Any], settings: Settings, why: str):
    (done,) = migrate_objects([workload], settings)
    (told,) = [each.message for each in done.remarks if each.code == "mps-replicas"]
    assert why in told


def test_a_share_of_a_mig_device_gets_no_claim_for_a_whole_gpu():
    profile = "nvidia.com/mig-1g.10gb"
    work = shared()
    work["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {profile: 1}}
    settings = under_mps(2, resource=profile)
    assert settings.plugin is not None
    mixed = replace(settings, plugin=replace(settings.plugin, strategy="mixed"))
    (done,) = migrate_objects([work], mixed)
    assert ["one of a MIG device" in each.message for each in done.remarks] == [True]


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "ScaledObject"])
def test_pods_that_an_autoscaler_makes_more_of_share_no_claim(kind: str):
    scaler = {
        "kind": kind,
        "metadata": {"name": "any", "namespace": "ml"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "s"}, "maxReplicas": 20},
    }
    *_, scaled, other = migrate_objects([scaler, shared(), shared("StatefulSet")], under_mps(4))
    assert {(each.code, each.outcome) for each in scaled.remarks} == {("mps-replicas", "decide")}
    assert template_places(other) == [("ml", "s-gpu")]


@pytest.mark.parametrize(
    ("policy", "shares"), [(None, False), ("Allow", False), ("Forbid", True), ("Replace", True)]
)
def test_runs_of_a_cron_job_share_a_claim_where_one_is_at_a_time(policy: str | None, *, shares: bool):
    job = shared("Job", parallelism=4, completions=4)
    cron = {
        **job,
        "kind": "CronJob",
        "spec": {"jobTemplate": {"spec": job["spec"]}, "concurrencyPolicy": policy},
    }
    (done,) = migrate_objects([cron], under_mps(4))
    assert bool(done.added) == shares


def test_objects_that_get_their_names_from_the_server_share_no_claim():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": pod_spec(1)}
    (done,) = migrate_objects([pod], under_mps(4))
    assert {(each.code, each.outcome) for each in done.remarks} == {("mps-replicas", "decide")}


@pytest.mark.parametrize(("count", "new"), [(1, []), (2, [("ml", "a-deployment-gpu")])])
def test_a_template_of_an_earlier_run_is_used_again_with_what_the_server_filled_in(count: int, new: Any):
    (first,) = migrate_objects([workload("Deployment", "a", 1)], WHOLE)
    (there,) = json.loads(json.dumps(first.added))
    (request,) = there["spec"]["spec"]["devices"]["requests"]
    request["exactly"] |= {"allocationMode": "ExactCount", "count": count}
    *_, again = migrate_objects([there, workload("Deployment", "a", 1)], WHOLE)
    assert template_places(again) == new


def test_a_claim_of_an_earlier_run_gets_no_more_pods():
    (first,) = migrate_objects([shared(replicas=4)], under_mps(4))
    assert first.manifest is not None
    written = [first.manifest, *first.added]
    *_, second = migrate_objects([*written, shared("StatefulSet", replicas=4)], under_mps(4))
    assert template_places(first) == [("ml", "s-gpu")]
    assert template_places(second) == [("ml", "s-statefulset-gpu")]


def test_a_claim_of_an_earlier_run_is_known_again_where_its_workload_is_rendered_anew():
    (first,) = migrate_objects([shared(replicas=4)], under_mps(4))
    (claim,) = first.added
    for objects in ([claim, shared(replicas=4)], [shared(replicas=4), claim]):
        (again,) = [each for each in migrate_objects(objects, under_mps(4)) if each.remarks]
        assert (again.manifest, again.added) == (first.manifest, ())
    # Beside it another workload of that name gets its own, and in two overlays it is the same one.
    *_, known, overlay, other = migrate_objects(
        [claim, shared(replicas=4), shared(replicas=4), shared("StatefulSet", replicas=4)], under_mps(4)
    )
    assert [template_places(each) for each in (known, overlay, other)] == [
        [],
        [],
        [("ml", "s-statefulset-gpu")],
    ]
    # With fewer replicas the limits are others, and so is the claim.
    *_, changed = migrate_objects([claim, shared(replicas=2)], under_mps(2))
    assert template_places(changed) == [("ml", "s-deployment-gpu")]


def test_claims_of_two_templates_are_known_again_one_by_one():
    jobs = job_set(1, 1)
    for each in jobs["spec"]["replicatedJobs"]:
        each["template"]["spec"] |= {"parallelism": 4, "completions": 4}
    (first,) = migrate_objects([jobs], under_mps(4))
    *_, again = migrate_objects([*first.added, jobs], under_mps(4))
    assert (again.manifest, again.added) == (first.manifest, ())


def test_a_claim_of_that_name_that_says_something_else_is_left_alone():
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devices": {}}}
    held = claim | {"metadata": {"name": "s-gpu", "namespace": "ml"}}
    _, done = migrate_objects([held, shared()], under_mps(4))
    assert template_places(done) == [("ml", "s-deployment-gpu")]


def test_templates_of_long_names_have_names_of_objects():
    names = ["a" * 253, "a" * 252 + "b", f"{'a' * 247}.{'b' * 5}"]
    kinds = {"apiVersion": "apps/v1", "kind": "Deployment"}
    was = [
        {**kinds, "metadata": {"name": each, "namespace": "ml"}, "spec": {"template": {"spec": pod_spec(1)}}}
        for each in names
    ]
    found = [each["metadata"]["name"] for done in migrate_objects(was, WHOLE) for each in done.added]
    assert found[0] == f"{'a' * 249}-gpu"
    assert len(set(found)) == len(was)
    assert all(is_dns_subdomain(each) for each in found)


def a_flow(*templates: dict[str, Any], kind: str = "Workflow", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "flow", "namespace": "ml"},
        "spec": {"templates": list(templates), **spec},
    }


GPU = {"image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}
CLAIMED = {"image": "i", "resources": {"claims": [{"name": "gpu"}]}}
GIVEN = [{"name": "gpu", "resourceClaimTemplateName": "flow-gpu"}]
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize("kind", ["Workflow", "WorkflowTemplate"])
def test_templates_of_argo_get_claims_of_their_own(kind: str):
    outer = {"key": "a", "operator": "Exists"}
    was = a_flow(
        {"name": "own", "container": GPU, "nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"}},
        {"name": "none", "container": {"image": "i"}},
        {"name": "all", "steps": [[{"name": "a", "template": "own"}]]},
        kind=kind,
        tolerations=[outer],
    )
    (done,) = migrate_objects([was], WHOLE)
    assert done.manifest is not None
    own = {"container": CLAIMED, "resourceClaims": GIVEN, "tolerations": [outer, TOLERATION]}
    assert done.manifest["spec"]["templates"] == [{"name": "own", **own}, *was["spec"]["templates"][1:]]
    assert [each["metadata"]["name"] for each in done.added] == ["flow-gpu"]
    assert [(each.path, each.code) for each in done.remarks] == [
        ("spec.templates[0].container.resources.limits[nvidia.com/gpu]", "resource-to-claim"),
        ("spec.templates[0].nodeSelector[nvidia.com/gpu.product]", "node-label-to-selector"),
        ("spec.templates[0].tolerations", "toleration-written"),
        ("spec.templates[0].resourceClaims", "controller-setting-written"),
    ]
    assert migrate_objects([done.manifest, *done.added], WHOLE)[0].manifest is done.manifest


def test_sidecars_and_scripts_of_argo_are_told_by_their_own_paths():
    # What a user wrote is told as it is.
    beside = {"name": "side", **GPU, "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "containers[99]"}]}
    two = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    was = a_flow({"name": "s", "script": two, "sidecars": [beside], "initContainers": [{"name": "i", **GPU}]})
    spec = {"workflowSpec": was["spec"]}
    (done,) = migrate_objects([{**was, "kind": "CronWorkflow", "spec": spec}], WHOLE)
    assert done.manifest is not None
    (new,) = done.manifest["spec"]["workflowSpec"]["templates"]
    assert [each["resourceClaimTemplateName"] for each in new["resourceClaims"]] == [
        "flow-gpu",
        "flow-side-gpu",
    ]
    messages = [each.message for each in done.remarks]
    assert any("it uses devices of sidecars[0], " in each for each in messages)
    assert any("NVIDIA_VISIBLE_DEVICES chose containers[99] " in each for each in messages)
    at = "spec.workflowSpec.templates[0]"
    assert [each.path for each in done.remarks if each.code == "resource-to-claim"] == [
        f"{at}.script.resources.limits[nvidia.com/gpu]",
        f"{at}.sidecars[0].resources.limits[nvidia.com/gpu]",
    ]


@pytest.mark.parametrize(
    "was",
    [
        a_flow({"name": "a", "container": GPU}, podSpecPatch="{}"),
        a_flow({"name": "a", "container": GPU}, nodeSelector={"pool": "a"}),
        a_flow({"name": "a", "container": GPU, "podSpecPatch": "{}"}),
        a_flow({"name": "a", "container": GPU}, {"name": "b", "dag": {}, "tolerations": [TOLERATION]}),
        a_flow({"name": "a", "containerSet": {"containers": [GPU]}}),
    ],
)
def test_templates_of_argo_whose_pods_something_else_changes_stay_and_are_told(was: dict[str, Any]):
    (done,) = migrate_objects([was], WHOLE)
    assert done.manifest is was
    (told,) = done.remarks
    assert (told.code, told.outcome) == ("kind-not-rewritten", "decide")
    assert told.hint == "name claims in spec.templates.*.resourceClaims, and leave the resource out"


def test_templates_of_argo_that_are_none_stay():
    for templates in (None, "x", [None, "x", {"container": "x"}, {"container": GPU, "sidecars": "x"}]):
        was = a_flow() | {"spec": {"templates": templates}}
        assert migrate_objects([was], WHOLE)[0].manifest is was


def test_a_runtime_that_was_migrated_has_its_templates_in_namespaces_that_came_later():
    cluster = runtime({}, 4, 4) | {"kind": "ClusterTrainingRuntime"}
    first, *_ = migrate_objects([cluster, train_job("a")], WHOLE)
    assert first.manifest is not None
    before = [first.manifest, *first.added, train_job("a")]
    assert not any(each.remarks or each.added for each in migrate_objects(before, WHOLE))
    again, *_ = migrate_objects([*before, train_job("z")], WHOLE)
    assert template_places(again) == [("z", "r-gpu")]
    assert again.added[0]["spec"] == first.added[0]["spec"]
    # Nobody knows which of two it is to have.
    other = {**first.added[0], "metadata": {"name": "r-gpu", "namespace": "b"}, "spec": {"spec": {}}}
    assert not any(each.added for each in migrate_objects([*before, train_job("z"), other], WHOLE))


OWN = replace(
    WHOLE,
    kinds=read_workload_kinds(
        {
            "kinds": [
                {
                    "kind": "TrainingRun",
                    "group": "ml.example.com",
                    "parts": [{"template": "spec.workers.*.template", "pods": ["spec.workers.*.replicas"]}],
                },
                {"kind": "CloneSet", "group": "apps.kruise.io", "parts": [{"template": "spec.own"}]},
            ]
        },
        "kinds.yaml",
    ),
)
"""What is known where a user names kinds of their own, one of which the catalogue has, too."""


def training_run(pod: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "ml.example.com/v1",
        "kind": "TrainingRun",
        "metadata": {"name": "run", "namespace": "ml"},
        "spec": {"workers": [{"replicas": 2, "template": {"spec": pod}}]},
    }


def test_pods_of_a_kind_that_a_user_names_get_claims():
    (known,) = migrate_objects([training_run(pod_spec(1))], OWN)
    at = "spec.workers[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]"
    assert [(each.code, each.path) for each in known.remarks][:1] == [("resource-to-claim", at)]
    spec = known.manifest["spec"]["workers"][0]["template"]["spec"]
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "run-gpu"}]
    (unknown,) = migrate_objects([training_run(pod_spec(1))], WHOLE)
    assert [(each.code, each.path) for each in unknown.remarks] == [("resource-in-text", at)]
    assert "--kinds FILE" in unknown.remarks[0].hint


def test_a_kind_of_a_user_comes_before_that_of_the_catalogue():
    clones = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}
    found = [
        [each.path for each in find_kind(clones, kinds).parts] for kinds in (workload_kinds(), OWN.kinds)
    ]
    assert found == [[("spec", "template")], [("spec", "own")]]


def test_a_copy_of_a_kind_that_a_user_names_keeps_its_template_to_itself():
    (first,) = migrate_objects([training_run(pod_spec(8))], OWN)
    assert first.manifest is not None
    *_, copy = migrate_objects([first.manifest, *first.added, training_run(pod_spec(8))], OWN)
    assert (copy.manifest, copy.added) == (first.manifest, first.added)


def test_old_claims_of_a_kind_that_a_user_names_are_written_flat():
    entry = {"name": "gpu", "source": {"resourceClaimTemplateName": "gpus"}}
    (done,) = migrate_objects([training_run({**pod_spec(), "resourceClaims": [entry]})], OWN)
    at = "spec.workers[0].template.spec.resourceClaims[0].source"
    assert [(each.code, each.path) for each in done.remarks] == [("pod-claim-source", at)]


def test_pods_of_a_kind_that_a_user_names_share_a_gpu_under_mps_by_their_number():
    mps = replace(under_mps(8), kinds=OWN.kinds)
    (done,) = migrate_objects([training_run(pod_spec(1))], mps)
    assert [each["kind"] for each in done.added] == ["ResourceClaim"]


def test_a_number_or_a_truth_value_in_the_place_of_a_text_is_told_at_its_field():
    odd = job_set(1, 1)
    for number, (field, value) in enumerate(
        {"args": ["--tp", 2], "env": [{"name": "A", "value": True}]}.items()
    ):
        template = odd["spec"]["replicatedJobs"][number]["template"]["spec"]["template"]
        template["metadata"] = {"labels": {"example.com/version": 1.1, "none": None}}
        template["spec"]["containers"][0] |= {"name": False, field: value}
        template["spec"]["nodeSelector"] = {"gpu": 1, "disk": "ssd"}
    odd["metadata"]["annotations"] = {"prometheus.io/port": 8000, "a": "8000"}
    at = "spec.replicatedJobs[{}].template.spec.template"
    told = list(find_no_texts(odd, workload_kinds()))
    of_both = ("metadata.labels.example.com/version", "spec.containers[0].name", "spec.nodeSelector.gpu")
    assert sorted(each.path for each in told) == [
        "metadata.annotations.prometheus.io/port",
        *(f"{at.format(0)}.{each}" for each in (of_both[0], "spec.containers[0].args[1]", *of_both[1:])),
        *(f"{at.format(1)}.{each}" for each in (of_both[0], "spec.containers[0].env[0].value", *of_both[1:])),
    ]
    assert {(each.code, each.hint) for each in told} == {("wrong-type", "put it in quotes")}
    assert not any("quotes" in each.message for each in told)
    assert not list(find_no_texts(job_set(1, 1), workload_kinds()))
    assert not list(find_no_texts({"kind": "ConfigMap", "metadata": {"labels": {"a": 1}}}, workload_kinds()))


def test_a_target_of_an_autoscaler_is_a_number_and_variables_beside_it_are_texts():
    metric = {"type": "External", "external": {"target": {"type": "Value", "value": 4}}}
    predictor = {**pod_spec(1), "autoScaling": {"metrics": [metric]}, "labels": {"tier": 1}}
    service = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
    service = {**service, "metadata": {"name": "a"}, "spec": {"predictor": predictor}}
    told = list(find_no_texts(service, workload_kinds()))
    assert [each.path for each in told] == ["spec.predictor.labels.tier"]


def test_what_servers_refuse_of_a_claim_of_a_pod_in_their_words_is_told_once():
    claims = [{"name": True, "resourceClaimTemplateName": "gpus"}]
    odd = workload("Deployment", "serve", 1)
    odd["spec"]["template"]["spec"] |= {"resourceClaims": claims, "nodeSelector": {"gpu": 1}}
    done = migrate_objects([odd], WHOLE)
    (problems,) = judge([odd], done, (), ClusterTarget(kubernetes="1.37"), "newest", kinds=workload_kinds())
    at = "spec.template.spec"
    assert [each.path for each in problems if each.code == "wrong-type"] == [
        f"{at}.resourceClaims[0].name",
        f"{at}.nodeSelector.gpu",
    ]


def test_thousands_of_bad_claims_of_one_pod_are_judged_in_seconds():
    pod = {**workload("Pod", "p"), "spec": pod_spec(0) | {"resourceClaims": [{"name": "x_"}] * 10_000}}
    pod["apiVersion"] = "v1"
    start = time.process_time()
    (problems,) = judge(
        [pod],
        [Migrated(manifest=dict(pod))],
        (),
        ClusterTarget(kubernetes="1.37"),
        "newest",
        kinds=workload_kinds(),
    )
    assert len(problems) > 10_000
    assert time.process_time() - start < 6


@pytest.mark.parametrize(
    ("name", "namespace", "of_template", "is_told"),
    [
        ("gpuz", "ml", "ml", True),
        ("gpuz", "${NS}", "${NS}", True),
        ("gpus", "${NS}", "${NS}", False),
        ("gpus", "${NS}", "ml", False),
        ("gpus", "ml", "${NS}", False),
        ("gpus", "ml", "team", True),
        ("$(NAME)", "ml", "ml", False),
    ],
)
def test_a_claim_that_is_not_there_is_told_where_nothing_that_is_filled_in_can_make_it(
    name: str, namespace: str, of_template: str, *, is_told: bool
):
    spec = pod_spec(0) | {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}]}
    metadata = {"name": "p", "namespace": namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "spec": {"spec": claim}}
    template["metadata"] = {"name": "gpus", "namespace": of_template}
    done = [Migrated(manifest=dict(pod)), Migrated(manifest=template)]
    found, _ = judge(
        [pod, template], done, (), ClusterTarget(kubernetes="1.37"), "newest", kinds=workload_kinds()
    )
    assert ("claim-not-known" in {each.code for each in found}) == is_told
