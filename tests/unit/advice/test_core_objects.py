"""Fields of Kubernetes' own kinds; `tests/e2e/core_fields` asks the real servers the same of random objects."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.advice.objects import check_objects
from dra_infra.answers.checking import check
from dra_infra.answers.scene import Scene
from dra_infra.kubernetes.api import UNKNOWN

POD: dict[str, Any] = {"containers": [{"name": "main", "image": "r/x:1"}]}

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD},
    },
}


def found(manifest: dict[str, Any], kubernetes: str | None = "1.37") -> list[tuple[str, str, str]]:
    problems = check_objects([manifest], dra.ClusterTarget(kubernetes=kubernetes))
    return [
        (problem.path, problem.code, problem.hint) for _, problem in problems if problem.severity == "error"
    ]


def changed(path: str, value: Any) -> dict[str, Any]:
    """The Deployment with a value at a path of names and positions."""
    manifest = copy.deepcopy(DEPLOYMENT)
    holder: Any = manifest
    *steps, last = path.split("/")
    for step in steps:
        holder = holder[int(step) if step.isdigit() else step]
    holder[last] = value
    return manifest


def test_a_right_object_has_no_problems_on_any_minor():
    assert found(DEPLOYMENT, None) == []


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("spec/replica", "did you mean 'replicas'?"),
        ("spec/template/spec/containers/0/imgae", "did you mean 'image'?"),
        ("spec/template/spec/resourceclaims", "did you mean 'resourceClaims'?"),
        ("spec/template/spec/replicas", "it is a field of spec: write it there"),
        ("replicas", "it is a field of spec: write it there"),
        ("spec/template/spec/ports", "it is a field of containers, ephemeralContainers and initContainers: write it there"),
        ("spec/template/spec/containers/0/zzz", "see its fields: kubectl explain deployment.spec.template.spec.containers"),
        ("zzz", "see its fields: kubectl explain deployment"),
    ],
)  # fmt: skip
def test_an_unknown_field_is_reported_with_what_was_meant(path: str, hint: str):
    manifest = changed(path, "x")
    written = path.replace("/0/", "[0].").replace("/", ".")
    assert found(manifest) == [(written, "unknown-field", hint)]


@pytest.mark.parametrize(
    ("path", "value", "hint"),
    [
        ("spec/paused", "yes", "write paused: true or paused: false, without quotes"),
        ("spec/minReadySeconds", "5", "write minReadySeconds: 5, without quotes"),
        ("spec/minReadySeconds", 1.5, "write a whole number of 32 bits"),
        ("spec/minReadySeconds", 2**31, "write a whole number of 32 bits"),
        ("spec/strategy", [], "write a mapping"),
        ("spec/template/spec/containers/0/args", "run", "begin each item with -"),
        ("metadata/labels", {"version": 1}, "put it in quotes"),
        ("metadata/creationTimestamp", "today", "write a time such as 2026-01-02T03:04:05Z"),
        ("spec/template/spec/containers/0/resources", {"limits": {"cpu": "1 core"}}, "write a quantity such as 500m or 2Gi"),
        ("spec/template/spec/terminationGracePeriodSeconds", "None", "YAML has null for None: leave terminationGracePeriodSeconds out"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_reported_with_what_to_write(path: str, value: Any, hint: str):
    codes = [(code, told) for _, code, told in found(changed(path, value))]
    assert codes == [("wrong-type", hint)]


def test_values_are_not_quoted_for_they_may_be_secret():
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "hunter2!"}}
    ((_, problem),) = check_objects([secret], dra.ClusterTarget(kubernetes="1.37"))
    assert problem.code == "wrong-type"
    assert "hunter2" not in str(problem)


def test_null_is_as_good_as_nothing_and_unknown_values_break_no_rule():
    assert found(changed("spec/paused", None)) == []
    assert found(changed("spec/minReadySeconds", UNKNOWN)) == []


def test_a_field_that_one_minor_lacks_names_the_minor():
    manifest = changed("spec/template/spec/workloadRef", {})
    assert found(manifest, "1.35") == []
    ((_, problem),) = check_objects([manifest], dra.ClusterTarget(kubernetes="1.34"))
    assert problem.code == "unknown-field"
    assert "Kubernetes 1.34 has no such field" in problem.message


def test_what_has_the_words_of_the_server_is_reported_once():
    claims = changed("spec/template/spec/resourceClaims", [{"name": "gpu", "resourceClaimNam": "x"}])
    assert [code for _, code, _ in found(claims)].count("unknown-field") == 1
    assert [code for _, code, _ in found(changed("spec/replicas", "2"))] == ["wrong-type"]


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        ({"apiVersion": "v1", "kind": "Service", "spec": {"port": []}}, "spec.port"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "dat": {}}, "dat"),
        ({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hards": {}}}, "spec.hards"),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"label": {}}}, "metadata.label"),
        ({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "val": 1}, "val"),
        ({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [{"verb": []}]}, "rules[0].verb"),
        ({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": {"restartpolicy": "Never"}}}}}}, "spec.jobTemplate.spec.template.spec.restartpolicy"),
        ({"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourcePoolStatusRequest", "spec": {"drivr": "x"}}, "spec.drivr"),
    ],
)  # fmt: skip
def test_every_kind_of_the_server_is_read(manifest: dict[str, Any], path: str):
    assert (path, "unknown-field") in [(at, code) for at, code, _ in found(manifest)]


def test_pods_of_kinds_of_other_projects_are_read_too():
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "s"},
        "spec": {
            "replicatedJobs": [
                {"name": "w", "template": {"spec": {"template": {"spec": {**POD, "restartpolicy": "Never"}}}}}
            ]
        },
    }
    path = "spec.replicatedJobs[0].template.spec.template.spec.restartpolicy"
    assert found(job_set) == [(path, "unknown-field", "did you mean 'restartPolicy'?")]


@pytest.mark.parametrize(
    ("api_version", "kind", "code", "hint"),
    [
        ("v1", "Deployment", "unknown-version", "write apiVersion: apps/v1"),
        ("extensions/v1beta1", "Ingress", "unknown-version", "write apiVersion: networking.k8s.io/v1"),
        ("batch/v1beta1", "CronJob", "unknown-version", "write apiVersion: batch/v1"),
        ("policy/v1beta1", "PodSecurityPolicy", "unknown-version", "it has policy/v1"),
        ("apps/v1", "Deploymnt", "unknown-kind", "did you mean 'Deployment'?"),
        ("v1", "Configmap", "unknown-kind", "did you mean 'ConfigMap'?"),
        ("v1", "Config", "", ""),
        ("v1", "Zzz", "unknown-kind", "see what there is: kubectl api-resources"),
        ("extensions.example.com/v1beta1", "Ingress", "", ""),
        ("metrics.k8s.io/v1beta1", "PodMetrics", "", ""),
    ],
)
def test_a_kind_that_the_server_lacks_is_reported_in_its_own_groups(
    api_version: str, kind: str, code: str, hint: str
):
    path = "apiVersion" if code == "unknown-version" else "kind"
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    assert found(manifest, None) == ([(path, code, hint)] if code else [])


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("spec", "write spec: with a mapping"),
        ("spec/selector", "write selector: with a mapping"),
        ("spec/template/spec/containers", "write containers: with a list"),
        ("spec/template/spec/containers/0/name", "write name: with a text"),
    ],
)
def test_a_field_without_which_servers_refuse_an_object_is_missed(path: str, hint: str):
    written = path.replace("/0/", "[0].").replace("/", ".")
    assert found(changed(path, None), None) == [(written, "missing-field", hint)]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("serving.kserve.io/v1beta1", "InferenceService", {"predictor": {"model": {}, "containers": []}}),
        ("kubevirt.io/v1", "VirtualMachine", {"template": {"spec": {"domain": {"devices": {}}}}}),
    ],
)
def test_fields_that_another_kind_has_beside_those_of_a_pod_are_its_own(
    api_version: str, kind: str, spec: dict[str, Any]
):
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "s"}, "spec": spec}
    assert found(manifest) == []


def test_what_the_description_calls_required_and_the_server_fills_in_is_not_missed():
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "a"},
        "roleRef": {"kind": "Role", "name": "a"},
    }
    assert found(binding) == []


@pytest.mark.parametrize(
    ("path", "value", "hint"),
    [
        ("spec/template/spec/restartPolicy", "always", "did you mean 'Always'?"),
        ("spec/template/spec/containers/0/imagePullPolicy", "Sometimes", "write one of these words"),
        ("spec/strategy", {"type": "Rolling"}, "did you mean 'RollingUpdate'?"),
        ("spec/template/spec/dnsPolicy", "", None),
    ],
)
def test_a_word_that_is_none_of_those_of_its_field_is_reported(path: str, value: Any, hint: str | None):
    told = [(code, text) for _, code, text in found(changed(path, value), None)]
    assert told == ([] if hint is None else [("unsupported-value", hint)])


def test_directives_of_a_patch_are_no_fields():
    assert found(changed("spec/template/spec/$patch", "replace")) == []


def test_workloads_with_an_unknown_field_are_not_placed():
    scene = Scene.of_manifests([changed("spec/template/spec/containers/0/imgae", "x")])
    checked = check(scene)
    assert [problem.code for problem in checked.problems] == ["unknown-field"]
    assert checked.accepted.manifests == ()


def test_files_with_claims_alone_read_no_fields_of_other_kinds():
    script = (
        "import dra_infra as dra; from dra_infra.kubernetes.apiserver import core_schemas; "
        "dra.validate([{'apiVersion': 'resource.k8s.io/v1', 'kind': 'DeviceClass', 'metadata': {'name': 'a'}, 'spec': {}}]); "
        "assert core_schemas._load.cache_info().misses == 0"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_item_that_only_server_side_apply_refuses_is_a_warning():
    manifest = changed("spec/template/spec/containers/0/env", [{"name": "A", "value": "1"}, {"name": "A"}])
    ((_, problem),) = check_objects([manifest], dra.ClusterTarget())
    assert (problem.path, problem.code, problem.severity) == (
        "spec.template.spec.containers[0].env[1]",
        "duplicate-item",
        "warning",
    )
    assert 'second item with name "A"' in problem.message


def test_ports_are_told_apart_by_number_and_protocol():
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    assert (
        list(check_objects([changed("spec/template/spec/containers/0/ports", ports)], dra.ClusterTarget()))
        == []
    )
    twice = changed(
        "spec/template/spec/containers/0/ports", [*ports, {"containerPort": 80, "protocol": "TCP"}]
    )
    ((_, problem),) = check_objects([twice], dra.ClusterTarget())
    assert problem.path == "spec.template.spec.containers[0].ports[2]"


def test_two_requests_of_one_claim_in_a_container_are_no_object_for_server_side_apply():
    manifest = changed(
        "spec/template/spec/resourceClaims", [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    )
    claims = [{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}]
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"claims": claims}
    told = [problem for _, problem in check_objects([manifest], dra.ClusterTarget(kubernetes="1.37"))]
    (problem,) = [each for each in told if each.code == "duplicate-item"]
    assert problem.path == "spec.template.spec.containers[0].resources.claims[1]"
    assert problem.hint.startswith("leave request out")
