"""Requests that are left over in an object of which other parts are migrated, and other ways to its devices."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.catalog.vocabulary import read_data
from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated

GPU = {"limits": {"nvidia.com/gpu": 1}}
WHOLE = DevicePlugin()
IN_TEXT = "resources: {limits: {nvidia.com/gpu: 1}}"


def migrate(manifest: dict[str, Any], plugin: DevicePlugin | None = WHOLE) -> Migrated:
    (done,) = migrate_objects([manifest], Settings(plugin=plugin))
    return done


def left(manifest: dict[str, Any], plugin: DevicePlugin | None = WHOLE) -> list[str]:
    return [each.path for each in migrate(manifest, plugin).remarks if each.code == "resource-in-text"]


def container(**more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "registry.example.com/a:1", "resources": GPU, **more}


def pod(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [container()], **more},
    }


def inference_service(**predictor: Any) -> dict[str, Any]:
    annotations = {"serving.kserve.io/deploymentMode": "Standard"}
    metadata = {"name": "llm", "namespace": "ml", "annotations": annotations}
    spec = {"predictor": {"containers": [container()], **predictor}}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": metadata,
        "spec": spec,
    }


def test_a_resource_as_the_domain_of_attributes_is_no_request_for_devices():
    selector = 'device.attributes["nvidia.com/gpu"].productName == "NVIDIA L4"'
    template = {"apiVersion": "example.org/v1", "kind": "Devices", "metadata": {"name": "d"}}
    (told,) = migrate({**template, "spec": {"selectors": [{"cel": selector}]}}).remarks
    assert (told.path, told.code, told.outcome) == (
        "spec.selectors[0].cel",
        "attribute-wrong-domain",
        "decide",
    )
    assert "gpu.nvidia.com" in told.hint
    assert left({**template, "spec": {"text": f"{selector} {IN_TEXT}"}}) == ["spec.text"]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_selector_that_is_not_rewritten_is_told_once(version: str):
    selector = {"cel": {"expression": 'device.attributes["nvidia.com/gpu"].model == "H100"'}}
    request = {"deviceClassName": "gpu.nvidia.com", "selectors": [selector]}
    asked, at = ({"exactly": request}, "exactly.") if version == "v1" else (request, "")
    spec = {"devices": {"requests": [{"name": "gpu", **asked}]}}
    decided = [
        (each.path, each.code)
        for each in migrate(an_object(f"resource.k8s.io/{version}", "ResourceClaim", spec=spec)).remarks
        if each.outcome == "decide"
    ]
    path = f"spec.devices.requests[0].{at}selectors[0].cel.expression"
    assert decided == [(path, "selector-not-rewritten")]


def test_workers_and_the_model_of_a_migrated_predictor_are_told():
    service = inference_service(workerSpec={"containers": [container()]}, model={"resources": GPU})
    done = migrate(service)
    assert done.manifest is not None
    assert "resourceClaims" in done.manifest["spec"]["predictor"]
    assert left(service) == [
        "spec.predictor.workerSpec.containers[0].resources.limits[nvidia.com/gpu]",
        "spec.predictor.model.resources.limits[nvidia.com/gpu]",
    ]


def test_texts_of_a_workflow_with_a_container_that_is_told_are_told_too():
    templates = [
        {"name": "train", "container": container(), "podSpecPatch": IN_TEXT},
        {"name": "apply", "resource": {"action": "create", "manifest": IN_TEXT}},
    ]
    metadata = {"name": "w", "namespace": "ml"}
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": metadata,
        "spec": {"templates": templates},
    }
    assert [(each.path, each.code) for each in migrate(workflow).remarks] == [
        ("spec.templates[0].container.resources", "kind-not-rewritten"),
        ("spec.templates[0].podSpecPatch", "resource-in-text"),
        ("spec.templates[1].resource.manifest", "resource-in-text"),
    ]


def test_arguments_of_a_migrated_container_are_told():
    was = pod(containers=[container(args=["--resource=nvidia.com/gpu"])])
    assert left(was) == ["spec.containers[0].args[0]"]
    assert left(was, plugin=None) == ["spec.containers[0].args[0]"]


def test_an_init_container_that_shares_a_claim_has_its_arguments_told():
    assert left(pod(initContainers=[container(name="first", args=["nvidia.com/gpu"])])) == [
        "spec.initContainers[0].args[0]"
    ]


def test_containers_that_were_read_are_not_told_twice():
    selects_profile = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}
    assert left(pod()) == []
    assert left(pod(), plugin=None) == []
    assert left(pod(nodeSelector=selects_profile)) == []


def test_taints_status_and_copies_of_an_object_ask_for_nothing():
    was = pod(
        affinity={"nodeAffinity": {"matchExpressions": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}}
    )
    was["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": IN_TEXT}
    was["status"] = {"containerStatuses": [{"allocatedResources": {"nvidia.com/gpu": "1"}}]}
    assert left(was) == []


def test_a_queue_and_a_quota_are_told_once():
    flavors = [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"resourceGroups": groups},
    }
    hard = {"requests.nvidia.com/gpu": 8}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    assert [each.code for each in migrate(queue).remarks] == ["queue-for-claims"]
    assert [each.code for each in migrate(quota).remarks] == ["quota-for-claims"]


def decided(manifest: dict[str, Any], plugin: DevicePlugin | None = WHOLE) -> list[tuple[str, str]]:
    remarks = migrate(manifest, plugin).remarks
    return [
        (each.path, each.code)
        for each in remarks
        if each.outcome == "decide" and each.code != "plugin-not-known"
    ]


def mounts(path: str, **more: Any) -> dict[str, Any]:
    return pod(volumes=[{"name": "v", "hostPath": {"path": path}}], **more)


@pytest.mark.parametrize(
    "path",
    [
        "/dev/nvidia0",
        "/dev/dri",
        "/dev/kfd",
        "/dev",
        "/dev/",
        "/",
        "/usr/local/nvidia/lib64",
        "/home/kubernetes/bin/nvidia",
        "/run/nvidia/driver/usr/lib64",
        "/run/nvidia/mps",
        "/tmp/nvidia-mps",
    ],
)
def test_mounts_of_devices_and_of_the_driver_are_told(path: str):
    told = [("spec.volumes[0].hostPath.path", "devices-not-counted")]
    assert decided(mounts(path)) == told
    assert decided(mounts(path), plugin=None) == told


@pytest.mark.parametrize("path", ["/dev", "/usr/local/nvidia"])
def test_pods_that_ask_for_no_devices_may_mount_folders(path: str):
    assert decided(mounts(path, containers=[{"name": "main", "image": "registry.example.com/a:1"}])) == []


def test_other_mounts_are_none_of_gpus():
    assert decided(mounts("/dev/shm")) == []


def test_privileged_containers_are_told_where_they_ask_for_devices():
    free = {"securityContext": {"privileged": True}}
    plain = {"name": "init", "image": "registry.example.com/a:1", **free}
    assert decided(pod(containers=[container(**free), plain])) == [
        ("spec.containers[0].securityContext.privileged", "devices-not-counted")
    ]


def test_variables_of_mps_are_told_where_a_container_asks_for_devices():
    env = [{"name": "A", "value": "b"}, {"name": "CUDA_MPS_PIPE_DIRECTORY", "value": "/tmp/mps"}]
    plain = {"name": "other", "image": "registry.example.com/a:1", "env": env}
    assert decided(pod(containers=[container(env=env), plain])) == [
        ("spec.containers[0].env[1]", "mps-variable")
    ]


VISIBLE = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]


@pytest.mark.parametrize("name", ["nvidia", "nvidia-legacy"])
def test_the_runtime_class_stays_for_containers_that_have_gpus_by_the_variable_alone(name: str):
    init = [{"name": "check", "image": "registry.example.com/a:1", "env": VISIBLE}]
    done = migrate(pod(runtimeClassName=name, initContainers=init))
    assert done.manifest is not None
    assert done.manifest["spec"]["runtimeClassName"] == name
    assert "claims" in done.manifest["spec"]["containers"][0]["resources"]
    assert ("runtimeClassName", "kept") in {(each.path[5:], each.outcome) for each in done.remarks}
    alone = migrate(pod(runtimeClassName=name))
    assert alone.manifest is not None
    assert "runtimeClassName" not in alone.manifest["spec"]


def plain(*env: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "c", "image": "nvidia/cuda:12.4.1-base-ubuntu22.04", "env": list(env), **more}


VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}


def test_a_runtime_class_alone_may_give_a_container_all_gpus():
    told = [("spec.runtimeClassName", "devices-not-counted")]
    assert decided(pod(runtimeClassName="nvidia", containers=[plain()])) == told
    assert decided(pod(runtimeClassName="nvidia-legacy", containers=[plain(VOID), plain()])) == told
    assert decided(pod(runtimeClassName="kata", containers=[plain()])) == []
    assert decided(pod(containers=[plain()])) == []


@pytest.mark.parametrize(
    ("containers", "told"),
    [
        ([plain(VOID)], []),
        ([plain(*VISIBLE), plain()], [("spec.containers[0].env[0]", "devices-not-counted")]),
        ([container(), plain()], []),
        ([plain(resources={"claims": [{"name": "gpu"}]}), plain()], []),
    ],
    ids=["void", "variable", "request", "claim"],
)
def test_a_runtime_class_that_something_of_the_pod_explains_is_not_told(
    containers: list[Any], told: list[Any]
):
    assert decided(pod(runtimeClassName="nvidia", containers=containers)) == told


@pytest.mark.parametrize("folder", ["device-plugins", "pod-resources"])
def test_a_plugin_or_a_monitor_under_the_runtime_of_nvidia_is_left_alone(folder: str):
    volumes = [{"name": "sockets", "hostPath": {"path": f"/var/lib/kubelet/{folder}"}}]
    assert decided(pod(runtimeClassName="nvidia", containers=[plain()], volumes=volumes)) == []


@pytest.mark.parametrize("resources", [{}, GPU], ids=["no request", "request"])
def test_a_mount_that_names_gpus_is_told(resources: dict[str, Any]):
    listed = {"name": "v", "mountPath": "/var/run/nvidia-container-devices/all"}
    mounts = [{"name": "data", "mountPath": "/data"}, listed]
    was = pod(runtimeClassName="nvidia", containers=[plain(resources=resources, volumeMounts=mounts)])
    assert decided(was) == [("spec.containers[0].volumeMounts[1].mountPath", "devices-not-counted")]


def test_a_variable_of_devices_from_elsewhere_goes_with_the_request():
    held = {
        "name": "NVIDIA_VISIBLE_DEVICES",
        "valueFrom": {"configMapKeyRef": {"name": "gpus", "key": "ids"}},
    }
    done = migrate(pod(containers=[container(env=[held])]))
    assert done.manifest is not None
    assert "env" not in done.manifest["spec"]["containers"][0]
    assert ("visible-devices-left-out", "lost") in {(each.code, each.outcome) for each in done.remarks}


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        *(("all", "changed"), ("0, all", "changed"), ("nvidia.com/gpu=all", "changed")),
        *(("0,1", "lost"), ("nvidia.com/gpu=0", "lost"), ("GPU-4cf8db2d", "lost")),
    ],
)
def test_a_variable_of_all_devices_chose_none_of_them(value: str, outcome: str):
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": value}]
    told = migrate(pod(containers=[container(env=env)])).remarks
    assert [each.outcome for each in told if each.code == "visible-devices-left-out"] == [outcome]


def an_object(version: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "ml"}, **more}


PATCH = "- op: add\n  path: /spec/containers/0/resources/limits/nvidia.com~1gpu\n  value: 1"
POD_JSON = '{"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}'


@pytest.mark.parametrize(
    ("was", "told"),
    [
        (
            an_object(
                "ml.example.com/v1", "Sweep", spec={"trials": [[{"resources": GPU}], [{"resources": GPU}]]}
            ),
            [
                "spec.trials[0][0].resources.limits[nvidia.com/gpu]",
                "spec.trials[1][0].resources.limits[nvidia.com/gpu]",
            ],
        ),
        (
            an_object(
                "workload.codeflare.dev/v1beta2", "AppWrapper", spec={"components": [{"template": pod()}]}
            ),
            ["spec.components[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]"],
        ),
        (
            an_object(
                "milvus.io/v1beta1",
                "Milvus",
                spec={
                    "components": {
                        "queryNode": {"resources": {"requests": {"nvidia.com/mig-1g.10gb.shared": 1}}}
                    }
                },
            ),
            ["spec.components.queryNode.resources.requests[nvidia.com/mig-1g.10gb.shared]"],
        ),
        (
            an_object(
                "kyverno.io/v1", "ClusterPolicy", spec={"rules": [{"mutate": {"patchesJson6902": PATCH}}]}
            ),
            ["spec.rules[0].mutate.patchesJson6902"],
        ),
        (an_object("v1", "ConfigMap", data={"values.yaml": IN_TEXT, "notes": "gpu"}), ["data.values.yaml"]),
        (
            an_object("v1", "Service", metadata={"name": "s", "annotations": {"example.com/pod": POD_JSON}}),
            ["metadata.annotations.example.com/pod"],
        ),
        (
            an_object(
                "x.example.com/v1",
                "Run",
                spec={"limits": {"habana.ai/gaudi": 1, "cpu": 1, "google.com/tpu": 4}},
            ),
            ["spec.limits[habana.ai/gaudi]"],
        ),
        (
            an_object(
                "x.example.com/v1", "Run", spec={"resources": {"gpu": "0", "limits": {"nvidia.com/gpu": 0}}}
            ),
            [],
        ),
        (an_object("x.example.com/v1", "Run", spec={"nodes": {"gpu": 1}, "annotations": {"gpu": "1"}}), []),
    ],
    ids=lambda each: each.get("kind") if isinstance(each, dict) else "",
)
def test_kinds_that_are_not_known_are_searched_to_the_bottom(was: dict[str, Any], told: list[str]):
    assert left(was) == told


@pytest.mark.parametrize("name", ["volcano.sh/vgpu-number", "nvidia.com/gpumem", "amd.com/cpx_nps4"])
def test_other_forms_of_devices_are_told_in_kinds_that_are_not_known(name: str):
    was = an_object("ml.example.com/v1", "Run", spec={"worker": {"resources": {"limits": {name: 1}}}})
    assert decided(was) == [(f"spec.worker.resources.limits[{name}]", "other-device-form")]


HAMI = [
    *(
        "nvidia.com/use-gputype",
        "nvidia.com/nouse-gputype",
        "nvidia.com/use-gpuuuid",
        "nvidia.com/nouse-gpuuuid",
    ),
    *("nvidia.com/vgpu-mode", "nvidia.com/numa-bind", "amd.com/use-gpu-uuid", "volcano.sh/vgpu-mode"),
    *("hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy", "hami.io/vgpu-node"),
]


HAMI_BESIDE = [("a", {"schedulerName": "hami-scheduler"}), ("b", {})]


@pytest.mark.parametrize("name", HAMI)
def test_a_pod_whose_gpus_hami_chooses_stays(name: str):
    annotations = {"nvidia.com/gpu": "shared", name: "x", "example.com/a": "b"}
    was = {**pod(), "metadata": {"name": "p", "annotations": annotations}}
    assert migrate(was).manifest is was
    assert (f"metadata.annotations[{name}]", "other-device-form") in decided(was)


def test_kinds_whose_pods_are_in_parts_stay_under_the_scheduler_of_hami():
    templates = [{"name": "main", "container": container()}]
    flow = an_object(
        "argoproj.io/v1alpha1", "Workflow", spec={"schedulerName": "hami-scheduler", "templates": templates}
    )
    annotations = {"nvidia.com/use-gputype": "A100"}
    nim = an_object(
        "apps.nvidia.com/v1alpha1", "NIMService", spec={"annotations": annotations, "resources": GPU}
    )
    assert ("spec.schedulerName", "other-device-form") in decided(flow)
    assert ("spec.annotations[nvidia.com/use-gputype]", "other-device-form") in decided(nim)
    assert [migrate(each).added for each in (flow, nim)] == [(), ()]


def test_a_template_beside_one_under_the_scheduler_of_hami_is_migrated():
    hami = {"schedulerName": "hami-scheduler"}
    templates = [{"name": "a", "container": container(), **hami}, {"name": "b", "container": container()}]
    flow = migrate(an_object("argoproj.io/v1alpha1", "Workflow", spec={"templates": templates}))
    jobs = [{"name": name, "template": {"spec": {"template": pod(**more)}}} for name, more in HAMI_BESIDE]
    job_set = migrate(an_object("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": jobs}))
    for done, field, at in (
        (flow, "templates", "spec.templates[0]"),
        (job_set, "replicatedJobs", "spec.replicatedJobs[0].template.spec.template.spec"),
    ):
        first, second = done.manifest["spec"][field]
        assert ("resourceClaims" in str(first), "resourceClaims" in str(second)) == (False, True)
        assert [each.path for each in done.remarks if each.code == "other-device-form"] == [
            f"{at}.schedulerName"
        ]
        assert len(done.added) == 1


@pytest.mark.parametrize("kind", ["Pod", "Run", "Workflow"])
def test_a_scheduler_of_pods_that_ask_for_no_device_decides_nothing(kind: str):
    bare = {"containers": [{"name": "a", "image": "x"}], "schedulerName": "hami-scheduler"}
    metadata = {"name": "p", "annotations": {"nvidia.com/use-gputype": "A100"}}
    was = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": bare}
    assert migrate(was).remarks == ()
    bare["containers"][0]["resources"] = GPU
    assert ("spec.schedulerName", "other-device-form") in decided(was)


def test_a_share_by_an_annotation_alone_is_to_decide():
    was = {**pod(), "metadata": {"name": "p", "annotations": {"gpu-fraction": "0.5"}}}
    del was["spec"]["containers"][0]["resources"]
    assert decided(was) == [("metadata.annotations[gpu-fraction]", "other-device-form")]


def test_a_pod_of_another_scheduler_is_migrated():
    was = pod()
    was["spec"]["schedulerName"] = "default-scheduler"
    assert [each.code for each in migrate(was).remarks] == ["resource-to-claim", "toleration-written"]


@pytest.mark.parametrize("name", ["nvidia.com/priority", "nvidia.com/gpumem"])
def test_zero_of_what_hami_reads_says_something_too(name: str):
    was = pod()
    was["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1, name: 0}}
    assert decided(was) == [(f"spec.containers[0].resources.limits[{name}]", "other-device-form")]
    assert migrate(was).manifest is was


ROWS = read_data("migrated_kinds.yaml")["kinds"]


def below(path: str, value: Any) -> Any:
    for step in reversed(path.split(".")):
        value = [value] if step == "*" else {step: value}
    return value


@pytest.mark.parametrize(
    ("row", "path", "field"),
    [(row, path, field) for row in ROWS for field in ("templates", "specs") for path in row.get(field, ())],
    ids=lambda each: each["kind"] if isinstance(each, dict) else str(each),
)
def test_each_template_of_a_row_gets_its_claims(row: dict[str, Any], path: str, field: str):
    spec = pod()["spec"]
    was = an_object(
        f"{row['group']}/v1", row["kind"], **below(path, spec if field == "specs" else {"spec": spec})
    )
    users = [an_object("trainer.kubeflow.org/v1", "TrainJob", spec={"runtimeRef": {"name": "a"}})]
    done, _ = migrate_objects([was, *users], Settings(plugin=WHOLE))
    assert done.manifest is not None
    changed = done.manifest
    for step in (*path.split("."), *(() if field == "specs" else ("spec",))):
        changed = changed[0 if step == "*" else step]
    assert changed["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "a-gpu"}]
    assert [each["metadata"]["name"] for each in done.added] == ["a-gpu"]


@pytest.mark.parametrize("row", [row for row in ROWS if "why" in row], ids=lambda row: row["kind"])
def test_each_kind_without_claims_has_its_reason_and_what_to_do(row: dict[str, Any]):
    was = an_object(f"{row['group']}/v1", row["kind"], spec={"template": pod(), "args": ["nvidia.com/gpu"]})
    done = migrate(was)
    assert done.manifest is was
    at = "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]"
    assert [(each.path, each.code) for each in done.remarks] == [
        (at, "kind-not-rewritten"),
        ("spec.args[0]", "resource-in-text"),
    ]
    assert done.remarks[0].message == f"this {row['kind']} {row['why']}"
    assert done.remarks[0].hint == row["hint"]


def test_every_row_has_a_source_and_is_there_once():
    assert all(row["source"] and ("why" in row) == ("hint" in row) for row in ROWS)
    assert len({(row["group"], row["kind"]) for row in ROWS}) == len(ROWS)


def test_a_service_of_kubernetes_is_none_of_knative():
    assert (
        migrate(an_object("v1", "Service", spec={"limits": {"nvidia.com/gpu": 1}})).remarks[0].code
        == "resource-in-text"
    )


def test_flavors_of_queues_describe_nodes_and_ask_for_nothing():
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    assert left(an_object("kueue.x-k8s.io/v1beta2", "ResourceFlavor", spec={"nodeTaints": [taint]})) == []
