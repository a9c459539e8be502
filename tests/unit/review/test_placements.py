from __future__ import annotations

from dataclasses import replace

import pytest

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement.placement import Reason
from dra_infra.placement.texts import TIMES, DeviceNames, describe_placement
from dra_infra.review.placements import compare_placements, find_unplaced

H100 = "H100 80GB HBM3"
JOB = ("Job", "train", 1, 4, H100)


@pytest.fixture
def fleet(make):
    return make.fleet(*(make.node(f"n{index}") for index in range(3)))


def summary(placement):
    (workload,) = placement.workloads
    return describe_placement(workload, DeviceNames.of(placement.fleet))


def test_a_placement_says_what_where_and_how_many_more(make, fleet):
    assert summary(make.place(fleet, JOB)) == (
        f"4 {TIMES} H100 80GB HBM3 on any of 3 nodes, e.g. n0 (gpu-0..3); alone it has room for 5 more pods"
    )


def test_a_pod_whose_claim_has_its_devices_needs_no_new_ones(make, fleet):
    (workload,) = make.place(fleet, JOB).workloads
    (node, *_) = workload.nodes
    has_them = replace(workload, nodes=(replace(node, devices=()),))
    assert describe_placement(has_them, DeviceNames.of(fleet)).startswith("no new devices, only on n0; ")


def test_several_pods_are_counted_each(make, fleet):
    assert summary(make.place(fleet, ("Deployment", "serve", 3, 1, H100))).startswith(
        f"3 pods, each 1 {TIMES} H100"
    )


def test_a_workload_without_pods_says_so_beside_what_one_would_get(make, fleet):
    assert summary(make.place(fleet, ("Deployment", "serve", 0, 1, H100))).startswith(
        f"0 pods, each 1 {TIMES} H100"
    )


def test_the_only_node_is_named_as_such(make):
    fleet = make.fleet(make.node("n0"))
    assert (
        summary(make.place(fleet, JOB))
        == f"4 {TIMES} H100 80GB HBM3 only on n0 (gpu-0..3); alone it has room for 1 more pod"
    )


def test_nodes_of_several_models_name_all_of_them(make):
    fleet = make.fleet(make.node("n0"), make.node("n1", "L40S"))
    placement = make.place(fleet, ("Job", "a", 1, 1, H100), ("Job", "b", 1, 1, "L40S"))
    both = [workload.nodes[0] for workload in placement.workloads]
    mixed = replace(placement, workloads=(replace(placement.workloads[0], nodes=both),))
    assert summary(mixed).startswith(
        f"1 {TIMES} H100 80GB HBM3 or 1 {TIMES} L40S on any of 2 nodes, e.g. n0 (gpu-0);"
    )


def many_of_two_models(make):
    fleet = make.fleet(*(make.node(f"n{index:02}", gpus=2) for index in range(70)), make.node("x", "L40S"))
    return make.place(fleet, ("Job", "a", 1, 2, H100), ("Job", "b", 1, 1, "L40S"))


def test_many_nodes_of_several_models_name_only_the_example(make):
    placement = many_of_two_models(make)
    first, other = placement.workloads
    mixed = replace(placement, workloads=(replace(first, nodes=(*first.nodes, *other.nodes)),))
    assert summary(mixed).startswith(
        f"2 devices on any of 71 nodes, e.g. 2 {TIMES} H100 80GB HBM3 on n00 (gpu-0..1);"
    )


def test_many_nodes_of_one_model_name_it_in_a_fleet_of_several(make):
    placement = many_of_two_models(make)
    one = replace(placement, workloads=placement.workloads[:1])
    assert summary(one).startswith(f"2 {TIMES} H100 80GB HBM3 on any of 70 nodes, e.g. n00 (gpu-0..1);")


def test_partitions_are_called_by_profile(make):
    fleet = make.fleet(make.node("n0", gpus=0, partitions=1))
    assert summary(make.place(fleet, ("Job", "a", 1, 1, "1g.10gb"))).startswith(
        f"1 {TIMES} MIG 1g.10gb only on n0"
    )


def test_a_workload_that_does_not_fit_says_why(make, fleet):
    assert summary(make.place(fleet, ("Job", "big", 4, 8, H100))) == (
        "does not fit: 3 of 4 pods fit, each with 8 GPUs on one node"
    )


def test_a_workload_that_is_not_decided_says_why(make, fleet):
    placement = make.place(fleet, JOB)
    undecided = replace(
        placement.workloads[0],
        verdict="not-decided",
        nodes=(),
        reasons=(Reason(code="class-not-known", message="class h100 is not known here"),),
    )
    names = DeviceNames.of(fleet)
    assert describe_placement(undecided, names) == "not decided: class h100 is not known here"


def trends(before, after):
    return {review.owner.name: review.trend for review in compare_placements(before, after)}


def test_every_trend_is_told(make, fleet):
    before = make.place(
        fleet,
        ("Job", "same", 1, 1, H100),
        ("Job", "moved", 1, 1, H100),
        ("Job", "lost", 1, 8, H100),
        ("Job", "won", 4, 8, H100),
        ("Job", "never", 4, 8, H100),
        ("Job", "gone", 1, 1, H100),
    )
    after = make.place(
        fleet,
        ("Job", "same", 1, 1, H100),
        ("Job", "moved", 1, 2, H100),
        ("Job", "lost", 4, 8, H100),
        ("Job", "won", 3, 8, H100),
        ("Job", "never", 4, 8, H100),
        ("Job", "new", 1, 1, H100),
        ("Job", "stillborn", 4, 8, H100),
    )
    assert trends(before, after) == {
        "same": "same",
        "moved": "moved",
        "lost": "no-longer-fits",
        "won": "fits-now",
        "never": "does-not-fit",
        "gone": "gone",
        "new": "new",
        "stillborn": "does-not-fit",
    }
    reviews = compare_placements(before, after)
    assert [review.owner.name for review in reviews[:3]] == ["lost", "never", "stillborn"]
    assert reviews[-1].owner.name == "gone"


def test_parts_of_an_object_are_told_in_the_order_of_their_names(make, fleet):
    placement = make.place(fleet, *(("Job", part, 1, 1, H100) for part in "abcdefgh"))
    parts = tuple(
        replace(each, owner=ObjectRef("JobSet", "train", "ml", part=each.owner.name))
        for each in placement.workloads
    )
    reviews = compare_placements(None, replace(placement, workloads=parts[::-1]))
    assert [each.owner.part for each in reviews] == list("abcdefgh")


def test_what_was_before_is_told_only_where_it_differs(make, fleet):
    before, after = make.place(fleet, JOB), make.place(fleet, ("Job", "train", 1, 2, H100))
    (same,), (moved,) = compare_placements(before, before), compare_placements(before, after)
    assert same.previous == ""
    assert moved.previous == f"4 {TIMES} H100 80GB HBM3 on any of 3 nodes, e.g. n0 (gpu-0..3)"


def test_only_new_and_lost_workloads_are_problems(make, fleet):
    never = ("Job", "never", 4, 8, H100)
    before = make.place(fleet, ("Job", "lost", 1, 8, H100), never)
    after = make.place(fleet, ("Job", "lost", 4, 8, H100), never, ("Job", "stillborn", 4, 8, H100))
    found = find_unplaced(compare_placements(before, after), "production")
    assert {(problem.path, problem.code) for problem in found} == {
        ("Job ml/lost", "no-longer-fits"),
        ("Job ml/stillborn", "does-not-fit"),
    }


def test_without_a_fleet_there_is_nothing_to_compare():
    assert compare_placements(None, None) == ()


def test_a_placement_of_the_head_alone_counts_as_new(make, fleet):
    (workload,) = compare_placements(None, make.place(fleet, JOB))
    assert (workload.trend, workload.owner) == ("new", ObjectRef(kind="Job", name="train", namespace="ml"))
