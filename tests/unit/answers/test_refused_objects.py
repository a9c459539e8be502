"""Pods that need an object with an error fit nowhere, in the answer of every surface."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dra_infra import testing
from dra_infra.answers.checking import check
from dra_infra.answers.explaining import explain
from dra_infra.answers.placing import place_scene
from dra_infra.answers.reviewing import compare
from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import DOES_NOT_FIT, FITS, NO_ANSWER, simulate
from dra_infra.catalog import load_fleet
from dra_infra.cli.explain_report import describe
from dra_infra.errors import Problem
from tests.unit.answers.objects import API, FLEET, a_class, a_pod, a_program, a_scene, a_template

BROKEN = a_class("broken", "device.driver ==", "example.com/gpu")

REFUSED = {
    "claim template": ([a_template(count=-1), a_pod()], "ResourceClaimTemplate ml/gpu"),
    "class of the claim template": (
        [BROKEN, a_template(device_class="broken"), a_pod()],
        "DeviceClass broken",
    ),
    "class that serves an extended resource": (
        [
            BROKEN,
            {
                **a_pod(),
                "spec": {
                    "containers": [
                        {"name": "main", "image": "i", "resources": {"limits": {"example.com/gpu": "1"}}}
                    ]
                },
            },
        ],
        "DeviceClass broken",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_pods_that_need_an_object_with_an_error_fit_on_no_surface(case: str) -> None:
    manifests, needed = REFUSED[case]
    scene = a_scene(*manifests)

    simulated = simulate(scene)
    explained = explain(scene, "pod/train")
    reviewed = compare(scene.program, scene.program, base_label="main", fleet=scene.fleet)
    tested = testing.SynthesizedProgram(scene.program).fits(FLEET, "train")

    assert simulated.placement is not None
    (workload,) = simulated.placement.workloads
    assert (workload.verdict, workload.reasons[0].code) == ("does-not-fit", "needs-refused-object")
    assert f"needs {needed}, which has an error" in workload.reasons[0].message
    assert (simulated.exit_code, simulated.placement.joint.verdict) == (DOES_NOT_FIT, "never")
    assert (explained.verdict, explained.exit_code) == ("does-not-fit", 1)
    assert explained.causes[0].code == "needs-refused-object"
    assert explained.joint == simulated.placement.joint
    assert [each.fits for each in reviewed.workloads] == [False]
    assert reviewed.failed
    assert "0 of 1 workload fits" in reviewed.verdict
    assert not tested
    assert tested.placement.reasons == workload.reasons


def test_a_pod_with_an_error_of_its_own_fits_nowhere() -> None:
    pod = a_pod()
    pod["spec"]["resourceClaims"][0]["resourceClaimName"] = "and-a-claim"

    simulated = simulate(a_scene(a_template(), pod))

    assert simulated.placement is not None
    (workload,) = simulated.placement.workloads
    assert workload.reasons[0].message.startswith("has an error: ")
    assert simulated.exit_code == DOES_NOT_FIT


def test_other_workloads_are_placed_beside_one_that_is_refused() -> None:
    scene = a_scene(a_template(), a_template("wrong", count=-1), a_pod(), a_pod("stuck", "wrong"))

    placement = simulate(scene).placement

    assert placement is not None
    verdicts = {each.owner.name: each.verdict for each in placement.workloads}
    assert verdicts == {"train": "fits", "stuck": "does-not-fit"}
    assert placement.joint.verdict == "never"
    assert "Pod ml/stuck" in placement.joint.reasons[0]
    stuck = next(each for each in placement.workloads if each.owner.name == "stuck")
    assert "ResourceClaimTemplate ml/wrong" in stuck.reasons[0].message


def test_an_object_with_an_error_that_no_pod_needs_keeps_no_pod_away() -> None:
    simulated = simulate(a_scene(a_template(), a_template("unused", count=-1), a_pod()))

    assert simulated.placement is not None
    assert [each.verdict for each in simulated.placement.workloads] == ["fits"]
    assert simulated.placement.joint.verdict == "always"
    # The program has an error all the same.
    assert simulated.exit_code == DOES_NOT_FIT


def test_explain_ends_with_0_only_where_simulate_does() -> None:
    scene = a_scene(a_template(), a_template("unused", count=-1), a_pod())

    explained = explain(scene, "pod/train")

    assert (explained.verdict, explained.exit_code) == ("fits", 1)
    assert [*describe(explained)][-2] == "  ✗ other objects of the input have errors, so the exit code is 1"


def test_pools_that_may_grow_open_no_gate_where_objects_are_missing(tmp_path: Path) -> None:
    fleet = tmp_path / "pools.yaml"
    fleet.write_text(yaml.safe_dump({"pools": [{"name": "gpu", "nodes": "example", "max": 3}]}))
    error = Problem(path="b.yaml", code="yaml-syntax", message="it cannot be read")
    program = a_program(a_template(), a_pod(), problems=(error,))
    scene = Scene.of(program, fleet=load_fleet(str(fleet)))

    explained = explain(scene, "pod/train")

    assert explained.growth is not None
    assert explained.growth.verdict == "fits-grown"
    assert (explained.exit_code, simulate(scene).exit_code) == (1, DOES_NOT_FIT)


def test_a_claim_with_an_error_fits_nowhere() -> None:
    program = testing.SynthesizedProgram(a_program(a_template(count=-1)))

    fit = program.claim("gpu").fits(FLEET)

    assert not fit
    assert fit.placement.reasons[0].code == "needs-refused-object"
    explained = explain(a_scene(a_template(count=-1)), "template/gpu")
    assert (explained.verdict, explained.exit_code) == ("does-not-fit", 1)


def test_node_pools_do_not_grow_for_pods_that_are_never_made(tmp_path: Path) -> None:
    fleet = tmp_path / "pools.yaml"
    fleet.write_text(yaml.safe_dump({"pools": [{"name": "gpu", "nodes": "example", "max": 3}]}))
    scene = Scene.of(a_program(a_template(count=-1), a_pod()), fleet=load_fleet(str(fleet)))

    simulated = simulate(scene)

    assert simulated.placement is not None
    assert simulated.placement.growth is not None
    assert simulated.placement.growth.verdict == "never-within-limits"
    assert simulated.exit_code == DOES_NOT_FIT


@pytest.mark.parametrize(
    ("code", "exit_code"), [("wrong-type", DOES_NOT_FIT), ("file-unreadable", NO_ANSWER)]
)
def test_nothing_is_placed_where_errors_of_the_program_leave_objects_out(code: str, exit_code: int) -> None:
    error = Problem(path="a.yaml", code=code, message="it cannot be read")

    simulated = simulate(a_scene(a_template(), a_pod(), problems=(error,)))

    assert simulated.placement is None
    assert simulated.exit_code == exit_code


def test_only_the_release_that_places_pods_decides_what_is_refused() -> None:
    rule = {
        "apiVersion": API,
        "kind": "DeviceTaintRule",
        "metadata": {"name": "drain"},
        "spec": {
            "deviceSelector": {"driver": "other.example.com"},
            "taint": {"key": "k", "value": "v", "effect": "NoExecute"},
        },
    }
    newest, oldest = (a_scene(a_template(), a_pod(), rule, kubernetes=minor) for minor in (None, "1.34"))

    assert simulate(newest).exit_code == FITS
    assert simulate(oldest).exit_code == DOES_NOT_FIT


@pytest.mark.parametrize("is_on", [True, False])
def test_the_check_knows_the_gates_that_placement_knows(is_on: bool) -> None:
    template = a_template()
    devices = template["spec"]["spec"]["devices"]
    devices["requests"][0]["exactly"]["count"] = 2
    devices["constraints"] = [{"distinctAttribute": "gpu.example.com/index"}]
    scene = a_scene(
        template, a_pod(), kubernetes="1.35", gates={"DRAConsumableCapacity": True} if is_on else {}
    )

    checked = check(scene)

    assert checked.has_errors is not is_on
    assert place_scene(scene, checked).fits_count == int(is_on)
