"""The answers of the scheduler's own plugins, recorded: affinity, spreading, ports, amounts and the generated claim.

`golden/filters.jsonl` holds random clusters of up to six nodes with the pods on them and one that comes, asked of
kube-scheduler 1.37.1: PreFilter and Filter of PodTopologySpread, InterPodAffinity and NodePorts, `Fits` of
NodeResourcesFit, and the claim of filterExtendedResources, after the server's defaults for pods. Of 4,000 such cases,
none of which differed, these are the ones that showed something new.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_infra.kubernetes.api import Amounts, DeviceClass, Namespaces, Node, NodeTaint
from dra_infra.kubernetes.scheduler import (
    PlacedPods,
    PodShape,
    ServedResources,
    find_shortage,
    node_amounts,
    pod_requests,
    read_shape,
)
from dra_infra.target import ClusterTarget

CASES = [
    json.loads(line) for line in (Path(__file__).parent / "golden" / "filters.jsonl").read_text().splitlines()
]
(RELEASE,) = ClusterTarget(kubernetes="1.37").releases


def a_shape(pod: dict[str, Any]) -> PodShape:
    metadata = pod["metadata"]
    return read_shape(
        pod["spec"],
        metadata["namespace"],
        metadata.get("labels", {}),
        is_going="deletionTimestamp" in metadata,
    )


def read_nodes(asked: dict[str, Any]) -> list[Node]:
    return [
        Node(
            name=each["metadata"]["name"],
            labels=each["metadata"]["labels"],
            allocatable=each["status"]["allocatable"],
            taints=tuple(NodeTaint(**taint) for taint in each["spec"].get("taints", ())),
        )
        for each in asked["nodes"]
    ]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_pods_that_run_refuse_the_nodes_that_the_plugins_refuse(case):
    asked = case["asked"]
    nodes = read_nodes(case["asked"])
    placed = PlacedPods(nodes, Namespaces({**each, "kind": "Namespace"} for each in asked["namespaces"]))
    coming = a_shape(asked["pod"])
    names = [node.name for node in nodes]
    for pod in asked["placed"]:
        placed.add(a_shape(pod), names.index(pod["spec"]["nodeName"]))
    refused = [placed.refusal(coming, node) for node in range(len(nodes))]
    # The first that refuses gives the reason, in the order of the default plugins.
    for said, theirs in zip(refused, case["theirs"], strict=True):
        expected = next((name for name in ("ports", "spread", "affinity") if theirs[name]), "")
        words = {"ports": "host port", "spread": "topology spread", "affinity": "affinity", "": ""}[expected]
        assert words in said
        assert bool(said) is bool(expected)
    assert list(placed.open_nodes(coming, range(len(nodes)))) == [
        node for node, said in enumerate(refused) if not said
    ]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_claim_and_amounts_are_those_of_the_scheduler(case):
    asked = case["asked"]
    spec = case["asked"]["pod"]["spec"]
    manifests = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", **each} for each in asked["classes"]
    ]
    classes = [DeviceClass.from_manifest(each) for each in manifests] if asked["extended"] else []
    requests = pod_requests(spec)
    demand = ServedResources(classes, RELEASE).find(spec, requests)
    taken: dict[str, Amounts] = {}
    for pod in asked["placed"]:
        onto = taken.setdefault(pod["spec"]["nodeName"], {})
        for name, amount in pod_requests(pod["spec"]).items():
            onto[name] = onto.get(name, 0) + amount
    for node, theirs in zip(read_nodes(asked), case["theirs"], strict=True):
        offered = node_amounts(node.allocatable)
        free = {name: amount - taken.get(node.name, {}).get(name, 0) for name, amount in offered.items()}
        by_devices = demand.by_devices(offered) if demand else ()
        shortage = find_shortage(requests, free, by_devices)
        assert shortage in theirs["short"] if theirs["short"] else not shortage
        if asked["extended"] and not theirs["short"]:
            made = demand.requests_for(offered, has_claims=asked["hasClaims"]) if demand else ()
            assert {
                each.name: [each.exactly.device_class_name, each.exactly.count] for each in made
            } == theirs["requests"]
