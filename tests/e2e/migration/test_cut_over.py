"""A plan of a cut-over, carried out on the real scheduler: in each phase pods are placed as its verdict says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dra_infra.advice.objects import reference_to
from dra_infra.catalog import load_fleet
from dra_infra.cutover.plan import Phase, Plan, make_plan
from dra_infra.cutover.sides import AWAY, LABEL, Sides, all_on_plugin
from dra_infra.cutover.steps import Step
from dra_infra.documents.yaml import write_manifests
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api.patches import COMPARED_PATCHES
from dra_infra.target import ClusterTarget
from tests.support.migration.plans import (
    OLD_KEY,
    PLUGIN,
    bare_pod,
    daemon_set,
    deployment,
    job,
    migrated,
    quota,
)
from tools.cluster import Api, ControlPlane, create_fleet

pytestmark = pytest.mark.e2e

POD, NODE, DEPLOYMENT, QUOTA = "v1/Pod", "v1/Node", "apps/v1/Deployment", "v1/ResourceQuota"
SLICE = "resource.k8s.io/v1/ResourceSlice"
RELEASE = ClusterTarget(kubernetes=COMPARED_PATCHES["1.37"]).releases[0]
OBJECTS = [quota(64), deployment("chat", 2, 4), deployment("train", 2, 4)]
"""Two workloads that fill four nodes of four GPUs."""


def the_sides(*, is_served: bool, nodes: int = 4) -> Sides:
    """Nodes on the plugin; the driver's class serves the plugin's resource, or it does not."""
    fleet = load_fleet(f"t4 x {nodes}")
    if not is_served:
        classes = [
            each.changed({"spec": each.spec.changed({"extended_resource_name": None})})
            for each in fleet.classes
        ]
        fleet = replace(fleet, classes=tuple(classes))
    return all_on_plugin(fleet, PLUGIN)


def the_plan(sides: Sides, objects: Sequence[dict[str, Any]] = OBJECTS) -> Plan:
    return make_plan(objects, migrated(objects), sides, release=RELEASE, is_late=lambda: False)


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    with plane.api() as api:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        api.wait_until("v1/ServiceAccount", "default", bool, namespace="ml")
        yield api


def leave_plugin(api: Api, sides: Sides, node: str, done: frozenset[str]) -> None:
    """Drain a node, take the plugin off it, and publish its slices."""
    api.patch(NODE, node, {"spec": {"unschedulable": True}})
    for pod in api.list(POD, namespace="ml"):
        if pod["spec"].get("nodeName") == node:
            api.delete(POD, pod["metadata"]["name"], namespace="ml", grace_seconds=0, missing_ok=True)
    after: Fleet = sides.at(done)
    (found,) = (each for each in after.nodes if each.name == node)
    gpus = {"nvidia.com/gpu": found.allocatable["nvidia.com/gpu"]}
    api.patch(NODE, node, {"status": {"allocatable": gpus, "capacity": gpus}}, subresource="status")
    for each in after.slices:
        if each.spec.node_name == node:
            api.create(each.to_manifest())
    api.patch(NODE, node, {"spec": {"unschedulable": None}})


def move(api: Api, phase: Phase) -> None:
    """Apply the workloads of a phase as they are migrated."""
    names = {(each.kind, each.name) for each in phase.moves}
    templates = {name for _, name in names}
    for each in phase.objects:
        metadata = each["metadata"]
        if each["kind"] == "ResourceClaimTemplate" and metadata["name"].removesuffix("-gpu") in templates:
            api.create(each)
    for each in phase.objects:
        if (each["kind"], each["metadata"]["name"]) in names:
            spec = {"template": {"spec": each["spec"]["template"]["spec"]}}
            api.patch(DEPLOYMENT, each["metadata"]["name"], {"spec": spec}, namespace="ml")


def has_claims(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("resourceClaims"))


def is_by_claims(pod: dict[str, Any]) -> bool:
    """True of a pod that has its devices by claims of its own, or by one that the scheduler made for its resource."""
    return has_claims(pod) or "extendedResourceClaimStatus" in pod["status"]


def is_unschedulable(pod: dict[str, Any]) -> bool:
    return any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
        for each in pod["status"].get("conditions", [])
    )


def all_are_placed(phase: Phase) -> Callable[[Sequence[dict[str, Any]]], bool]:
    """True of pods that are all there, each on a node, and in the form that the phase has them in."""
    moved = {each.name for each in phase.migrated}

    def holds(pods: Sequence[dict[str, Any]]) -> bool:
        apps = sorted(each["metadata"]["labels"]["app"] for each in pods)
        return apps == ["chat", "chat", "train", "train"] and all(
            each["spec"].get("nodeName")
            and "deletionTimestamp" not in each["metadata"]
            and has_claims(each) == (each["metadata"]["labels"]["app"] in moved)
            for each in pods
        )

    return holds


def keys_of_quota(api: Api) -> dict[str, str]:
    hard = api.get(QUOTA, "gpus", namespace="ml")["spec"]["hard"]
    return {key: amount for key, amount in hard.items() if key != "pods"}


def follow_hints(api: Api, phase: Phase) -> None:
    """As the plan says, no new pod finds a node beside the old ones; then do what it says about that."""
    api.wait_for(
        POD, lambda pods: any(is_unschedulable(each) and has_claims(each) for each in pods), namespace="ml"
    )
    assert sorted(ref.name for ref in phase.stuck) == ["chat", "train"]
    for ref, hint in phase.stuck.items():
        assert "{maxSurge: 0, maxUnavailable: 1}" in hint
        strategy = {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}
        api.patch(DEPLOYMENT, ref.name, {"spec": strategy}, namespace="ml")


@pytest.mark.parametrize("is_served", [False, True])
def test_every_phase_of_a_plan_ends_with_all_pods_placed(api: Api, is_served: bool):
    sides = the_sides(is_served=is_served)
    plan = the_plan(sides)
    assert plan.verdict == "always"
    assert plan.works == (not is_served)
    assert (plan.nodes_at_once, len(plan.phases)) == ((1, 6) if is_served else (2, 4))
    create_fleet(api, sides.at(frozenset()).to_manifests())
    on_dra: frozenset[str] = frozenset()
    for phase in plan.phases:
        if phase.kind == "prepare":
            for each in phase.objects:
                api.create(each)
        for number, node in enumerate(phase.nodes, 1):
            on_dra |= {node}
            leave_plugin(api, sides, node, on_dra)
            if number < plan.nodes_at_once and plan.refused:
                # Fewer nodes at a time do not work, as the plan says: a pod finds no node.
                api.wait_for(POD, lambda pods: any(map(is_unschedulable, pods)), namespace="ml")
        move(api, phase)
        if phase.stuck:
            follow_hints(api, phase)
        if phase.kind == "finish":
            api.patch(QUOTA, "gpus", {"spec": {"hard": {OLD_KEY: None}}}, namespace="ml")
        pods = api.wait_for(POD, all_are_placed(phase), namespace="ml")
        for pod in pods:
            if has_claims(pod) or not is_served:
                assert (pod["spec"]["nodeName"] in on_dra) == has_claims(pod), pod["metadata"]["name"]
        (keys,) = (each.keys for each in phase.quotas)
        assert keys_of_quota(api) == dict(keys)


class Hands:
    """Somebody who follows a plan: runs its commands, and does what it says in words.

    What DaemonSets do by the labels of nodes is done here: the plugin gives out GPUs where the label of the driver is not.
    """

    def __init__(self, api: Api, sides: Sides, folder: Path, kubeconfig: Path, kubectl: Path) -> None:
        self._api = api
        self._sides = sides
        self._folder = folder
        self._kubectl = kubectl
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "NO_COLOR": "1"}
        self.commands: list[str] = []

    def follow(self, steps: Sequence[Step], objects: Sequence[Mapping[str, Any]]) -> None:
        """Do all steps of a phase or of a way back, after which *objects* are in force."""
        (self._folder / "all").mkdir(exist_ok=True)
        (self._folder / "all" / "objects.yaml").write_text(write_manifests(objects))
        for step in steps:
            meant = [each for each in objects if self._is_meant(each, step.what)]
            applies = "kubectl apply -f FILE"
            if step.what.startswith(("apply ", "take the keys ")) and applies not in step.commands:
                self.apply(meant)
            for command in step.commands:
                if command == applies:
                    self.apply(meant)
                else:
                    self.run(command)

    @staticmethod
    def _is_meant(manifest: Mapping[str, Any], what: str) -> bool:
        return re.search(rf"{re.escape(str(reference_to(manifest)))}(?![\w-])", what) is not None or (
            "quotas" in what and manifest["kind"] == "ResourceQuota"
        )

    def apply(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        file = self._folder / "apply.yaml"
        file.write_text(write_manifests(manifests))
        self._run([str(self._kubectl), "apply", "-f", str(file)])

    def run(self, command: str) -> None:
        self.commands.append(command)
        program, *arguments = shlex.split(command)
        if program == "kubectl":
            shown = self._run([str(self._kubectl), *arguments])
        else:
            assert program == "dra-infra"
            known = [str(self._folder / "all") if each == "PATH" else each for each in arguments]
            self._run([sys.executable, "-m", "dra_infra", *known])
        if arguments[0] in ("label", "taint"):
            self.exchange()
        if arguments[:2] == ["get", "resourceslices"]:
            node = arguments[-1].removeprefix("spec.nodeName=")
            assert ("gpu.nvidia.com" in shown) == (node in self.on_driver())

    def _run(self, command: Sequence[str]) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=180, env=self._environment
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def on_driver(self) -> frozenset[str]:
        nodes = self._api.list(NODE)
        return frozenset(
            each["metadata"]["name"]
            for each in nodes
            if each["metadata"].get("labels", {}).get(LABEL) == "true"
        )

    def exchange(self) -> None:
        """Let plugin and driver come and go by the labels that nodes have now; neither comes to a node that is kept free."""
        fleet = self._sides.at(self.on_driver())
        now = {each["metadata"]["name"]: each for each in self._api.list(NODE)}
        away = {
            name
            for name, each in now.items()
            if any(taint["key"] == AWAY.key for taint in each["spec"].get("taints", []))
        }
        for each in fleet.nodes:
            amount = each.allocatable.get("nvidia.com/gpu")
            if each.name in self._sides.offered and (each.name not in away or amount == "0"):
                gpus = {"nvidia.com/gpu": amount}
                status = {"status": {"allocatable": gpus, "capacity": gpus}}
                self._api.patch(NODE, each.name, status, subresource="status")
        wanted = {each.metadata.name: each for each in fleet.slices}
        there = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in self._api.list(SLICE)}
        for name in there.keys() - wanted.keys():
            self._check_node(wanted=False, node=there[name])
            self._api.delete(SLICE, name)
        for name in wanted.keys() - there.keys():
            if wanted[name].spec.node_name not in away:
                self._check_node(wanted=True, node=str(wanted[name].spec.node_name))
                self._api.create(wanted[name].to_manifest())

    def _check_node(self, *, wanted: bool, node: str) -> None:
        """No pod has devices of the plugin where the driver comes, and none has claims where it goes."""
        held = [
            each["metadata"]["name"]
            for each in self._api.list(POD, namespace="ml")
            if each["spec"].get("nodeName") == node and is_by_claims(each) != wanted
        ]
        assert held == [], (node, wanted)


def test_the_commands_of_a_plan_and_of_its_way_back_do_what_it_says(
    plane: ControlPlane, api: Api, binaries: Callable[[str], Path], tmp_path: Path
):
    sides = the_sides(is_served=False)
    plan = the_plan(sides)
    assert plan.works
    create_fleet(api, sides.at(frozenset()).to_manifests())
    hands = Hands(api, sides, tmp_path, plane.kubeconfig, binaries("kubectl"))
    hands.apply(OBJECTS)
    for phase in plan.phases:
        hands.follow(phase.steps, phase.objects)
        api.wait_for(POD, all_are_placed(phase), namespace="ml")
        (keys,) = (each.keys for each in phase.quotas)
        assert keys_of_quota(api) == dict(keys)
    assert hands.on_driver() == sides.offered.keys()
    assert "dra-infra migrate PATH --check" in hands.commands
    hands.commands.clear()
    for phase, before in zip(plan.phases[:0:-1], plan.phases[-2::-1], strict=True):
        hands.follow(phase.back, before.objects)
        api.wait_for(POD, all_are_placed(before), namespace="ml")
        (keys,) = (each.keys for each in before.quotas)
        assert keys_of_quota(api) == dict(keys)
    hands.follow(plan.phases[0].back, OBJECTS)
    assert keys_of_quota(api) == {OLD_KEY: "64"}
    assert hands.on_driver() == frozenset()
    assert api.list(SLICE) == []
    assert not any(each["spec"].get("unschedulable") for each in api.list(NODE))
    assert {each.split()[1] for each in hands.commands} == {
        "cordon", "drain", "label", "get", "uncordon", "rollout"
    }  # fmt: skip


def test_pods_that_nobody_replaces_go_and_come_back_by_the_commands_of_a_plan(
    plane: ControlPlane, api: Api, binaries: Callable[[str], Path], tmp_path: Path
):
    kept = deployment("kept", 1, 1)
    objects = [bare_pod("bare", 1), {**kept, "kind": "ReplicaSet"}, job("once", 1, 1)]
    sides = the_sides(is_served=False, nodes=2)
    plan = the_plan(sides, objects)
    assert plan.works
    assert len(plan.phases) == 4
    create_fleet(api, sides.at(frozenset()).to_manifests())
    hands = Hands(api, sides, tmp_path, plane.kubeconfig, binaries("kubectl"))
    hands.apply(objects)

    def all_run(phase: Phase) -> Callable[[Sequence[dict[str, Any]]], bool]:
        moved = {each.name for each in phase.migrated}

        def holds(pods: Sequence[dict[str, Any]]) -> bool:
            there = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
            names = sorted(each["metadata"]["name"].partition("-")[0] for each in there)
            return names == ["bare", "kept", "once"] and all(
                each["spec"].get("nodeName")
                and has_claims(each) == (each["metadata"]["name"].partition("-")[0] in moved)
                for each in there
            )

        return holds

    api.wait_for(POD, all_run(plan.phases[0]), namespace="ml")
    for phase in plan.phases:
        hands.follow(phase.steps, phase.objects)
        api.wait_for(POD, all_run(phase), namespace="ml")
    assert {each.name for each in plan.phases[-1].migrated} == {"bare", "kept", "once"}
    for phase, before in zip(plan.phases[:0:-1], plan.phases[-2::-1], strict=True):
        hands.follow(phase.back, before.objects)
        api.wait_for(POD, all_run(before), namespace="ml")
    assert hands.on_driver() == frozenset()


@pytest.mark.parametrize("tolerations", [[], [{"operator": "Exists"}]])
def test_pods_of_a_daemon_set_never_have_gpus_of_both_sides(
    plane: ControlPlane,
    api: Api,
    binaries: Callable[[str], Path],
    tmp_path: Path,
    tolerations: list[dict[str, Any]],
):
    sides = the_sides(is_served=True, nodes=2)
    objects = [daemon_set("embed", 1, tolerations=tolerations)]
    plan = the_plan(sides, objects)
    assert [each.nodes for each in plan.phases] == [(), ("t4-0",), ("t4-1",), ()]
    create_fleet(api, sides.at(frozenset()).to_manifests())
    hands = Hands(api, sides, tmp_path, plane.kubeconfig, binaries("kubectl"))
    hands.apply(objects)

    def one_on_each_node(phase: Phase) -> Callable[[Sequence[dict[str, Any]]], bool]:
        def holds(pods: Sequence[dict[str, Any]]) -> bool:
            there = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
            nodes = sorted(str(each["spec"].get("nodeName")) for each in there)
            return nodes == ["t4-0", "t4-1"] and all(
                has_claims(each) == bool(phase.migrated)
                and is_by_claims(each) == (each["spec"]["nodeName"] in hands.on_driver())
                for each in there
            )

        return holds

    for phase in plan.phases:
        hands.follow(phase.steps, phase.objects)
        api.wait_for(POD, one_on_each_node(phase), namespace="ml")
    for phase, before in zip(plan.phases[:0:-1], plan.phases[-2::-1], strict=True):
        hands.follow(phase.back, before.objects)
        api.wait_for(POD, one_on_each_node(before), namespace="ml")
    assert hands.on_driver() == frozenset()
    assert {each.split()[1] for each in hands.commands} >= {"taint", "delete"}
    assert not any(each["spec"].get("taints") for each in api.list(NODE))
