from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.catalog import load_fleet

GPU = "gpu.nvidia.com"
H100 = 'device.attributes["gpu.nvidia.com"].productName.contains("H100")'


def a_class(name: str = "h100", expression: str = f'device.driver == "{GPU}" && {H100}') -> dict[str, Any]:
    selectors = [{"cel": {"expression": expression}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors},
    }


def a_template(
    name: str = "gpus",
    namespace: str = "ml",
    device_class: str = "h100",
    constraints: Any = (),
    **exactly: Any,
) -> dict[str, Any]:
    devices: dict[str, Any] = {
        "requests": [{"name": "gpu", "exactly": {"deviceClassName": device_class, **exactly}}]
    }
    if constraints:
        devices["constraints"] = list(constraints)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": devices}},
    }


def a_pod(name: str = "train", template: str = "gpus", namespace: str = "ml", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            **spec,
        },
    }


def a_claim(name: str, *devices: str, node: str = "", pods: Any = (), **metadata: Any) -> dict[str, Any]:
    claim = a_template(name)
    results = [{"request": "gpu", "driver": GPU, "pool": node, "device": each} for each in devices]
    users = [{"resource": "pods", "name": each, "uid": f"uid-{each}"} for each in pods]
    return {
        **claim,
        "kind": "ResourceClaim",
        "metadata": {**claim["metadata"], **metadata},
        "spec": claim["spec"]["spec"],
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": users} if devices else {},
    }


def write(folder: Path, *manifests: Any, name: str = "objects.yaml") -> Path:
    (folder / name).write_text(yaml.safe_dump_all(manifests))
    return folder


def test_a_pod_that_fits_is_told_with_its_devices(command, tmp_path):
    write(tmp_path, a_class(), a_template(count=2), a_pod())
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 0
    assert said.out.splitlines()[:-1] == [
        "✓ Pod ml/train fits (hgx-h100 x 1, Kubernetes 1.37)",
        "  on hgx-h100-0: gpu.nvidia.com/hgx-h100-0/gpu-0..1",
        "  ✓ all at once: fit in every order of arrival",
    ]


def test_a_pod_that_a_quota_refuses_is_not_said_to_fit(command, tmp_path):
    hard = {"h100.deviceclass.resource.k8s.io/devices": "1"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": {"hard": hard},
    }
    write(tmp_path, a_class(), a_template(count=2), a_pod(), quota)
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 1
    head, why, *_ = said.out.splitlines()
    assert head == (
        "✗ Pod ml/train does not fit: devices are there for it, and something else is in the way "
        "(hgx-h100 x 1, Kubernetes 1.37)"
    )
    assert why.endswith("[quota-refuses]")


@pytest.mark.parametrize("number", [1, 0])
def test_a_change_is_tried_against_the_quota_too(command, tmp_path, number):
    hard = {"h100.deviceclass.resource.k8s.io/devices": str(number)}
    metadata = {"name": "team", "namespace": "ml"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    write(tmp_path, a_class(), a_template(count=12), a_pod(), quota)
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100 x 2", cwd=tmp_path)
    assert "[quota-refuses]" in said.out
    if number:
        assert "\n  it fits with one of these, each tried out:\n    1. ask for 1 instead of 12 in" in said.out
        assert "the quota says" not in said.out
    else:
        assert "\n  where the quota lets it be made, it fits with one of these, each tried out:\n" in said.out
        assert (
            "         the quota says: 0 of 1 pod is made: the claim of its entry gpu is refused, for ResourceQuota "
            "ml/team allows 0 of h100.deviceclass.resource.k8s.io/devices, 0 are in use, and it takes 8\n"
        ) in said.out


def test_a_template_of_the_cluster_is_tried_against_the_quota_with_its_change(command, tmp_path):
    hard = {"h100.deviceclass.resource.k8s.io/devices": "1"}
    metadata = {"name": "team", "namespace": "ml"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    there = [a_class(), a_template(count=12), quota, *load_fleet("hgx-h100").to_manifests()]
    write(tmp_path, *there, name="cluster.yaml")
    write(tmp_path, a_pod(), name="pod.yaml")
    said = command("explain", "pod/train", "pod.yaml", "--snapshot", "cluster.yaml", cwd=tmp_path)
    assert "    1. ask for 1 instead of 12 in" in said.out


def test_a_pod_that_does_not_fit_is_told_with_counts_and_the_line_to_write(command, tmp_path):
    write(tmp_path, a_class(), a_template(count=9), a_pod())
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100 x 2, a100-40gb", cwd=tmp_path)
    assert said.code == 1
    assert (
        f'    -  8 fail class h100, selector #0: {H100} (productName is "NVIDIA A100-SXM4-40GB")' in said.out
    )
    assert "    = 16 left, 8 of them on hgx-h100-0" in said.out
    assert "ResourceClaimTemplate ml/gpus: spec.spec.devices.requests[0].exactly.count" in said.out
    assert "           count: 8" in said.out


@pytest.mark.parametrize(("pods", "code", "mark"), [(2, 0, "+"), (3, 1, "✗")])
def test_pods_that_fit_when_a_node_pool_grows_count_as_fitting(
    command, tmp_path_factory, tmp_path, pods, code, mark
):
    labels = {"app": "train"}
    spec = {
        "replicas": pods,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": a_pod()["spec"]},
    }
    metadata = {"name": "train", "namespace": "ml"}
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    write(tmp_path, a_class(), a_template(count=8), workload)
    pool = {"name": "a3", "nodes": "hgx-h100", "min": 0, "max": 1, "price": "98.32"}
    groups = [{"kind": "hgx-h100", "count": 1}]
    fleet = tmp_path_factory.mktemp("pools") / "fleet.yaml"
    fleet.write_text(yaml.safe_dump({"nodeGroups": groups, "pools": [pool], "currency": "USD"}))
    simulated = command("simulate", ".", "--fleet", str(fleet), cwd=tmp_path)
    said = command("explain", "deployment/train", ".", "--fleet", str(fleet), cwd=tmp_path)
    (growth,) = (each for each in simulated.out.splitlines() if " Growth: " in each)
    assert (said.code, simulated.code) == (code, code)
    assert growth.startswith(mark)
    assert said.out.splitlines()[-2] == f"  {growth}"
    data = json.loads(
        command("explain", "deployment/train", ".", "--fleet", str(fleet), "--json", cwd=tmp_path).out
    )
    simulated = json.loads(command("simulate", ".", "--fleet", str(fleet), "--json", cwd=tmp_path).out)
    assert data["growth"] == simulated["growth"]


def test_the_json_has_every_key_also_where_it_is_empty(command, tmp_path):
    write(tmp_path, a_class(), a_template(count=9), a_pod())
    said = command("explain", "train", ".", "--fleet", "hgx-h100", "--json", cwd=tmp_path)
    assert said.code == 1
    found = json.loads(said.out)
    assert sorted(found) == [
        "answer",
        "causes",
        "fits",
        "growth",
        "hasErrors",
        "joint",
        "notSeen",
        "provenance",
        "schema",
        "settled",
        "subject",
        "undecided",
        "unmodelled",
        "verdict",
        "where",
    ]
    assert sorted(found["answer"]) == [
        "beyond", "devices", "error", "kubernetes", "nearest", "node", "nodes", "outranked", "placed", "pods", "proof",
        "quirks", "refusals", "requests", "suggestions", "unknown", "verdict",
    ]  # fmt: skip
    (tree,) = found["answer"]["requests"]
    assert (tree["candidates"], tree["left"], tree["count"]) == (8, 8, 9)
    assert [each["kind"] for each in found["answer"]["suggestions"]] == ["fewer-devices"]


@pytest.mark.parametrize("name", ["claim/gpus", "nope", "gadget/train", "pod/train -n other"])
def test_a_name_that_is_none_is_told(command, tmp_path, name):
    write(tmp_path, a_class(), a_template(), a_pod())
    said = command("explain", *name.split(), ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 2
    assert said.codes == {"subject-not-known"}


def test_problems_of_the_program_are_told_where_the_subject_is_not_there(command, tmp_path):
    write(tmp_path, a_class(), a_template(), a_pod())
    (tmp_path / "broken.yaml").write_text("a: [")
    said = command("explain", "deployment/none", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 2
    assert len(said.codes) == 2
    assert "subject-not-known" in said.codes


def test_an_entry_that_names_no_claim_is_told_as_that(command, tmp_path):
    pod = a_pod()
    del pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]
    write(tmp_path, a_class(), a_template(), pod)
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert "it names neither a claim nor a template" in said.out
    assert "there is no" not in said.out


def test_a_name_in_two_namespaces_wants_one_of_them(command, tmp_path):
    two = [
        each
        for namespace in ("ml", "serving")
        for each in (a_template(namespace=namespace), a_pod(namespace=namespace))
    ]
    write(tmp_path, a_class(), *two)
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert (said.code, said.codes) == (2, {"subject-not-known"})
    assert "pod/train -n serving" in said.err
    assert (
        command("explain", "pod/train", ".", "-n", "serving", "--fleet", "hgx-h100", cwd=tmp_path).code == 0
    )


def test_without_hardware_there_is_no_answer(command, tmp_path):
    write(tmp_path, a_class(), a_template(), a_pod())
    said = command("explain", "pod/train", ".", cwd=tmp_path)
    assert (said.code, said.codes) == (2, {"no-fleet"})


def test_files_and_a_cluster_are_not_asked_at_once(command, tmp_path):
    said = command("explain", "pod/train", ".", "--kubeconfig", "config", cwd=tmp_path)
    assert said.code == 2
    assert "not both" in said.err


def test_a_chart_is_to_be_rendered_first(command, tmp_path):
    (tmp_path / "Chart.yaml").write_text("name: x\n")
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 2
    assert "helm template" in said.err


@pytest.mark.parametrize(
    ("manifests", "code"),
    [
        ([a_template(), a_pod()], "class-not-known"),
        ([a_class(), a_pod()], "claim-not-known"),
        ([a_class(expression="device.driver == 'nic.example.com'"), a_template(), a_pod()], "driver-missing"),
        ([a_template(device_class="mig.nvidia.com"), a_pod()], "mig-not-published"),
        ([a_class(), a_template(count="four"), a_pod()], "object-malformed"),
        (
            [
                a_class(),
                a_template(),
                a_pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "x"}}}]),
            ],
            "object-malformed",
        ),
    ],
)
def test_common_reasons_have_a_name(command, tmp_path, manifests, code):
    write(tmp_path, *manifests)
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 1
    assert code in said.codes


def test_a_pod_without_claims_fits_and_hears_that_it_gets_no_devices(command, tmp_path):
    write(tmp_path, a_class(), a_template(), a_pod(resourceClaims=[]))
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert (said.code, said.codes) == (0, {"claim-not-known"})
    assert said.out.startswith("✓ Pod ml/train: its pods fit, and need no devices of DRA")


def test_a_class_that_is_misspelt_is_told_with_the_line_that_fits(command, tmp_path):
    write(tmp_path, a_class(), a_template(device_class="h10"), a_pod())
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 1
    assert said.out.startswith("? Pod ml/train: not known whether it fits (hgx-h100 x 1)")
    assert "did you mean h100?" in said.out
    assert "           deviceClassName: h100" in said.out


@pytest.mark.parametrize("name", ["pod/train", "template/gpus"])
def test_a_class_that_nobody_has_is_not_decided(command, tmp_path, name):
    write(tmp_path, a_template(), a_pod())
    said = command("explain", name, ".", "--fleet", "hgx-h100", "--json", cwd=tmp_path)
    found = json.loads(said.out)
    assert (said.code, found["verdict"], found["fits"]) == (1, "not-decided", False)
    assert found["answer"]["verdict"] == "not-decided"
    assert "class h100 not known here" in found["undecided"][0]
    assert [each["code"] for each in found["causes"]] == ["class-not-known"]


ZONE_OF_A_RESOURCE = """
import pulumi_kubernetes as k8s

zone = k8s.core.v1.ConfigMap("zone", metadata={{"name": "zone"}})
for each in {objects}:
    spec = {{**each["spec"], **({{"nodeSelector": {{"zone": zone.id}}}} if each["kind"] == "Pod" else {{}})}}
    named = {{"api_version": each["apiVersion"], "kind": each["kind"], "metadata": each["metadata"]}}
    k8s.apiextensions.CustomResource(each["kind"], **named, spec=spec)
"""


def test_what_is_not_decided_and_has_no_cause_is_told(command, tmp_path):
    objects = [a_class(), a_template(), a_pod()]
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(ZONE_OF_A_RESOURCE.format(objects=objects))
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 1
    assert said.out.startswith(
        "? Pod ml/train: not known whether it fits (hgx-h100 x 1)\n  not known: Pod ml/train: "
    )


def test_a_field_that_the_minor_drops_is_told(command, tmp_path):
    write(tmp_path, a_class(), a_template(capacity={"requests": {"memory": "10Gi"}}), a_pod())
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", "-k", "1.35", cwd=tmp_path)
    assert "field-dropped" in said.codes
    assert "the gate DRAConsumableCapacity is off" in said.out
    on = command(
        "explain",
        "pod/train",
        ".",
        "--fleet",
        "hgx-h100",
        "-k",
        "1.35",
        "-g",
        "DRAConsumableCapacity=true",
        cwd=tmp_path,
    )
    assert "field-dropped" not in on.codes


def test_nodes_that_refuse_the_pod_are_counted(command, tmp_path):
    write(tmp_path, a_class(), a_template(), a_pod(nodeSelector={"zone": "a"}))
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100 x 2", cwd=tmp_path)
    assert said.code == 1
    assert (
        "    - 16 on nodes that refuse the pod: nodeSelector wants zone=a, and the label is not there"
        in said.out
    )


def test_devices_of_others_on_a_snapshot_are_named_with_their_pods(command, tmp_path):
    fleet = load_fleet("hgx-h100").to_manifests()
    node = "hgx-h100-0"
    held = a_claim("theirs", *(f"gpu-{index}" for index in range(6)), node=node, pods=["serve-0"])
    write(tmp_path, *fleet, held, name="cluster.yaml")
    write(tmp_path, a_class(), a_template(count=4), a_pod(), name="mine.yaml")
    said = command("explain", "pod/train", "mine.yaml", "--snapshot", "cluster.yaml", cwd=tmp_path)
    assert said.code == 1
    assert "    - 6 in use by ResourceClaim ml/theirs (Pod ml/serve-0)" in said.out
    assert "           count: 2" in said.out
    assert "kubectl delete pod -n ml serve-0" in said.out


@pytest.mark.parametrize(
    ("spec", "priority"),
    [
        ({"priorityClassName": "high"}, 1000),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000),
        ({"priorityClassName": "elsewhere"}, None),
        ({}, None),
    ],
)
def test_a_pod_of_a_program_hears_whom_the_scheduler_does_not_preempt(
    command, tmp_path_factory, tmp_path, spec, priority
):
    fleet = load_fleet("hgx-h100 devices=1")
    (node,) = (each.name for each in fleet.nodes)
    running = a_pod("other", "", nodeName=node, priority=5)
    running["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "held"}]
    running["metadata"]["uid"] = "uid-other"
    held = a_claim("held", "gpu-0", node=node, pods=["other"])
    there = [each.to_manifest() for each in (*fleet.nodes, *fleet.slices)]
    cluster = tmp_path_factory.mktemp("snapshot") / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all([*there, {**running, "status": {"phase": "Running"}}, held]))
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
    write(tmp_path, a_class(), a_template(), a_pod(**spec), high)
    said = command("explain", "pod/train", ".", "--snapshot", str(cluster), cwd=tmp_path)
    assert said.code == 1
    told = f"its priority {priority} does not help: no scheduler up to 1.38 preempts a pod for its devices"
    assert (told in said.out) == (priority is not None)


def test_nodes_of_an_allocated_claim_are_told_as_the_claims_and_more_nodes_do_not_help(
    command, tmp_path_factory, tmp_path
):
    fleet = load_fleet("hgx-h100 x 2 devices=1")
    node, other = (each.name for each in fleet.nodes)
    held = a_claim("held", "gpu-0", node=node)
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    held["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    write(cluster := tmp_path_factory.mktemp("snapshot"), *fleet.to_manifests(), held)
    pod = a_pod()
    pod["spec"]["resourceClaims"].append({"name": "held", "resourceClaimName": "held"})
    write(tmp_path, a_class(), a_template(), pod)
    snapshot = ("--snapshot", str(cluster / "objects.yaml"), "--json")
    found = json.loads(command("explain", "pod/train", ".", *snapshot, cwd=tmp_path).out)["answer"]
    said = "ResourceClaim ml/held is allocated, and not for this node"
    assert [(each["text"], each["nodes"], each["example"]) for each in found["refusals"]] == [
        (said, 1, other)
    ]
    assert found["suggestions"] == []


def test_a_pod_of_a_snapshot_is_explained_from_the_snapshot_alone(command, tmp_path):
    pod = a_pod()
    pod["status"] = {
        "phase": "Pending",
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "train-gpu-x"}],
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}],
    }
    claim = a_claim("train-gpu-x")
    claim["spec"] = a_template(count=9)["spec"]["spec"]
    write(
        tmp_path,
        *load_fleet("hgx-h100").to_manifests(),
        a_class(),
        pod,
        claim,
        a_template(count=9),
        name="c.yaml",
    )
    said = command("explain", "pod/train", "--snapshot", "c.yaml", cwd=tmp_path)
    assert said.code == 1
    assert "! Pod ml/train: Pod train: 0/1 nodes are available [scheduler-says]" in said.out
    assert "request gpu of ResourceClaim ml/train-gpu-x: 9 devices of class h100" in said.out


def test_the_end_of_the_time_is_told(command, tmp_path, monkeypatch):
    from dra_infra.cli import explain

    monkeypatch.setattr(explain.time, "monotonic", iter(range(0, 10**9, 100)).__next__)
    write(tmp_path, a_class(), a_template(count=9), a_pod())
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", "--timeout", "1", cwd=tmp_path)
    assert said.code == 1
    assert "--timeout" in said.out


def test_the_pods_of_a_deployment_are_counted_together(command, tmp_path):
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve", "namespace": "ml"},
        "spec": {"replicas": 10, "selector": {}, "template": {"spec": a_pod()["spec"]}},
    }
    write(tmp_path, a_class(), a_template(), deployment)
    said = command("explain", "deploy/serve", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 1
    assert said.out.startswith("✗ Deployment ml/serve: 8 of 10 pods fit")
    assert "add 1 node like hgx-h100-0" in said.out


def test_extended_resources_that_a_class_serves_are_explained_too(command, tmp_path):
    served = a_class()
    served["spec"]["extendedResourceName"] = "example.com/gpu"
    container = {"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "9"}}}
    write(tmp_path, served, a_pod(resourceClaims=[], containers=[container]))
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 1
    assert (
        "request container-0-request-0 of extended resources of Pod ml/train: 9 devices of class h100"
        in said.out
    )
    assert "ask for 8 instead of 9 in request container-0-request-0" in said.out


def test_nobody_makes_a_claim_for_extended_resources_of_a_pod_that_names_its_node(command, tmp_path):
    served = a_class()
    served["spec"]["extendedResourceName"] = "example.com/gpu"
    container = {"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "1"}}}
    pod = a_pod(resourceClaims=[], containers=[container], nodeName="hgx-h100-1")
    write(tmp_path, served, pod)
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100 x 2", cwd=tmp_path)
    assert said.code == 1
    assert (
        "8 on nodes that refuse the pod: spec.nodeName hgx-h100-1 takes the pod round the scheduler, which alone "
        "makes the claim for its extended resources" in said.out
    )
    assert "(delete it: the scheduler then chooses among these nodes)" in said.out


def test_a_taint_rule_of_a_snapshot_keeps_devices_away(command, tmp_path):
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "repair"},
        "spec": {"deviceSelector": {"driver": GPU}, "taint": {"key": "repair", "effect": "NoSchedule"}},
    }
    write(tmp_path, *load_fleet("hgx-h100").to_manifests(), rule, name="cluster.yaml")
    write(tmp_path, a_class(), a_template(), a_pod(), name="mine.yaml")
    said = command("explain", "pod/train", "mine.yaml", "--snapshot", "cluster.yaml", cwd=tmp_path)
    assert said.code == 1
    assert "    - 8 tainted repair:NoSchedule" in said.out
    assert "- {key: repair, operator: Exists, effect: NoSchedule}" in said.out


def test_a_kubeconfig_that_leads_nowhere_is_told(command, tmp_path):
    said = command("explain", "pod/train", "--kubeconfig", "none.yaml", cwd=tmp_path)
    assert (said.code, said.codes) == (2, {"kubeconfig-unreadable"})


def test_a_snapshot_that_is_cut_in_half_is_told(command, tmp_path):
    text = yaml.safe_dump_all([*load_fleet("hgx-h100").to_manifests(), a_class(), a_pod()])
    (tmp_path / "cluster.yaml").write_text(
        text[: text.index("deviceClass") if "deviceClass" in text else 900] + "\n  - {a: ["
    )
    said = command("explain", "pod/train", "--snapshot", "cluster.yaml", cwd=tmp_path)
    assert said.code == 2
    assert said.codes


def test_beside_a_file_that_cannot_be_read_devices_are_named_and_nothing_is_said_to_fit(command, tmp_path):
    write(tmp_path, a_class(), a_template(), a_pod())
    (tmp_path / "other.yaml").write_text("a: [\n")
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    # As simulate ends: what the file holds may take the devices.
    assert said.code == 1
    assert "✗ Pod ml/train does not fit: devices are there for it" in said.out
    assert "other.yaml:2:1: document: not YAML" in said.out


def test_pools_that_contradict_themselves_are_told_and_the_rest_is_answered(command, tmp_path):
    fleet = load_fleet("hgx-h100 x 2").to_manifests()
    broken = next(each for each in fleet if each["kind"] == "ResourceSlice")
    broken["spec"]["devices"][1]["name"] = broken["spec"]["devices"][0]["name"]
    write(tmp_path, *fleet, name="fleet.yaml")
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", a_class(), a_template(), a_pod())
    said = command("explain", "pod/train", "mine", "--fleet", "fleet.yaml", cwd=tmp_path)
    assert "pool-invalid" in said.codes
    assert said.code == 0
    assert "✓ Pod ml/train fits" in said.out


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"nodeSelector": {"zone": "a"}}, "(delete it, or label the nodes)"),
        (
            {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9999"}}}]},
            "(ask for less, or free some on the node)",
        ),
    ],
)
def test_what_keeps_a_pod_off_its_nodes_is_named_with_the_field(command, tmp_path, spec, line):
    write(tmp_path, a_class(), a_template(), a_pod(**spec))
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100 x 2", cwd=tmp_path)
    assert said.code == 1
    assert "1. let the pod go to 2 nodes, which now refuse it: " in said.out
    assert f"           {line}" in said.out


def test_only_nodes_that_have_no_other_reason_are_said_to_take_the_pod(command, tmp_path):
    fleet = load_fleet("hgx-h100 x 2").to_manifests()
    zones = iter("ab")
    for each in fleet:
        if each["kind"] == "Node":
            each["spec"]["taints"] = [{"key": "gpu", "effect": "NoSchedule"}]
            each["metadata"]["labels"]["zone"] = next(zones)
    write(tmp_path, *fleet, name="fleet.yaml")
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", a_class(), a_template(), a_pod(nodeSelector={"zone": "a"}))
    said = command("explain", "pod/train", "mine", "--fleet", "fleet.yaml", cwd=tmp_path)
    assert "1. let the pod go to 1 node, which now refuses it: taint gpu:NoSchedule" in said.out
    assert "nodeSelector wants zone=a, and the label is b" in said.out


def test_an_affinity_is_given_a_term_that_fits(command, tmp_path):
    wanted: dict[str, Any] = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "none", "operator": "Exists"}]}]
    }
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}
    write(tmp_path, a_class(), a_template(), a_pod(affinity=affinity))
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100 x 2", cwd=tmp_path)
    line = "- {matchFields: [{key: metadata.name, operator: In, values: [hgx-h100-0]}]}"
    assert f"           {line}  # or whatever labels the 2 nodes have" in said.out
    wanted["nodeSelectorTerms"] += yaml.safe_load(line)
    write(tmp_path, a_class(), a_template(), a_pod(affinity=affinity))
    assert command("explain", "pod/train", ".", "--fleet", "hgx-h100 x 2", cwd=tmp_path).code == 0


def test_pairs_that_were_tried_are_not_offered_again(command, tmp_path):
    template = a_template(selectors=[{"cel": {"expression": "false"}}, {"cel": {"expression": "1 > 2"}}])
    write(tmp_path, a_class(), template, a_pod(nodeSelector={"zone": "a"}))
    said = command("explain", "pod/train", ".", "--fleet", "hgx-h100", "--deep", cwd=tmp_path)
    assert "no small change fits, nor do two at once" in said.out


def test_a_taint_of_nodes_is_tolerated_by_the_line_that_is_told(command, tmp_path):
    fleet = load_fleet("hgx-h100 x 2").to_manifests()
    for each in fleet:
        if each["kind"] == "Node":
            each["spec"]["taints"] = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    write(tmp_path, *fleet, name="fleet.yaml")
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", a_class(), a_template(), a_pod())
    said = command("explain", "pod/train", "mine", "--fleet", "fleet.yaml", cwd=tmp_path)
    assert said.code == 1
    line = '- {key: gpu, operator: Equal, value: "yes", effect: NoSchedule}'
    assert line in said.out
    write(tmp_path / "mine", a_class(), a_template(), a_pod(tolerations=yaml.safe_load(line)))
    assert command("explain", "pod/train", "mine", "--fleet", "fleet.yaml", cwd=tmp_path).code == 0


def test_a_pod_whose_claim_has_devices_elsewhere_is_told_where_it_may_go(command, tmp_path):
    pod = a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
    pod["status"] = {"phase": "Pending"}
    claim = a_claim("shared", "gpu-0", node="gone")
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    write(tmp_path, *load_fleet("hgx-h100").to_manifests(), a_class(), pod, claim, name="c.yaml")
    said = command("explain", "pod/train", "--snapshot", "c.yaml", cwd=tmp_path)
    assert said.code == 1
    assert "hgx-h100-0: ResourceClaim ml/shared is allocated, and not for this node" in said.out


def test_pods_of_a_program_wait_for_a_claim_that_is_being_deleted(command, tmp_path):
    claim = a_claim("shared", "gpu-0", node="hgx-h100-0")
    claim["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:00Z"
    write(tmp_path, *load_fleet("hgx-h100").to_manifests(), a_class(), claim, name="c.yaml")
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}]))
    said = command("explain", "pod/train", "mine", "--snapshot", "c.yaml", cwd=tmp_path)
    assert said.code == 1
    assert (
        "✗ ResourceClaim ml/shared: it is being deleted: no pod gets it any more [claim-deleting]" in said.out
    )


def test_pods_of_a_program_wait_for_a_claim_that_too_many_use(command, tmp_path):
    claim = a_claim("shared", "gpu-0", node="hgx-h100-0")
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": f"u{each}"} for each in range(256)]
    write(tmp_path, *load_fleet("hgx-h100").to_manifests(), a_class(), claim, name="c.yaml")
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}]))
    said = command("explain", "pod/train", "mine", "--snapshot", "c.yaml", cwd=tmp_path)
    assert said.code == 1
    assert "it has room for no more pods of the 256 that may use it, and 1 ask for it [claim-res" in said.out


def test_a_code_is_told_without_files_and_without_a_cluster(command, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    said = command("explain", "too-many-devices", cwd=tmp_path)
    assert (said.code, said.err) == (0, "")
    first, *_, last = said.out.splitlines()
    assert first.startswith("too-many-devices: a claim asks for more devices")
    assert "32" in said.out
    assert last.endswith("docs/errors/claims.md#too-many-devices")


def test_the_example_of_a_code_is_shown_as_it_is_printed(command, tmp_path):
    said = command("explain", "count-below-one", cwd=tmp_path)
    assert '\n      hint: ask for 1 or more devices, or count="all"' in said.out
    assert "```" not in said.out


def test_a_code_as_json(command, tmp_path):
    found = json.loads(command("explain", "count-below-one", "--json", cwd=tmp_path).out)
    assert sorted(found) == ["code", "meaning", "page", "schema", "text"]
    assert found["code"] == "count-below-one"


@pytest.mark.parametrize("kind", ["", "pod/"])
def test_a_pod_that_is_called_like_a_code_is_explained_where_files_are_named(command, tmp_path, kind):
    write(tmp_path, a_class(), a_template(), a_pod("no-fleet"))
    said = command("explain", f"{kind}no-fleet", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code == 0
    assert "no-fleet" in said.out
    assert "docs/errors" not in said.out


@pytest.mark.parametrize(
    "words", [["pod/no-fleet"], ["no-fleet", "-n", "ml"], ["no-fleet", "--context", "c"]]
)
def test_a_pod_of_a_cluster_that_is_called_like_a_code_can_be_named(command, tmp_path, monkeypatch, words):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    said = command("explain", *words, cwd=tmp_path)
    assert (said.code, said.codes) == (2, {"kubeconfig-unreadable"})


def test_the_text_of_a_code_is_wrapped_by_paragraph_and_its_code_is_left_as_it_is(command, tmp_path):
    said = command("explain", "product-name-in-others", cwd=tmp_path).out
    paragraph, example = said.split("\n\n")[1:3]
    *full, _last = paragraph.splitlines()
    assert len(full) > 3
    assert all(80 < len(line) <= 100 for line in full)
    assert [line[:4] for line in example.splitlines()] == ["    "] * 2


@pytest.mark.parametrize(("name", "code"), [("count-belw-one", "count-below-one"), ("train", None)])
def test_a_slip_of_a_code_is_told_with_the_code(command, tmp_path, monkeypatch, name, code):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    said = command("explain", name, cwd=tmp_path)
    assert said.code == 2
    assert ("did you mean the code" in said.err) == bool(code)
    assert code is None or f"dra-infra explain {code}" in said.err


def test_a_step_of_a_workflow_is_asked_about_by_its_name(command, tmp_path):
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    steps = [{"name": name, "container": {"image": "i"}, "resourceClaims": claims} for name in ("a", "step")]
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {"templates": steps},
    }
    write(tmp_path, a_class(), a_template(count=2), workflow)
    said = command("explain", "workflow/train/step", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert (said.code, said.out.splitlines()[0]) == (
        0,
        "✓ Workflow ml/train/step fits (hgx-h100 x 1, Kubernetes 1.37)",
    )


def test_a_claim_that_the_nim_operator_makes_is_told_as_not_looked_into(command, tmp_path):
    service = {
        "apiVersion": "apps.nvidia.com/v1alpha1",
        "kind": "NIMService",
        "metadata": {"name": "llm", "namespace": "ml"},
        "spec": {"draResources": [{"claimCreationSpec": {"devices": []}}]},
    }
    write(tmp_path, a_class(), service)
    said = command("explain", "nimservice/llm", ".", "--fleet", "hgx-h100", cwd=tmp_path)
    assert said.code != 0
    assert "spec.draResources: its controller makes a claim of other fields" in said.out


def test_pods_of_others_that_a_rule_of_the_program_evicts_hold_nothing(command, tmp_path_factory, tmp_path):
    fleet = load_fleet("hgx-h100 devices=4")
    (node,) = (each.name for each in fleet.nodes)
    running = a_pod("other", "", ownerReferences=[])
    running["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "others", "controller": True}]
    running["spec"] |= {"nodeName": node, "resourceClaims": [{"name": "gpu", "resourceClaimName": "held"}]}
    del running["spec"]["ownerReferences"]
    held = a_claim("held", "gpu-0", "gpu-1", "gpu-2", "gpu-3", node=node, pods=["other"])
    there = [each.to_manifest() for each in (*fleet.nodes, *fleet.slices)]
    cluster = tmp_path_factory.mktemp("snapshot") / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all([*there, {**running, "status": {"phase": "Running"}}, held]))
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"driver": GPU, "pool": node, "device": "gpu-0"},
            "taint": {"key": "broken", "effect": "NoExecute"},
        },
    }
    write(tmp_path, a_class(), a_template(count=3), a_pod(), rule)
    said = command("explain", "pod/train", ".", "--snapshot", str(cluster), cwd=tmp_path)
    lines = said.out.splitlines()
    assert lines[:2] == [
        "✓ Pod ml/train fits (the snapshot, Kubernetes 1.37)",
        f"  on {node}: gpu.nvidia.com/{node}/gpu-1..3",
    ]
    # The evicted pod finds no room beside it.
    assert said.code == command("simulate", ".", "--snapshot", str(cluster), cwd=tmp_path).code == 1
    assert "  ✗ all at once: never fit at once" in said.out
    assert "evicted, and placed anew with the others: 1 pod of ReplicaSet ml/others" in said.err


A_REQUEST = 'dra.DeviceRequest("%s", device_class="gpu.nvidia.com", select=%s)'
A100 = 'dra.gpu.product.contains("A100")'


def a_program(folder: Path, *lines: str) -> None:
    program = (
        "import dra_infra as dra",
        "import pulumi_kubernetes as k8s",
        *lines,
        'pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}',
        'spec = {"template": {"spec": trainer.attach(pod)}}',
        'k8s.batch.v1.Job("train", metadata={"name": "train", "namespace": "ml"}, spec=spec)',
    )
    (folder / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (folder / "__main__.py").write_text("\n".join(program))


@pytest.mark.parametrize(
    ("written", "where", "line"),
    [
        (
            'device_class="gpu.nvidia.com", select=dra.gpu.memory >= "90Gi"',
            'GpuClaimTemplate("trainer").select',
            'select=dra.gpu.memory >= "81559Mi"',
        ),
        ('device_class="gpu.nvidia.com", count=9', 'GpuClaimTemplate("trainer").count', "count=8"),
        (
            f"requests=[{A_REQUEST % ('a', 'None')}, {A_REQUEST % ('b', A100)}]",
            'GpuClaimTemplate("trainer").requests[1].select',
            "(leave out select)",
        ),
        (
            'device_class=dra.GpuDeviceClass("other", select=dra.gpu.product.contains("A100"))',
            'GpuDeviceClass("other").select',
            "(leave out select)",
        ),
    ],
)
def test_changes_of_what_components_make_are_python(command, tmp_path, written, where, line):
    a_program(tmp_path, f'trainer = dra.GpuClaimTemplate("trainer", {written}, namespace="ml")')
    said = command("explain", "job/train", ".", "--fleet", "hgx-h100 x 1", "--json", cwd=tmp_path)
    found = json.loads(said.out)["answer"]["suggestions"]
    assert {"where": where, "line": line} in [change for each in found for change in each["changes"]]
    assert not any("expression: " in each["line"] for each in found)


def test_an_argument_of_several_lines_is_one_change(command, tmp_path):
    memory = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("90Gi")) >= 0'
    names = " || ".join(f'device.attributes["gpu.nvidia.com"].productName.contains("{n}")' for n in "HBN")
    select = f"select=dra.cel({f'({names}) && {memory}'!r})"
    given = f'device_class="gpu.nvidia.com", {select}, namespace="ml"'
    a_program(tmp_path, f'trainer = dra.GpuClaimTemplate("trainer", {given})')
    asked = ("explain", "job/train", ".", "--fleet", "hgx-h100 x 1")
    found = json.loads(command(*asked, "--json", cwd=tmp_path).out)["answer"]["suggestions"]
    lines = [[change["line"] for change in each["changes"]] for each in found]
    ((told,),) = [each for each in lines if "81559Mi" in "".join(each)]
    first, _, last = told.splitlines()
    assert (first, last) == ("select=dra.cel(", ")")
    compile(told.removeprefix("select="), "told", "eval")
    said = command(*asked, cwd=tmp_path).out
    assert all(f"           {line}\n" in said for line in told.splitlines())


def test_changes_of_objects_that_the_user_makes_stay_as_they_are(command, tmp_path):
    a_program(
        tmp_path,
        "from types import SimpleNamespace",
        'claim = dra.MigPartition("slice", profile="1g.10gb", namespace="ml", count=9)',
        "trainer = SimpleNamespace(attach=lambda pod: claim.attach(pod))",
    )
    said = command("explain", "job/train", ".", "--fleet", "hgx-h100 x 1", "--json", cwd=tmp_path)
    found = json.loads(said.out)["answer"]["suggestions"]
    assert not any("MigPartition" in each["where"] for each in found)


def test_the_time_of_the_search_bounds_no_program(command, tmp_path):
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(
        "import time\nimport pulumi_kubernetes as k8s\ntime.sleep(1.5)\n"
        "k8s.core.v1.Pod('p', metadata={'name': 'p'}, spec={'containers': [{'name': 'c', 'image': 'i'}]})\n"
    )
    said = command("explain", "pod/p", ".", "--fleet", "hgx-h100", "--timeout", "1", cwd=tmp_path)
    assert "program-timeout" not in said.err


@pytest.mark.parametrize("option", ["--prices", "--driver", "--provider"])
def test_options_of_programs_are_refused_for_a_cluster(command, tmp_path, option):
    said = command("explain", "pod/train", option, "25.8", cwd=tmp_path)
    assert said.code == 2
    assert "needs a program or manifests" in said.err


def a_project(folder: Path, fleet: str) -> None:
    (folder / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text(f"config:\n  {fleet}\n")
    (folder / "__main__.py").write_text(
        "import pulumi_kubernetes as k8s\n"
        "k8s.core.v1.Pod('p', metadata={'name': 'p'}, spec={'containers': [{'name': 'c', 'image': 'i'}]})\n"
    )


def test_the_project_of_the_current_folder_is_asked_as_simulate_asks_it(command, tmp_path):
    a_project(tmp_path, "dra-infra:fleet: hgx-h100")
    said = command("explain", "pod/p", cwd=tmp_path)
    assert (said.code, command("simulate", cwd=tmp_path).code) == (0, 0)
    assert "Pod p" in said.out
    assert "hgx-h100-0: may take it" in said.out


def test_of_an_object_that_the_own_project_lacks_the_way_to_the_cluster_is_named(command, tmp_path):
    a_project(tmp_path, "dra-infra:fleet: hgx-h100")
    said = command("explain", "pod/train-0", cwd=tmp_path)
    assert said.code == 2
    assert "subject-not-known" in said.err
    assert "for an object of the cluster add --context NAME" in said.err


def test_a_project_without_a_fleet_leaves_the_question_to_the_cluster(command, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    a_project(tmp_path, "app:size: 1")
    said = command("explain", "pod/p", cwd=tmp_path)
    assert said.code == 2
    assert "kubeconfig" in said.err
