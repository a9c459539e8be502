from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from dra_infra.advice.program import check_program
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import UNKNOWN, DeviceClass
from dra_infra.program_objects import Program, ProgramObject

CLASS: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "h100"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}]},
}
TEMPLATE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "trainer", "namespace": "ml"},
    "spec": {
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "h100", "count": 1}}]}
        }
    },
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train", "namespace": "ml"},
    "spec": {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "trainer"}],
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
    },
}


def check(*manifests: Mapping[str, Any], **arguments: Any) -> dict[str, str]:
    objects = tuple(ProgramObject(urn=f"urn:{index}", manifest=each) for index, each in enumerate(manifests))
    program = Program(project="p", stack="s", objects=objects)
    return {problem.path: problem.code for problem in check_program(program, **arguments)}


def program_problems(*manifests: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Of a program that makes CLASS and *manifests*."""
    objects = tuple(
        ProgramObject(urn=f"urn:{index}", manifest=each) for index, each in enumerate((CLASS, *manifests))
    )
    return check_program(Program(project="p", stack="s", objects=objects))


def changed(manifest: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy of *manifest* with the value at *path*, such as `spec.requests.0.name`, replaced; None removes it."""
    result = copy.deepcopy(dict(manifest))
    holder: Any = result
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in steps:
        holder = holder[step]
    if value is None:
        del holder[last]
    else:
        holder[last] = value
    return result


def test_what_belongs_together_has_no_problems():
    assert check(CLASS, TEMPLATE, POD) == {}


REQUEST = "spec.spec.devices.requests.0"
AT = "ResourceClaimTemplate ml/trainer.spec.spec.devices.requests[0]"


@pytest.mark.parametrize(
    ("path", "value", "at", "code"),
    [
        (f"{REQUEST}.name", "GPU", f"{AT}.name", "invalid-name"),
        (f"{REQUEST}.exactly", None, AT, "one-of"),
        (f"{REQUEST}.exactly.count", -1, f"{AT}.exactly.count", "count-below-one"),
        (f"{REQUEST}.exactly.count", "2x", f"{AT}.exactly.count", "wrong-type"),
        (f"{REQUEST}.exactly.cuont", 2, f"{AT}.exactly.cuont", "unknown-field"),
        (
            f"{REQUEST}.exactly.count",
            33,
            "ResourceClaimTemplate ml/trainer.spec.spec.devices.requests",
            "too-many-devices",
        ),
        (f"{REQUEST}.exactly.deviceClassName", None, f"{AT}.exactly.deviceClassName", "missing-field"),
        (f"{REQUEST}.exactly.deviceClassName", "a100", f"{AT}.exactly.deviceClassName", "class-not-known"),
        (f"{REQUEST}.exactly.deviceClassName", "A_100", f"{AT}.exactly.deviceClassName", "invalid-name"),
        (f"{REQUEST}.exactly.allocationMode", "All", f"{AT}.exactly.count", "count-with-all"),
        (f"{REQUEST}.exactly.allocationMode", "Some", f"{AT}.exactly.allocationMode", "unsupported-value"),
        (f"{REQUEST}.exactly.selectors", [{}], f"{AT}.exactly.selectors[0].cel", "missing-field"),
        (
            f"{REQUEST}.exactly.selectors",
            [{"cel": {"expression": "device.driver =="}}],
            f"{AT}.exactly.selectors[0].cel.expression",
            "cel-syntax",
        ),
        ("metadata.name", "Trainer", "ResourceClaimTemplate ml/Trainer.metadata.name", "invalid-name"),
        (
            "spec.spec.devices.constraints",
            [{"matchAttribute": "productName"}],
            "ResourceClaimTemplate ml/trainer.spec.spec.devices.constraints[0].matchAttribute",
            "invalid-attribute-name",
        ),
        (
            "spec.spec.devices.constraints",
            [{"requests": ["nic"], "matchAttribute": "a.b/c"}],
            "ResourceClaimTemplate ml/trainer.spec.spec.devices.constraints[0].requests[0]",
            "unknown-request",
        ),
    ],
)
def test_one_fault_in_a_template_is_one_problem(path: str, value: object, at: str, code: str):
    assert check(CLASS, changed(TEMPLATE, path, value)) == {at: code}


def test_a_count_of_zero_passes_for_the_server_defaults_it():
    assert check(CLASS, changed(TEMPLATE, f"{REQUEST}.exactly.count", 0)) == {}


def test_two_requests_of_one_name_are_a_problem():
    template = copy.deepcopy(TEMPLATE)
    requests = template["spec"]["spec"]["devices"]["requests"]
    requests.append(copy.deepcopy(requests[0]))
    assert check(CLASS, template) == {
        "ResourceClaimTemplate ml/trainer.spec.spec.devices.requests[1]": "duplicate-request"
    }


def test_a_list_over_its_limit_is_one_problem():
    template = copy.deepcopy(TEMPLATE)
    requests = template["spec"]["spec"]["devices"]["requests"]
    requests.extend({**requests[0], "name": "-bad-"} for _ in range(33))
    assert check(CLASS, template) == {
        "ResourceClaimTemplate ml/trainer.spec.spec.devices.requests": "too-many-items"
    }


def test_classes_of_the_fleet_are_known():
    assert check(TEMPLATE, classes=[DeviceClass.from_manifest(CLASS)]) == {}


def test_what_holds_on_one_minor_only_says_so():
    tolerations = [{"key": "a", "effect": "None"}]
    problems = program_problems(changed(TEMPLATE, f"{REQUEST}.exactly.tolerations", tolerations))
    (refused,) = [problem for problem in problems if problem.severity == "error"]
    assert refused.code == "unsupported-value"
    assert refused.message.startswith("on Kubernetes 1.34: ")


def test_a_field_that_an_old_server_keeps_for_nothing_is_a_warning():
    tolerations = [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]
    (problem,) = program_problems(changed(TEMPLATE, f"{REQUEST}.exactly.tolerations", tolerations))
    assert (problem.path, problem.code, problem.severity) == (
        f"{AT}.exactly.tolerations",
        "field-ignored",
        "warning",
    )


def test_a_field_that_the_old_minor_ignores_is_a_warning():
    template = changed(TEMPLATE, f"{REQUEST}.exactly.capacity", {"requests": {"memory": "40Gi"}})
    (problem,) = program_problems(template)
    assert (problem.path, problem.code, problem.severity) == (
        f"{AT}.exactly.capacity",
        "field-dropped",
        "warning",
    )


def test_of_what_a_chart_makes_only_what_the_server_refuses_is_told():
    advised = changed(CLASS, "spec.extendedResourceName", "example.com/gpu")
    wrong = changed(advised, "spec.selectors", [{"cel": {"expression": "device.driver =="}}])

    def codes(manifest: Mapping[str, Any], chart: str) -> set[str]:
        made = ProgramObject(urn="urn:0", manifest=manifest, chart=chart)
        program = Program(project="p", stack="s", kubernetes="1.34", objects=(made,))
        return {problem.code for problem in check_program(program)}

    assert codes(advised, "") == {"field-dropped"}
    assert codes(advised, "dra-driver-nvidia-gpu") == set()
    assert codes(wrong, "dra-driver-nvidia-gpu") == codes(wrong, "") - {"field-dropped"} != set()


def test_a_marker_of_an_unknown_value_breaks_no_rule():
    template = changed(TEMPLATE, f"{REQUEST}.exactly.count", UNKNOWN)
    template = changed(template, f"{REQUEST}.exactly.deviceClassName", UNKNOWN)
    assert check(CLASS, changed(template, "metadata.name", UNKNOWN)) == {}


@pytest.mark.parametrize(
    ("path", "value", "at", "code"),
    [
        (
            "spec.resourceClaims.0.resourceClaimTemplateName",
            "trainr",
            "spec.resourceClaims[0].resourceClaimTemplateName",
            "claim-not-known",
        ),
        ("spec.resourceClaims.0.resourceClaimTemplateName", None, "spec.resourceClaims[0]", "one-of"),
        ("spec.resourceClaims.0.resourceClaimName", "x", "spec.resourceClaims[0]", "one-of"),
        (
            "spec.containers.0.resources.claims",
            [{"name": "gpu"}, {"name": "nic"}],
            "spec.containers[0].resources.claims[1]",
            "claim-not-in-pod",
        ),
        (
            "spec.containers.0.resources.claims",
            [{"name": "gpu"}, {"name": "gpu", "request": "gpu"}],
            "spec.containers[0].resources.claims[1]",
            "claim-attached-twice",
        ),
    ],
)
def test_one_fault_in_a_pod_is_one_problem(path: str, value: object, at: str, code: str):
    assert check(CLASS, TEMPLATE, changed(POD, path, value)) == {f"Pod ml/train.{at}": code}


def test_a_claim_of_another_namespace_is_named_with_it():
    objects = (
        ProgramObject(urn="a", manifest=TEMPLATE),
        ProgramObject(urn="b", manifest=changed(POD, "metadata.namespace", "vision")),
    )
    problems = check_program(
        Program(project="p", stack="s", objects=objects), classes=[DeviceClass.from_manifest(CLASS)]
    )
    (problem,) = problems
    assert problem.code == "claim-not-known"
    assert "'ml'" in problem.hint


def test_objects_of_other_groups_pass():
    assert check({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Any_thing"}}) == {}


AUTONAMED = {"pulumi.com/autonamed": "true"}


def test_names_that_pulumi_makes_up_break_no_rule_and_are_told_as_they_are_shown():
    class_ = changed(CLASS, "metadata", {"name": "h100-*", "annotations": AUTONAMED})
    template = changed(TEMPLATE, f"{REQUEST}.exactly.deviceClassName", "h100-*")
    metadata = {**template["metadata"], "name": "trainer-*", "annotations": AUTONAMED}
    template = changed(template, "metadata", metadata)
    assert check(class_, template) == {}
    wrong = changed(template, "metadata", {**metadata, "name": "Trainer-*"})
    ((path, codes),) = check(class_, wrong).items()
    assert path.endswith("metadata.name")
    assert "Trainer-*" in path
    assert codes == "invalid-name"


def test_a_star_that_pulumi_does_not_explain_is_refused():
    assert list(check(CLASS, changed(TEMPLATE, "metadata.name", "trainer-*")).values()) == ["invalid-name"]
