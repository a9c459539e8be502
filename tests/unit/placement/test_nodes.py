"""What a node must be for a pod, devices aside."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import Node, matches_node_selector
from dra_infra.kubernetes.scheduler import pod_requests, show_amount


def on(build, node, **pod):
    fleet = build.a_fleet(build.gpus("n"), nodes=[node])
    return build.place_request(fleet, build.a_request(), **pod)


def requirement(operator, values=None, key="zone"):
    return {"key": key, "operator": operator} | ({} if values is None else {"values": values})


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        (requirement("In", ["a", "b"]), True),
        (requirement("In", ["b"]), False),
        (requirement("In", ["a"], key="none"), False),
        (requirement("NotIn", ["b"]), True),
        (requirement("NotIn", ["a"]), False),
        (requirement("NotIn", ["a"], key="none"), True),
        (requirement("Exists"), True),
        (requirement("Exists", key="none"), False),
        (requirement("DoesNotExist"), False),
        (requirement("DoesNotExist", key="none"), True),
        (requirement("Gt", ["7"], key="size"), True),
        (requirement("Gt", ["8"], key="size"), False),
        (requirement("Lt", ["9"], key="size"), True),
        (requirement("Lt", ["8"], key="size"), False),
        (requirement("Gt", ["1"]), False),
        (requirement("Gt", ["1", "2"], key="size"), False),
        (requirement("Nope", ["a"]), False),
    ],
)
def test_label_requirement(expression, fits):
    node = Node(name="n", labels={"zone": "a", "size": "8"})
    selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    assert matches_node_selector(selector, node.labels, node.name) is fits


@pytest.mark.parametrize(
    ("value", "bound", "above"),
    [
        (str(2**63 - 1), "1", True),
        (str(2**63), "1", False),
        ("9", str(-(2**63)), True),
        ("9", str(-(2**63) - 1), False),
        (f"+{'0' * 40}8", "7", True),
    ],
)
def test_numbers_of_labels_are_those_of_64_bits(value, bound, above):
    terms = [{"matchExpressions": [requirement("Gt", [bound], key="size")]}]
    assert matches_node_selector({"nodeSelectorTerms": terms}, {"size": value}, "n") is above


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ([], False),
        ([{}], False),
        ([{}, {"matchFields": [requirement("In", ["n"], key="metadata.name")]}], True),
        ([{"matchFields": [requirement("NotIn", ["n"], key="metadata.name")]}], False),
        ([{"matchFields": [requirement("In", ["n"], key="metadata.namespace")]}], False),
        (
            [
                {
                    "matchFields": [requirement("In", ["n"], key="metadata.name")],
                    "matchExpressions": [requirement("Exists")],
                }
            ],
            False,
        ),
    ],
)
def test_terms_are_alternatives_and_their_parts_are_not(terms, fits):
    assert matches_node_selector({"nodeSelectorTerms": terms}, {}, "n") is fits


def test_node_selector_must_match_every_label(build):
    node = build.a_node("n", labels={"a": "1"})
    assert on(build, node, nodeSelector={"a": "1"}).verdict == "fits"
    answer = on(build, node, nodeSelector={"a": "1", "b": "2"})
    assert build.codes(answer) == ["node-refuses-pod"]
    assert answer.reasons[0].message == "nodeSelector wants b=2, and the label is not there"
    assert (answer.reasons[0].nodes, answer.reasons[0].example) == (1, "n")


def test_required_node_affinity_must_match(build):
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement("In", ["a"])]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert on(build, build.a_node("n", labels={"zone": "a"}), affinity=affinity).verdict == "fits"
    assert build.codes(on(build, build.a_node("n"), affinity=affinity)) == ["node-refuses-pod"]


def test_preferred_node_affinity_decides_nothing(build):
    preferred = [{"weight": 1, "preference": {"matchExpressions": [requirement("In", ["a"])]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert on(build, build.a_node("n"), affinity=affinity).verdict == "fits"


def test_a_pod_that_names_its_node_gets_no_devices_for_nobody_allocates_its_claims(build):
    fleet = build.a_fleet(build.gpus("a"), build.gpus("b"))
    answer = build.place_request(fleet, build.a_request(), nodeName="b")
    assert (answer.verdict, set(build.codes(answer))) == ("does-not-fit", {"node-refuses-pod"})
    assert ["which alone allocates its claims" in each.message for each in answer.reasons] == [True]


def test_a_pod_of_a_cluster_that_has_its_node_goes_there(build):
    pod = build.a_pod("p", "template:t", nodeName="b") | {"status": {"phase": "Running"}}
    fleet = build.a_fleet(build.gpus("a"), build.gpus("b"))
    answer = build.place_one(fleet, build.a_class(), build.a_template("t"), pod)
    assert [each.node for each in answer.nodes] == ["b"]


@pytest.mark.parametrize(
    ("taint", "toleration", "fits"),
    [
        ({"key": "k", "value": "v"}, None, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, None, False),
        ({"key": "k", "value": "v", "effect": "PreferNoSchedule"}, None, True),
        ({"key": "k", "value": "v"}, {"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "v"}, {"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k", "value": "v"}, {"operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, {"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, None, True),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, None, False),
    ],
)
def test_node_taint_needs_a_toleration(build, taint, toleration, fits):
    node = build.a_node("n", taints=[taint])
    answer = on(build, node, **({"tolerations": [toleration]} if toleration else {}))
    assert (answer.verdict == "fits") is fits


def test_cordoned_node_is_refused_unless_tolerated(build):
    node = build.a_node("n", unschedulable=True)
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    assert on(build, node).reasons[0].message == "the node is cordoned"
    assert on(build, node, tolerations=[toleration]).verdict == "fits"


@pytest.mark.parametrize(
    ("allocatable", "message"),
    [
        (
            {"cpu": "2", "memory": "8Gi", "pods": "9"},
            "the pod requests 3 cpu, the node has 2",
        ),
        (
            {"cpu": "4", "memory": "1Gi", "pods": "9"},
            "the pod requests 2Gi memory, the node has 1Gi",
        ),
        ({"cpu": "4", "pods": "9"}, "the pod requests 2Gi memory, the node has none"),
        ({"cpu": "4", "memory": "8Gi", "pods": "0"}, "the node has no slot for a pod"),
        ({"cpu": "4", "memory": "8Gi"}, "the node has no slot for a pod"),
    ],
)
def test_node_must_have_the_resources(build, allocatable, message):
    answer = on(build, build.a_node("n", allocatable=allocatable), requests={"cpu": "3", "memory": "2Gi"})
    assert build.codes(answer) == ["node-too-small"]
    assert answer.reasons[0].message == message


def test_node_resources_bound_the_number_of_pods(build):
    node = build.a_node("n", allocatable={"cpu": "5", "memory": "8Gi", "pods": "110"})
    answer = on(build, node, requests={"cpu": "1500m"})
    assert (answer.verdict, answer.more_pods) == ("fits", 2)


def test_pod_slots_bound_the_number_of_pods(build):
    answer = on(build, build.a_node("n", allocatable={"cpu": "5", "memory": "8Gi", "pods": "3"}))
    assert answer.more_pods == 2


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [{"resources": {"requests": {"cpu": "1"}}}] * 2}, 2000),
        ({"containers": [{"resources": {"limits": {"cpu": "1"}}}]}, 1000),
        ({"containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}}]}, 1000),
        ({"containers": [{"resources": {"requests": {"cpu": "100u"}}}]}, 1),
        (
            {
                "initContainers": [{"resources": {"requests": {"cpu": "3"}}}],
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            },
            3000,
        ),
        (
            {
                "initContainers": [
                    {"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
                    {"resources": {"requests": {"cpu": "3"}}},
                ],
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            },
            5000,
        ),
        (
            {
                "resources": {"requests": {"cpu": "7"}},
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            },
            7000,
        ),
        (
            {
                "resources": {"limits": {"cpu": "7"}},
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            },
            1000,
        ),
        (
            {
                "overhead": {"cpu": "250m"},
                "resources": {"requests": {"cpu": "7"}},
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            },
            7250,
        ),
    ],
)
def test_requests_of_a_pod_add_up_as_the_scheduler_adds(spec, cpu):
    assert pod_requests(spec)["cpu"] == cpu


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 2**31, "2Gi"),
        ("memory", 1000, "1k"),
        ("example.com/x", 3, "3"),
    ],
)
def test_amounts_read_as_people_write_them(name, amount, text):
    assert show_amount(name, amount) == text


def test_huge_pages_of_the_pod_stand_in_for_those_of_its_containers():
    huge = {"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"hugepages-2Mi": "4Mi"}}
    spec = {"containers": [{"resources": huge}], "resources": {"limits": {"hugepages-2Mi": "16Mi"}}}
    assert pod_requests(spec)["hugepages-2Mi"] == 16 << 20
    assert pod_requests({"containers": spec["containers"]})["hugepages-2Mi"] == 4 << 20
