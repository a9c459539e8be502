from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.markers import SECRET


def a_namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def by_claim(name):
    return {"resourceClaimName": name}


def by_template(name):
    return {"resourceClaimTemplateName": name}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gpu.nvidia.con", "write deviceClassName: gpu.nvidia.com"),
        ("h1000", "write deviceClassName: h100"),
        ("something-else", "pods stay pending"),
        ("imex.nvidia.com", "pods stay pending"),
    ],
)
def test_classes_that_are_nowhere(inputs, name, hint):
    problems = inputs.advice_on(
        inputs.a_class("h100", "false || device.driver == 'a'"), inputs.a_claim(inputs.a_request(of=name))
    )
    (problem,) = problems
    assert (problem.code, problem.path) == (
        "class-not-known",
        "spec.devices.requests[0].exactly.deviceClassName",
    )
    assert hint in problem.hint


@pytest.mark.parametrize(
    "name", ["h100", "gpu.nvidia.com", "compute-domain-default-channel.nvidia.com", "gpu.example.com"]
)
def test_classes_of_the_input_and_of_drivers_are_known(inputs, name):
    own = inputs.a_class("h100", "device.driver == 'a'")
    assert inputs.codes(own, inputs.a_claim(inputs.a_request(of=name))) == []


def test_classes_that_another_release_ships(inputs):
    claim = inputs.a_claim(inputs.a_request(of="vfio.gpu.nvidia.com"))
    assert inputs.codes(claim) == []
    (problem,) = inputs.advice_on(claim, driver="25.8")
    assert problem.code == "class-not-known"
    assert "gpu.nvidia.com 25.12" in problem.hint


def test_classes_that_containers_ask_for_by_their_implicit_resource(inputs):
    implicit = "deviceclass.resource.kubernetes.io/"
    assert inputs.codes(inputs.a_pod(limits={f"{implicit}gpu.nvidia.com": "1", "nvidia.com/gpu": "1"})) == []
    (problem,) = inputs.advice_on(inputs.a_pod(limits={f"{implicit}gpu.nvidia.con": "1"}))
    assert (problem.code, problem.path) == ("class-not-known", "spec.containers[0].resources.limits")
    assert problem.hint == f"write {implicit}gpu.nvidia.com"


def test_claims_and_templates_of_the_input_are_known(inputs):
    request = inputs.a_request()
    assert (
        inputs.codes(
            inputs.a_claim(request, name="shared", namespace="ml"),
            inputs.a_claim(request, name="each", namespace="ml", kind="ResourceClaimTemplate"),
            inputs.a_pod(by_claim("shared"), by_template("each"), namespace="ml"),
        )
        == []
    )


@pytest.mark.parametrize(
    ("claim", "field", "hint"),
    [
        (by_template("eech"), "resourceClaimTemplateName", "write resourceClaimTemplateName: each"),
        (by_claim("each"), "resourceClaimName", "write resourceClaimTemplateName: each"),
        (by_template("shared"), "resourceClaimTemplateName", "write resourceClaimName: shared"),
        (by_template("far"), "resourceClaimTemplateName", "it is in namespace 'other'"),
        (by_claim("unheard-of"), "resourceClaimName", "it must exist in the cluster"),
    ],
)
def test_claims_and_templates_that_are_not_there(inputs, claim, field, hint):
    request = inputs.a_request()
    (problem,) = inputs.advice_on(
        inputs.a_claim(request, name="shared", namespace="ml"),
        inputs.a_claim(request, name="each", namespace="ml", kind="ResourceClaimTemplate"),
        inputs.a_claim(request, name="far", namespace="other", kind="ResourceClaimTemplate"),
        inputs.a_pod(claim, namespace="ml"),
    )
    assert (problem.code, problem.path) == ("claim-not-known", f"spec.resourceClaims[0].{field}")
    assert hint in problem.hint


def test_no_namespace_is_the_default_one(inputs):
    claim = inputs.a_claim(inputs.a_request(), name="shared")
    assert inputs.codes(claim, inputs.a_pod(by_claim("shared"), namespace="default")) == []


def test_compute_domains_make_templates(inputs):
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "rack", "namespace": "ml"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "channel"}}},
    }
    pod = inputs.a_pod(by_template("channel"), namespace="ml")
    assert inputs.codes(domain, pod) == []
    assert inputs.codes(pod) == ["claim-not-known"]


@pytest.mark.parametrize(
    "malformed", [{}, {"spec": None}, {"spec": {"channel": []}}, {"metadata": "x", "spec": {"channel": {}}}]
)
def test_malformed_objects_of_other_groups_are_passed_over(inputs, malformed):
    assert (
        inputs.codes({"kind": "ComputeDomain", **malformed}, {"kind": "Namespace", "apiVersion": "v1"}) == []
    )


@pytest.mark.parametrize("marker", [UNKNOWN, SECRET])
def test_names_that_are_not_known_yet_are_not_judged(inputs, marker):
    pod = inputs.a_pod(by_claim(marker), by_template(marker))
    assert inputs.codes(pod, inputs.a_claim(inputs.a_request(of=marker))) == []


def test_namespaces_are_looked_for_when_the_input_has_some(inputs):
    claim = inputs.a_claim(inputs.a_request(), namespace="mll")
    assert inputs.codes(claim) == []
    assert inputs.codes(a_namespace("mll"), claim) == []
    (problem,) = inputs.advice_on(a_namespace("ml"), claim)
    assert (problem.code, problem.path, problem.hint) == (
        "namespace-not-known",
        "metadata.namespace",
        "write namespace: ml",
    )
    (problem,) = inputs.advice_on(a_namespace("ml"), inputs.a_pod(namespace="mll"))
    assert problem.code == "namespace-not-known"


@pytest.mark.parametrize("namespace", ["", "default", "kube-system"])
def test_namespaces_that_every_cluster_has(inputs, namespace):
    assert inputs.codes(a_namespace("ml"), inputs.a_claim(inputs.a_request(), namespace=namespace)) == []


def test_two_classes_with_one_extended_resource_name(inputs):
    own = "device.driver == 'a'"
    first = inputs.a_class("first", own, resource="example.com/gpu")
    second = inputs.a_class("second", own, resource="example.com/gpu")
    third = inputs.a_class("third", own, resource="example.com/other")
    problems = inputs.advice_on(first, second, third)
    assert [(each.code, each.path) for each in problems] == [
        ("extended-resource-twice", "spec.extendedResourceName")
    ] * 2
    assert "second" in problems[0].message
    assert "first" in problems[1].message


def test_the_extended_resource_name_of_a_shipped_class(inputs):
    own = inputs.a_class("own", "device.driver == 'gpu.nvidia.com'", resource="nvidia.com/gpu")
    assert inputs.codes(own) == ["extended-resource-twice"]
    assert inputs.codes(own, driver="25.8") == []
    bare = inputs.a_class("gpu.nvidia.com", "device.driver == 'gpu.nvidia.com'")
    assert inputs.codes(own, bare) == []


def test_many_names_are_looked_through_in_no_time(inputs):
    templates = [
        inputs.a_claim(inputs.a_request(), name=f"t{index}", kind="ResourceClaimTemplate")
        for index in range(300)
    ]
    (problem,) = inputs.advice_on(*templates, inputs.a_pod(by_template("t300")))
    assert problem.hint == "it must exist in the cluster, or pods stay pending"
