"""A claim or its template, asked about by itself: `explain` and `dra.testing` place one pod that uses nothing but it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dra_infra import testing
from dra_infra.answers.explaining import explain
from dra_infra.answers.scene import Scene
from dra_infra.catalog import load_fleet
from dra_infra.catalog.snapshots import snapshot_of
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import NodeTaint
from dra_infra.placement.running import Running
from tests.unit.answers.objects import API, FLEET, a_program, a_template

TAINTED = {"taints": (NodeTaint(key="team", value="a", effect="NoSchedule"),)}
A_QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "team", "namespace": "ml"},
    "spec": {"hard": {"gpu.example.com.deviceclass.resource.k8s.io/devices": "0"}},
}


def a_fleet(**changes: Any) -> Fleet:
    fleet = load_fleet(FLEET)
    return replace(fleet, nodes=tuple(replace(node, **changes) for node in fleet.nodes))


@pytest.mark.parametrize(
    ("around", "changes", "verdict"),
    [
        ([], {}, "fits"),
        ([A_QUOTA], {}, "does-not-fit"),
        ([], {"unschedulable": True}, "does-not-fit"),
        # A claim does not say what the pods that will use it tolerate.
        ([], TAINTED, "fits"),
    ],
    ids=["free", "a quota of nothing", "a cordoned node", "a tainted node"],
)
def test_explain_says_of_a_claim_what_the_tests_of_users_say(
    around: list[dict[str, Any]], changes: dict[str, Any], verdict: str
) -> None:
    program = a_program(a_template(), *around)
    fleet = a_fleet(**changes)

    explained = explain(Scene.of(program, fleet=fleet), "template/gpu")
    tested = testing.SynthesizedProgram(program).claim("gpu").fits(fleet)

    assert (explained.verdict, tested.placement.verdict) == (verdict, verdict)
    assert explained.exit_code == (0 if verdict == "fits" else 1)


def test_a_quota_that_refuses_a_claim_is_the_cause() -> None:
    scene = Scene.of(a_program(a_template(), A_QUOTA), fleet=load_fleet(FLEET))

    assert [each.code for each in explain(scene, "template/gpu").causes] == ["quota-refuses"]


def test_a_claim_gets_no_device_that_another_pod_has() -> None:
    fleet = load_fleet(FLEET)
    (node,) = fleet.nodes
    results = [
        {"request": "gpu", "driver": "gpu.example.com", "pool": node.name, "device": device.name}
        for slice_ in fleet.slices
        for device in slice_.spec.devices or ()
    ]
    held = {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": "all", "namespace": "ml"},
        "spec": a_template(count=len(results))["spec"]["spec"],
        "status": {"allocation": {"devices": {"results": results}}},
    }
    program = a_program(a_template())
    snapshot = snapshot_of([*fleet.to_manifests(), held])
    scene = Scene.of(program, fleet=snapshot.fleet, running=Running.of(snapshot, program))

    assert explain(scene, "template/gpu").verdict == "does-not-fit"
