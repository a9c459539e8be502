from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import BUILT_IN_KINDS, Number, PodPart, WorkloadKind, read_steps
from dra_infra.program_objects import UNKNOWN

find_pod_templates = BUILT_IN_KINDS.find_pod_templates

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
            holder("batch/v1", "Job", "spec", "template", parallelism=3, completions=2),
            "spec.template.spec",
            2,
        ),
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


def a_kind(*parts: PodPart, **more: Any) -> WorkloadKind:
    return WorkloadKind(group="example.com", kind="Run", parts=parts, **more)


def a_run(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Run",
        "metadata": {"name": "x", "namespace": "ml"},
        "spec": spec,
    }


def number(path: str, **more: Any) -> Number:
    return Number(at=read_steps(path), **more)


WORKERS = PodPart(
    path=read_steps("spec.groups.*.template"),
    name=read_steps("spec.groups.*.name"),
    numbers=(number("spec.groups.*.replicas"), number("spec.size", less=1)),
    labels=(("run", read_steps("metadata.name")), ("group", read_steps("spec.groups.*.name"))),
)


def test_each_item_of_a_list_of_templates_is_a_part_with_its_own_number_of_pods():
    groups = [
        {"name": "a", "replicas": 2, "template": {"spec": POD}},
        {"name": "b", "template": {"metadata": {"labels": {"app": "y"}}, "spec": POD}},
        {"name": "c"},
    ]
    found = list(a_kind(WORKERS).find_pod_templates(a_run(groups=groups, size=4)))
    assert [(str(each.owner), each.path, each.replicas) for each in found] == [
        ("Run ml/x/a", "spec.groups[0].template.spec", 6),
        ("Run ml/x/b", "spec.groups[1].template.spec", 3),
    ]
    assert found[1].labels == {"app": "y", "run": "x", "group": "b"}
    assert str(found[0].owner.whole) == "Run ml/x"


def test_each_value_of_a_map_of_templates_is_called_by_its_key():
    part = PodPart(path=read_steps("spec.roles.*.template"), name=("*",))
    roles = {"Worker": {"template": {"spec": POD}}, "Launcher": {"template": {"spec": POD}}}
    found = a_kind(part).find_pod_templates(a_run(roles=roles))
    assert [str(each.owner) for each in found] == ["Run ml/x/Launcher", "Run ml/x/Worker"]


def test_a_template_that_is_not_there_is_taken_from_the_other_place():
    part = PodPart(path=read_steps("spec.leader"), otherwise=read_steps("spec.worker"), name=("leader",))
    other = {"spec": {**POD, "nodeName": "other"}}
    for spec, path in (
        ({"worker": other}, "spec.worker.spec"),
        ({"leader": {"spec": POD}, "worker": other}, "spec.leader.spec"),
    ):
        (found,) = a_kind(part).find_pod_templates(a_run(**spec))
        assert found.path == path


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        ({}, 0),
        ({"replicas": 3}, 3),
        ({"replicas": 1, "min": 2}, 2),
        ({"replicas": 9, "min": 2, "max": 4}, 4),
        ({"min": 2}, 2),
        ({"replicas": "many"}, 0),
        ({"replicas": True}, 0),
        ({"replicas": -3}, 0),
    ],
)
def test_a_number_stays_within_its_bounds(spec: dict[str, Any], replicas: int):
    bounded = number(
        "spec.replicas", default=0, at_least=read_steps("spec.min"), at_most=read_steps("spec.max")
    )
    part = PodPart(path=read_steps("spec.template"), numbers=(bounded,))
    (found,) = a_kind(part).find_pod_templates(a_run(template={"spec": POD}, **spec))
    assert found.replicas == replicas


def test_an_autoscalers_most_pods_are_told_where_there_is_an_autoscaler():
    part = PodPart(
        path=read_steps("spec.template"),
        most=(number("spec.max"),),
        autoscaled_by=read_steps("spec.autoscaler"),
    )
    for spec, most in (({"max": 4}, None), ({"max": 4, "autoscaler": {}}, None), ({"autoscaler": True}, 1)):
        (found,) = a_kind(part).find_pod_templates(a_run(template={"spec": POD}, **spec))
        assert found.most == most


def test_a_number_that_is_not_known_yet_is_named():
    groups = [{"name": "a", "replicas": UNKNOWN, "template": {"spec": POD}}]
    (found,) = a_kind(WORKERS).find_pod_templates(a_run(groups=groups, size=3))
    assert found.uncounted == ("spec.groups[0].replicas",)


def test_what_else_a_controller_does_is_named_where_its_field_is_set():
    kind = a_kind(
        PodPart(path=read_steps("spec.template")),
        unmodelled=(
            (read_steps("spec.suspend"), "sleeps"),
            (read_steps("spec.groups.*.after"), "waits"),
            (("metadata", "annotations", "example.com/alone"), "is alone"),
        ),
    )
    run = a_run(template={"spec": POD}, suspend=True, groups=[{}, {"after": "a"}])
    run["metadata"]["annotations"] = {"example.com/alone": "rack"}
    (found,) = kind.find_pod_templates(run)
    assert found.unmodelled == (
        ("spec.suspend", "sleeps"),
        ("spec.groups[1].after", "waits"),
        ("metadata.annotations.example.com/alone", "is alone"),
    )
    (found,) = kind.find_pod_templates(a_run(template={"spec": POD}, suspend=False, groups=[{}]))
    assert found.unmodelled == ()


@given(st.dictionaries(st.sampled_from(["groups", "size", "name", "template"]), PARTS))
def test_any_value_in_an_object_of_another_kind_is_no_error(spec: dict[str, Any]):
    for found in a_kind(WORKERS).find_pod_templates(a_run(**spec)):
        assert found.replicas is not None
        assert found.replicas >= 0
