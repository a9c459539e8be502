from __future__ import annotations

from typing import Any

from dra_infra.advice.policies import PolicySet, ask_policies, check_policies
from dra_infra.target import ClusterTarget

Manifest = dict[str, Any]
GROUP = "admissionregistration.k8s.io/v1"
TARGET = ClusterTarget(kubernetes="1.37")


def policy(expression: str, *, name: str = "p", resources: str = "*", **spec: Any) -> Manifest:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resources]}
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": "no"}],
            **spec,
        },
    }


def binding(*actions: str, name: str = "p") -> Manifest:
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": name, "validationActions": list(actions or ("Deny",))},
    }


def pod_spec(resource: str) -> Manifest:
    return {"containers": [{"name": "a", "image": "i", "resources": {"limits": {resource: 1}}}]}


JOB: Manifest = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "vision"},
    "spec": {"template": {"spec": pod_spec("nvidia.com/gpu")}},
}
CLAIM: Manifest = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "vision"},
    "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "h100"}}]}},
}
NO_GPUS = "object.spec.containers.all(c, !c.resources.?limits.orValue({}).exists(name, name.startsWith('nvidia.com/')))"


def asked(
    objects: list[Manifest], *policies: Manifest, target: ClusterTarget = TARGET
) -> list[tuple[str, str, str]]:
    found = PolicySet.gather([*policies, *objects])
    return [
        (each.code, each.path, each.message.rpartition("denied request: ")[2])
        for _, each in ask_policies(objects, found, target)
    ]


def test_the_pods_of_a_workload_are_asked_about_at_its_template():
    found = asked([JOB], policy(NO_GPUS, resources="pods"), binding())
    assert found == [("policy-denies", "spec.template.spec", "no")]


def test_a_controller_is_not_who_creates_the_workload():
    spoken = policy("request.userInfo.username == 'alice'", resources="pods")
    assert [code for code, _, _ in asked([JOB], spoken, binding())] == ["policy-not-decided"]


def test_controllers_label_the_pods_that_they_make():
    assert asked([JOB], policy("has(object.metadata.labels)", resources="pods"), binding()) == []


def test_what_the_server_refuses_itself_is_asked_about_by_no_policy():
    broken = {**CLAIM, "spec": {"devices": {"requests": [{"name": "a", "exactly": {"count": -1}}]}}}
    assert asked([broken], policy("false"), binding()) == []


def test_no_policy_is_asked_about_policies():
    always = policy("false")
    assert asked([always, binding()], always, binding()) == []


def test_a_warning_is_no_error():
    ((_, problem),) = ask_policies(
        [CLAIM], PolicySet.gather([policy("false"), binding("Warn", "Audit")]), TARGET
    )
    assert (problem.code, problem.severity) == ("policy-warns", "warning")


def test_an_audit_alone_lets_pass():
    assert asked([CLAIM], policy("false"), binding("Audit")) == []


def test_what_differs_by_minor_says_where_it_holds():
    both = ClusterTarget()
    tolerated = {
        "deviceClassName": "h100",
        "derivedAttributes": [{"name": "a.example.com/b", "expression": "true"}],
    }
    claim = {**CLAIM, "spec": {"devices": {"requests": [{"name": "a", "exactly": tolerated}]}}}
    ((_, problem),) = ask_policies([claim], PolicySet.gather([policy("false"), binding()]), both)
    assert problem.message.startswith("on Kubernetes 1.37: ")


def test_the_later_of_two_policies_with_one_name_counts():
    assert asked([CLAIM], policy("false"), policy("true"), binding()) == []


def test_a_policy_that_does_not_compile_is_told_and_holds_nobody():
    found = PolicySet.gather([policy("object.spec"), binding()])
    ((manifest, problem),) = check_policies(found, TARGET)
    assert manifest["kind"] == "ValidatingAdmissionPolicy"
    assert (problem.code, problem.path) == ("policy-invalid", "spec.validations[0].expression")
    assert list(ask_policies([CLAIM], found, TARGET)) == []


def test_a_policy_without_a_binding_is_told():
    ((_, problem),) = check_policies(PolicySet.gather([policy("true"), binding(name="q")]), TARGET)
    assert (problem.code, problem.path) == ("policy-not-bound", "metadata.name")


def test_a_binding_that_the_server_cannot_read_is_told():
    broken = {**binding(), "spec": {"policyName": "p", "validationActions": 7}}
    ((manifest, problem),) = check_policies(PolicySet.gather([policy("true"), broken]), TARGET)
    assert manifest is broken
    assert (problem.code, problem.path) == ("policy-invalid", "spec.validationActions")


def test_namespaces_and_params_are_found_among_all_objects():
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "vision", "labels": {"tier": "gold"}},
    }
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "s", "namespace": "vision"},
        "data": {"tier": "gold"},
    }
    spoken = policy(
        "namespaceObject.metadata.labels['tier'] != params.data.tier",
        resources="resourceclaims",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    bound = binding()
    bound["spec"]["paramRef"] = {"name": "s", "parameterNotFoundAction": "Deny"}
    assert asked([CLAIM], spoken, bound, space, settings) == [("policy-denies", "spec", "no")]
    assert [code for code, _, _ in asked([CLAIM], spoken, bound, space)] == ["policy-not-decided"]
