from __future__ import annotations

from typing import Any

import pytest

from dra_infra.advice.policies import PolicySet, ask_policies, check_policies
from dra_infra.kubernetes.apiserver.policies import User
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
    found = PolicySet.gather([spoken, binding()])
    ((_, problem),) = ask_policies([JOB], found, TARGET, user=User(name="alice"))
    assert problem.code == "policy-not-decided"
    assert "which controller asks is not known here" in problem.message
    assert "--as the controller" in problem.hint


def test_controllers_label_the_pods_that_they_make():
    assert asked([JOB], policy("has(object.metadata.labels)", resources="pods"), binding()) == []


# --- Claims of templates -----------------------------------------------------------------------------------------

TEMPLATE: Manifest = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t", "namespace": "vision", "labels": {"of": "template"}},
    "spec": {
        "metadata": {"labels": {"of": "claim"}, "annotations": {"a": "b"}},
        "spec": {"devices": {"requests": [{"name": "a", "deviceClassName": "h100", "count": 8}]}},
    },
}


def test_the_claims_that_are_made_of_a_template_are_asked_about_at_it():
    few = policy("object.spec.devices.requests.all(r, r.exactly.count < 5)", resources="resourceclaims")
    ((_, problem),) = ask_policies([TEMPLATE], PolicySet.gather([few, binding()]), TARGET)
    assert (problem.code, problem.path) == ("policy-denies", "spec.spec")
    assert problem.message.startswith("of the claims that are made of it: ValidatingAdmissionPolicy 'p'")


@pytest.mark.parametrize(
    "expression",
    [
        "object.kind == 'ResourceClaim' && object.metadata.namespace == 'vision' && !has(request.name)",
        "object.metadata.labels == {'of': 'claim'}",
        "object.metadata.annotations['a'] == 'b' && !('c' in object.metadata.annotations)",
        "request.userInfo.username == 'system:serviceaccount:kube-system:resource-claim-controller'",
        "request.userInfo.groups == ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated']",
    ],
)
def test_a_claim_is_made_by_its_controller_with_what_the_template_gives_it(expression: str):
    assert asked([TEMPLATE], policy(expression, resources="resourceclaims"), binding()) == []
    refused = policy(f"!({expression})", resources="resourceclaims")
    assert asked([TEMPLATE], refused, binding()) == [("policy-denies", "spec.spec", "no")]


@pytest.mark.parametrize(
    "expression",
    [
        "object.metadata.name == 'x'",
        "object.metadata.generateName == 'x'",
        "object.metadata.annotations['resource.kubernetes.io/pod-claim-name'] == 'x'",
    ],
)
def test_what_the_pod_gives_a_claim_is_not_known(expression: str):
    found = asked([TEMPLATE], policy(expression, resources="resourceclaims"), binding())
    assert [(code, path) for code, path, _ in found] == [("policy-not-decided", "spec.spec")]


def test_what_is_said_of_a_template_and_its_claims_is_said_once():
    other = policy("false", name="q", resources="resourceclaims")
    bound = [binding(), {**binding(name="q"), "metadata": {"name": "c"}}]
    assert asked([TEMPLATE], policy("false"), other, *bound) == [("policy-denies", "spec", "no")]
    found = asked([TEMPLATE], policy("object.metadata.uid == 'x'"), binding())
    assert [(code, path) for code, path, _ in found] == [("policy-not-decided", "spec")]
    found = asked([TEMPLATE], policy("false"), binding("Warn"))
    assert [(code, path) for code, path, _ in found] == [("policy-warns", "spec")]


def test_of_a_template_that_is_there_the_claims_are_asked_about():
    found = PolicySet.gather([policy("false"), binding()])
    ((_, problem),) = ask_policies([TEMPLATE], found, TARGET, kept={0})
    assert (problem.code, problem.path) == ("policy-denies", "spec.spec")


# --- LimitRanges -------------------------------------------------------------------------------------------------

SPACE: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision"}}
POD: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "vision"},
    "spec": {"containers": [{"name": "plain", "image": "i"}]},
}
HAS_MEMORY = "object.spec.containers.all(c, has(c.resources.limits) && 'memory' in c.resources.limits)"


def limit_range(namespace: str = "vision") -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "default": {"memory": "1Gi"}}]},
    }


def job_of(pod: Manifest) -> Manifest:
    return {**JOB, "spec": {"template": {"spec": pod["spec"]}}}


@pytest.mark.parametrize("made", [POD, job_of(POD)], ids=["pod", "job"])
def test_limit_ranges_of_the_input_fill_in_pods_before_policies_are_asked(made: Manifest):
    wants = [policy(HAS_MEMORY, resources="pods"), binding(), SPACE]
    assert asked([made], *wants, limit_range()) == []
    ((code, _, text),) = asked([made], *wants, limit_range("speech"))
    assert (code, text) == ("policy-denies", "no")
    held = policy("object.spec.containers.all(c, c.resources.requests.memory == '2Gi')", resources="pods")
    ((code, _, text),) = asked([made], held, binding(), SPACE, limit_range())
    assert (code, text) == ("policy-denies", "no")


def test_a_limit_range_leaves_an_annotation_whose_text_is_not_known():
    unmarked = policy("!has(object.metadata.annotations)", resources="pods")
    assert asked([POD], unmarked, binding(), SPACE) == []
    assert codes_with_limits(POD, unmarked) == ["policy-denies"]
    told = policy("object.metadata.annotations['kubernetes.io/limit-ranger'] == ''", resources="pods")
    assert codes_with_limits(POD, told) == ["policy-not-decided"]
    marked = {**POD, "metadata": {**POD["metadata"], "annotations": {"team": "a"}}}
    own = policy("object.metadata.annotations['team'] == 'a'", resources="pods")
    assert codes_with_limits(marked, own) == []


def codes_with_limits(pod: Manifest, asks: Manifest) -> list[str]:
    return [code for code, _, _ in asked([pod], asks, binding(), SPACE, limit_range())]


def test_a_binding_of_a_wrong_shape_holds_nobody_to_anything():
    rules = [
        {
            "resourceNames": "x",
            "apiGroups": ["*"],
            "apiVersions": ["*"],
            "operations": ["*"],
            "resources": ["*"],
        }
    ]
    broken = binding()
    broken = {**broken, "spec": {**broken["spec"], "matchResources": {"resourceRules": rules}}}
    assert asked([POD], policy("false", resources="pods"), broken) == []


@pytest.mark.parametrize("limits", [{}, {"cpu": 1}], ids=["none", "others"])
@pytest.mark.parametrize("namespace", ["vision", None])
def test_what_a_limit_range_elsewhere_may_fill_in_is_no_refusal(namespace: str | None, limits: Manifest):
    container = {**POD["spec"]["containers"][0], "resources": {"limits": limits}}
    metadata = {"name": "p"} | ({"namespace": namespace} if namespace else {})
    pod = {**POD, "metadata": metadata, "spec": {"containers": [container]}}
    for made in (pod, {**job_of(pod), "metadata": metadata}):
        found = PolicySet.gather([policy(HAS_MEMORY, resources="pods"), binding()])
        ((_, problem),) = ask_policies([made], found, TARGET)
        assert problem.code == "policy-not-decided"
        assert "give the Namespace and its LimitRanges" in problem.hint


def test_a_pod_is_refused_for_what_it_asks_for_whatever_is_filled_in():
    gpus = policy(NO_GPUS, resources="pods")
    containers = [*POD["spec"]["containers"], *pod_spec("nvidia.com/gpu")["containers"]]
    pod = {**POD, "spec": {"containers": containers}}
    assert asked([pod], gpus, binding()) == [("policy-denies", "spec", "no")]
    assert asked([POD], gpus, binding()) == []


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


@pytest.mark.parametrize(
    ("operations", "is_told"),
    [
        ("UPDATE", True),
        ("UPDATE DELETE", True),
        ("CREATE UPDATE", False),
        ("*", False),
        ("DELETE", False),
    ],
)
def test_a_policy_for_changes_alone_is_told_as_not_asked(operations: str, is_told: bool):
    written = policy("false")
    written["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = operations.split()
    found = PolicySet.gather([written, binding()])
    told = [(each.code, each.path, each.severity) for _, each in check_policies(found, TARGET)]
    path = "spec.matchConstraints.resourceRules"
    assert told == ([("policy-not-decided", path, "warning")] if is_told else [])
    assert bool([*ask_policies([CLAIM], found, TARGET)]) is not {"CREATE", "*"}.isdisjoint(operations.split())


@pytest.mark.parametrize(
    ("created", "told"),
    [
        (("", "configmaps"), "UPDATE of resourceclaims and"),
        (("apps", "*"), "UPDATE of resourceclaims and"),
        (("resource.k8s.io", "*"), ""),
        (("*", "*/*"), ""),
        (("*", "resourceclaims"), ""),
    ],
)
def test_a_rule_for_what_is_created_counts_for_what_it_is_about(created: tuple[str, str], told: str):
    written = policy("false")
    (rule,) = written["spec"]["matchConstraints"]["resourceRules"]
    rules = [
        {
            **rule,
            "operations": ["UPDATE"],
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims", "pods/status"],
        },
        {**rule, "operations": ["CREATE"], "apiGroups": [created[0]], "resources": [created[1]]},
    ]
    written["spec"]["matchConstraints"]["resourceRules"] = rules
    found = [each for _, each in check_policies(PolicySet.gather([written, binding()]), TARGET)]
    assert [told in each.message for each in found] == ([True] if told else [])


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
