"""Orders of arrival that the verdict on all pods may not take for one: which pod has which device, and errors on devices."""

from __future__ import annotations

import pytest

from tests.support.placing import place

from . import conftest as build


def test_it_counts_which_pod_got_the_device_that_several_nodes_see():
    # The shared claim has a device of n0 where another pod came first, and then only n0 takes its pods.
    own = build.gpus("n0", 2)
    net = build.a_slice("net", [build.a_device("net-0"), build.a_device("net-1")], allNodes=True)
    nodes = [
        build.a_node(name, allocatable={"cpu": "3", "memory": "4Gi", "pods": pods})
        for name, pods in (("n0", "3"), ("n1", "3"))
    ]
    fleet = build.a_fleet(own, net, nodes=nodes)
    manifests = [
        build.a_class(),
        build.a_claim("shared", build.a_request()),
        build.a_template("t", build.a_request()),
        build.a_deployment("a", "claim:shared"),
        build.a_deployment("b", "claim:shared"),
        build.a_deployment("w", "template:t", replicas=2, kind="StatefulSet"),
    ]
    assert place(manifests, fleet).joint.verdict == "depends-on-order"


def test_a_pod_that_a_device_ends_the_attempt_of_is_not_proven_never_to_fit():
    # Where another pod has gpu-0, which lacks the attribute, nothing is evaluated on it.
    devices = [build.a_device("gpu-0"), build.a_device("gpu-1", {"size": 1})]
    fleet = build.a_fleet(build.a_slice("n", devices))
    reads = f'device.attributes["{build.DRIVER}"].size == 1'
    manifests = [
        build.a_class(),
        build.a_template("any", build.a_request()),
        build.a_template("sized", build.a_request("gpu", reads)),
        build.a_pod("first", "template:any"),
        build.a_pod("second", "template:sized"),
    ]
    joint = place(manifests, fleet).joint
    assert joint.verdict == "always"
    assert [each.owner.name for each in joint.works.arrivals] == ["first", "second"]


@pytest.mark.parametrize(("others", "verdict"), [(1, "never"), (2, "depends-on-order")])
def test_a_pod_waits_as_long_as_a_device_of_any_node_ends_its_attempt(others, verdict):
    # The scheduler looks at both nodes for the pod, and one that may still have the device without the attribute is enough.
    fleet = build.a_fleet(
        build.a_slice("n0", [build.a_device("gpu-0"), build.a_device("gpu-1", {"size": 1})]),
        build.a_slice("n1", [build.a_device("gpu-0"), build.a_device("gpu-1", {"size": 1})]),
    )
    reads = f'device.attributes["{build.DRIVER}"].size == 1'
    manifests = [
        build.a_class(),
        build.a_template("any", build.a_request()),
        build.a_template("sized", build.a_request("gpu", reads)),
        build.a_deployment("other", "template:any", replicas=others),
        build.a_pod("sized", "template:sized"),
    ]
    assert place(manifests, fleet).joint.verdict == verdict


def test_few_states_prove_nothing_where_a_device_may_end_an_attempt_in_others(monkeypatch):
    monkeypatch.setattr("dra_infra.placement.joint_verdict._FEW", 2)
    monkeypatch.setattr("dra_infra.placement.joint_verdict.FILLINGS_LIMIT", 2)
    whole = {f"gpu-{number}": {"size": 1} for number in range(3)}
    for last, verdict in (({"size": 1}, "always"), ({}, "not-decided")):
        devices = [build.a_device(name, attributes) for name, attributes in (*whole.items(), ("gpu-3", last))]
        fleet = build.a_fleet(*(build.a_slice(f"n{number}", devices) for number in range(4)))
        reads = f'device.attributes["{build.DRIVER}"].size == 1'
        manifests = [
            build.a_class(),
            build.a_template("sized", build.a_request("gpu", reads)),
            build.a_deployment("w", "template:sized", replicas=4),
        ]
        assert place(manifests, fleet).joint.verdict == verdict
