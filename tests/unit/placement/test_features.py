"""What the allocator knows is placed: each feature of claims and devices once, and what a gate or minor makes of it."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.scheduler import Taken
from dra_infra.target import ClusterTarget
from tests.support.placing import place

A100 = "device.attributes['gpu.example.com'].model == 'a100'"
H100 = "device.attributes['gpu.example.com'].model == 'h100'"


def release(minor, **gates):
    return ClusterTarget(kubernetes=minor, gates=gates).releases[0]


def ladder(*entries):
    return {
        "name": "gpu",
        "firstAvailable": [
            {
                "name": name,
                "deviceClassName": "gpu",
                "count": count,
                "selectors": [{"cel": {"expression": expression}}],
            }
            for name, count, expression in entries
        ],
    }


def test_ladder_takes_the_first_entry_that_a_node_has(build):
    fleet = build.a_fleet(build.gpus("a", 2, model="a100"), build.gpus("b", 1, model="h100"))
    answer = build.place_request(fleet, ladder(("one", 1, H100), ("two", 2, A100)))
    assert answer.verdict == "fits"
    assert [[(each.request, each.device) for each in node.devices] for node in answer.nodes] == [
        [("gpu/two", "gpu-0"), ("gpu/two", "gpu-1")],
        [("gpu/one", "gpu-0")],
    ]


def test_ladder_of_a_server_without_the_gate_is_dropped(build):
    fleet = build.a_fleet(build.gpus("a", 2, model="a100"))
    manifests = [
        build.a_class(),
        build.a_template("t", ladder(("two", 2, A100))),
        build.a_pod("p", "template:t"),
    ]
    (answer,) = place(manifests, fleet, release=release("1.34", DRAPrioritizedList=False)).workloads
    assert answer.verdict != "fits"


def test_admin_access_takes_nothing_from_anybody(build):
    fleet = build.a_fleet(build.gpus("a", 1))
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request()),
        build.a_template("watch", build.a_request(adminAccess=True, allocationMode="All")),
        build.a_pod("p", "template:t"),
        build.a_pod("watcher", "template:watch"),
    ]
    placement = place(manifests, fleet)
    assert placement.joint.verdict == "always"
    assert [each.pods[0].devices[0].admin for each in placement.workloads] == [False, True]


def shareable(build, amount="10Gi"):
    return build.a_device("d0", memory=amount, allowMultipleAllocations=True)


def test_shares_of_a_device_are_given_until_its_capacity_is_taken(build):
    fleet = build.a_fleet(build.a_slice("a", [shareable(build)]))
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request(capacity={"requests": {"memory": "3Gi"}})),
        build.a_deployment("d", "template:t", replicas=2),
    ]
    (answer,) = place(manifests, fleet).workloads
    assert (answer.verdict, answer.more_pods) == ("fits", 1)
    (device,) = answer.pods[1].devices
    assert (device.device, device.share, device.consumed) == ("d0", True, (("memory", "3Gi"),))


def test_share_that_no_device_is_large_enough_for_is_told(build):
    fleet = build.a_fleet(build.a_slice("a", [shareable(build)]))
    answer = build.place_request(fleet, build.a_request(capacity={"requests": {"memory": "11Gi"}}))
    assert (answer.verdict, build.codes(answer)) == ("does-not-fit", ["capacity-too-small"])


def partitions(build, *sizes, whole=4, node="a"):
    counters = [{"name": "gpu-0", "counters": {"slices": {"value": str(whole)}}}]
    devices = [
        build.a_device(
            f"part-{index}",
            consumesCounters=[{"counterSet": "gpu-0", "counters": {"slices": {"value": str(size)}}}],
        )
        for index, size in enumerate(sizes)
    ]
    return (
        build.a_slice(node, None, name=f"{node}-counters", count=2, sharedCounters=counters),
        build.a_slice(node, devices, name=f"{node}-devices", count=2),
    )


def test_partitions_share_the_counters_of_their_device(build):
    fleet = build.a_fleet(*partitions(build, 2, 2, 2))
    template = build.a_template("t", build.a_request())
    answer = build.place_one(
        fleet, build.a_class(), template, build.a_deployment("d", "template:t", replicas=2)
    )
    assert (answer.verdict, answer.more_pods) == ("fits", 0)
    assert [build.devices(pod) for pod in answer.pods] == [["part-0"], ["part-1"]]


def test_partitions_that_take_more_than_there_is_are_told(build):
    answer = build.place_request(build.a_fleet(*partitions(build, 3, 3)), build.a_request(count=2))
    assert (answer.verdict, build.codes(answer)) == ("does-not-fit", ["counters-exceeded"])


def test_partitions_of_a_server_without_the_gate_are_plain_devices(build):
    fleet = build.a_fleet(*partitions(build, 3, 3))
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request(count=2)),
        build.a_pod("p", "template:t"),
    ]
    (answer,) = place(manifests, fleet, release=release("1.35")).workloads
    assert (answer.verdict, build.devices(answer.nodes[0])) == ("fits", ["part-0", "part-1"])


def test_devices_that_say_for_themselves_where_they_are(build):
    devices = [build.a_device("d0", nodeName="b"), build.a_device("d1", nodeName="a")]
    fleet = build.a_fleet(
        build.a_slice("p", devices, perDeviceNodeSelection=True),
        nodes=[build.a_node("a"), build.a_node("b")],
    )
    answer = build.place_request(fleet, build.a_request())
    assert [(each.node, build.devices(each)) for each in answer.nodes] == [("a", ["d1"]), ("b", ["d0"])]


def test_earlier_versions_of_the_api_are_placed_as_the_server_stores_them(build):
    flat = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu", "count": 2}]}}},
    }
    class_ = build.a_class() | {"apiVersion": "resource.k8s.io/v1beta2"}
    answer = build.place_one(build.a_fleet(build.gpus("a")), class_, flat, build.a_pod("p", "template:t"))
    assert (answer.verdict, build.devices(answer.nodes[0])) == ("fits", ["gpu-0", "gpu-1"])


def test_search_that_ends_with_the_time_is_not_decided(build):
    manifests = [build.a_class(), build.a_template("t", build.a_request()), build.a_pod("p", "template:t")]
    (answer,) = place(manifests, build.a_fleet(build.gpus("a")), is_late=lambda: True).workloads
    assert (answer.verdict, build.codes(answer)) == ("not-decided", ["search-stopped"])
    assert answer.reasons[0].message == "when the time was up"


RULE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "repair"},
    "spec": {
        "deviceSelector": {"pool": "a", "device": "gpu-1"},
        "taint": {"key": "repair", "effect": "NoSchedule"},
    },
}


@pytest.mark.parametrize(("minor", "left"), [("1.37", 7), ("1.36", 8)])
def test_rules_of_the_program_and_of_the_cluster_taint_devices(build, minor, left):
    fleet = build.a_fleet(build.gpus("a"))
    manifests = [build.a_class(), build.a_template("t", build.a_request()), build.a_pod("p", "template:t")]
    for given, taken in ([*manifests, RULE], Taken()), (manifests, Taken(policies=(RULE,))):
        (answer,) = place(given, fleet, taken=taken, release=release(minor)).workloads
        assert (answer.verdict, 1 + answer.more_pods) == ("fits", left)


def test_rule_that_is_not_understood_is_noted(build):
    rule = {**RULE, "spec": {**RULE["spec"], "deviceSelector": {"deviceClassName": "gpu"}}}
    placement = place([rule], build.a_fleet(build.gpus("a")))
    assert placement.notes == (
        "DeviceTaintRule repair: its selector is not understood, so its taint is on no device here",
    )
