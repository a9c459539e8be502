"""Pods that name a claim which is known to be missing fit nowhere, in the answer of every surface."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_infra.answers.explaining import explain
from dra_infra.answers.reviewing import compare
from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import DOES_NOT_FIT, simulate
from dra_infra.catalog import load_fleet
from dra_infra.catalog.snapshot_headers import MARK, OF_NAMESPACES, READ
from dra_infra.catalog.snapshots import Snapshot, load_snapshot
from dra_infra.placement.running import Running
from dra_infra.program_objects import UNKNOWN
from tests.unit.answers.objects import FLEET, a_pod, a_program, a_template

WHOLE = ("pods", "resourceclaims", "resourceclaimtemplates")


def a_snapshot(*objects: dict[str, Any], read: tuple[str, ...] = WHOLE, namespaces: str = "") -> Snapshot:
    head = [MARK, *([f"{OF_NAMESPACES}{namespaces}"] if namespaces else [])]
    head += [READ.format(plural, "1") for plural in read]
    every = [*load_fleet(FLEET).to_manifests(), *objects]
    return load_snapshot(["\n".join([*head, *(f"---\n{json.dumps(each)}" for each in every)])])


def a_scene(snapshot: Snapshot, *manifests: dict[str, Any]) -> Scene:
    program = a_program(*manifests)
    return Scene.of(program, fleet=snapshot.fleet, running=Running.of(snapshot, program))


@pytest.mark.parametrize("field", ["resourceClaimTemplateName", "resourceClaimName"])
def test_pods_whose_claim_is_missing_in_a_whole_snapshot_fit_on_no_surface(field: str) -> None:
    pod = a_pod()
    pod["spec"]["resourceClaims"] = [{"name": "gpu", field: "gone"}]
    snapshot = a_snapshot()
    scene = a_scene(snapshot, pod, a_template("other"), a_pod("fits", "other"))
    simulated, explained = simulate(scene), explain(scene, "pod/train")
    assert simulated.placement is not None
    found = {each.owner.name: each for each in simulated.placement.workloads}
    assert [each.code for each in found["train"].reasons] == ["claim-not-known"]
    assert (found["train"].verdict, found["fits"].verdict) == ("does-not-fit", "fits")
    assert (simulated.exit_code, simulated.placement.joint.verdict) == (DOES_NOT_FIT, "never")
    assert "is not there" in simulated.placement.joint.reasons[0]
    assert (explained.verdict, explained.exit_code) == ("does-not-fit", 1)
    assert [each.code for each in explained.causes] == ["claim-not-known"]
    head = scene.program
    reviewed = compare(head, head, base_label="main", fleet=snapshot.fleet, snapshot=snapshot)
    assert {each.owner.name: each.fits for each in reviewed.workloads} == {"train": False, "fits": True}


@pytest.mark.parametrize(
    ("snapshot", "objects"),
    [
        (a_snapshot(read=("pods",)), ()),
        (a_snapshot(namespaces="dev, prod"), ()),
        (a_snapshot(read=()), ()),
        # The name of the template is only known after `pulumi up`, and may be the one.
        (a_snapshot(), [{**a_template(), "metadata": {"name": UNKNOWN, "namespace": "ml"}}]),
    ],
)
def test_where_it_may_be_there_it_is_not_decided(snapshot: Snapshot, objects: list[Any]) -> None:
    placement = simulate(a_scene(snapshot, a_pod(template="gone"), *objects)).placement
    assert placement is not None
    assert [each.verdict for each in placement.workloads] == ["not-decided"]


@pytest.mark.parametrize("namespaces", ["", "ml, dev"])
def test_a_template_of_the_cluster_is_there(namespaces: str) -> None:
    scene = a_scene(a_snapshot(a_template(), namespaces=namespaces), a_pod())
    assert simulate(scene).exit_code == 0
    missing = a_scene(a_snapshot(namespaces=namespaces), a_pod())
    assert simulate(missing).exit_code == DOES_NOT_FIT
