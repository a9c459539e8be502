"""What policies say of requests that need no server to know; the real servers are asked the same in the e2e tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.kubernetes.apiserver.policies.decisions import Policy
from dra_infra.kubernetes.apiserver.policies.requests import NOBODY_ASKS, User, read_pod_request, read_request
from dra_infra.target import ClusterTarget

(RELEASE,) = ClusterTarget(kubernetes="1.37").releases
BINDING = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "vision"},
    "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "h100"}}]}},
}


def rule(*resources: str, group: str = "*", **more: Any) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": list(resources),
        **more,
    }


def decisions(
    expression: str,
    manifest: Mapping[str, Any] = CLAIM,
    *,
    binding: Mapping[str, Any] = BINDING,
    user: User | None = None,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    **spec: Any,
) -> list[tuple[str, str]]:
    written = {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule("*")]},
            "validations": [{"expression": expression, "message": "no"}],
            **spec,
        },
    }
    request = read_request(
        manifest, RELEASE, namespaces=namespaces or {}, serves=frozenset({"v1"}), user=user
    )
    assert request is not None
    policy = Policy(written, RELEASE)
    assert policy.refusals == []
    found = policy.decide(binding, request, lambda *_: None)
    return [(each.action, each.message.rpartition("denied request: ")[2]) for each in found]


def undecided(*arguments: Any, **more: Any) -> str:
    ((action, reason),) = decisions(*arguments, **more)
    assert action == "undecided"
    return reason


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("object.metadata.uid == 'x'", "object.metadata.uid"),
        ("has(object.metadata.managedFields)", "object.metadata.managedFields"),
        ("object.metadata.size() > 1", "object.metadata.*"),
        ("object.metadata.exists(key, key == 'name')", "object.metadata.*"),
        ("object == {'a': 1}", "object.*"),
        ("{'a': 1} == object", "object.*"),
        ("has(object.status)", "object.status"),
        ("request.userInfo.username == 'alice'", NOBODY_ASKS),
        ("request.options == null", "request.options"),
        ("namespaceObject.metadata.labels['a'] == 'b'", "namespace vision has the label a"),
        ("namespaceObject.status.phase == 'Active'", "status"),
        ("authorizer.path('/').check('get').allowed()", "authorizer"),
    ],
)
def test_what_the_server_alone_knows_is_not_decided(expression: str, reason: str):
    assert reason in undecided(expression)


def test_what_is_not_known_does_not_count_where_something_else_settles_it():
    assert decisions("object.metadata.name == 'c' || object.metadata.uid == 'x'") == []
    assert decisions("object.metadata.name == 'x' && object.metadata.uid == 'x'") == [("deny", "no")]


def test_a_part_that_is_known_in_part_is_read_by_a_macro_as_by_a_name():
    expression = "object.?metadata.optMap(m, m.name == 'x').orValue(true)"
    assert decisions(expression) == [("deny", "no")]
    assert "object.metadata.uid" in undecided(expression.replace("m.name", "m.uid"))


def test_labels_that_a_workload_does_not_have_are_not_there():
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "vision"},
    }
    assert decisions("has(object.metadata.labels)", workload) == [("deny", "no")]
    labelled = {**workload, "metadata": {**workload["metadata"], "labels": {"a": "b"}}}
    assert decisions("has(object.metadata.labels)", labelled) == []
    assert decisions("has(object.metadata.labels)") == [("deny", "no")]


def test_null_is_told_from_an_object_that_is_known_in_part():
    assert decisions("object != null && oldObject == null") == []


def test_a_user_is_known_by_name_and_groups_and_no_more():
    alice = User(name="alice", groups=["platform"])
    expression = "request.userInfo.username == 'alice' && request.userInfo.groups == ['platform', 'system:authenticated']"
    assert decisions(expression, user=alice) == []
    assert "request.userInfo.extra" in undecided("!has(request.userInfo.extra)", user=alice)


def test_a_namespace_that_is_not_written_is_not_taken_for_another():
    nowhere = {**CLAIM, "metadata": {"name": "c"}}
    assert "no namespace is written" in undecided("request.namespace == 'default'", nowhere)
    assert decisions("object.metadata.name == 'x'", nowhere) == [("deny", "no")]


def test_values_that_only_exist_after_up_decide_nothing():
    unknown = {**CLAIM, "metadata": {"name": UNKNOWN, "namespace": "vision"}}
    assert undecided("object.metadata.name == 'x'", unknown)
    assert undecided("object.spec.devices.requests.size() == 1", unknown)


def test_what_the_server_refuses_itself_is_no_request():
    broken = {**CLAIM, "spec": {"devices": {"requests": [{"name": "a", "exactly": {"count": -1}}]}}}
    assert read_request(broken, RELEASE, namespaces={}, serves=frozenset({"v1"}), user=None) is None


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ({"matchLabels": {"tier": "gold"}}, "deny"),
        ({"matchLabels": {"tier": "iron"}}, ""),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, "deny"),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, ""),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]}, ""),
        ({"matchExpressions": [{"key": "other", "operator": "NotIn", "values": ["gold"]}]}, "deny"),
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold", "x"]}]}, "deny"),
        ({"matchExpressions": [{"key": "tier", "operator": "Like", "values": ["gold"]}]}, "undecided"),
    ],
)
def test_selectors_of_namespaces_go_by_their_labels(selector: dict[str, Any], said: str):
    constraints = {"resourceRules": [rule("*")], "namespaceSelector": selector}
    found = decisions("false", matchConstraints=constraints, namespaces={"vision": {"tier": "gold"}})
    assert [action for action, _ in found] == ([said] if said else [])


def test_labels_of_a_namespace_that_is_not_given_are_not_known_but_its_name_is():
    def constraints(**labels: str) -> dict[str, Any]:
        return {"resourceRules": [rule("*")], "namespaceSelector": {"matchLabels": labels}}

    name = "kubernetes.io/metadata.name"
    assert decisions("false", matchConstraints=constraints(**{name: "vision"})) == [("deny", "no")]
    assert decisions("false", matchConstraints=constraints(**{name: "speech", "tier": "gold"})) == []
    assert "tier" in undecided("false", matchConstraints=constraints(tier="gold"))


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([rule("resourceclaims")], "deny"),
        ([rule("resourceclaims", group="resource.k8s.io")], "deny"),
        ([rule("resourceclaims", group="")], ""),
        ([rule("resourceclaims/*")], "deny"),
        ([rule("resourceclaims/status")], ""),
        ([rule("pods"), rule("resourceclaims")], "deny"),
        ([rule("resourceclaims", operations=["UPDATE"])], ""),
        ([rule("resourceclaims", operations=["*"])], "deny"),
        ([rule("resourceclaims", scope="Cluster")], ""),
        ([rule("resourceclaims", scope="Namespaced")], "deny"),
        ([rule("resourceclaims", resourceNames=["x"])], ""),
        ([rule("resourceclaims", resourceNames=["c"])], "deny"),
        ([rule("resourceclaims", apiVersions=["v1beta1"])], ""),
    ],
)
def test_rules_of_resources_choose_requests(rules: list[dict[str, Any]], said: str):
    found = decisions("false", matchConstraints={"resourceRules": rules})
    assert [action for action, _ in found] == ([said] if said else [])


@pytest.mark.parametrize("turn", [1, -1])
def test_a_rule_that_is_not_decided_does_not_count_beside_one_that_fits(turn: int):
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    in_scope, other = rule("widgets", scope="Cluster"), rule("gadgets")
    rules = [in_scope, rule("widgets")][::turn]
    assert decisions("false", widget, matchConstraints={"resourceRules": rules}) == [("deny", "no")]
    alone = {"resourceRules": [in_scope, other][::turn]}
    assert "in a namespace" in undecided("false", widget, matchConstraints=alone)


@pytest.mark.parametrize("part", ["apiGroups", "apiVersions", "operations", "resources", "resourceNames"])
@pytest.mark.parametrize("written", [5, True, "apps", {"a": 1}])
def test_a_rule_without_lists_is_refused_and_fails_nobody(part: str, written: Any):
    rules = {"resourceRules": [{**rule("*"), part: written}]}
    spec = {"matchConstraints": rules, "validations": [{"expression": "true"}]}
    policy = Policy({"metadata": {"name": "p"}, "spec": spec}, RELEASE)
    assert policy.refusals == [(f"spec.matchConstraints.resourceRules[0].{part}", "must be a list")]
    bound = {**BINDING, "spec": {**BINDING["spec"], "matchResources": rules}}
    assert decisions("true", binding=bound) == []


@pytest.mark.parametrize("actions", [7, True, "Deny", {"a": 1}, [["Deny"]], None])
def test_a_binding_without_a_list_of_actions_takes_none(actions: Any):
    assert decisions("false", binding={"spec": {"policyName": "p", "validationActions": actions}}) == []


def test_an_audit_alone_leaves_nothing_to_decide_but_what_refuses_without_it():
    audit = {**BINDING, "spec": {"policyName": "p", "validationActions": ["Audit"]}}
    assert decisions("object.metadata.uid == 'x'", binding=audit) == []
    noted = {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.metadata.uid)"}]}
    assert "an audit annotation" in undecided("object.metadata.uid == 'x'", binding=audit, **noted)
    needed = {**audit, "spec": {**audit["spec"], "paramRef": {"name": "x"}}}
    kind = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    assert "ConfigMap x" in undecided("object.metadata.uid == 'x'", binding=needed, **kind)


def test_another_version_of_a_kind_that_is_not_known_is_not_decided():
    other = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "w", "namespace": "a"}}
    widgets = {"resourceRules": [rule("widgets", apiVersions=["v1"])]}
    assert "Widget" in undecided("false", other, matchConstraints=widgets)
    exact = {**widgets, "matchPolicy": "Exact"}
    assert decisions("false", other, matchConstraints=exact) == []


def test_params_that_are_not_given_are_not_decided():
    bound = {**BINDING, "spec": {**BINDING["spec"], "paramRef": {"name": "x"}}}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert "ConfigMap x are not in the input" in undecided(
        "params.data.a == 'b'", binding=bound, paramKind=kind
    )


def test_a_binding_without_reference_has_null_for_params():
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert decisions("params == null", paramKind=kind) == []


def test_the_labels_that_a_controller_adds_to_pods_are_not_known():
    maker = {"kind": "Deployment"}
    request = read_pod_request({"containers": []}, {"app": "x"}, "vision", {}, maker=maker)
    assert request.labels.get("app") == "x"
    policy = {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [rule("pods")],
                "objectSelector": {"matchLabels": {"pod-template-hash": "1"}},
            },
            "validations": [{"expression": "false"}],
        },
    }
    (decision,) = Policy(policy, RELEASE).decide(BINDING, request, lambda *_: None)
    assert decision.action == "undecided"


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "a", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "vision"},
        "spec": {"containers": containers, **spec},
    }


NO_HOST_PATH = "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))"
HOST_PATH: dict[str, Any] = {"name": "v", "hostPath": {"path": "/dev"}}
NO_TOKEN: dict[str, Any] = {"automountServiceAccountToken": False}


@pytest.mark.parametrize(
    ("expression", "spec", "expected"),
    [
        ("!has(object.spec.nodeName)", {}, []),
        ("!has(object.spec.nodeName)", {"nodeName": ""}, []),
        ("object.spec.nodeName == 'b'", {"nodeName": "a"}, [("deny", "no")]),
        (NO_HOST_PATH, {}, []),
        (NO_HOST_PATH, {"volumes": [{"name": "v", "emptyDir": {}}]}, []),
        (NO_HOST_PATH, {"volumes": [{"name": "v", "hostPath": None}]}, []),
        (NO_HOST_PATH, {"volumes": [HOST_PATH]}, [("deny", "no")]),
        ("object.spec.volumes[0].hostPath.path == '/dev'", {"volumes": [HOST_PATH]}, []),
        ("has(object.spec.volumes[0].emptyDir)", {"volumes": [{"name": "v"}]}, []),
        # With a volume that the server adds, these would be true, too, or false.
        ("has(object.spec.volumes)", {"volumes": [HOST_PATH]}, []),
        ("has(object.spec.volumes)", NO_TOKEN, [("deny", "no")]),
        ("object.spec.volumes.all(v, has(v.hostPath))", {"volumes": [HOST_PATH], **NO_TOKEN}, []),
        # With their defaults.
        ("object.spec.volumes[0].hostPath.type == ''", {"volumes": [HOST_PATH], **NO_TOKEN}, []),
        (
            "object.spec.volumes[0].secret.defaultMode == 420",
            {"volumes": [{"secret": {"secretName": "s"}}]},
            [],
        ),
        ("object.spec.volumes[0].secret.defaultMode == 1", {"volumes": [{"secret": {"defaultMode": 1}}]}, []),
    ],
)
def test_the_volumes_and_the_node_of_a_pod_are_known(expression: str, spec: dict[str, Any], expected: Any):
    assert decisions(expression, pod(**spec)) == expected


@pytest.mark.parametrize(
    ("expression", "spec"),
    [
        ("has(object.spec.volumes)", {}),
        ("object.spec.volumes.size() == 1", {"volumes": [HOST_PATH]}),
        ("object.spec.volumes.all(v, has(v.hostPath))", {"volumes": [HOST_PATH]}),
        ("object.spec.volumes.all(v, v.name == 'v')", {"volumes": [HOST_PATH]}),
        ("object.spec.volumes[0].name == object.spec.volumes[1].name", {"volumes": [HOST_PATH]}),
        *((NO_HOST_PATH, {"volumes": each}) for each in ([UNKNOWN], UNKNOWN, 7, [7], {"a": "b"})),
        ("object.spec.nodeName == 'a'", {"nodeName": 7}),
        ("object.spec.volumes[0].hostPath.path == '/'", {"volumes": [{"hostPath": {"path": UNKNOWN}}]}),
        ("object.spec.nodeName == 'a'", {"nodeName": UNKNOWN}),
    ],
)
def test_what_depends_on_a_volume_that_the_server_may_add_is_not_decided(
    expression: str, spec: dict[str, Any]
):
    assert undecided(expression, pod(**spec))


def test_the_budget_of_a_policy_is_shared_by_its_expressions():
    # Each costs 800,000 of a million that a single one may.
    text = {**CLAIM, "metadata": {**CLAIM["metadata"], "annotations": {"text": "x" * 200_000}}}
    dear = f"object.metadata.annotations.text.contains('{'y' * 400}')"
    written = [{"expression": f"!{dear} || {number} == 0"} for number in range(1, 14)]
    told = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert decisions("true", text, validations=written) == [("deny", told)]
    assert decisions("true", text, validations=written, failurePolicy="Ignore") == []
    assert decisions("true", text, validations=written[:12]) == []
