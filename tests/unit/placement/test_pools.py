"""Pools by generation, completeness and validity."""

from __future__ import annotations

import pytest

from dra_infra.placement.cluster import Cluster, newest_release


def states(fleet):
    cluster = Cluster(fleet, newest_release())
    return [
        [
            (str(pool.id), "incomplete" if pool.is_incomplete else "invalid" if pool.invalid else "usable")
            for pool in cluster.pools(node)
        ]
        for node in range(len(cluster.nodes))
    ]


def test_older_generation_is_dropped(build):
    fleet = build.a_fleet(
        build.a_slice("a", [build.a_device("old")], name="s1", generation=1),
        build.a_slice("a", [build.a_device("new")], name="s2", generation=2),
    )
    answer = build.place_request(fleet, build.a_request())
    assert build.devices(answer.nodes[0]) == ["new"]


def test_pool_with_a_slice_missing_gives_nothing(build):
    fleet = build.a_fleet(build.a_slice("a", [build.a_device("d0")], count=2))
    answer = build.place_request(fleet, build.a_request())
    assert build.codes(answer) == ["no-device-matches"]
    assert "gpu.example.com/a is incomplete: 1 of 2 slices are published" in answer.reasons[0].message


def test_pool_of_several_nodes_is_complete_by_the_slices_of_all(build):
    fleet = build.a_fleet(
        build.a_slice("p", [build.a_device("d0")], name="s1", node="a", count=2),
        build.a_slice("p", [build.a_device("d1")], name="s2", node="b", count=2),
    )
    answer = build.place_request(fleet, build.a_request())
    assert [(each.node, build.devices(each)) for each in answer.nodes] == [("a", ["d0"]), ("b", ["d1"])]


def test_pool_whose_newer_generation_is_elsewhere_is_ignored_silently(build):
    fleet = build.a_fleet(
        build.a_slice("p", [build.a_device("d0")], name="s1", node="a", generation=1, count=2),
        build.a_slice("p", [build.a_device("d1")], name="s2", node="b", generation=2, count=1),
    )
    assert states(fleet) == [[], [("gpu.example.com/p", "usable")]]


def test_device_name_twice_makes_a_pool_invalid(build):
    fleet = build.a_fleet(
        build.a_slice("a", [build.a_device("d0")], name="s1", count=2),
        build.a_slice("a", [build.a_device("d0")], name="s2", count=2),
    )
    answer = build.place_request(fleet, build.a_request())
    assert "is invalid: duplicate device name d0" in answer.reasons[0].message


@pytest.mark.parametrize(
    ("consumes", "reason"),
    [
        ({"counterSet": "nope", "counters": {"memory": {"value": "1"}}}, "counter set nope not found"),
        ({"counterSet": "set", "counters": {"x": {"value": "1"}}}, "counter x not found in counter set set"),
    ],
)
def test_unknown_counter_makes_a_pool_invalid(build, consumes, reason):
    counters = [{"name": "set", "counters": {"memory": {"value": "80Gi"}}}]
    fleet = build.a_fleet(
        build.a_slice("a", None, name="s1", count=2, sharedCounters=counters),
        build.a_slice("a", [build.a_device("d0", consumesCounters=[consumes])], name="s2", count=2),
    )
    answer = build.place_request(fleet, build.a_request())
    assert answer.reasons[0].message == f"resource pool gpu.example.com/a is invalid: {reason}"


@pytest.mark.parametrize(
    ("slices", "state"),
    [
        ([{"devices": ["d1"], "count": 2, "name": "s1"}], "being updated"),
        (
            [
                {"devices": ["d1"], "count": 2, "name": "s1"},
                {"devices": ["d1"], "count": 2, "name": "s2"},
            ],
            "invalid",
        ),
    ],
)
def test_all_aborts_over_a_broken_pool_of_any_driver(build, slices, state):
    broken = [
        build.a_slice(
            "z",
            [build.a_device(name) for name in each["devices"]],
            node="a",
            driver="other.example.com",
            name=each["name"],
            count=each["count"],
        )
        for each in slices
    ]
    fleet = build.a_fleet(build.gpus("a"), *broken)
    one = build.place_request(fleet, build.a_request())
    every = build.place_request(
        fleet, build.a_request("gpu", "device.driver == 'gpu.example.com'", allocationMode="All")
    )
    assert one.verdict == "fits"
    assert build.codes(every) == ["allocation-aborted"]
    assert every.reasons[0].message == (
        "claim ml/asked, request gpu: asks for all devices, but resource pool other.example.com/z "
        f"is currently {state}"
    )


def test_compatibility_groups_behind_their_gate_are_dropped_by_the_server(build):
    consumes = {
        "counterSet": "set",
        "counters": {"memory": {"value": "1"}},
        "compatibilityGroups": ["x"],
    }
    counters = [{"name": "set", "counters": {"memory": {"value": "80Gi"}}}]
    fleet = build.a_fleet(
        build.a_slice("a", [build.a_device("d0", consumesCounters=[consumes])], name="s1", count=2),
        build.a_slice("a", None, name="s2", count=2, sharedCounters=counters),
    )
    assert states(fleet) == [[("gpu.example.com/a", "usable")]]


def test_pools_with_binding_conditions_come_last(build):
    bound = build.a_device("d0", bindingConditions=["ready"], bindingFailureConditions=["broken"])
    fleet = build.a_fleet(
        build.a_slice("p1", [bound], node="n"), build.a_slice("p2", [build.a_device("d1")], node="n")
    )
    assert states(fleet) == [[("gpu.example.com/p2", "usable"), ("gpu.example.com/p1", "usable")]]
