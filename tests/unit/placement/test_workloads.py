"""Replicas, shared claims, DaemonSets, and all workloads together."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.kubernetes.scheduler import Taken
from tests.support.placing import place


def deployed(build, fleet, *claims, count=1, replicas=1, kind="Deployment", **spec):
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request(count=count)),
        build.a_claim("c", build.a_request(count=count)),
    ]
    return build.place_one(
        fleet, *manifests, build.a_deployment("d", *claims, replicas=replicas, kind=kind, **spec)
    )


def test_workload_fits_when_all_its_pods_do(build):
    fleet = build.a_fleet(build.gpus("a"), build.gpus("b"))
    answer = deployed(build, fleet, "template:t", count=3, replicas=4)
    assert (answer.verdict, answer.replicas, answer.more_pods) == ("fits", 4, 0)
    assert [(each.node, build.devices(each)[0]) for each in answer.pods] == [
        ("a", "gpu-0"),
        ("a", "gpu-3"),
        ("b", "gpu-0"),
        ("b", "gpu-3"),
    ]


def test_workload_with_one_pod_too_many_does_not_fit(build):
    fleet = build.a_fleet(build.gpus("a"), build.gpus("b"))
    answer = deployed(build, fleet, "template:t", count=3, replicas=5)
    assert (answer.verdict, build.codes(answer)) == ("does-not-fit", ["too-few-nodes"])
    assert answer.reasons[0].message == "4 of 5 pods fit on the free fleet"
    assert len(answer.nodes) == 2
    assert len(answer.pods) == 4


def test_more_pods_counts_those_beyond_the_replicas(build):
    fleet = build.a_fleet(build.gpus("a"), build.gpus("b", 5), build.gpus("c", 1))
    assert deployed(build, fleet, "template:t", count=2, replicas=3).more_pods == 3


def test_workload_without_replicas_is_answered_for_one_pod(build):
    fleet = build.a_fleet(build.gpus("a"))
    fits = deployed(build, fleet, "template:t", count=8, replicas=0)
    fails = deployed(build, fleet, "template:t", count=9, replicas=0)
    assert (fits.verdict, fits.more_pods, fits.pods) == ("fits", 1, ())
    assert fails.verdict == "does-not-fit"


def test_fleet_without_nodes_fits_nothing(build):
    answer = deployed(build, build.a_fleet(), "template:t")
    assert (answer.verdict, answer.reasons[0].message) == ("does-not-fit", "the fleet has no nodes")


def test_node_without_devices_says_so(build):
    answer = deployed(build, build.a_fleet(nodes=[build.a_node("a")]), "template:t")
    assert answer.reasons[0].message == "no devices are published for the node"


def test_pods_that_share_a_claim_go_to_its_node(build):
    fleet = build.a_fleet(build.gpus("a", 2), build.gpus("b", 2))
    answer = deployed(build, fleet, "claim:c", replicas=3)
    assert answer.verdict == "fits"
    assert {each.node for each in answer.pods} == {"a"}
    assert {tuple(build.devices(each)) for each in answer.pods} == {("gpu-0",)}


def test_pods_that_share_a_claim_are_bound_by_its_node(build):
    fleet = build.a_fleet(build.gpus("a", 2), build.gpus("b", 2))
    answer = deployed(build, fleet, "claim:c", "template:t", replicas=2)
    assert (answer.verdict, answer.reasons[0].message) == (
        "does-not-fit",
        "1 of 2 pods fit on the free fleet",
    )


def test_shared_claim_that_fits_all_pods_on_some_nodes_only_is_told(build):
    fleet = build.a_fleet(build.gpus("a", 2), build.gpus("b", 8))
    answer = deployed(build, fleet, "claim:c", "template:t", replicas=3)
    assert (answer.verdict, build.codes(answer)) == ("fits", ["claim-elsewhere"])
    assert "the worst candidate only 1" in answer.reasons[0].message


def test_claim_has_at_most_256_consumers(build):
    nodes = [build.a_node("a", allocatable={"cpu": "64", "memory": "1Gi", "pods": "1000"})]
    fleet = build.a_fleet(build.gpus("a"), nodes=nodes)
    assert deployed(build, fleet, "claim:c", replicas=256).verdict == "fits"
    assert deployed(build, fleet, "claim:c", replicas=257).verdict == "does-not-fit"


def test_claim_on_a_device_of_all_nodes_can_be_used_from_all(build):
    fleet = build.a_fleet(
        build.a_slice("pool", [build.a_device("d0")], allNodes=True),
        nodes=[build.a_node(name, allocatable={"cpu": "1", "memory": "1Gi", "pods": "1"}) for name in "ab"],
    )
    answer = deployed(build, fleet, "claim:c", replicas=2)
    assert answer.verdict == "fits"
    assert [each.node for each in answer.pods] == ["a", "b"]


def test_two_pods_with_one_claim_are_placed_on_one_node(build):
    fleet = build.a_fleet(build.gpus("a", 1), build.gpus("b", 1))
    manifests = [build.a_class(), build.a_claim("c", build.a_request())]
    pods = [build.a_pod("p", "claim:c"), build.a_pod("q", "claim:c")]
    placement = place([*manifests, *pods], fleet)
    assert placement.joint.verdict == "always"
    assert [workload.pods[0].node for workload in placement.workloads] == ["a", "a"]


def test_daemon_set_needs_room_on_every_node_that_it_goes_to(build):
    nodes = [build.a_node("a"), build.a_node("b"), build.a_node("c", labels={"gpu": "no"})]
    fleet = build.a_fleet(build.gpus("a"), build.gpus("b"), nodes=nodes)
    everywhere = deployed(build, fleet, "template:t", kind="DaemonSet")
    assert (everywhere.verdict, everywhere.replicas, everywhere.more_pods) == ("does-not-fit", 3, 0)
    assert everywhere.reasons[0].message == "2 of 3 of the nodes that it goes to have room"
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    chosen = deployed(build, fleet, "template:t", kind="DaemonSet", affinity={"nodeAffinity": required})
    assert (chosen.verdict, chosen.replicas) == ("fits", 2)
    assert [each.node for each in chosen.pods] == ["a", "b"]


def test_daemon_set_goes_to_cordoned_nodes(build):
    fleet = build.a_fleet(build.gpus("a"), nodes=[build.a_node("a", unschedulable=True)])
    assert deployed(build, fleet, "template:t", kind="DaemonSet").verdict == "fits"
    assert deployed(build, fleet, "template:t").verdict == "does-not-fit"


@pytest.mark.parametrize(
    ("manifest", "replicas"),
    [
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 3}}, 3),
        ({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"replicas": 2}}, 2),
        ({"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {}}, 1),
    ],
)
def test_every_kind_with_pods_is_placed(build, manifest, replicas):
    manifest = {**manifest, "metadata": {"name": "w", "namespace": "ml"}}
    manifest["spec"] = {**manifest["spec"], "template": {"spec": build.pod_spec("template:t")}}
    template = build.a_template("t", build.a_request())
    answer = build.place_one(build.a_fleet(build.gpus("a")), build.a_class(), template, manifest)
    assert (answer.verdict, answer.replicas) == ("fits", replicas)


def test_volume_claim_templates_are_named(build):
    manifest = build.a_deployment("w", "template:t", kind="StatefulSet")
    manifest["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "v"}}]
    template = build.a_template("t", build.a_request())
    answer = build.place_one(build.a_fleet(build.gpus("a")), build.a_class(), template, manifest)
    assert answer.unmodelled == ("spec.volumeClaimTemplates (volume binding and zones)",)


def both(build, fleet, first, second):
    manifests = [
        build.a_class(),
        build.a_template("one", build.a_request(count=first)),
        build.a_template("two", build.a_request(count=second)),
        build.a_deployment("a", "template:one"),
        build.a_deployment("b", "template:two"),
    ]
    return place(manifests, fleet)


def test_workloads_that_fit_together_are_proven_to(build):
    placement = both(build, build.a_fleet(build.gpus("n")), 4, 4)
    assert (placement.joint.verdict, placement.fits_count, placement.notes) == ("always", 2, ())
    assert [build.devices(workload.pods[0])[0] for workload in placement.workloads] == ["gpu-0", "gpu-4"]


def test_workloads_that_fit_alone_only_are_told_apart(build):
    placement = both(build, build.a_fleet(build.gpus("n")), 5, 4)
    assert (placement.joint.verdict, placement.fits_count) == ("never", 2)
    (proof,) = placement.joint.reasons
    assert proof == (
        "9 devices asked (5 devices by Deployment ml/a, 4 devices by Deployment ml/b); "
        "1 node (n) can serve pods that ask for 5 devices at once"
    )


def test_workload_that_does_not_fit_alone_is_not_together(build):
    joint = both(build, build.a_fleet(build.gpus("n")), 9, 1).joint
    assert (joint.verdict, joint.reasons) == ("never", ("no node takes a pod of Deployment ml/a",))


def test_undecided_workload_leaves_the_whole_open(build):
    placement = place([build.a_pod("p", "template:nope")], build.a_fleet(build.gpus("n")))
    assert placement.joint.verdict == "not-decided"
    assert placement.joint.reasons[0].startswith("Pod ml/p is not decided: ")


def test_workloads_are_sorted_by_namespace_kind_and_name(build):
    pods = [
        build.a_pod("z", "template:t", namespace="a"),
        build.a_pod("y", "template:t", namespace="b"),
        build.a_deployment("z", "template:t", namespace="b"),
        build.a_pod("a", "template:t", namespace="b"),
    ]
    placement = place(pods, build.a_fleet())
    assert [each.owner for each in placement.workloads] == [
        ObjectRef("Pod", "z", "a"),
        ObjectRef("Deployment", "z", "b"),
        ObjectRef("Pod", "a", "b"),
        ObjectRef("Pod", "y", "b"),
    ]


def test_notes_of_the_fleet_are_kept(build):
    fleet = build.a_fleet(build.gpus("n"), notes=("3 Pod in fleet.yaml not taken into account",))
    assert place([], fleet).notes == fleet.notes


def test_workloads_in_one_placement_give_the_answers_that_they_give_alone(build):
    fleet = build.a_fleet(build.gpus("a"), build.gpus("b", 3))
    shared = [build.a_class(), *(build.a_template(f"t{n}", build.a_request(count=n)) for n in (1, 3, 5, 9))]
    deployments = [build.a_deployment(f"d{n}", f"template:t{n}", replicas=2) for n in (1, 3, 5, 9)]
    together = place([*shared, *deployments], fleet).workloads
    for answer, deployment in zip(together, deployments, strict=True):
        (alone,) = place([*shared, deployment], fleet).workloads
        assert (alone.verdict, tuple(alone.nodes), alone.more_pods, alone.reasons) == (
            answer.verdict,
            tuple(answer.nodes),
            answer.more_pods,
            answer.reasons,
        )


def test_an_object_whose_pods_are_not_where_its_kind_has_them_is_named(build):
    spec = {"replicatedJob": [{"name": "w", "template": {"spec": build.pod_spec("template:t")}}]}
    job_set = build.an_object("JobSet", "train", apiVersion="jobset.x-k8s.io/v1alpha2", spec=spec)
    placement = place([job_set], build.a_fleet(build.gpus("n")))
    assert placement.workloads == ()
    (note,) = placement.notes
    assert note.startswith(
        "JobSet ml/train uses claims and is not placed here: no pods are where its kind is"
    )


def test_a_custom_resource_whose_pods_use_claims_is_named(build):
    jobs = {
        "replicatedJobs": [
            {"name": "workers", "template": {"spec": {"template": {"spec": build.pod_spec("template:t")}}}}
        ]
    }
    job_set = build.an_object("TrainingRun", "train", apiVersion="ml.example.com/v1", spec=jobs)
    config = build.an_object("ConfigMap", "c", apiVersion="v1", data={"resourceClaims": "[]"})
    placement = place([job_set, config], build.a_fleet(build.gpus("n")))
    assert placement.workloads == ()
    assert placement.unplaced == ("TrainingRun ml/train",)
    assert placement.notes == (
        "TrainingRun ml/train uses claims and is not placed here: its kind is not known to make pods (--kinds FILE names one)",
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"templates": [{"container": {}, "podSpecPatch": '{"resourceClaims": [{"name": "gpu"}]}'}]},
        {"draResources": [{"resourceClaimTemplateName": "t"}]},
        {"machine": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}},
    ],
)
def test_claims_are_found_in_whatever_way_an_object_names_them(build, spec):
    custom = build.an_object("Custom", "c", apiVersion="example.com/v1", spec=spec)
    (note,) = place([custom], build.a_fleet(build.gpus("n"))).notes
    assert note.startswith("Custom ml/c uses claims and is not placed here")


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({}, "ResourceClaim ml/shared is allocated, and not for this node"),
        ({"deletionTimestamp": "2026-11-01T00:00:00Z"}, "ResourceClaim ml/shared is being deleted"),
    ],
)
def test_a_claim_of_others_that_pods_cannot_have_is_told_as_the_reason(build, metadata, told):
    claim = build.a_claim("shared", build.a_request())
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]
    claim["status"] = {"allocation": {"devices": {}, "nodeSelector": {"nodeSelectorTerms": terms}}}
    claim["metadata"] |= metadata
    program = [build.a_class(), build.a_pod("p", "claim:shared")]
    (found,) = place(program, build.a_fleet(build.gpus("a")), taken=Taken(templates=(claim,))).workloads
    assert (found.verdict, [each.message for each in found.reasons]) == ("does-not-fit", [told])


@pytest.mark.parametrize(
    ("users", "first", "second", "verdict", "more"),
    [
        (100, 56, {"replicas": 100}, "always", [100, 56]),
        (101, 56, {"replicas": 100}, "never", [99, 55]),
        (154, 100, {"kind": "DaemonSet"}, "always", [2, 0]),
        (155, 100, {"kind": "DaemonSet"}, "never", [1, 0]),
    ],
)
def test_an_allocated_claim_has_no_more_users_than_it_may_of_all_workloads_together(
    build, users, first, second, verdict, more
):
    reserved = [{"resource": "pods", "name": f"u{number}"} for number in range(users)]
    claim = build.a_claim("shared", build.a_request())
    claim["status"] = {"allocation": {"devices": {}}, "reservedFor": reserved}
    roomy = {"cpu": "9000", "memory": "9000Gi", "pods": "900"}
    nodes = [build.a_node(name, allocatable=roomy) for name in ("a", "b")]
    program = [
        build.a_class(),
        build.a_deployment("first", "claim:shared", replicas=first),
        build.a_deployment("second", "claim:shared", **second),
    ]
    placement = place(program, build.a_fleet(build.gpus("a"), nodes=nodes), taken=Taken(templates=(claim,)))
    found = {each.owner.name: each.more_pods for each in placement.workloads}
    assert (placement.joint.verdict, [found["first"], found["second"]]) == (verdict, more)
    told = "ResourceClaim ml/shared has room for"
    assert placement.joint.reasons[0].startswith(told) == (verdict == "never")


@pytest.mark.parametrize(("pods", "fits"), [(1, "fits"), (2, "does-not-fit")])
def test_one_workload_with_more_pods_than_may_use_a_claim_does_not_fit(build, pods, fits):
    claim = build.a_claim("shared", build.a_request())
    reserved = [{"resource": "pods", "name": f"u{number}"} for number in range(255)]
    claim["status"] = {"allocation": {"devices": {}}, "reservedFor": reserved}
    program = [build.a_class(), build.a_deployment("d", "claim:shared", replicas=pods)]
    placement = place(program, build.a_fleet(build.gpus("a")), taken=Taken(templates=(claim,)))
    (found,) = placement.workloads
    assert (found.verdict, placement.joint.verdict) == (fits, "always" if pods == 1 else "never")
    told = "ResourceClaim ml/shared has room for 1 more pod of the 256 that may use it, and 2 ask for it"
    said = [("claim-reserved", told)] if pods == 2 else []
    assert [(each.code, each.message) for each in found.reasons] == said
