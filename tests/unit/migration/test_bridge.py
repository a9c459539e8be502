"""The bridge: pods stay as they are, and a class serves each resource that they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.catalog.drivers import read_pins
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.migration.bridge import bridge_classes
from dra_infra.migration.device_plugin import DevicePlugin, Replicas
from dra_infra.migration.needs import Settings
from dra_infra.migration.report import judge
from dra_infra.target import ClusterTarget
from tests.unit.migration.test_chart_releases import WRAPPINGS


def pod(name: str, **limits: Any) -> dict[str, Any]:
    resources = {"limits": {key.replace("__", "/").replace("_", "."): value for key, value in limits.items()}}
    containers = [{"name": "main", "image": "registry.example.com/a:1", "resources": resources}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


def account(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "ml"}, "spec": spec}


WHOLE = Settings(plugin=DevicePlugin(strategy="mixed"))


def test_pods_stay_and_each_resource_has_one_class():
    pods = [pod("a", nvidia_com__gpu=1), pod("b", nvidia_com__gpu=4)]
    found = bridge_classes(pods, WHOLE)
    assert [each.manifest is was for each, was in zip(found, pods, strict=True)] == [True, True]
    assert [len(each.added) for each in found] == [1, 0]
    (made,) = found[0].added
    assert made["spec"]["extendedResourceName"] == "nvidia.com/gpu"
    assert {each.code for one in found for each in one.remarks} == {"resource-bridged"}


def test_a_class_that_is_there_is_not_made_again():
    there = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "x"}}
    there["spec"] = {"extendedResourceName": "nvidia.com/gpu"}  # type: ignore[assignment]  # a mapping there
    found = bridge_classes([there, pod("a", nvidia_com__gpu=1)], WHOLE)
    assert [each.added for each in found] == [(), ()]
    assert "is served by the class x where" in found[1].remarks[0].message


def a_class(name: str, made: str, resource: str = "nvidia.com/gpu") -> dict[str, Any]:
    metadata = {"name": name, "creationTimestamp": f"2026-01-0{made}T00:00:00Z"}
    spec = {"extendedResourceName": resource} if resource else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": metadata,
        "spec": spec,
    }


def test_of_the_classes_of_a_cluster_the_newest_serves_or_the_first_by_name():
    there = [a_class("old", "1"), a_class("b", "2"), a_class("a", "2"), a_class("none", "3", "")]
    (found,) = bridge_classes([pod("a", nvidia_com__gpu=1)], WHOLE, there)
    assert found.added == ()
    assert "is served by the class a where" in found.remarks[0].message
    # What the input has is yet to be created.
    _, found = bridge_classes([a_class("mine", "1"), pod("a", nvidia_com__gpu=1)], WHOLE, there)
    assert "is served by the class mine where" in found.remarks[0].message


def test_the_class_of_the_drivers_chart_serves_unless_there_is_another_of_its_name():
    shipped = read_pins("0.5").classes.values()
    (found,) = bridge_classes([pod("a", nvidia_com__gpu=1)], WHOLE, (), shipped)
    assert found.added == ()
    assert "is served by the class gpu.nvidia.com where" in found.remarks[0].message
    assert "--snapshot" in found.remarks[0].hint
    of_operator = a_class("gpu.nvidia.com", "1", "")
    asked = [pod("a", nvidia_com__gpu=1)]
    (found,) = bridge_classes(asked, WHOLE, [of_operator], shipped)
    assert [each["metadata"]["name"] for each in found.added] == ["nvidia.com-gpu"]
    target = ClusterTarget(kubernetes="1.37")
    assert judge(asked, [found], (), target, "0.5", [of_operator], kinds=workload_kinds()) == [[]]
    (problems,) = judge(asked, [found], (), target, "0.5", kinds=workload_kinds())
    assert [each.code for each in problems] == ["extended-resource-twice"]
    (found,) = bridge_classes([pod("a", nvidia_com__gpu=1)], WHOLE, (), read_pins("25.8").classes.values())
    assert len(found.added) == 1


def test_a_class_whose_name_is_taken_is_not_added():
    taken = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "nvidia.com-gpu"},
    }
    found = bridge_classes([taken, pod("a", nvidia_com__gpu=1)], WHOLE)[1]
    assert [(each.outcome, each.code) for each in found.remarks] == [("decide", "resource-bridged")]
    assert "extendedResourceName: nvidia.com/gpu" in found.remarks[0].hint
    assert found.added == ()


def test_a_replica_is_not_bridged():
    replicas = {"nvidia.com/gpu": Replicas("time-slicing", 4, renamed=False, one_each=False)}
    (found,) = bridge_classes([pod("a", nvidia_com__gpu=1)], Settings(plugin=DevicePlugin(replicas=replicas)))
    assert [(each.outcome, each.code) for each in found.remarks] == [("decide", "replica-not-bridged")]
    assert found.added == ()


def test_a_pod_that_names_its_node_is_not_bridged():
    named = pod("a", nvidia_com__gpu=1)
    named["spec"]["nodeName"] = "n1"
    (found,) = bridge_classes([named], WHOLE)
    assert [(each.path, each.code) for each in found.remarks] == [("spec.nodeName", "node-named")]
    assert found.added == ()


def test_a_pod_whose_gpus_hami_chooses_is_not_bridged():
    annotations = {"nvidia.com/use-gpuuuid": "GPU-0"}
    was = {**pod("a", nvidia_com__gpu=1), "metadata": {"name": "a", "annotations": annotations}}
    (found,) = bridge_classes([was], WHOLE)
    path = "metadata.annotations[nvidia.com/use-gpuuuid]"
    assert [(each.path, each.code) for each in found.remarks] == [(path, "other-device-form")]
    assert found.added == ()


def test_a_template_beside_one_under_the_scheduler_of_hami_is_bridged():
    jobs = [{"name": name, "template": {"spec": {"template": pod(name, nvidia_com__gpu=1)}}} for name in "ab"]
    jobs[0]["template"]["spec"]["template"]["spec"]["schedulerName"] = "hami-scheduler"
    was = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"}}
    (found,) = bridge_classes([was | {"spec": {"replicatedJobs": jobs}}], WHOLE)
    at = "spec.replicatedJobs[{}].template.spec.template.spec"
    assert [(each.path, each.code) for each in found.remarks] == [
        (f"{at.format(0)}.schedulerName", "other-device-form"),
        (f"{at.format(1)}.containers[0].resources.limits[nvidia.com/gpu]", "resource-bridged"),
    ]
    assert len(found.added) == 1


GPU = "nvidia.com/gpu"
COUNTED = [{"type": "Resource", "resource": {"name": GPU}}]
GROUPS = [{"coveredResources": ["cpu", GPU], "flavors": []}]


@pytest.mark.parametrize(
    ("found", "path", "says"),
    [
        (account("ResourceQuota", hard={f"requests.{GPU}": 4}), f"spec.hard[requests.{GPU}]", "counts pods"),
        (
            account("ResourceQuota", hard={f"requests.{GPU}": 4}, scopes=["Terminating"]),
            f"spec.hard[requests.{GPU}]",
            "counts pods as before",
        ),
        (account("LimitRange", limits=[{"max": {GPU: 1}}]), f"spec.limits[0].max[{GPU}]", "limits pods"),
        (
            account("HorizontalPodAutoscaler", metrics=COUNTED),
            "spec.metrics[0].resource.name",
            "go on asking",
        ),
        (
            account("ClusterQueue", resourceGroups=GROUPS),
            "spec.resourceGroups[0].coveredResources[1]",
            "deviceClassMappings",
        ),
        (
            account("Cohort", resourceGroups=GROUPS),
            "spec.resourceGroups[0].coveredResources[1]",
            "deviceClassMappings",
        ),
    ],
)
def test_what_counts_a_resource_goes_on_counting_it(found: dict[str, Any], path: str, says: str):
    *_, told = bridge_classes([pod("a", nvidia_com__gpu=1), found], WHOLE)
    assert [(each.path, each.code, each.outcome) for each in told.remarks] == [
        (path, "resource-bridged", "kept")
    ]
    assert says in told.remarks[0].message
    assert told.manifest is found
    # Where no class serves the resource, nothing is said of what counts it.
    assert [each.remarks for each in bridge_classes([found], WHOLE)] == [()]


@pytest.mark.parametrize(
    "key",
    [
        "count/resourceclaims.resource.k8s.io",
        "nvidia.com-gpu.deviceclass.resource.k8s.io/devices",
        "requests.deviceclass.resource.kubernetes.io/nvidia.com-gpu",
    ],
)
def test_keys_that_count_the_claims_of_the_scheduler_are_told(key: str):
    quota = account("ResourceQuota", hard={key: 4, "pods": 10})
    told, _ = bridge_classes([quota, pod("a", nvidia_com__gpu=1)], WHOLE)
    assert [(each.path, each.code, each.outcome) for each in told.remarks] == [
        (f"spec.hard[{key}]", "quota-kept", "lost")
    ]
    other = account("ResourceQuota", hard={"mine.deviceclass.resource.k8s.io/devices": 4})
    assert bridge_classes([other, pod("a", nvidia_com__gpu=1)], WHOLE)[0].remarks == ()


def test_a_class_without_a_name_for_a_resource_serves_none():
    there = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "x"}, "spec": {}}
    quota = account("ResourceQuota", hard={"x.deviceclass.resource.k8s.io/devices": 4})
    *_, told, made = bridge_classes([there, quota, pod("a", nvidia_com__gpu=1)], WHOLE)
    assert (told.remarks, len(made.added)) == ((), 1)


def test_a_pod_of_nodes_with_parts_of_amd_gpus_is_not_served_whole_ones():
    asked = pod("a", amd_com__gpu=1)
    asked["spec"]["nodeSelector"] = {"amd.com/gpu.compute-memory-partition": "cpx_nps4"}
    (told,) = bridge_classes([asked], WHOLE)
    assert [(each.code, each.outcome) for each in told.remarks] == [("resource-not-clear", "decide")]
    assert told.added == ()


def elsewhere(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def test_a_resource_that_stands_in_no_pod_has_a_class_too():
    limits = {"limits": {"nvidia.com/gpu": 1}, "requests": {"amd.com/gpu": 1}}
    job = elsewhere("TrainJob", trainer={"resourcesPerNode": limits})
    again = elsewhere("Sweep", trials=[{"resources": limits}])
    first, second = bridge_classes([job, again], WHOLE)
    assert [each["spec"]["extendedResourceName"] for each in first.added] == ["nvidia.com/gpu", "amd.com/gpu"]
    assert (first.manifest, second.added) == (job, ())
    assert [(each.path, each.code) for each in second.remarks] == [
        ("spec.trials[0].resources.limits[nvidia.com/gpu]", "resource-bridged"),
        ("spec.trials[0].resources.requests[amd.com/gpu]", "resource-bridged"),
    ]


def test_a_resource_that_stands_in_no_pod_is_not_guessed():
    limits = {"limits": {"nvidia.com/gpu": 1}}
    (found,) = bridge_classes([elsewhere("Sweep", resources=limits)], Settings())
    assert [(each.path, each.code) for each in found.remarks] == [
        ("spec.resources.limits[nvidia.com/gpu]", "plugin-not-known")
    ]
    assert found.added == ()


def test_texts_values_and_quotas_have_no_class():
    limits = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    others = [
        elsewhere("Sweep", text="nvidia.com/gpu", hard={"requests.nvidia.com/gpu": 1}, limits={"gpu": 1}),
        limits,
    ]
    assert [each.added for each in bridge_classes(others, WHOLE)] == [(), ()]


MIG = "nvidia.com/mig-4g.71gb"
ASKING: dict[str, dict[str, Any]] = {
    "vllm-stack": {"servingEngineSpec": {"modelSpec": [{"requestGPU": 1, "requestGPUType": MIG}]}},
    "ollama": {"ollama": {"gpu": {"enabled": True, "nvidiaResource": MIG}}},
    "ollama by profile": {
        "ollama": {"gpu": {"enabled": True, "mig": {"enabled": True, "devices": {"4g.71gb": 1}}}}
    },
    "subchart": {"stack": {"servingEngineSpec": {"modelSpec": [{"requestGPU": 1, "requestGPUType": MIG}]}}},
    "jupyterhub": {"singleuser": {"profileList": [{"extra_resource_guarantees": {MIG: 1}}]}},
    "llm-d": {
        "modelArtifacts": {"name": "m"},
        "accelerator": {"resources": {"nvidia": MIG}},
        "decode": {"parallelism": {"tensor": 1}},
    },
    "another": {"resources": {"limits": {MIG: 1}}},
}


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize("wrapping", [each for each in WRAPPINGS if each.startswith(("Helm", "App"))])
def test_values_of_an_object_get_a_class(name: str, wrapping: str):
    was = WRAPPINGS[wrapping](ASKING[name])
    (found,) = bridge_classes([was], WHOLE)
    assert found.manifest is was
    (made,) = found.added
    assert made["spec"]["extendedResourceName"] == MIG
    assert {(each.code, each.outcome) for each in found.remarks} == {("resource-bridged", "kept")}


@pytest.mark.parametrize("name", ASKING)
def test_values_in_a_file_need_a_class_that_is_made_beside_it(name: str):
    was = ASKING[name]
    (found,) = bridge_classes([was], WHOLE)
    assert (found.manifest is was, found.added) == (True, ())
    assert {(each.code, each.outcome) for each in found.remarks} == {("resource-bridged", "decide")}
    assert MIG in found.remarks[0].message
    found, _ = bridge_classes([was, a_class("mig", "1", MIG)], WHOLE)
    assert {(each.code, each.outcome) for each in found.remarks} == {("resource-bridged", "kept")}


def test_values_that_take_claims_already_ask_for_no_class():
    on_claims = {"ollama": {"gpu": {"enabled": True, "draEnabled": True, "nvidiaResource": MIG}}}
    (found,) = bridge_classes([WRAPPINGS["HelmRelease"](on_claims)], WHOLE)
    assert found.added == ()
