"""Which devices a pod gets, by selectors, counts, order and taints."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import DeviceClass
from dra_infra.placement.placement import DeviceChoice
from tests.support.placing import place

MODEL = "device.attributes['gpu.example.com'].model"


def test_first_devices_in_slice_order_are_taken(build):
    answer = build.place_request(build.a_fleet(build.gpus("a")), build.a_request(count=3))
    assert answer.verdict == "fits"
    assert build.devices(answer.nodes[0]) == ["gpu-0", "gpu-1", "gpu-2"]


def test_choice_names_entry_claim_request_driver_pool_and_device(build):
    answer = build.place_request(build.a_fleet(build.gpus("a", 1)), build.a_request())
    assert answer.nodes[0].devices == (
        DeviceChoice(
            entry="entry-0",
            claim="asked",
            request="gpu",
            driver="gpu.example.com",
            pool="a",
            device="gpu-0",
            device_class="gpu",
        ),
    )


def test_every_node_that_can_take_a_pod_is_a_candidate_in_order_of_name(build):
    fleet = build.a_fleet(build.gpus("c"), build.gpus("a"), build.gpus("b", 1))
    answer = build.place_request(fleet, build.a_request(count=2))
    assert [each.node for each in answer.nodes] == ["a", "c"]


def test_selectors_of_the_class_and_of_the_request_must_all_pass(build):
    fleet = build.a_fleet(
        build.a_slice(
            "a",
            [
                build.a_device("d0", {"model": "x", "fast": True}),
                build.a_device("d1", {"model": "y", "fast": True}),
                build.a_device("d2", {"model": "y", "fast": False}),
            ],
        )
    )
    answer = build.place_one(
        fleet,
        build.a_class("gpu", f"{MODEL} == 'y'"),
        build.a_template("t", build.a_request("gpu", "device.attributes['gpu.example.com'].fast")),
        build.a_pod("p", "template:t"),
    )
    assert build.devices(answer.nodes[0]) == ["d1"]


def test_program_class_comes_before_the_fleet_class_of_the_same_name(build):
    shipped = DeviceClass.from_manifest(build.a_class("gpu", "false"))
    fleet = build.a_fleet(build.gpus("a"), classes=[shipped])
    assert build.place_request(fleet, build.a_request()).verdict == "fits"


def test_class_of_the_fleet_is_known(build):
    shipped = DeviceClass.from_manifest(build.a_class("gpu", "true"))
    fleet = build.a_fleet(build.gpus("a"), classes=[shipped])
    answer = build.place_one(fleet, build.a_template("t", build.a_request()), build.a_pod("p", "template:t"))
    assert answer.verdict == "fits"


def test_a_later_request_starts_from_the_first_device_again(build):
    fleet = build.a_fleet(
        build.a_slice("a", [build.a_device("d0", {"model": "x"}), build.a_device("d1", {"model": "y"})])
    )
    answer = build.place_request(
        fleet, build.a_request("second", f"{MODEL} == 'y'"), build.a_request("first")
    )
    assert build.devices(answer.nodes[0]) == ["d1", "d0"]


def test_earlier_request_gives_way_to_a_later_one_that_needs_its_device(build):
    fleet = build.a_fleet(
        build.a_slice("a", [build.a_device("d0", {"model": "y"}), build.a_device("d1", {"model": "x"})])
    )
    answer = build.place_request(fleet, build.a_request("any"), build.a_request("y", f"{MODEL} == 'y'"))
    assert build.devices(answer.nodes[0]) == ["d1", "d0"]


def test_pools_go_by_driver_then_name_and_slices_by_name(build):
    fleet = build.a_fleet(
        build.a_slice("pool-b", [build.a_device("d3")], node="n", driver="a.example.com", name="s9"),
        build.a_slice("pool-a", [build.a_device("d2")], node="n", driver="a.example.com", name="s2", count=2),
        build.a_slice("pool-a", [build.a_device("d1")], node="n", driver="a.example.com", name="s1", count=2),
        build.a_slice("pool-a", [build.a_device("d4")], node="n", driver="b.example.com", name="s0"),
    )
    answer = build.place_request(fleet, build.a_request(count=4))
    assert build.devices(answer.nodes[0]) == ["d1", "d2", "d3", "d4"]


def test_several_claims_of_a_pod_get_different_devices(build):
    fleet = build.a_fleet(build.gpus("a", 3))
    manifests = [
        build.a_class(),
        build.a_template("two", build.a_request(count=2)),
        build.a_template("one", build.a_request()),
    ]
    answer = build.place_one(fleet, *manifests, build.a_pod("p", "template:one", "template:two"))
    assert [(each.claim, each.device) for each in answer.nodes[0].devices] == [
        ("one", "gpu-0"),
        ("two", "gpu-1"),
        ("two", "gpu-2"),
    ]


def test_claim_without_requests_fits_every_node(build):
    answer = build.place_request(build.a_fleet(nodes=[build.a_node("a")]))
    assert (answer.verdict, len(answer.nodes)) == ("fits", 1)


def test_all_takes_every_matching_device(build):
    fleet = build.a_fleet(
        build.a_slice("a", [build.a_device(f"d{i}", {"model": "xy"[i % 2]}) for i in range(5)])
    )
    answer = build.place_request(fleet, build.a_request("gpu", f"{MODEL} == 'x'", allocationMode="All"))
    assert build.devices(answer.nodes[0]) == ["d0", "d2", "d4"]


def test_all_needs_at_least_one_device(build):
    answer = build.place_request(
        build.a_fleet(build.gpus("a")), build.a_request("gpu", "false", allocationMode="All")
    )
    assert (answer.verdict, build.codes(answer)) == ("does-not-fit", ["no-device-matches"])


def test_all_fails_when_one_of_them_is_tainted(build):
    taints = [{"key": "gpu.example.com/xid", "value": "79", "effect": "NoSchedule"}]
    fleet = build.a_fleet(build.a_slice("a", [build.a_device("d0"), build.a_device("d1", taints=taints)]))
    answer = build.place_request(fleet, build.a_request(allocationMode="All"))
    assert build.codes(answer) == ["all-devices-blocked"]
    assert "gpu.example.com/xid=79:NoSchedule" in answer.reasons[0].message


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_tainted_device_is_passed_over(build, effect):
    taint = {"key": "k", "value": "v", "effect": effect}
    fleet = build.a_fleet(build.a_slice("a", [build.a_device("d0", taints=[taint]), build.a_device("d1")]))
    answer = build.place_request(fleet, build.a_request())
    assert build.devices(answer.nodes[0]) == ["d1"]


def test_taint_with_effect_none_blocks_nothing(build):
    taint = {"key": "k", "effect": "None"}
    fleet = build.a_fleet(build.a_slice("a", [build.a_device("d0", taints=[taint])]))
    assert build.place_request(fleet, build.a_request()).verdict == "fits"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k"}, False),
    ],
)
def test_toleration_lets_a_request_take_a_tainted_device(build, toleration, fits):
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    fleet = build.a_fleet(build.a_slice("a", [build.a_device("d0", taints=[taint])]))
    answer = build.place_request(fleet, build.a_request(tolerations=[toleration]))
    assert (answer.verdict == "fits") is fits
    assert fits or build.codes(answer) == ["device-tainted"]


def test_32_devices_of_one_claim_are_the_limit(build):
    fleet = build.a_fleet(build.gpus("a", 40))
    assert build.place_request(fleet, build.a_request(count=32)).verdict == "fits"
    answer = build.place_request(fleet, build.a_request("x", count=17), build.a_request("y", count=16))
    assert build.codes(answer) == ["allocation-aborted"]
    assert answer.reasons[0].message == (
        "claim ml/asked, request y: adding 16 devices exceeds the claim limit of 32, with 17 already accounted for"
    )


def test_limit_of_32_devices_counts_each_claim_by_itself(build):
    template = build.a_template("t", build.a_request(count=20))
    pod = build.a_pod("p", "template:t", "template:t")
    answer = build.place_one(build.a_fleet(build.gpus("a", 40)), build.a_class(), template, pod)
    assert answer.verdict == "fits"
    assert len(answer.nodes[0].devices) == 40


def test_device_that_all_nodes_can_use_goes_to_one_pod_only(build):
    fleet = build.a_fleet(
        build.a_slice("pool", [build.a_device("d0"), build.a_device("d1")], allNodes=True),
        nodes=[build.a_node("a"), build.a_node("b"), build.a_node("c")],
    )
    template = build.a_template("t", build.a_request())
    answer = build.place_one(
        fleet, build.a_class(), template, build.a_deployment("d", "template:t", replicas=1)
    )
    assert (len(answer.nodes), answer.more_pods) == (3, 1)


def test_device_behind_a_node_selector_is_for_matching_nodes(build):
    selector = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]
    }
    fleet = build.a_fleet(
        build.a_slice("pool", [build.a_device("d0")], nodeSelector=selector),
        nodes=[build.a_node("a", labels={"rack": "r2"}), build.a_node("b", labels={"rack": "r1"})],
    )
    answer = build.place_request(fleet, build.a_request())
    assert [each.node for each in answer.nodes] == ["b"]


def test_same_input_gives_the_same_answer(build):
    fleet = build.a_fleet(build.gpus("a"), build.gpus("b", 2))
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request(count=3)),
        build.a_deployment("d", "template:t"),
    ]
    assert place(manifests, fleet) == place(list(reversed(manifests)), fleet)
