from __future__ import annotations

import pytest

from dra_infra.review.changes import compare_programs
from dra_infra.review.comparison import Comparison
from dra_infra.review.reviews import find_dangers

RBAC = "rbac.authorization.k8s.io/v1"
ADMIN = "resource.kubernetes.io/admin-access"
ENFORCE = "pod-security.kubernetes.io/enforce"
BOT = {"kind": "ServiceAccount", "name": "bot", "namespace": "ml"}


def an_object(make, kind, name="r", *, namespace="ml", labels=None, **fields):
    each = make.object(kind, name, None, namespace=namespace, api_version=RBAC)
    each.manifest.update(fields)
    if labels is not None:
        each.manifest["metadata"]["labels"] = labels
        each.manifest["apiVersion"] = "v1"
    return each


def a_role(make, *rules, kind="Role"):
    return an_object(make, kind, namespace="ml" if kind == "Role" else "", rules=list(rules))


def rule(verbs, resources, groups=("",), **rest):
    return {"verbs": list(verbs), "resources": list(resources), "apiGroups": list(groups), **rest}


def a_binding(make, *subjects, role="r", kind="RoleBinding"):
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return an_object(make, kind, "b", roleRef=ref, subjects=list(subjects))


def widened(make, before, after):
    base, head = make.program(*before), make.program(*after)
    return [
        (danger.code, danger.message)
        for danger in find_dangers(Comparison.of(compare_programs(base, head), base, head))
        if danger.code in ("rights-widened", "admin-access-added")
    ]


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
def test_rules_that_grow_are_a_danger(make, kind):
    before, after = (
        a_role(make, rule(verbs, ["pods"]), *more, kind=kind)
        for verbs, more in ((["get"], ()), (["get", "list"], (rule(["*"], ["jobs"], ["batch"]),)))
    )
    ((code, message),) = widened(make, [before], [after])
    assert (code, message) == ("rights-widened", "gains list on pods and * on jobs.batch")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rule(["*"], ["pods"]), rule(["get"], ["pods"])),
        (rule(["get"], ["*"], ["*"]), rule(["get"], ["pods"])),
        (rule(["get"], ["pods", "jobs"]), rule(["get"], ["jobs"])),
        (rule(["get"], ["secrets"]), rule(["get"], ["secrets"], resourceNames=["a"])),
        (rule(["get"], ["*/status"]), rule(["get"], ["pods/status"])),
        ({"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]}, {"verbs": ["get"], "nonResourceURLs": ["/healthz/a"]}),
    ],
)  # fmt: skip
def test_rules_that_shrink_are_none(make, before, after):
    assert widened(make, [a_role(make, before)], [a_role(make, after)]) == []
    assert len(widened(make, [a_role(make, after)], [a_role(make, before)])) == 1


def test_a_role_that_grows_names_whom_it_is_bound_to(make):
    before, after = (
        [a_role(make, rule(verbs, ["pods"]), kind="ClusterRole"), a_binding(make, BOT)]
        for verbs in (["get"], ["get", "delete"])
    )
    assert widened(make, before, after) == [
        ("rights-widened", "gains delete on pods, for ServiceAccount ml/bot")
    ]


def test_a_role_that_is_new_gives_nothing_until_it_is_bound(make):
    role = a_role(make, rule(["*"], ["*"]), kind="ClusterRole")
    assert widened(make, [], [role]) == []
    assert widened(make, [role], [role, a_binding(make, BOT)]) == [
        ("rights-widened", "gives ServiceAccount ml/bot the rights of ClusterRole r")
    ]


def test_a_binding_says_only_who_is_new_in_it(make):
    user = {"kind": "User", "name": "ada"}
    before, after = (
        a_binding(make, *subjects, kind="ClusterRoleBinding") for subjects in ((BOT,), (BOT, user))
    )
    assert widened(make, [before], [after]) == [
        ("rights-widened", "gives User ada the rights of ClusterRole r in the whole cluster")
    ]
    assert widened(make, [after], [before]) == []


def test_a_binding_to_another_role_says_all(make):
    before, after = a_binding(make, BOT), a_binding(make, BOT, role="cluster-admin")
    assert [message for _, message in widened(make, [before], [after])] == [
        "gives ServiceAccount ml/bot the rights of ClusterRole cluster-admin"
    ]


def test_admin_access_of_claims_is_said_when_it_is_new(make):
    plain, watching = make.template("t", "t-1"), make.template("t", "t-2")
    watching.manifest["spec"]["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    assert [code for code, _ in widened(make, [plain], [watching])] == ["admin-access-added"]
    assert [code for code, _ in widened(make, [], [watching])] == ["admin-access-added"]
    assert widened(make, [watching], [watching]) == []
    assert widened(make, [watching], [plain]) == []


def test_the_label_for_admin_access_is_a_danger(make):
    before, after = (
        an_object(make, "Namespace", "mon", namespace="", labels=labels) for labels in ({}, {ADMIN: "true"})
    )
    ((code, message),) = widened(make, [before], [after])
    assert code == "admin-access-added"
    assert ADMIN in message
    assert widened(make, [after], [before]) == []


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [({ENFORCE: "restricted"}, {ENFORCE: "privileged"}, 1), ({ENFORCE: "baseline"}, {}, 1), ({}, {ENFORCE: "baseline"}, 0)],
)  # fmt: skip
def test_a_namespace_that_lets_more_pods_in_widens_rights(make, before, after, count):
    sides = [[an_object(make, "Namespace", "ns", namespace="", labels=labels)] for labels in (before, after)]
    assert len(widened(make, *sides)) == count


def test_a_tenant_that_lets_privileged_pods_in_is_a_danger(make):
    def side(level):
        labels = {ENFORCE: level} if level else {}
        return [an_object(make, "Namespace", "vision", namespace="", labels=labels)]

    for level in ("privileged", None):
        ((code, message),) = widened(make, side("baseline"), side(level))
        assert (code, message) == (
            "rights-widened",
            f"lets privileged pods in, and only baseline ones until now ({ENFORCE})",
        )
    assert widened(make, side("baseline"), side("restricted")) == []


@pytest.mark.parametrize("rules", [None, "x", [None], [{"verbs": "get", "resources": 3}]])
def test_malformed_rules_grant_nothing(make, rules):
    before, after = an_object(make, "Role", rules=[]), an_object(make, "Role", rules=rules)
    assert widened(make, [before], [after]) == []
