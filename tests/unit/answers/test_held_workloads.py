"""A workload that its queue never admits is marked by every surface that says where it would fit."""

from __future__ import annotations

from dra_infra import testing
from dra_infra.answers.explaining import explain
from dra_infra.answers.reviewing import compare
from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import simulate
from dra_infra.catalog import load_fleet
from dra_infra.cli.explain_report import describe
from tests.unit.answers.objects import FLEET, a_pod, a_program, a_template

DEVICES = "gpu.example.com.deviceclass.resource.k8s.io/devices"
QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "gpus", "namespace": "ml"},
    "spec": {"clusterQueue": "gpus"},
}
CLUSTER_QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "gpus"},
    "spec": {
        "resourceGroups": [
            {
                "coveredResources": [DEVICES],
                "flavors": [{"name": "f", "resources": [{"name": DEVICES, "nominalQuota": 0}]}],
            }
        ]
    },
}


def test_every_surface_names_the_queue_that_never_admits_a_workload() -> None:
    pod = a_pod()
    pod["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
    scene = Scene.of(a_program(a_template(), pod, QUEUE, CLUSTER_QUEUE), fleet=load_fleet(FLEET))

    placement = simulate(scene).placement
    explained = explain(scene, "pod/train")
    reviewed = compare(scene.program, scene.program, base_label="main", fleet=scene.fleet)
    tested = testing.SynthesizedProgram(scene.program).fits(FLEET, "train")

    assert placement is not None
    (workload,) = placement.workloads
    assert "queue-too-small" in [reason.code for reason in workload.reasons]
    assert tested.placement.reasons == workload.reasons
    assert [each.reasons for each in reviewed.workloads] == [workload.reasons]
    assert explained.is_held
    assert [cause.code for cause in explained.causes] == ["queue-too-small"]
    assert explained.verdict == workload.verdict == "fits"
    assert next(iter(describe(explained))).startswith("! Pod ml/train")
