from __future__ import annotations

from dataclasses import replace

import pytest

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.kubernetes.api import DeviceClass
from dra_infra.placement.running import Running
from dra_infra.review import review
from dra_infra.review.changes import compare_programs
from dra_infra.review.comparison import Comparison
from dra_infra.review.reviews import find_dangers

H100 = "h100.deviceclass.resource.k8s.io/devices"
CLAIMS = "count/resourceclaims.resource.k8s.io"


def a_quota(make, hard, **spec):
    return make.object("ResourceQuota", "team", {"hard": hard, **spec})


def passed(make, before, after, *running, stand_ins=()):
    base = make.program(*before)
    head = replace(make.program(*after), stand_in_classes=stand_ins)
    snapshot = Snapshot(fleet=make.fleet(), objects=running) if running else None
    running = Running.of(snapshot, base, head)
    found = find_dangers(Comparison.of(compare_programs(base, head), base, head, running=running))
    return [danger for danger in found if danger.code == "quota-passed"]


def a_side(make, replicas, *more, count=2, kind="Job", **spec):
    return [
        make.template("t", f"t-{count}", count=count),
        make.workload(kind, "work", make.pod_spec(template=f"t-{count}"), replicas=replicas, **spec),
        *more,
    ]


def a_claim(name, count, *, owner=None):
    metadata = {"name": name, "namespace": "ml"}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    requests = [{"name": "r", "exactly": {"deviceClassName": "h100", "count": count}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": requests}},
    }


def test_devices_of_a_class_that_pass_a_quota_are_a_danger(make):
    quota = a_quota(make, {H100: "8"})
    assert passed(make, a_side(make, 1, quota), a_side(make, 4, quota)) == []
    (danger,) = passed(make, a_side(make, 4, quota), a_side(make, 5, quota))
    assert str(danger) == f"ResourceQuota ml/team is passed: {H100} is 8, and the program needs 10"
    assert danger.hint.startswith(f'raise hard["{H100}"] to 10')


def test_claims_are_counted_as_objects_too(make):
    quota = a_quota(make, {CLAIMS: 3})
    pair = make.claim("pair", "pair")
    (danger,) = passed(make, a_side(make, 1, quota), a_side(make, 3, quota, pair))
    assert f"{CLAIMS} is 3, and the program needs 4" in danger.message


@pytest.mark.parametrize(
    ("request_", "devices"),
    [
        ({"exactly": {"deviceClassName": "h100"}}, 1),
        ({"exactly": {"deviceClassName": "h100", "allocationMode": "All"}}, 32),
        (
            {
                "firstAvailable": [
                    {"name": "a", "deviceClassName": "h100", "count": 2},
                    {"name": "b", "deviceClassName": "h100", "count": 4},
                    {"name": "c", "deviceClassName": "a100", "count": 8},
                ]
            },
            4,
        ),
    ],
)
def test_each_form_of_a_request_counts_as_the_server_counts_it(make, request_, devices):
    claim = make.claim("pair", "pair")
    claim.manifest["spec"]["devices"]["requests"] = [{"name": "r", **request_}]
    (danger,) = passed(make, [], [a_quota(make, {H100: "0"}), claim])
    assert f"the program needs {devices:,}" in danger.message


def test_a_job_runs_no_more_pods_than_it_completes(make):
    quota = a_quota(make, {H100: "4"})
    assert passed(make, [quota], a_side(make, 8, quota, completions=2)) == []


def test_a_quota_that_shrinks_below_what_runs_is_passed(make):
    pair = make.claim("pair", "pair")
    before, after = (a_side(make, 4, a_quota(make, {H100: hard}), pair) for hard in ("16", "4"))
    (danger,) = passed(make, before, after)
    assert str(danger) == (
        f"ResourceQuota ml/team is lowered from 16 below what is needed: {H100} is 4, and the program needs 9: "
        "Job ml/work (8) and ResourceClaim ml/pair (1)"
    )
    assert danger.hint.startswith(f'leave hard["{H100}"] at 9 or more')


def test_who_runs_beyond_a_quota_that_shrinks_is_named_with_what_made_it(make):
    before, after = ([a_quota(make, {H100: hard})] for hard in ("16", "4"))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-a",
            "namespace": "ml",
            "ownerReferences": [{"kind": "Job", "name": "train", "controller": True}],
        },
        "spec": {"containers": []},
    }
    running = pod, a_claim("train-a-gpu", 4, owner=("Pod", "train-a")), a_claim("small", 1)
    (danger,) = passed(make, before, after, *running)
    assert danger.message.endswith(
        "and the program needs 0 beside 5 of others: Job ml/train (4) and ResourceClaim ml/small (1)"
    )


def test_a_quota_that_shrinks_and_still_holds_what_runs_is_not_passed(make):
    before, after = (a_side(make, 4, a_quota(make, {H100: hard})) for hard in ("16", "8"))
    assert passed(make, before, after) == []


def test_what_was_passed_before_and_did_not_grow_is_not_said(make):
    side = a_side(make, 9, a_quota(make, {H100: "8"}))
    assert passed(make, side, side) == []


def test_a_rollover_can_pass_a_quota_for_a_while(make):
    quota = a_quota(make, {H100: "10"})
    before, after = (a_side(make, 4, quota, kind="Deployment", count=count) for count in (1, 2))
    assert passed(make, before, after) == []
    quota = a_quota(make, {H100: "9"})
    before, after = (a_side(make, 4, quota, kind="Deployment", count=count) for count in (1, 2))
    (danger,) = passed(make, before, after)
    assert "is passed while Deployment ml/work rolls over" in danger.message


def test_extended_resources_count_by_both_names(make):
    implicit = "deviceclass.resource.kubernetes.io/h100"
    quota = a_quota(make, {"requests.nvidia.com/gpu": "2", f"requests.{implicit}": "2"})
    class_ = make.device_class()
    class_.manifest["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    pods = make.pod_spec()
    pods["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1", implicit: 1}}
    job = make.workload("Job", "plugin", pods)
    (danger,) = passed(make, [class_], a_side(make, 1, quota, class_, job))
    # Two devices by the claim template, and two by the claim for what the pod requests by either name.
    keys = f"requests.{implicit} and requests.nvidia.com/gpu"
    assert danger.message == f"is passed: {keys} are 2, and the program needs 4"


@pytest.mark.parametrize("key", ["count/resourceclaims.resource.k8s.io", H100])
@pytest.mark.parametrize("is_served", [True, False])
def test_the_claim_that_the_scheduler_makes_for_extended_resources_counts(make, key, is_served):
    quota = a_quota(make, {key: "5"})
    class_ = make.device_class()
    if is_served:
        class_.manifest["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    pods = make.pod_spec()
    pods["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    sides = ([class_, quota, make.workload("Deployment", "work", pods, replicas=each)] for each in (5, 6))
    found = passed(make, *sides)
    message = f"is passed: {key} is 5, and the program needs 6"
    assert [each.message for each in found] == ([message] if is_served else [])


def test_claims_of_a_class_that_a_file_stands_in_for_count_by_its_extended_resource_too(make):
    quota = a_quota(make, {"requests.nvidia.com/gpu": "2"})
    spoken = DeviceClass.from_manifest(
        {"metadata": {"name": "h100"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}
    )
    after = a_side(make, 2, quota)
    assert passed(make, [], after) == []
    (danger,) = passed(make, [], after, stand_ins=(spoken,))
    assert danger.message.startswith("is passed: requests.nvidia.com/gpu is ")


def test_a_quota_with_scopes_matches_no_claim(make):
    quota = a_quota(make, {H100: "0"}, scopes=["NotTerminating"])
    assert passed(make, [], a_side(make, 1, quota)) == []


def test_quotas_of_other_namespaces_do_not_count(make):
    quota = make.object("ResourceQuota", "team", {"hard": {H100: "0"}}, namespace="other")
    assert passed(make, [], a_side(make, 1, quota)) == []


def test_a_quota_that_runs_bounds_and_claims_of_others_count_against_it(make):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": {"hard": {H100: "8"}},
    }
    assert passed(make, a_side(make, 1), a_side(make, 4), quota) == []
    (danger,) = passed(make, a_side(make, 1), a_side(make, 3), quota, a_claim("other", 3))
    assert danger.message.endswith("is 8, and the program needs 6 beside 3 of others")


def test_claims_of_the_programs_own_pods_are_counted_once(make):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": {"hard": {H100: "8"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "work-a",
            "namespace": "ml",
            "ownerReferences": [{"kind": "Job", "name": "work", "controller": True}],
        },
        "spec": {"containers": []},
    }
    own = a_claim("work-a-gpu", 2, owner=("Pod", "work-a"))
    assert passed(make, a_side(make, 1), a_side(make, 4), quota, pod, own) == []


@pytest.mark.parametrize("hard", [None, "8", {H100: "many"}, {H100: None}])
def test_malformed_limits_bound_nothing(make, hard):
    assert passed(make, [], a_side(make, 1, a_quota(make, hard))) == []


def test_pods_of_a_daemon_set_are_said_to_be_uncounted_without_a_fleet(make):
    side = make.program(*a_side(make, 1, a_quota(make, {H100: "8"}), kind="DaemonSet"))
    result = review(make.program(), side, base_label="main")
    assert [str(each) for each in result.not_known] == [
        "quota for DaemonSet ml/work: on how many nodes it runs is not known without a fleet"
    ]


ANSWER = "the API server answers ResourceClaim ml/big with: exceeded quota: team, requested: {0}=7, used: {0}={1}, limited: {0}=8"


def test_the_one_claim_that_is_new_is_told_what_the_server_answers(make):
    quota = a_quota(make, {H100: "8", CLAIMS: "100"})
    big = make.claim("big", "big", count=7)
    (danger,) = passed(make, a_side(make, 1, quota), a_side(make, 1, quota, big))
    assert danger.hint.endswith(ANSWER.format(H100, 2))
    # What others have is in use as well, and names are no different in the quota of a snapshot.
    running = a_claim("other", 3), {**quota.manifest, "apiVersion": "v1"}
    (danger,) = passed(make, [], [big], *running)
    assert danger.hint.endswith(ANSWER.format(H100, 3))


def test_of_new_claims_that_ask_for_the_same_the_one_that_comes_last_is_told_its_answer(make):
    new = [a_quota(make, {H100: "16"}), *(make.claim(name, name, count=8) for name in ("a", "b"))]
    (danger,) = passed(make, a_side(make, 1, new[0], count=1), a_side(make, 1, *new, count=1))
    answer = "exceeded quota: team, requested: {0}=8, used: {0}=9, limited: {0}=16"
    said = "the API server answers number 2 of ResourceClaim ml/a and ResourceClaim ml/b to come with: "
    assert danger.hint.endswith(f"{said}{answer.format(H100)}")


@pytest.mark.parametrize("more", ["another claim", "more pods", "a lower quota"])
def test_of_several_changes_nobody_knows_which_one_the_server_refuses(make, more):
    quota = a_quota(make, {H100: "8"})
    big = make.claim("big", "big", count=7)
    before, after = a_side(make, 1, quota), a_side(make, 1, quota, big)
    if more == "another claim":
        after.append(make.claim("small", "small", count=1))
    elif more == "more pods":
        after = a_side(make, 2, quota, big)
    else:
        after = a_side(make, 1, a_quota(make, {H100: "7"}), big)
    (danger,) = passed(make, before, after)
    assert "answers" not in danger.hint


def test_claims_of_a_template_that_the_cluster_has_count_by_what_it_asks_for(make):
    quota = a_quota(make, {H100: "8"})
    template = make.template("t", "t-4", count=4)
    running = {**quota.manifest, "apiVersion": "v1"}, template.manifest
    pods = [make.workload("Job", "work", make.pod_spec(template="t-4"), replicas=3)]
    (danger,) = passed(make, [], pods, *running)
    assert danger.message == f"is passed: {H100} is 8, and the program needs 12"


def test_the_claim_of_a_pod_that_runs_counts_once_under_every_key(make):
    implicit = "requests.deviceclass.resource.kubernetes.io/h100"
    quota = a_quota(make, {H100: "8", implicit: "8"})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other", "namespace": "ml"},
        "spec": make.pod_spec(template="t-4"),
    }
    claim = a_claim("other-gpu-x", 4, owner=("Pod", "other"))
    running = quota.manifest, make.template("t", "t-4", count=4).manifest, pod, claim
    (danger,) = passed(make, [], [make.claim("big", "big", count=5)], *running)
    answer = f"requested: {H100}=5,{implicit}=5, used: {H100}=4,{implicit}=4, limited: {H100}=8,{implicit}=8"
    assert danger.hint.endswith(answer)
    assert (
        danger.message
        == f"is passed: {H100} and {implicit} are 8, and the program needs 5 beside 4 of others"
    )


def test_the_claim_for_extended_resources_of_a_pod_that_runs_does_not_count_twice_what_its_pod_asks_for(make):
    class_ = make.device_class()
    class_.manifest["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    quota = a_quota(make, {"requests.nvidia.com/gpu": "2"})
    spec = make.pod_spec()
    spec["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "ml"}, "spec": spec}
    claim = a_claim("other-extended-resources-x", 1, owner=("Pod", "other"))
    claim["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    side = [class_, make.claim("one", "one")]
    assert passed(make, [class_], side, quota.manifest, pod, claim) == []
    (danger,) = passed(make, [class_], [*side, make.claim("two", "two")], quota.manifest, pod, claim)
    assert danger.message.endswith("is 2, and the program needs 2 beside 1 of others")


def test_claims_of_a_template_that_a_compute_domain_makes_count_by_its_channels(make):
    channels = "compute-domain-default-channel.nvidia.com.deviceclass.resource.k8s.io/devices"
    spec = {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "rack-channel"}}}
    domain = make.object("ComputeDomain", "rack", spec, api_version="resource.nvidia.com/v1beta1")
    job = make.workload("Job", "work", make.pod_spec(template="rack-channel"), replicas=2)
    (danger,) = passed(make, [], [a_quota(make, {channels: "1"}), domain, job])
    assert danger.message == f"is passed: {channels} is 1, and the program needs 2"
