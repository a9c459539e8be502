from __future__ import annotations

from dataclasses import replace
from typing import Any

from dra_infra.answers.checking import check
from dra_infra.answers.reviewing import compare
from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import simulate
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.placement.running import NOTHING_RUNS, Running
from dra_infra.target import ClusterTarget

GROUP = "admissionregistration.k8s.io/v1"


def guardrails(make, expression: str, resource: str, **rest: Any) -> list[Any]:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": "no"}],
    }
    bound = {"policyName": "p", "validationActions": ["Deny"]}
    return [
        make.object("ValidatingAdmissionPolicy", "p", spec, api_version=GROUP, namespace="", **rest),
        make.object("ValidatingAdmissionPolicyBinding", "p", bound, api_version=GROUP, namespace="", **rest),
    ]


FEW = "object.spec.devices.requests.all(r, r.exactly.count < 2)"
LITTLE = "object.spec.containers.all(c, c.image != 'other')"


def told(
    make, before: list[Any], after: list[Any], cluster: list[Any] | None = None
) -> list[tuple[str, str]]:
    base, head = make.program(*before), make.program(*after)
    objects = tuple(each.manifest for each in cluster or ())
    found = compare(base, head, base_label="main", snapshot=Snapshot(fleet=make.fleet(), objects=objects))
    return [(each.code, each.path) for each in found.problems if each.code.startswith("policy-")]


def test_a_new_object_that_a_policy_of_the_head_refuses_is_told_with_the_servers_text(make):
    policies = guardrails(make, FEW, "resourceclaims")
    head = make.program(*policies, make.claim("c", "c", count=2))
    found = compare(make.program(*policies), head, base_label="main").problems
    (problem,) = (each for each in found if each.code.startswith("policy-"))
    assert (problem.code, problem.path, problem.severity) == (
        "policy-denies",
        "ResourceClaim ml/c.spec",
        "error",
    )
    assert problem.message == "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no"


def test_what_is_there_already_stays(make):
    claim = make.claim("c", "c", count=2)
    assert told(make, [claim], [*guardrails(make, FEW, "resourceclaims"), claim]) == []


def test_the_new_pods_of_a_workload_that_changes_are_asked_about_and_it_is_not(make):
    policies = [*guardrails(make, LITTLE, "pods")]
    before = make.workload("Deployment", "a", make.pod_spec())
    after = make.workload("Deployment", "a", make.pod_spec(image="other"))
    assert told(make, [*policies, before], [*policies, after]) == [
        ("policy-denies", "Deployment ml/a.spec.template.spec")
    ]
    never = guardrails(make, "false", "deployments")
    assert told(make, [*never, before], [*never, after]) == []
    assert told(make, never, [*never, after]) == [("policy-denies", "Deployment ml/a.spec")]


def test_policies_hold_in_their_own_cluster(make):
    elsewhere = ClusterTarget(kubernetes="1.36")
    policies = guardrails(make, FEW, "resourceclaims")
    claim = make.claim("c", "c", count=2)
    assert told(make, policies, [*policies, replace(claim, target=elsewhere)]) == []
    there = [replace(each, target=elsewhere) for each in policies]
    assert told(make, there, [*there, replace(claim, target=elsewhere)]) == [
        ("policy-denies", "ResourceClaim ml/c.spec")
    ]


def test_policies_of_the_cluster_are_asked_as_those_of_the_head_are(make):
    policies = guardrails(make, FEW, "resourceclaims")
    few, many = make.claim("c", "c", count=1), make.claim("c", "c", count=2)
    assert told(make, [], [many], policies) == [("policy-denies", "ResourceClaim ml/c.spec")]
    assert told(make, [], [few], policies) == []
    assert told(make, [many], [many], policies) == []


def test_a_policy_of_the_cluster_that_the_programs_have_counts_as_the_head_has_it(make):
    strict, loose = guardrails(make, "false", "resourceclaims"), guardrails(make, FEW, "resourceclaims")
    few, many = make.claim("c", "c", count=1), make.claim("c", "c", count=2)
    assert told(make, strict, [*loose, few], strict) == []
    assert told(make, loose, [*strict, few], loose) == [("policy-denies", "ResourceClaim ml/c.spec")]
    assert told(make, strict, [many], strict) == []


def test_policies_of_the_cluster_do_not_hold_in_another(make):
    claim = make.claim("c", "c", count=2)
    elsewhere = replace(make.claim("d", "d", count=2), target=ClusterTarget(kubernetes="1.36"))
    assert told(make, [], [claim, elsewhere], guardrails(make, FEW, "resourceclaims")) == [
        ("policy-denies", "ResourceClaim ml/c.spec")
    ]


def test_pods_of_an_object_that_a_policy_denies_do_not_fit_in_any_answer(make):
    policies = guardrails(make, FEW, "resourceclaims")
    spec = make.pod_spec(claim="c")
    head = make.program(*policies, make.claim("c", "c", count=2), make.pod("p", spec))
    fleet = make.fleet(make.node("n0", gpus=8))
    why = [("needs-refused-object", "needs ResourceClaim ml/c, which has an error: ")]

    simulated = simulate(Scene.of(head, fleet=fleet))
    reviewed = compare(make.program(*policies), head, base_label="main", fleet=fleet)

    assert simulated.placement is not None
    for (workload,) in (simulated.placement.workloads, reviewed.after.workloads):
        assert workload.verdict == "does-not-fit"
        assert [(each.code, each.message[: len(why[0][1])]) for each in workload.reasons] == why
    assert simulated.exit_code == 1
    assert reviewed.failed


def test_what_the_cluster_has_already_is_asked_about_by_no_policy(make):
    policies = guardrails(make, FEW, "resourceclaims")
    claim = make.claim("c", "c", count=2)
    head = make.program(*policies, claim)
    there = Snapshot(fleet=make.fleet(make.node("n0", gpus=8)), objects=(claim.manifest,))
    codes = [
        {each.code for each in check(Scene.of(head, fleet=there.fleet, running=running)).problems}
        for running in (NOTHING_RUNS, Running.of(there, head))
    ]
    assert ["policy-denies" in each for each in codes] == [True, False]
