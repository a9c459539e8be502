"""Pods that use no claim are part of the question: what they wait for is in the answer of every surface."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dra_infra import testing
from dra_infra.answers.explaining import explain
from dra_infra.answers.reviewing import compare
from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import DOES_NOT_FIT, FITS, simulate
from dra_infra.catalog import load_fleet
from dra_infra.catalog.fleet_files import gather_fleet

FLEET = "hgx-h100"


def a_job(resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "i", "resources": resources}], **spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {"template": {"spec": pod}},
    }


@pytest.mark.parametrize("minor", ["1.34", "1.35"])
@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        ({"limits": {"nvidia.com/gpu": 100}}, "the pod requests 100 nvidia.com/gpu, the node has none"),
        ({"requests": {"cpu": "9000"}}, "the pod requests 9k cpu, the node has 224"),
    ],
)
def test_every_surface_says_what_a_pod_without_claims_waits_for(
    minor: str, resources: dict[str, Any], reason: str
) -> None:
    scene = Scene.of_manifests([a_job(resources)], fleet=load_fleet(FLEET), kubernetes=minor)

    simulated = simulate(scene)
    explained = explain(scene, "job/train")
    reviewed = compare(scene.program, scene.program, base_label="main", fleet=scene.fleet)
    joint = testing.SynthesizedProgram(scene.program).fits_all(FLEET).joint

    assert simulated.placement is not None
    (workload,) = simulated.placement.workloads
    assert (workload.verdict, workload.reasons[0].message) == ("does-not-fit", reason)
    assert (simulated.exit_code, simulated.placement.joint.verdict) == (DOES_NOT_FIT, "never")
    assert (explained.verdict, explained.exit_code) == ("does-not-fit", 1)
    assert reason in explained.causes[-1].message
    assert explained.joint == joint == simulated.placement.joint
    assert [each.fits for each in reviewed.workloads] == [False]


def test_a_pod_without_claims_that_fits_is_said_to_need_no_devices() -> None:
    scene = Scene.of_manifests([a_job({"requests": {"cpu": "1"}})], fleet=load_fleet(FLEET))

    explained = explain(scene, "job/train")

    assert simulate(scene).exit_code == FITS
    assert (explained.verdict, explained.exit_code) == ("fits", 0)
    assert explained.subject_question.settled == "its pods fit, and need no devices of DRA"


@pytest.mark.parametrize(
    ("is_by_name", "verdict", "joint", "code"),
    [
        (True, "not-decided", "not-decided", "fleet-is-partial"),
        (False, "does-not-fit", "never", "node-refuses-pod"),
    ],
)
def test_every_surface_gives_one_answer_about_a_pod_that_no_node_lets_in(
    is_by_name: bool, verdict: str, joint: str, code: str
) -> None:
    named = load_fleet(FLEET)
    fleet = named if is_by_name else gather_fleet(named.to_manifests(), "nodes.yaml")
    scene = Scene.of_manifests([a_job({}, nodeSelector={"pool": "cpu"})], fleet=fleet)

    simulated = simulate(scene)
    explained = explain(scene, "job/train")
    reviewed = compare(replace(scene.program, objects=()), scene.program, base_label="main", fleet=fleet)
    tested = testing.SynthesizedProgram(scene.program)

    assert simulated.placement is not None
    (workload,) = simulated.placement.workloads
    assert (workload.verdict, workload.reasons[0].code) == (verdict, code)
    assert (simulated.exit_code, simulated.placement.joint.verdict) == (DOES_NOT_FIT, joint)
    assert (explained.verdict, explained.exit_code, explained.joint) == (
        verdict,
        1,
        simulated.placement.joint,
    )
    assert (tested.fits(fleet, "train").placement.verdict, tested.fits_all(fleet).joint.verdict) == (
        verdict,
        joint,
    )
    assert [each.trend for each in reviewed.workloads] == [verdict]
    assert (reviewed.is_blocked("problem"), reviewed.is_blocked("undecided")) == (not is_by_name, True)


def test_what_never_fits_stays_never_beside_pods_that_may_be_for_other_nodes() -> None:
    web = a_job({}, nodeSelector={"pool": "cpu"})
    large = a_job({"requests": {"cpu": "9000"}})
    large["metadata"]["name"] = "large"
    small = a_job({"requests": {"cpu": "1"}})
    small["metadata"]["name"] = "small"

    beside_large, beside_small = (
        simulate(Scene.of_manifests([web, other], fleet=load_fleet(FLEET))).placement
        for other in (large, small)
    )

    assert beside_large is not None
    assert beside_large.joint.verdict == "never"
    assert beside_small is not None
    assert beside_small.joint.verdict == "not-decided"
    assert beside_small.joint.reasons == (
        "Job ml/train is not decided: no node of the fleet lets its pods in, and they may be for nodes that the fleet does not name",
        "all others: fit in every order of arrival",
    )


def test_growth_is_open_where_pods_may_be_for_other_nodes(tmp_path: Path) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text("pools: [{name: gpu, nodes: hgx-h100, min: 1, max: 2}]")
    scene = Scene.of_manifests([a_job({}, nodeSelector={"pool": "cpu"})], fleet=load_fleet(str(pools)))

    simulated = simulate(scene)

    assert simulated.placement is not None
    assert simulated.placement.growth is not None
    assert simulated.placement.growth.verdict == "not-decided"
    assert simulated.placement.growth.reasons[1].startswith("all others: fits now")
    assert (simulated.exit_code, explain(scene, "job/train").exit_code) == (DOES_NOT_FIT, 1)


def test_a_class_that_serves_an_extended_resource_is_not_asked_of_the_device_plugin() -> None:
    serving = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {
            "selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}],
            "extendedResourceName": "nvidia.com/gpu",
        },
    }
    scene = Scene.of_manifests(
        [serving, a_job({"limits": {"nvidia.com/gpu": 4}})], fleet=load_fleet(FLEET), kubernetes="1.37"
    )

    simulated = simulate(scene)

    assert simulated.placement is not None
    assert [each.verdict for each in simulated.placement.workloads] == ["fits"]
