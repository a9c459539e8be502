"""Placement beside Kubernetes' allocator: on every node the same devices in the same order, or none on both sides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Node, ResourceSlice
from tests.support.parity.judge import Judge
from tests.support.placing import place

pytestmark = pytest.mark.e2e

API_VERSION = "resource.k8s.io/v1"
DRIVERS = ("a.example.com", "gpu.example.com")
SELECTORS = (
    "device.driver == 'gpu.example.com'",
    "device.attributes['gpu.example.com'].?size.orValue(0) >= 2",
    "'colour' in device.attributes['gpu.example.com'] && device.attributes['gpu.example.com'].colour == 'red'",
    "device.attributes['gpu.example.com'].colour == 'red'",
)
ATTRIBUTES = ("gpu.example.com/size", "gpu.example.com/colour", "k8s.io/root")

values = st.fixed_dictionaries(
    {},
    optional={
        "size": st.sampled_from([{"int": 1}, {"int": 2}]),
        "colour": st.sampled_from([{"string": "red"}, {"string": "blue"}]),
        "k8s.io/root": st.sampled_from([{"string": "x"}, {"string": "y"}]),
    },
)
taints = st.lists(st.sampled_from([{"key": "k", "value": "v", "effect": "NoSchedule"}]), max_size=1)
leaves = st.fixed_dictionaries(
    {
        "deviceClassName": st.sampled_from(["any", "gpu"]),
        "mode": st.sampled_from(
            [("ExactCount", 1), ("ExactCount", 1), ("ExactCount", 2), ("ExactCount", 3), ("All", 0)]
        ),
    },
    optional={
        "selectors": st.lists(st.sampled_from(SELECTORS), min_size=1, max_size=2),
        "tolerations": st.just([{"key": "k", "operator": "Exists"}]),
    },
)
constraints = st.tuples(st.sampled_from(["matchAttribute", "distinctAttribute"]), st.sampled_from(ATTRIBUTES))


@st.composite
def fleets(draw: st.DrawFn) -> list[dict[str, Any]]:
    slices = []
    for node in range(draw(st.integers(1, 3))):
        for driver in draw(st.lists(st.sampled_from(DRIVERS), min_size=1, max_size=2, unique=True)):
            devices = [
                {"name": f"d{index}", "attributes": draw(values), "taints": draw(taints)}
                for index in range(draw(st.integers(0, 4)))
            ]
            pool = {"name": f"n{node}", "generation": 1, "resourceSliceCount": 1}
            slices.append(
                {
                    "apiVersion": API_VERSION,
                    "kind": "ResourceSlice",
                    "metadata": {"name": f"n{node}-{driver}"},
                    "spec": {"driver": driver, "pool": pool, "nodeName": f"n{node}", "devices": devices},
                }
            )
    return slices


@st.composite
def claims(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for number in range(draw(st.integers(1, 2))):
        requests = []
        for index, leaf in enumerate(draw(st.lists(leaves, min_size=1, max_size=2))):
            mode, count = leaf["mode"]
            exactly: dict[str, Any] = {"deviceClassName": leaf["deviceClassName"], "allocationMode": mode}
            if mode == "ExactCount":
                exactly["count"] = count
            if "selectors" in leaf:
                exactly["selectors"] = [{"cel": {"expression": text}} for text in leaf["selectors"]]
            if "tolerations" in leaf:
                exactly["tolerations"] = leaf["tolerations"]
            requests.append({"name": f"r{index}", "exactly": exactly})
        devices: dict[str, Any] = {"requests": requests}
        chosen = draw(st.lists(constraints, max_size=1))
        if chosen:
            devices["constraints"] = [{kind: attribute} for kind, attribute in chosen]
        made.append(
            {
                "apiVersion": API_VERSION,
                "kind": "ResourceClaim",
                "metadata": {"name": f"c{number}", "namespace": "ml"},
                "spec": {"devices": devices},
            }
        )
    return made


CLASSES = [
    {"apiVersion": API_VERSION, "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}},
    {
        "apiVersion": API_VERSION,
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": SELECTORS[0]}}]},
    },
]


def pod_with(claims: list[dict[str, Any]]) -> dict[str, Any]:
    names = [claim["metadata"]["name"] for claim in claims]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "ml"},
        "spec": {
            "resourceClaims": [{"name": name, "resourceClaimName": name} for name in names],
            "containers": [
                {"name": "c", "image": "i", "resources": {"claims": [{"name": name} for name in names]}}
            ],
        },
    }


@pytest.fixture(scope="module")
def judge(binaries: Callable[[str], Path]):
    with Judge(binaries("allocator-judge")) as process:
        yield process


@settings(
    max_examples=500,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(fleets(), claims())
def test_the_allocator_picks_the_devices_that_we_name(
    judge: Judge, slices: list[dict[str, Any]], claims: list[dict[str, Any]]
):
    nodes = sorted({each["spec"]["nodeName"] for each in slices})
    answers = judge.ask(
        {
            "slices": slices,
            "classes": CLASSES,
            "claims": claims,
            "nodes": [{"metadata": {"name": name}} for name in nodes],
        }
    )
    fleet = Fleet(
        name="random",
        nodes=tuple(Node(name=name, allocatable={"pods": "10"}) for name in nodes),
        slices=tuple(ResourceSlice.from_manifest(each) for each in slices),
    )

    (placement,) = place([*CLASSES, *claims, pod_with(claims)], fleet).workloads

    if any(answer.get("error") and not answer.get("onNode") for answer in answers):
        event("the scheduler gives up with an error")
        # An error on one node ends the attempt for the pod, whatever other nodes could do.
        assert placement.verdict == "does-not-fit"
        assert {reason.code for reason in placement.reasons} >= {"allocation-aborted"}
        return
    theirs = {
        node: [tuple(device) for claim in answer["devices"] for device in claim]
        for node, answer in zip(nodes, answers, strict=True)
        if answer["devices"] is not None
    }
    ours = {
        each.node: [(choice.request, choice.driver, choice.pool, choice.device) for choice in each.devices]
        for each in placement.nodes
    }
    event(f"{len(theirs)} of {len(nodes)} nodes can take the pod")
    assert ours == theirs
    assert placement.verdict == ("fits" if theirs else "does-not-fit")
