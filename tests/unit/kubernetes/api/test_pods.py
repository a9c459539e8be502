from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api.pods import find_pod_templates
from dra_infra.program_objects import UNKNOWN

POD: dict[str, Any] = {
    "resourceClaims": [
        {"name": "gpu", "resourceClaimTemplateName": "t"},
        {"name": "nic", "resourceClaimName": "c"},
    ],
    "initContainers": [{"name": "fetch", "resources": {"claims": [{"name": "nic"}]}}],
    "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu", "request": "a"}]}}],
}


def holder(api_version: str, kind: str, *path: str, **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"spec": POD, "metadata": {"labels": {"app": "a"}}}
    for step in reversed(path):
        body = {step: body}
    manifest = {"apiVersion": api_version, "kind": kind, **body, "metadata": {"name": "x", "namespace": "ml"}}
    manifest["spec"] = {**manifest.get("spec", {}), **spec}
    return manifest


@pytest.mark.parametrize(
    ("manifest", "path", "replicas"),
    [
        (holder("v1", "Pod"), "spec", 1),
        (holder("apps/v1", "Deployment", "spec", "template", replicas=4), "spec.template.spec", 4),
        (holder("apps/v1", "StatefulSet", "spec", "template"), "spec.template.spec", 1),
        (holder("apps/v1", "DaemonSet", "spec", "template"), "spec.template.spec", None),
        (holder("batch/v1", "Job", "spec", "template", parallelism=3), "spec.template.spec", 3),
        (
            holder("batch/v1", "CronJob", "spec", "jobTemplate", "spec", "template"),
            "spec.jobTemplate.spec.template.spec",
            1,
        ),
    ],
)
def test_the_claims_of_every_kind_with_pods_are_found(
    manifest: dict[str, Any], path: str, replicas: int | None
):
    (template,) = find_pod_templates(manifest)
    assert (template.path, template.replicas, str(template.owner)) == (
        path,
        replicas,
        f"{manifest['kind']} ml/x",
    )
    assert [(each.name, each.template_name, each.claim_name) for each in template.claims] == [
        ("gpu", "t", None),
        ("nic", None, "c"),
    ]


def test_kinds_without_pods_have_none():
    assert (
        list(find_pod_templates({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})) == []
    )


PARTS = st.recursive(
    st.sampled_from([UNKNOWN, None, 1, "text"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "labels", "name", "spec", "template", "containers", "resources", "claims"]
            ),
            inner,
            max_size=3,
        )
    ),
)


@given(
    st.sampled_from([("v1", "Pod"), ("apps/v1", "Deployment"), ("batch/v1", "CronJob")]),
    st.dictionaries(st.sampled_from(["metadata", "spec"]), PARTS),
)
def test_unknown_values_in_any_place_are_no_error(kind: tuple[str, str], parts: dict[str, Any]):
    for template in find_pod_templates({"apiVersion": kind[0], "kind": kind[1], **parts}):
        assert template.claims is not None
