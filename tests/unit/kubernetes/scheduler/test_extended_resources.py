"""Which class serves an extended resource, on which nodes, and the claim that the scheduler makes."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import DeviceClass
from dra_infra.kubernetes.api.names import is_extended_resource_name
from dra_infra.kubernetes.scheduler import ServedResources, pod_requests
from dra_infra.target import ClusterTarget

GPU, NIC = "example.com/gpu", "example.com/nic"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


def a_release(minor="1.37", *, enabled=True):
    gates = {} if minor == "1.37" else {"DRAExtendedResource": enabled}
    return ClusterTarget(kubernetes=minor, gates=gates).releases[0]


def a_class(name, resource=None, created=None):
    metadata = {"name": name} | ({"creationTimestamp": created} if created else {})
    spec = {"extendedResourceName": resource} if resource else {}
    return DeviceClass.from_manifest(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata, "spec": spec}
    )


def containers(*requests, kind="requests", **rest):
    return [{"name": f"c{index}", "resources": {kind: each}, **rest} for index, each in enumerate(requests)]


def asked(spec, classes, allocatable=None, minor="1.37", **rest):
    demand = ServedResources(classes, a_release(minor)).find(spec, pod_requests(spec))
    if demand is None:
        return None
    made = demand.requests_for(allocatable or {}, **rest)
    return {each.name: (each.exactly.device_class_name, each.exactly.count) for each in made}


def test_a_class_serves_its_resource_and_the_one_that_it_has_by_its_name():
    served = ServedResources([a_class("gpu", GPU), a_class("plain")], a_release())
    assert [served.class_of(name) for name in (GPU, IMPLICIT, NIC)] == ["gpu", "gpu", None]
    assert served.class_of("deviceclass.resource.kubernetes.io/plain") == "plain"


def test_nothing_is_served_with_the_gate_off():
    assert ServedResources([a_class("gpu", GPU)], a_release("1.36", enabled=False)).class_of(GPU) is None


@pytest.mark.parametrize(
    ("classes", "new", "chosen"),
    [
        ([a_class("a", GPU, "2026-01-01T00:00:00Z"), a_class("b", GPU, "2026-01-02T00:00:00Z")], (), "b"),
        (
            [a_class("a", GPU, "2026-01-02T00:30:00+02:00"), a_class("b", GPU, "2026-01-01T23:00:00Z")],
            (),
            "b",
        ),
        ([a_class("b", GPU, "2026-01-01T00:00:00Z"), a_class("a", GPU, "2026-01-01T00:00:00Z")], (), "a"),
        ([a_class("b", GPU), a_class("a", GPU)], (), "a"),
        ([a_class("a", GPU, "2026-01-01T00:00:00Z"), a_class("b", GPU)], ("b",), "b"),
    ],
)
def test_the_newest_class_serves_a_resource_of_several_and_then_the_first_by_name(classes, new, chosen):
    assert ServedResources(classes, a_release(), frozenset(new)).class_of(GPU) == chosen


def test_what_depends_on_the_order_of_events_is_said():
    classes = [a_class("a", GPU, "2026-01-01T00:00:00Z"), a_class("b", GPU, "2026-01-02T00:00:00Z")]
    older = "deviceclass.resource.kubernetes.io/a"
    assert ServedResources(classes, a_release()).ambiguous == {older: ("a", "b")}
    assert ServedResources(classes, a_release("1.34")).ambiguous == {GPU: ("a", "b")}


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (GPU, True),
        ("cpu", False),
        ("kubernetes.io/x", False),
        (IMPLICIT, False),
        ("requests.example.com/gpu", False),
        ("example.com/" + "x" * 64, False),
        ("x" * 250 + "/gpu", False),
    ],
)
def test_names_of_extended_resources(name, is_one):
    assert is_extended_resource_name(name) is is_one


def test_each_container_gets_a_request_named_by_its_number_and_that_of_the_resource():
    spec = {"containers": containers({"cpu": "1", GPU: "2"}, {NIC: "1", GPU: "1", "a.example.com/x": "1"})}
    assert asked(spec, [a_class("gpu", GPU), a_class("nic", NIC)]) == {
        "container-0-request-1": ("gpu", 2),
        "container-1-request-1": ("gpu", 1),
        "container-1-request-2": ("nic", 1),
    }


def test_limits_stand_in_for_requests():
    spec = {"containers": containers({GPU: "2"}, kind="limits")}
    assert asked(spec, [a_class("gpu", GPU)]) == {"container-0-request-0": ("gpu", 2)}


def test_what_the_scheduler_does_not_read_as_a_whole_number_makes_no_request():
    spec = {"containers": containers({GPU: "1"}, {GPU: "9223372036854775808"}, {GPU: "1Pi"})}
    assert asked(spec, [a_class("gpu", GPU)]) == {"container-0-request-0": ("gpu", 1)}


def test_requests_come_in_the_order_of_their_names_as_text():
    spec = {"containers": containers(*[{GPU: "1"}] * 11)}
    made = asked(spec, [a_class("gpu", GPU)])
    assert list(made)[:3] == ["container-0-request-0", "container-1-request-0", "container-10-request-0"]


@pytest.mark.parametrize(
    ("init", "main", "expected"),
    [
        # Enough for the init container is what the others have.
        ([({GPU: "1"}, None)], [{GPU: "2"}], {"container-1-request-0": 2}),
        # It asks for what it lacks only.
        ([({GPU: "3"}, None)], [{GPU: "2"}], {"container-0-request-0": 1, "container-1-request-0": 2}),
        # Init containers run one after the other: the largest lack counts.
        (
            [({GPU: "3"}, None), ({GPU: "5"}, None)],
            [{GPU: "2"}],
            {"container-1-request-0": 3, "container-2-request-0": 2},
        ),
        # A sidecar that starts before cannot lend, for it uses its devices by then.
        (
            [({GPU: "1"}, "Always"), ({GPU: "2"}, None)],
            [{GPU: "1"}],
            {"container-0-request-0": 1, "container-1-request-0": 1, "container-2-request-0": 1},
        ),
        # One that starts later can.
        ([({GPU: "2"}, None), ({GPU: "2"}, "Always")], [{}], {"container-1-request-0": 2}),
    ],
)
def test_init_containers_use_what_those_after_them_have(init, main, expected):
    spec = {
        "initContainers": [
            {"name": f"i{index}", "resources": {"requests": requests}}
            | ({"restartPolicy": policy} if policy else {})
            for index, (requests, policy) in enumerate(init)
        ],
        "containers": containers(*main),
    }
    found = asked(spec, [a_class("gpu", GPU)])
    assert {name: count for name, (_, count) in found.items()} == expected


@pytest.mark.parametrize(
    ("minor", "at_zero"), [("1.34", {}), ("1.35", {"container-0-request-0": ("gpu", 1)})]
)
def test_the_device_plugin_of_a_node_comes_first(minor, at_zero):
    spec = {"containers": containers({GPU: "1"})}
    classes = [a_class("gpu", GPU)]
    assert asked(spec, classes, {GPU: 4}, minor) == {}
    assert asked(spec, classes, {GPU: 0}, minor) == at_zero
    assert asked(spec, classes, {}, minor) == {"container-0-request-0": ("gpu", 1)}


def test_one_resource_may_come_from_the_plugin_and_another_from_devices():
    spec = {"containers": containers({GPU: "1", NIC: "1"})}
    classes = [a_class("gpu", GPU), a_class("nic", NIC)]
    assert asked(spec, classes, {GPU: 4}) == {"container-0-request-1": ("nic", 1)}
    # 1.34 then asks for both.
    assert set(asked(spec, classes, {GPU: 4}, "1.34")) == {"container-0-request-0", "container-0-request-1"}


def test_an_implicit_name_gets_no_device_in_1_34():
    spec = {"containers": containers({IMPLICIT: "1"})}
    demand = ServedResources([a_class("gpu")], a_release("1.34")).find(spec, pod_requests(spec))
    assert demand.by_devices({}) == (IMPLICIT,)
    assert demand.requests_for({}) == ()
    assert asked(spec, [a_class("gpu")]) == {"container-0-request-0": ("gpu", 1)}


def test_init_containers_have_requests_of_their_own_in_1_34():
    spec = {"initContainers": containers({GPU: "2"}), "containers": containers({GPU: "2"})}
    assert asked(spec, [a_class("gpu", GPU)], minor="1.34") == {
        "container-0-request-0": ("gpu", 2),
        "container-1-request-0": ("gpu", 2),
    }


def test_no_claim_without_a_class_or_an_amount():
    spec = {"containers": containers({GPU: "1", NIC: "0", "cpu": "1"})}
    assert asked(spec, []) is None
    assert asked(spec, [a_class("nic", NIC)]) is None


def test_the_claim_is_the_pods_own():
    spec = {"containers": containers({GPU: "1"})}
    demand = ServedResources([a_class("gpu", GPU)], a_release()).find(spec, pod_requests(spec))
    claim = demand.claim_for({}, "train", "ml")
    assert claim.metadata.to_manifest() == {
        "generateName": "train-extended-resources-",
        "namespace": "ml",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "train", "controller": True}],
    }
    assert [each.name for each in claim.spec.devices.requests] == ["container-0-request-0"]
    assert demand.claim_for({GPU: 1}, "train", "ml") is None
