from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import PodPart, WorkloadKind, WorkloadKinds, decode_pod_claims, read_steps
from dra_infra.kubernetes.api.pods import ContainerClaims, ContainerResourceClaim, PodResourceClaim
from tests.unit.kubernetes.api.manifests import JSON

SPEC: dict[str, Any] = {
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
    "containers": [{"name": "a", "resources": {"claims": [{"name": "gpu", "request": "r"}]}}, {"name": "b"}],
    "initContainers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}],
}


def a_pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}


def a_deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": spec}}}


def test_claim_parts_of_a_pod_are_read():
    decoded = decode_pod_claims(a_deployment(**SPEC))
    pod = decoded.pods[0]
    assert (decoded.unknown_fields, decoded.type_errors) == ((), ())
    assert pod.path == "spec.template.spec"
    assert pod.resource_claims == (PodResourceClaim(name="gpu", resource_claim_template_name="t"),)
    assert pod.containers == (
        ContainerClaims("initContainers[0]", (ContainerResourceClaim(name="gpu"),)),
        ContainerClaims("containers[0]", (ContainerResourceClaim(name="gpu", request="r"),)),
        ContainerClaims("containers[1]", ()),
    )
    assert not pod.pod_level_claims


def test_claims_of_the_pods_own_resources_are_seen():
    assert decode_pod_claims(a_pod(resources={"claims": [{"name": "a"}]})).pods[0].pod_level_claims
    assert not decode_pod_claims(a_pod(resources={"claims": []})).pods[0].pod_level_claims


@pytest.mark.parametrize(
    ("spec", "path", "told"),
    [
        (
            {"resourceClaims": "gpu"},
            "spec.template.spec.resourceClaims",
            (
                "json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.resourceClaims of type "
                "[]v1.PodResourceClaim"
            ),
        ),
        (
            {"containers": [{"resources": {"claims": [1]}}]},
            "spec.template.spec.containers[0].resources.claims[0]",
            (
                "json: cannot unmarshal number into Go struct field "
                "ResourceRequirements.spec.template.spec.containers.resources.claims of type v1.ResourceClaim"
            ),
        ),
        (
            {"resourceClaims": [{"name": []}]},
            "spec.template.spec.resourceClaims[0].name",
            (
                "json: cannot unmarshal array into Go struct field "
                "PodResourceClaim.spec.template.spec.resourceClaims.name of type string"
            ),
        ),
    ],
)
def test_wrong_types_are_told_in_the_words_of_go(spec, path, told):
    assert decode_pod_claims(a_deployment(**spec)).type_errors == ((path, told),)


def test_the_first_error_of_the_object_comes_first():
    spec = {"containers": [{"resources": {"claims": 1}}], "resourceClaims": 1}
    paths = [path for path, _ in decode_pod_claims(a_pod(**spec)).type_errors]
    assert paths == ["spec.containers[0].resources.claims", "spec.resourceClaims"]


def test_unknown_fields_of_entries_are_found_and_others_are_not_looked_at():
    spec = {
        "resourceClaims": [{"source": {"resourceClaimName": "a"}}],
        "containers": [
            {"imagee": "a", "resources": {"limitz": {}, "claims": [{"request": "a", "requests": "b"}]}}
        ],
    }
    assert decode_pod_claims(a_pod(**spec)).unknown_fields == (
        "spec.resourceClaims[0].source",
        "spec.containers[0].resources.claims[0].requests",
    )


def test_other_kinds_have_no_claim_parts():
    assert decode_pod_claims({"apiVersion": "v1", "kind": "Service", "spec": SPEC}) is None


def test_pod_specs_of_other_kinds_are_decoded_where_they_are():
    tasks = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "spec": {"tasks": [{"template": {"spec": SPEC}}, {}, {"template": {"spec": SPEC}}]},
    }
    part = PodPart(path=read_steps("spec.tasks.*.template"))
    kinds = WorkloadKinds([WorkloadKind(group="batch.volcano.sh", kind="Job", parts=(part,))])
    assert [pod.path for pod in decode_pod_claims(tasks, kinds=kinds).pods] == [
        "spec.tasks[0].template.spec",
        "spec.tasks[2].template.spec",
    ]
    assert decode_pod_claims(tasks) is None


@given(st.sampled_from(["resourceClaims", "containers", "initContainers", "resources"]), JSON)
def test_any_json_anywhere_is_decoded_or_told(field, value):
    for manifest in (
        a_pod(**{**SPEC, field: value}),
        a_deployment(**{**SPEC, field: [{"resources": {"claims": value}}]}),
    ):
        assert decode_pod_claims(manifest).pods
