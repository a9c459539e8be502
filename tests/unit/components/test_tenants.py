from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pulumi
import pytest

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.program.synth import synth_function
from tests.support.components.family import run

TRAINER = partial(dra.GpuClaimTemplate, device_class="h100", count=4)


def objects(body: Callable[[], Any]) -> dict[tuple[str, str], Any]:
    program = synth_function(body, config={"dra-infra:kubernetes": "1.37"})
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    return {
        (each.manifest["kind"], each.manifest["metadata"]["name"]): each.manifest for each in program.objects
    }


def problems(body: Callable[[], Any]) -> list[tuple[str, str]]:
    found = synth_function(body, config={"dra-infra:kubernetes": "1.37"}).problems
    return [(each.code, each.path) for each in found if each.severity == "error"]


def limits(body: Callable[[], Any], name: str = "vision") -> dict[str, str]:
    found: dict[str, str] = objects(body)["ResourceQuota", name]["spec"]["hard"]
    return found


def test_a_class_by_name_has_the_keys_of_claims_and_of_pods():
    assert limits(lambda: dra.GpuTenant("vision", quota={"h100": 8})) == {
        "h100.deviceclass.resource.k8s.io/devices": "8",
        "requests.deviceclass.resource.kubernetes.io/h100": "8",
    }


def test_the_extended_resource_of_a_class_is_limited_too():
    def body() -> None:
        h100 = dra.GpuDeviceClass("h100", extended_resource_name="example.com/h100")
        dra.GpuTenant("vision", quota={h100: 8})

    assert limits(body)["requests.example.com/h100"] == "8"


def test_classes_with_one_extended_resource_share_its_key():
    def body() -> None:
        classes = [dra.GpuDeviceClass(name, extended_resource_name="example.com/gpu") for name in ("a", "b")]
        dra.GpuTenant("vision", quota=dict(zip(classes, (8, 2), strict=True)))

    found = limits(body)
    assert found["requests.example.com/gpu"] == "10"
    assert found["a.deviceclass.resource.k8s.io/devices"] == "8"


def test_a_class_of_another_stack_may_be_an_output():
    def body() -> None:
        dra.GpuTenant("vision", quota={dra.class_ref(pulumi.Output.from_input("h100")): 8}, hard={"pods": 20})

    assert limits(body) == {
        "h100.deviceclass.resource.k8s.io/devices": "8",
        "requests.deviceclass.resource.kubernetes.io/h100": "8",
        "pods": "20",
    }


def test_a_class_of_a_name_that_no_pod_can_ask_for_has_no_key_for_pods():
    name = f"{'a' * 60}.{'b' * 60}"
    assert list(limits(lambda: dra.GpuTenant("vision", quota={name: 1}))) == [
        f"{name}.deviceclass.resource.k8s.io/devices"
    ]


def test_templates_are_made_in_the_namespace_of_each_tenant_under_the_names_that_people_write():
    def body() -> None:
        for team in ("vision", "speech"):
            dra.GpuTenant(
                team, templates={"trainer": TRAINER, "notebook": partial(dra.MigPartition, profile="1g.10gb")}
            )

    program = synth_function(body, config={"dra-infra:kubernetes": "1.37"})
    found = [each.manifest for each in program.objects if each.manifest["kind"] == "ResourceClaimTemplate"]
    assert sorted((each["metadata"]["namespace"], each["metadata"]["name"]) for each in found) == [
        ("speech", "notebook"),
        ("speech", "trainer"),
        ("vision", "notebook"),
        ("vision", "trainer"),
    ]


def test_a_changed_template_is_deleted_before_the_new_one_is_made():
    _, seen = run(lambda: dra.GpuTenant("vision", templates={"trainer": TRAINER}))
    (template,) = [each for each in seen.requests if each.type.endswith(":ResourceClaimTemplate")]
    assert template.deleteBeforeReplace
    assert template.replaceOnChanges == ["spec"]


def test_tolerations_are_given_to_what_has_none():
    toleration = dra.Toleration(key="gpu.nvidia.com/xid", effect="NoSchedule")
    own = dra.Toleration(key="example.com/own", effect="NoSchedule")
    ladder = [
        dra.Alternative("big", device_class="h100"),
        dra.Alternative("small", device_class="a100", tolerations=[own]),
    ]
    templates = {
        "plain": TRAINER,
        "own": partial(TRAINER, tolerations=[own]),
        "ladder": partial(dra.GpuClaimTemplate, first_available=ladder),
        "listed": partial(
            dra.GpuClaimTemplate,
            requests=[
                dra.DeviceRequest("a", device_class="h100"),
                dra.DeviceRequest("b", first_available=ladder),
            ],
        ),
        "mig": partial(dra.MigPartition, profile="1g.10gb"),
    }

    def body() -> None:
        dra.GpuTenant("vision", templates=templates, tolerations=[toleration])

    found = {
        name: [
            [each["key"] for each in leaf["tolerations"]]
            for request in manifest["spec"]["spec"]["devices"]["requests"]
            for leaf in request.get("firstAvailable") or [request["exactly"]]
        ]
        for (kind, name), manifest in objects(body).items()
        if kind == "ResourceClaimTemplate"
    }
    xid = ["gpu.nvidia.com/xid"]
    mine = ["example.com/own"]
    assert found == {
        "plain": [xid],
        "own": [mine],
        "ladder": [xid, mine],
        "listed": [xid, xid, mine],
        "mig": [xid],
    }


def test_admin_access_is_a_label_that_only_its_argument_sets():
    made = objects(lambda: dra.GpuTenant("vision", admin_access=True))
    label = "resource.kubernetes.io/admin-access"
    assert made["Namespace", "vision"]["metadata"]["labels"][label] == "true"
    assert label not in objects(lambda: dra.GpuTenant("vision"))["Namespace", "vision"]["metadata"]["labels"]
    for value in ("true", "false"):
        refused = problems(lambda value=value: dra.GpuTenant("vision", namespace_labels={label: value}))
        assert refused == [("field-not-allowed", 'GpuTenant("vision").namespace_labels')]


SECURITY = "pod-security.kubernetes.io/"


def security_labels(**arguments: Any) -> dict[str, str]:
    labels = objects(lambda: dra.GpuTenant("vision", **arguments))["Namespace", "vision"]["metadata"][
        "labels"
    ]
    return {key.removeprefix(SECURITY): text for key, text in labels.items() if key.startswith(SECURITY)}


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (None, ["baseline"] * 3),
        ("baseline", ["baseline"] * 3),
        ("restricted", ["restricted"] * 3),
        ("privileged", ["privileged"] * 3),
        (dra.PodSecurity(), ["baseline"] * 3),
        (dra.PodSecurity(enforce="privileged", warn="baseline"), ["privileged", "privileged", "baseline"]),
    ],
)
def test_the_namespace_of_a_tenant_enforces_audits_and_warns_of_a_level(given: Any, labels: list[str]):
    assert security_labels(pod_security=given) == dict(zip(("enforce", "audit", "warn"), labels, strict=True))


def test_versions_of_the_levels_are_labels_where_they_are_given():
    given = dra.PodSecurity(enforce_version="v1.36", warn="restricted", warn_version="latest")
    assert security_labels(pod_security=given) == {
        "enforce": "baseline",
        "enforce-version": "v1.36",
        "audit": "baseline",
        "warn": "restricted",
        "warn-version": "latest",
    }


def test_other_labels_of_the_namespace_stand_beside_those_of_pod_security():
    made = objects(lambda: dra.GpuTenant("vision", namespace_labels={"team": "vision"}))
    assert made["Namespace", "vision"]["metadata"]["labels"] == {
        "team": "vision",
        **{f"{SECURITY}{mode}": "baseline" for mode in ("enforce", "audit", "warn")},
    }


@pytest.mark.parametrize("key", ["enforce", "warn", "enforce-version"])
def test_labels_of_pod_security_have_an_argument_of_their_own(key: str):
    labels = {f"{SECURITY}{key}": "privileged"}
    assert problems(lambda: dra.GpuTenant("vision", namespace_labels=labels)) == [
        ("field-not-allowed", 'GpuTenant("vision").namespace_labels')
    ]


@pytest.mark.parametrize(
    ("given", "code", "path"),
    [
        ("basic", "unsupported-value", "pod_security"),
        (True, "wrong-type", "pod_security"),
        ({"enforce": "baseline"}, "wrong-type", "pod_security"),
        (dra.PodSecurity(enforce="Baseline"), "unsupported-value", "pod_security.enforce"),  # type: ignore[arg-type]
        (dra.PodSecurity(enforce=None), "wrong-type", "pod_security.enforce"),  # type: ignore[arg-type]
        (dra.PodSecurity(audit=7), "wrong-type", "pod_security.audit"),  # type: ignore[arg-type]
        (dra.PodSecurity(warn_version="1.37"), "unsupported-value", "pod_security.warn_version"),
        (dra.PodSecurity(audit_version="v1.037"), "unsupported-value", "pod_security.audit_version"),
        (dra.PodSecurity(enforce_version=1.37), "wrong-type", "pod_security.enforce_version"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_level_or_version_is_refused(given: Any, code: str, path: str):
    assert problems(lambda: dra.GpuTenant("vision", pod_security=given)) == [
        (code, f'GpuTenant("vision").{path}')
    ]


@pytest.mark.parametrize("arguments", [{"create_namespace": False}, {"namespace": "default"}])
def test_a_level_for_a_namespace_that_the_tenant_does_not_make_is_refused(arguments: dict[str, Any]):
    assert problems(lambda: dra.GpuTenant("vision", pod_security="baseline", **arguments)) == [
        ("field-not-allowed", 'GpuTenant("vision").pod_security')
    ]
    assert problems(lambda: dra.GpuTenant("vision", **arguments)) == []


def test_a_template_with_admin_access_in_a_tenant_without_it_is_told_the_argument_of_the_tenant():
    look = partial(dra.GpuClaimTemplate, device_class="gpu.nvidia.com", admin_access=True)
    config = {"dra-infra:kubernetes": "1.37"}
    (problem,) = check_program(
        synth_function(lambda: dra.GpuTenant("vision", templates={"look": look}), config=config)
    )
    assert (problem.code, problem.path) == (
        "admin-access-namespace",
        'GpuClaimTemplate("vision-look").spec.devices.requests[0].adminAccess',
    )
    assert problem.hint.startswith("write admin_access=True in the GpuTenant that makes the namespace")
    tenant = partial(dra.GpuTenant, "vision", templates={"look": look}, admin_access=True)
    assert not check_program(synth_function(tenant, config=config))


@pytest.mark.parametrize("arguments", [{"create_namespace": False}, {"namespace": "default"}])
def test_a_label_of_a_namespace_that_the_tenant_does_not_make_is_refused(arguments: dict[str, Any]):
    assert problems(lambda: dra.GpuTenant("vision", admin_access=True, **arguments)) == [
        ("field-not-allowed", 'GpuTenant("vision").admin_access')
    ]


def test_what_is_placed_by_the_namespace_of_the_tenant_is_made_after_its_quota():
    def body() -> None:
        tenant = dra.GpuTenant("vision", quota={"h100": 8})
        dra.GpuClaimTemplate("other", device_class="h100", namespace=tenant.namespace)

    _, seen = run(body)
    (other,) = [each for each in seen.requests if each.name == "other" and "kubernetes:" in each.type]
    assert {each.partition("kubernetes:")[2].partition("::")[0] for each in other.dependencies} == {
        "core/v1:Namespace",
        "core/v1:ResourceQuota",
    }


@pytest.mark.parametrize(
    ("template", "code", "path"),
    [
        (dra.GpuClaim, "field-not-allowed", "templates['t']"),
        (partial(dra.MigPartition, profile="1g.10gb", shared=True), "field-not-allowed", "templates['t']"),
        (partial(TRAINER, object_name="x"), "field-not-allowed", "templates['t'].object_name"),
        (partial(TRAINER, namespace="x"), "field-not-allowed", "templates['t'].namespace"),
        (dra.GpuDeviceClass, "wrong-type", "templates['t']"),
        ({"device_class": "h100"}, "wrong-type", "templates['t']"),
        (partial(dra.GpuClaimTemplate, "name"), "wrong-type", "templates['t']"),
    ],
)
def test_what_cannot_be_a_template_is_refused(template: Any, code: str, path: str):
    found = problems(lambda: dra.GpuTenant("vision", templates={"t": template}))
    assert found == [(code, f'GpuTenant("vision").{path}')]


def test_problems_of_a_template_are_those_of_its_component():
    bad = partial(dra.GpuClaimTemplate, device_class="h100", count=0)
    assert problems(lambda: dra.GpuTenant("vision", templates={"trainer": bad})) == [
        ("count-below-one", 'GpuClaimTemplate("vision-trainer").count')
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        ({"quota": {"h100": "8"}}, "wrong-type", "quota['h100']"),
        ({"quota": {"h100": True}}, "wrong-type", "quota['h100']"),
        ({"quota": {"h100": -1}}, "wrong-type", "quota['h100']"),
        ({"quota": {"H100": 1}}, "invalid-name", "quota['H100']"),
        ({"quota": {7: 1}}, "wrong-type", "quota[7]"),
        ({"quota": {"a" * 60 + ("." + "b" * 60) * 3: 1}}, "invalid-name", None),
        ({"quota": ["h100"]}, "wrong-type", "quota"),
        ({"hard": {"cpu": "many"}}, "wrong-type", "hard['cpu']"),
        ({"hard": {"cpu": "-1"}}, "wrong-type", "hard['cpu']"),
        ({"hard": {"pods": "1500m"}}, "wrong-type", "hard['pods']"),
        ({"hard": {"count/jobs.batch": "1500m"}}, "wrong-type", "hard['count/jobs.batch']"),
        ({"hard": {"gpus": 4}}, "invalid-name", "hard['gpus']"),
        ({"hard": 7}, "wrong-type", "hard"),
        ({"tolerations": dra.Toleration()}, "wrong-type", "tolerations"),
        ({"tolerations": ["xid"]}, "wrong-type", "tolerations[0]"),
        ({"admin_access": "yes"}, "wrong-type", "admin_access"),
        ({"templates": ["trainer"]}, "wrong-type", "templates"),
        ({"templates": {"My trainer": TRAINER}}, "invalid-name", "templates['My trainer']"),
        ({"namespace": "Vision"}, "invalid-name", "namespace"),
    ],
)
def test_wrong_arguments_are_problems_at_their_place(arguments: dict[str, Any], code: str, path: str | None):
    ((found, where),) = problems(lambda: dra.GpuTenant("vision", **arguments))
    assert found == code
    assert path is None or where == f'GpuTenant("vision").{path}'


def test_a_class_that_stands_twice_is_told():
    def body() -> None:
        h100 = dra.GpuDeviceClass("h100")
        dra.GpuTenant("vision", quota={h100: 8, "h100": 4})

    assert problems(body) == [("value-set-twice", "GpuTenant(\"vision\").quota['h100']")]
