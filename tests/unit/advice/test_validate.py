"""`validate` as users call it: one manifest per thing that a server refuses."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.advice.objects import validate
from dra_infra.advice.problems import problem_of
from dra_infra.kubernetes.apiserver import judge
from dra_infra.target import ClusterTarget

NEWEST = ClusterTarget(kubernetes="1.37")
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
DERIVED = {"name": "a.example/b", "expression": '"x"'}


def claim(*, metadata: dict[str, Any] | None = None, version: str = "v1", **devices: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", **(metadata or {})},
        "spec": {"devices": {"requests": [REQUEST], **devices}},
    }


def leaf(**fields: Any) -> dict[str, Any]:
    return claim(requests=[{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", **fields}}])


def device_class(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "h100"},
        "spec": spec,
    }


def config(**opaque: Any) -> dict[str, Any]:
    return claim(config=[{"opaque": {"driver": "gpu.nvidia.com", "parameters": {}, **opaque}}])


REQUESTS = "spec.devices.requests"
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({**claim(), "kind": "ResourceClaims"}, "kind", "unknown-kind"),
    (claim(version="v1alpha2"), "apiVersion", "unknown-version"),
    (claim(metadata={"labels": {"a/b/c": "x"}}), "metadata.labels", "invalid-label"),
    (claim(metadata={"generation": -1}), "metadata.generation", "invalid-metadata"),
    (claim(metadata={"annotations": {"a": "x" * 2**18}}), "metadata.annotations", "value-too-long"),
    (
        leaf(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        f"{REQUESTS}[0].exactly.tolerations[0].value",
        "invalid-toleration",
    ),
    (
        leaf(tolerations=[{"key": "a", "effect": "Never"}]),
        f"{REQUESTS}[0].exactly.tolerations[0].effect",
        "unsupported-value",
    ),
    (
        leaf(
            selectors=[
                {
                    "cel": {
                        "expression": "[1,2,3,4,5,6,7,8,9].all(a, device.attributes.all(d, "
                        "device.attributes[d].all(i, device.attributes.all(e, device.attributes[e].all(j, d == e && i == j)))))"
                    }
                }
            ]
        ),
        f"{REQUESTS}[0].exactly.selectors[0].cel.expression",
        "cel-too-costly",
    ),
    (
        claim(constraints=[{"requests": ["gpu", "gpu"], "matchAttribute": "gpu.nvidia.com/productName"}]),
        "spec.devices.constraints[0].requests[1]",
        "duplicate-item",
    ),
    (config(parameters=[1]), "spec.devices.config[0].opaque.parameters", "invalid-parameters"),
    (config(driver="d" * 64), "spec.devices.config[0].opaque.driver", "value-too-long"),
    (
        device_class(extendedResourceName="kubernetes.io/gpu"),
        "spec.extendedResourceName",
        "invalid-extended-resource",
    ),
    (
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "t"},
            "spec": {"metadata": {"name": "no"}, "spec": {"devices": {"requests": [REQUEST]}}},
        },
        "spec.metadata.name",
        "field-not-allowed",
    ),
]


@pytest.mark.parametrize(
    ("manifest", "path", "code"), REFUSED, ids=[f"{code} {path}" for _, path, code in REFUSED]
)
def test_what_the_server_refuses_is_one_error(manifest: dict[str, Any], path: str, code: str):
    errors = [problem for problem in validate([manifest], NEWEST) if problem.severity == "error"]
    where = f"{manifest['kind']} {manifest['metadata']['name']}."
    assert [(problem.path, problem.code) for problem in errors] == [(where + path, code)]


def test_a_derived_attribute_must_be_compared():
    target = ClusterTarget(kubernetes="1.37", gates={"DRADerivedAttributes": True})
    (problem,) = validate([leaf(derivedAttributes=[DERIVED])], target)
    assert problem.code == "derived-attribute-unused"


def test_a_derived_attribute_is_dropped_while_its_gate_is_off():
    (problem,) = validate([leaf(derivedAttributes=[DERIVED])], NEWEST)
    assert (problem.code, problem.severity) == ("field-dropped", "warning")


def test_a_field_that_the_minor_does_not_have_is_unknown_there():
    (problem,) = validate([leaf(derivedAttributes=[DERIVED])], ClusterTarget(kubernetes="1.36"))
    assert (problem.path, problem.code) == (
        f"ResourceClaim c.{REQUESTS}[0].exactly.derivedAttributes",
        "unknown-field",
    )


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ({"spec": {}}, "a ResourceClaim has one spec, a ResourceClaimTemplate spec.spec"),
        ({"deviceClassName": "a"}, "write devices: {requests: [{name: gpu, exactly: {deviceClassName: ...}}]}"),
        ({"selectors": []}, "another place has it, or another minor: see `kubectl explain`"),
        ({"devicesx": {}}, "did you mean 'devices'?"),
    ],
)  # fmt: skip
def test_a_field_that_another_place_has_is_not_proposed_by_its_own_name(spec: dict[str, Any], hint: str):
    manifest = claim()
    manifest["spec"] |= spec
    (problem,) = [each for each in validate([manifest], NEWEST) if each.code == "unknown-field"]
    assert problem.hint == hint


def test_a_version_that_is_off_by_default_is_a_warning():
    flat = {"name": "gpu", "deviceClassName": "gpu.nvidia.com"}
    beta = claim(version="v1beta1", requests=[flat])
    (problem,) = validate([beta], NEWEST)
    assert (problem.code, problem.severity) == ("version-not-served", "warning")
    assert validate([beta], ClusterTarget(kubernetes="1.37", serves=frozenset({"v1", "v1beta1"}))) == ()


@pytest.mark.parametrize(
    ("version", "minor", "code", "hint"),
    [
        (
            "v1alpha3",
            "1.35",
            "unknown-version",
            "leave it out: ResourcePoolStatusRequest is there since Kubernetes 1.36",
        ),
        (
            "v1",
            "1.34",
            "unknown-version",
            "leave it out: ResourcePoolStatusRequest is there since Kubernetes 1.36",
        ),
        ("v1", "1.37", "unknown-version", "write apiVersion: resource.k8s.io/v1alpha3"),
        (
            "v1alpha3",
            "1.36",
            "version-not-served",
            "start the API server with --runtime-config=resource.k8s.io/v1alpha3=true",
        ),
    ],
)
def test_a_status_request_is_told_the_version_and_the_minors_that_have_it(
    version: str, minor: str, code: str, hint: str
):
    asked = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": "r"},
        "spec": {"driver": "gpu.nvidia.com"},
    }
    (problem,) = validate([asked], ClusterTarget(kubernetes=minor))
    assert (problem.path, problem.code) == ("ResourcePoolStatusRequest r.apiVersion", code)
    assert problem.hint == hint
    served = ClusterTarget(kubernetes="1.37", serves=frozenset({"v1", "v1alpha3"}))
    assert validate([{**asked, "apiVersion": "resource.k8s.io/v1alpha3"}], served) == ()


def test_admin_access_needs_the_label_where_the_namespace_is_known():
    admin = leaf(adminAccess=True)
    admin["metadata"]["namespace"] = "ml"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}
    (unknown,) = validate([admin], NEWEST)
    assert (unknown.code, unknown.severity) == ("admin-access-namespace", "warning")
    (problem,) = validate([namespace, admin], NEWEST)
    assert (problem.code, problem.severity) == ("admin-access-namespace", "error")
    namespace["metadata"] = {"name": "ml", "labels": {"resource.kubernetes.io/admin-access": "true"}}
    assert validate([namespace, admin], NEWEST) == ()


def test_the_spec_of_a_claim_never_changes():
    (release,) = NEWEST.releases
    (error,) = judge(leaf(count=2), release, old=claim()).errors
    assert (error.path, error.message) == ("spec", "Invalid value: null: field is immutable")
    assert problem_of(error).code == "field-immutable"


def test_other_groups_pass_untouched():
    other = {"apiVersion": "example.com/v1", "kind": "ResourceClaim", "spec": 7}
    assert validate([other, {"apiVersion": 3}, {}], NEWEST) == ()


def test_slices_and_taint_rules_are_read_but_not_judged_yet():
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"taint": {"key": "a", "effect": "NoSchedule"}, "selector": {}},
    }
    (problem,) = validate([rule], NEWEST)
    assert (problem.path, problem.code) == ("DeviceTaintRule r.spec.selector", "unknown-field")
