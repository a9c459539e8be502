"""Plans of `dra-infra make-room` on the real scheduler and controllers: the printed commands are run, and the workload runs in the end."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dra_infra.answers.making_room import RoomAnswer
from dra_infra.catalog import load_fleet
from dra_infra.catalog.snapshots import Snapshot, snapshot_of
from dra_infra.placement.room_commands import OPEN, Step
from tests.e2e.cluster.conftest import Run, namespace
from tests.support.running_clusters import (
    HARDWARE,
    SPACE,
    a_budget,
    a_request,
    a_template,
    a_workload,
    ask_for_room,
)
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet
from tools.cluster.api import WaitTimeoutError

pytestmark = pytest.mark.e2e

IS_SOAK: Final = bool(os.environ.get("DRA_INFRA_SOAK"))
CASES: Final = range(1, 201 if IS_SOAK else 7)
DRA: Final = "resource.k8s.io/v1"
POD, CLAIM = "v1/Pod", f"{DRA}/ResourceClaim"
KINDS: Final = {
    "Deployment": "apps/v1/Deployment",
    "StatefulSet": "apps/v1/StatefulSet",
    "Job": "batch/v1/Job",
}
READ: Final = (
    "v1/Node",
    f"{DRA}/ResourceSlice",
    f"{DRA}/DeviceClass",
    CLAIM,
    f"{DRA}/ResourceClaimTemplate",
    POD,
    "apps/v1/ReplicaSet",
    *KINDS.values(),
    "policy/v1/PodDisruptionBudget",
)
PATIENCE: Final = 60.0


@dataclass
class World:
    """A cluster whose hardware comes and goes.

    Args:
        plane: The control plane.
        api: Its administrator.
        kubectl: The program.
    """

    plane: ControlPlane
    api: Api
    kubectl: Path

    def pods(self) -> list[dict[str, Any]]:
        return [each for each in self.api.list(POD) if "deletionTimestamp" not in each["metadata"]]

    def settle(self, is_settled: Callable[[list[dict[str, Any]]], object]) -> list[dict[str, Any]]:
        """Wait until something holds for all pods. A scheduler that does not go on is started anew once, as in `test_platforms.py`."""
        try:
            return self.api.wait_for(POD, is_settled, timeout=PATIENCE)
        except WaitTimeoutError:
            with self.plane.without("kube-scheduler"):
                pass
            return self.api.wait_for(POD, is_settled, timeout=PATIENCE)

    def snapshot(self) -> Snapshot:
        return snapshot_of([each for kind in READ for each in self.api.list(kind)])

    def run(self, command: str) -> str:
        """Run a printed command, with the kubectl of the cluster."""
        path = f"{self.kubectl.parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "KUBECONFIG": str(self.plane.kubeconfig)}
        done = subprocess.run(
            ["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def follow(self, answer: RoomAnswer, create: Callable[[], None]) -> None:
        """Run the steps of a plan, with the check behind each. The wanted pods are created when the nodes are open, or at once."""
        plan = answer.made.plan
        if not answer.steps:
            create()
        is_created = False
        for step in answer.steps:
            move = None if step.move is None else plan.moves[step.move]
            if step.before:
                assert int(self.run(step.before)) >= 1, step
            before = {each["metadata"]["uid"] for each in self.pods()}
            for command in step.commands:
                self.run(command)
            if move is not None:
                self._check_move(step, move, plan.cordon, before)
            if step.title.startswith(OPEN) and step.move is None and not is_created:
                create()
                is_created = True
            self.run(step.check)

    def _check_move(self, step: Step, move: Any, closed: tuple[str, ...], before: set[str]) -> None:
        number = len(before) - move.pod.is_bare

        def is_done(pods: list[dict[str, Any]]) -> bool:
            return (
                len(pods) == number
                and all(map(is_running, pods))
                and not before <= {each["metadata"]["uid"] for each in pods}
            )

        pods = self.settle(is_done)
        new = [each for each in pods if each["metadata"]["uid"] not in before]
        if move.pod.is_bare:
            assert new == []
            return
        (pod,) = new
        if move.choices == 1:
            assert pod["spec"]["nodeName"] == move.lands, step
        else:
            assert pod["spec"]["nodeName"] not in closed, step

    def clear(self, made: list[dict[str, Any]]) -> None:
        """Take everything away that a case made, and wait until nothing has devices."""
        for each in reversed(made):
            kind = f"{each['apiVersion']}/{each['kind']}"
            if each["kind"] not in ("Node", "ResourceSlice", "DeviceClass"):
                name, space = each["metadata"]["name"], each["metadata"].get("namespace")
                self.api.delete(kind, name, namespace=space, missing_ok=True)
        self.api.wait_for(POD, lambda pods: not pods, timeout=PATIENCE)
        self.api.wait_for(CLAIM, lambda claims: not claims, timeout=PATIENCE)
        for each in reversed(made):
            if each["kind"] in ("Node", "ResourceSlice", "DeviceClass"):
                self.api.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])


def _without_status(manifest: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key != "status"}


def is_running(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def is_refused(pod: dict[str, Any]) -> bool:
    return any(
        each["type"] == "PodScheduled" and each["status"] == "False" and each.get("reason") == "Unschedulable"
        for each in pod["status"].get("conditions", [])
    )


@pytest.fixture(scope="module")
def world(binaries: Callable[[str], Path]) -> Iterator[World]:
    with (
        ControlPlane(binaries=binaries) as plane,
        NodeStandIn(plane.connection, finish_jobs=False),
        plane.api() as api,
    ):
        api.create(namespace(SPACE))
        for each in (SPACE, "default"):
            api.wait_until("v1/ServiceAccount", "default", bool, namespace=each)
        yield World(plane, api, binaries("kubectl"))


def fill(world: World, rng: random.Random) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Let workloads come and some go again, so that what is free lies apart; what was made, and the workload that wants room."""
    fleets, requests = rng.choice(HARDWARE)
    small, *larger = requests
    made = create_fleet(world.api, load_fleet(rng.choice(fleets)).to_manifests())
    made += [world.api.create(a_template(name, request)) for name, request in requests.items()]
    going: list[dict[str, Any]] = []
    number = 0
    for step in range(rng.randint(3, 6)):
        kind = rng.choice(list(KINDS))
        workload = a_workload(kind, f"w{step}", rng.choice((small, small, larger[0])), rng.randint(1, 3))
        if kind == "StatefulSet":
            workload["spec"] |= {"serviceName": "none", "podManagementPolicy": "Parallel"}
        made.append(world.api.create(workload))
        pods = workload["spec"].get("replicas") or workload["spec"]["parallelism"]
        number += pods
        found = world.settle(
            lambda pods, number=number: (
                len(pods) == number and all(is_running(each) or is_refused(each) for each in pods)
            )
        )
        if rng.random() < 0.5 or not all(map(is_running, found)):
            going.append(made[-1])
        if not all(map(is_running, found)):
            break
    for each in going:
        name, space = each["metadata"]["name"], each["metadata"]["namespace"]
        world.api.delete(KINDS[each["kind"]], name, namespace=space)
    gone = {each["metadata"]["name"] for each in going}
    world.settle(
        lambda pods: (
            not any(each["metadata"]["labels"]["app"] in gone for each in pods) and all(map(is_running, pods))
        )
    )
    left = sorted({each["metadata"]["labels"]["app"] for each in world.pods()})
    if left and rng.random() < 0.4:
        made.append(world.api.create(_without_status(a_budget("budget", rng.choice(left), 1))))
        world.api.wait_until(
            "policy/v1/PodDisruptionBudget",
            "budget",
            lambda each: "disruptionsAllowed" in each.get("status", {}),
            namespace=SPACE,
        )
    return made, choose_wanted(world, rng, larger)


def choose_wanted(world: World, rng: random.Random, requests: list[str]) -> dict[str, Any]:
    """A Job that fits after moves, if one of a few does; now and then any."""
    drawn = [a_workload("Job", "wanted", request, pods) for request in requests for pods in (1, 2)]
    rng.shuffle(drawn)
    snapshot = world.snapshot()
    for each in drawn if rng.random() < 0.8 else ():
        if ask_for_room(snapshot, "job/wanted", each).made.verdict == "moves":
            return each
    return drawn[0]


@pytest.mark.parametrize("seed", CASES)
def test_a_workload_runs_after_the_commands_of_its_plan(world: World, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    made: list[dict[str, Any]] = []
    try:
        made, wanted = fill(world, rng)
        answer = ask_for_room(world.snapshot(), "job/wanted", wanted)
        verdict = answer.made.verdict
        assert verdict in ("fits-now", "moves", "never", "not-found"), answer.made.reasons
        print(f"{seed}: {verdict}, {len(answer.made.plan.moves) if answer.made.plan else 0} moves")
        parallelism = wanted["spec"]["parallelism"]
        number = len(world.pods())

        def create() -> None:
            made.append(world.api.create(wanted))
            if verdict in ("fits-now", "moves"):
                world.settle(lambda pods: len(pods) == number + parallelism and all(map(is_running, pods)))
            else:
                world.settle(lambda pods: len(pods) == number + parallelism and any(map(is_refused, pods)))

        world.follow(answer, create)
    finally:
        world.clear(made)


def test_a_rack_is_freed_and_takes_a_job_over_all_of_its_nodes(
    world: World, dra_infra: Run, tmp_path: Path
) -> None:
    """The whole way: `dra-infra snapshot`, `dra-infra make-room`, the printed commands."""
    made = create_fleet(world.api, load_fleet("gb200-nvl72 x 2").to_manifests())
    try:
        made += [world.api.create(a_template("one", a_request()))]
        made += [world.api.create(a_workload("Deployment", "small", "one", 12))]
        world.settle(lambda pods: len(pods) == 12 and all(map(is_running, pods)))
        kubeconfig = ("--kubeconfig", world.plane.kubeconfig)
        taken = dra_infra("snapshot", *kubeconfig, "--output", tmp_path / "cluster.yaml")
        assert taken.code == 0, taken.err
        asked = dra_infra("make-room", "a rack of gb200", "--snapshot", tmp_path / "cluster.yaml", "--json")
        assert asked.code == 0, asked.err
        snapshot = snapshot_of(yaml.safe_load_all((tmp_path / "cluster.yaml").read_text()))
        answer = ask_for_room(snapshot, "a rack of gb200")
        assert json.loads(asked.out)["plan"]["cordon"] == list(answer.made.plan.cordon)

        def create() -> None:
            made.extend(world.api.create(each) for each in _with_images(answer.scene.manifests))
            world.settle(lambda pods: len(pods) == 30 and all(map(is_running, pods)))

        world.follow(answer, create)
        pods = world.pods()
        nodes = {each["spec"]["nodeName"] for each in pods if each["metadata"]["namespace"] == "default"}
        assert nodes == {each.node for each in answer.made.plan.arrivals}
    finally:
        world.clear(made)


def _with_images(manifests: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """The objects of a shape, whose container is given an image so that the server takes them."""
    for each in json.loads(json.dumps(manifests)):
        if each["kind"] == "Job":
            (container,) = each["spec"]["template"]["spec"]["containers"]
            container["image"] = "registry.invalid/main:1"
            each["spec"]["completions"] = each["spec"]["parallelism"]
        yield each
