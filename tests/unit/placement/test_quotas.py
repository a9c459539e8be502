"""Quotas of a namespace and the pods of a whole program: what they count, in every order of arrival."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.placing import place

from . import conftest as build

CLAIMS = "count/resourceclaims.resource.k8s.io"


def a_quota(**hard):
    return build.an_object("ResourceQuota", "team", apiVersion="v1", spec={"hard": hard})


def place_below(hard, *objects, nodes=None, is_partial=False):
    """The placement on two nodes with eight GPUs each."""
    fleet = build.a_fleet(build.gpus("n0"), build.gpus("n1"), nodes=nodes)
    fleet = replace(fleet, is_partial=is_partial)
    shared = [build.a_class(), build.a_template("t", build.a_request()), a_quota(**hard)]
    return place([*shared, *objects], fleet)


@pytest.mark.parametrize("claims", [("template:t",), ()])
def test_pods_of_a_daemon_set_count_once_for_each_node(claims):
    objects = (
        build.a_deployment("each", *claims, kind="DaemonSet"),
        build.a_deployment("two", "template:t", replicas=2),
    )
    assert place_below({"pods": "4"}, *objects).joint.verdict == "always"
    joint = place_below({"pods": "3"}, *objects).joint
    assert joint.verdict == "never"
    assert "gets 1 of 2 pods beside the others" in joint.reasons[0]


def test_a_daemon_set_that_is_refused_alone_is_refused_among_all():
    placement = place_below({"pods": "1"}, build.a_deployment("each", "template:t", kind="DaemonSet"))
    (alone,) = placement.workloads
    assert (alone.verdict, placement.joint.verdict) == ("does-not-fit", "never")
    assert placement.joint.reasons == (f"DaemonSet ml/each: {alone.reasons[0].message}",)


def test_pods_that_no_node_lets_in_count():
    objects = (
        build.a_deployment("elsewhere", replicas=2, nodeSelector={"pool": "cpu"}),
        build.a_deployment("two", "template:t", replicas=2),
    )
    assert place_below({"pods": "4"}, *objects, is_partial=True).joint.verdict == "always"
    joint = place_below({"pods": "3"}, *objects, is_partial=True).joint
    assert joint.verdict == "never"
    assert joint.reasons[0].startswith("Deployment ml/two gets 1 of 2 pods beside the others")


def test_pods_of_a_partial_fleet_that_a_quota_refuses_never_run():
    elsewhere = build.a_deployment("elsewhere", replicas=2, nodeSelector={"pool": "cpu"})
    placement = place_below({"pods": "1"}, elsewhere, is_partial=True)
    (left_out,) = placement.left_out
    assert (left_out.verdict, left_out.reasons[0].code) == ("does-not-fit", "quota-refuses")
    assert placement.joint.verdict == "never"


def test_a_pod_waits_for_a_claim_that_is_refused():
    objects = build.a_claim("own", build.a_request(count=2)), build.a_pod("p", "claim:own")
    per_class = "gpu.deviceclass.resource.k8s.io/devices"
    assert place_below({CLAIMS: "1", per_class: "2"}, *objects).joint.verdict == "always"
    for hard in ({CLAIMS: "0"}, {per_class: "1"}):
        placement = place_below(hard, *objects)
        assert build.codes(placement.workloads[0]) == ["quota-refuses"]
        assert placement.joint.verdict == "never"
        assert "ResourceClaim ml/own is refused" in placement.joint.reasons[0]


@pytest.mark.parametrize("key", ["cpu", "requests.cpu", "memory", "requests.memory"])
def test_a_container_that_does_not_say_what_it_requests_is_refused(key):
    name = key.removeprefix("requests.")
    silent, said = build.a_pod("p", "template:t"), build.a_pod("p", "template:t", requests={name: "1"})
    (alone,) = place_below({key: "64"}, silent).workloads
    assert build.codes(alone) == ["quota-refuses"]
    assert f"limits {key}, and container main does not say" in alone.reasons[0].message
    assert place_below({key: "64"}, said).joint.verdict == "always"
    # A limit stands in for the request, and so do resources of the pod as a whole.
    (container,) = silent["spec"]["containers"]
    container["resources"] = {"limits": {name: "1"}}
    assert place_below({key: "64"}, silent).joint.verdict == "always"
    whole = build.a_pod("p", "template:t", resources={"requests": {name: "1"}})
    assert place_below({key: "64"}, whole).joint.verdict == "always"


def test_more_pods_than_are_placed_one_by_one_are_counted():
    roomy = {"cpu": "64", "memory": "1Ti", "pods": "20000"}
    nodes = [build.a_node(name, allocatable=roomy) for name in ("n0", "n1")]
    objects = build.a_pod("p", "template:t"), build.a_deployment("web", replicas=11_000)
    joint = place_below({"pods": "10500"}, *objects, nodes=nodes).joint
    assert joint.verdict == "never"
    assert joint.reasons[0].startswith("Deployment ml/web: 10,500 of 11,000 pods are made")


@pytest.mark.parametrize(
    ("hard", "refused"),
    [
        ({"count/deployments.apps": "2"}, []),
        ({"count/deployments.apps": "1"}, ["b"]),
        ({"count/statefulsets.apps": "0"}, ["c"]),
        ({"count/replicasets.apps": "1"}, ["b"]),
        ({"count/replicasets.apps": "0"}, ["a", "b"]),
        ({"count/jobs.batch": "0"}, []),
    ],
)
def test_pods_of_an_object_that_a_quota_refuses_are_not_made(hard, refused):
    objects = [
        build.a_deployment("a", "template:t"),
        build.a_deployment("b", "template:t"),
        build.a_deployment("c", "template:t", kind="StatefulSet"),
    ]
    placement = place_below(hard, *objects)
    assert [each.owner.name for each in placement.workloads if each.verdict != "fits"] == refused
    assert placement.joint.verdict == ("never" if refused else "always")
    for each in placement.workloads:
        if each.owner.name in refused:
            made = f"the ReplicaSet of {each.owner}" if "count/replicasets.apps" in hard else each.owner
            told = f"0 of 1 pod is made: {made} is refused, for ResourceQuota ml/team allows"
            assert each.reasons[0].message.startswith(told)


def test_an_object_whose_name_the_server_makes_up_is_refused_like_others():
    gang = build.a_deployment("train", "template:t", kind="StatefulSet")
    gang["metadata"] = {"namespace": "ml", "generateName": "train-"}
    placement = place_below({"count/statefulsets.apps": "0"}, gang)
    assert (placement.joint.verdict, build.codes(placement.workloads[0])) == ("never", ["quota-refuses"])
    told = "0 of 1 pod is made: StatefulSet ml/train-* is refused, for ResourceQuota ml/team allows"
    assert placement.workloads[0].reasons[0].message.startswith(told)


def test_pods_whose_claim_template_a_quota_refuses_are_not_made():
    key = "count/resourceclaimtemplates.resource.k8s.io"
    placement = place_below({key: "0"}, build.a_deployment("a", "template:t"))
    assert (placement.joint.verdict, placement.workloads[0].verdict) == ("never", "does-not-fit")
    told = f"ResourceClaimTemplate ml/t is refused, for ResourceQuota ml/team allows 0 of {key}"
    assert told in placement.workloads[0].reasons[0].message
    assert place_below({key: "1"}, build.a_deployment("a", "template:t")).joint.verdict == "always"


def test_of_a_gang_that_is_not_made_whole_no_pod_is_placed():
    task = {"name": "w", "replicas": 4, "template": {"spec": build.pod_spec("template:t")}}
    gang = build.an_object(
        "Job", "gang", apiVersion="batch.volcano.sh/v1alpha1", spec={"minAvailable": 4, "tasks": [task]}
    )
    placement = place_below({"pods": "3"}, gang)
    assert (placement.joint.verdict, placement.workloads[0].pods) == ("never", ())


def test_pods_without_claims_wait_for_nodes_that_are_cordoned():
    nodes = [build.a_node("n0", unschedulable=True), build.a_node("n1")]
    pinned = build.a_deployment("web", nodeSelector={"kubernetes.io/hostname": "n0"})
    joint = place_below({}, pinned, build.a_pod("p", "template:t"), nodes=nodes).joint
    assert (joint.verdict, joint.reasons) == ("never", ("no node takes a pod of Deployment ml/web",))


@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_a_container_without_a_limit_that_a_quota_counts_is_refused(name):
    pod = build.a_pod("p", "template:t", requests={name: "1"})
    key = f"limits.{name}"
    (alone,) = place_below({key: "64"}, pod).workloads
    assert build.codes(alone) == ["quota-refuses"]
    assert f"limits {key}, and container main has no limit of {name}" in alone.reasons[0].message
    (container,) = pod["spec"]["containers"]
    container["resources"]["limits"] = {name: "1"}
    assert place_below({key: "64"}, pod).joint.verdict == "always"
