"""Plans of a cut-over on clusters made by hand: which nodes go at once, which workloads with them, and what never works."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from dra_infra.advice.objects import reference_to
from dra_infra.catalog import load_fleet
from dra_infra.catalog.workload_kinds import find_pod_templates, read_workload_kinds, workload_kinds
from dra_infra.cutover.estate import Estate, asks_plugin
from dra_infra.cutover.plan import Plan, make_plan
from dra_infra.cutover.rollouts import _OF_ARGO, foresee_rollouts
from dra_infra.cutover.sides import all_on_plugin
from dra_infra.cutover.texts import write_lines
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import NodeTaint, ObjectRef
from dra_infra.kubernetes.scheduler import Taken
from dra_infra.target import ClusterTarget
from tests.support.migration.plans import (
    DEVICES,
    OLD_KEY,
    PLUGIN,
    bare_pod,
    budget,
    commands,
    daemon_set,
    deployment,
    job,
    last,
    leader_worker_set,
    migrated,
    moves,
    plan,
    queue,
    quota,
    ray_service,
    rollout,
    template,
)
from tests.support.placing import ask


def test_a_cluster_with_a_free_node_moves_node_by_node():
    found = plan([deployment("a", 1, 8), deployment("b", 1, 8)], "hgx-h100 x 3")
    assert moves(found) == [
        (("hgx-h100-0",), ("Deployment ml/a",)),
        (("hgx-h100-1",), ("Deployment ml/b",)),
        (("hgx-h100-2",), ()),
    ]
    assert found.verdict == "always"
    assert found.works
    assert found.refused == ()


def test_a_workload_on_two_full_nodes_moves_with_two_nodes_at_once():
    found = plan([deployment("a", 2, 8), deployment("b", 2, 8)], "hgx-h100 x 4")
    assert moves(found) == [
        (("hgx-h100-0", "hgx-h100-1"), ("Deployment ml/a",)),
        (("hgx-h100-2", "hgx-h100-3"), ("Deployment ml/b",)),
    ]
    assert found.nodes_at_once == 2
    (refused,) = found.refused
    assert refused.startswith("1 node at a time does not work: never fit at once: 32 nvidia.com/gpu asked")


def test_a_workload_on_all_nodes_moves_with_all_of_them():
    found = plan([deployment("a", 3, 8)], "hgx-h100 x 3")
    assert moves(found) == [(("hgx-h100-0", "hgx-h100-1", "hgx-h100-2"), ("Deployment ml/a",))]
    assert len(found.refused) == 2
    assert all("Deployment ml/a" in each for each in found.refused)


def test_what_does_not_fit_in_the_end_has_no_phases_and_names_the_workload():
    found = plan([deployment("a", 1, 8), deployment("wide", 1, 9)], "hgx-h100 x 2")
    assert moves(found) == []
    assert [each.joint.verdict for each in found.phases] == ["never", "never"]
    assert "Deployment ml/wide" in str(last(found).joint)
    assert found.verdict == "never"
    assert not found.works


def test_a_workload_that_is_not_migrated_keeps_the_plugin_for_ever():
    texts = deployment("texts", 1, 1)
    texts["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "${GPUS}"
    found = plan([deployment("a", 1, 8), texts], "hgx-h100 x 2")
    assert last(found).joint.verdict == "never"
    assert last(found).joint.reasons[0].startswith("Deployment ml/texts still asks the plugin: ")
    assert "Deployment ml/texts" in map(str, last(found).unmigrated)
    assert not found.works


def test_a_workload_that_no_node_lets_in_never_fits_in_the_end():
    nowhere = deployment("nowhere", 1, 1, nodeSelector={"pool": "there-is-none"})
    found = plan([deployment("a", 1, 8), nowhere], "hgx-h100 x 2")
    assert last(found).joint.verdict == "never"
    assert "Deployment ml/nowhere" in str(last(found).joint)
    assert not found.works


def test_pods_wait_while_their_nodes_are_away():
    found = plan([deployment("a", 1, 8), deployment("b", 1, 8)], "hgx-h100 x 2")
    first = found.phases[1]
    assert first.meanwhile is not None
    assert first.meanwhile.verdict == "never"
    free = plan([deployment("a", 1, 8)], "hgx-h100 x 3").phases[1].meanwhile
    assert free is not None
    assert free.verdict == "always"


def test_a_class_that_serves_the_resource_lets_nodes_go_before_workloads():
    found = plan([deployment("a", 2, 8), deployment("b", 2, 8)], "hgx-h100 x 4", kubernetes="1.37")
    assert [nodes for nodes, _ in moves(found)] == [(f"hgx-h100-{number}",) for number in range(4)]
    assert moves(found)[-1][1] == ("Deployment ml/a", "Deployment ml/b")
    assert found.verdict == "always"
    assert found.notes[0].startswith("gpu.nvidia.com serves nvidia.com/gpu by DRA")


def test_a_setting_that_migrated_pods_need_is_a_note_with_all_that_need_it():
    by_karpenter = {"nodeSelector": {"karpenter.sh/nodepool": "gpu"}}
    workloads = [deployment(each, 1, 1, **by_karpenter) for each in ("a", "b")]
    (note,) = plan([*workloads, deployment("c", 1, 1)], "hgx-h100 x 2").notes
    assert note.startswith("before Deployment ml/a and Deployment ml/b: Karpenter")
    assert "settings.enableDRA" in note


def test_a_rollout_that_waits_for_ever_on_a_full_cluster_is_told_with_what_to_do():
    full = plan([deployment("a", 2, 8), deployment("b", 2, 8)], "hgx-h100 x 4", kubernetes="1.37")
    phase = full.phases[-2]
    assert sorted(map(str, phase.stuck)) == ["Deployment ml/a", "Deployment ml/b"]
    assert all("{maxSurge: 0, maxUnavailable: 1}" in hint for hint in phase.stuck.values())
    assert not full.works


def test_workloads_move_when_their_rollouts_have_room():
    found = plan([deployment("a", 2, 8), deployment("b", 2, 8)], "hgx-h100 x 5", kubernetes="1.37")
    assert moves(found)[-1] == (("hgx-h100-4",), ("Deployment ml/a", "Deployment ml/b"))
    assert all(not each.stuck for each in found.phases)
    assert found.works


def test_a_rollout_without_surge_needs_no_room():
    objects = [deployment("a", 2, 8), deployment("b", 2, 8)]
    for each in objects:
        each["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    found = plan(objects, "hgx-h100 x 4", kubernetes="1.37")
    assert all(not each.stuck for each in found.phases)
    assert found.works


@pytest.mark.parametrize(
    ("kind", "spec", "hint"),
    [
        ("Deployment", {"paused": True}, "kubectl rollout resume"),
        ("Rollout", {"paused": True, "strategy": {"canary": {}}}, "kubectl argo rollouts promote"),
        (
            "StatefulSet",
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
            "write updateStrategy: {rollingUpdate: {partition: 0}}",
        ),
    ],
)
def test_pods_that_stay_as_they_are_until_somebody_lets_them_go_are_told_with_what_to_do(
    kind: str, spec: dict[str, Any], hint: str
):
    made = rollout("a", 2, 4) if kind == "Rollout" else deployment("a", 2, 4) | {"kind": kind}
    found = plan([{**made, "spec": {**made["spec"], **spec}}], "hgx-h100 x 2")
    (phase,) = (each for each in found.phases if each.moves)
    ((ref, told),) = phase.stuck.items()
    assert told.startswith(hint)
    assert "find a place" not in phase.rolls[ref]
    assert not found.works
    free = {"updateStrategy": {"rollingUpdate": {"partition": 0}}, "paused": False}
    assert plan([{**made, "spec": {**made["spec"], **spec, **free}}], "hgx-h100 x 2").works


def test_groups_that_a_partition_keeps_are_told_with_what_to_write():
    found = plan([leader_worker_set("a", 2, 2, 4, partition=1)], "hgx-h100 x 2")
    (phase,) = (each for each in found.phases if each.moves)
    ((ref, told),) = phase.stuck.items()
    assert told == "write rolloutStrategy: {rollingUpdateConfiguration: {partition: 0}}"
    assert phase.rolls[ref].endswith("those below the partition 1 stay as they are")
    assert plan([leader_worker_set("a", 2, 2, 4, partition=0)], "hgx-h100 x 2").works


@pytest.mark.parametrize(
    ("made", "full", "roomy"),
    [
        (ray_service("a", 2, 8), "hgx-h100 x 2", "hgx-h100 x 4"),
        (leader_worker_set("a", 1, 2, 8, maxSurge=1, maxUnavailable=0), "hgx-h100 x 3", "hgx-h100 x 4"),
    ],
)
def test_groups_that_come_before_the_old_ones_go_need_room_for_both(
    made: dict[str, Any], full: str, roomy: str
):
    found = plan([made], full, kubernetes="1.37")
    (phase,) = (each for each in found.phases if each.moves)
    ((ref, told),) = phase.stuck.items()
    assert told == "make room before, by fewer replicas or more nodes"
    assert "but only 0 of 1 new" in phase.rolls[ref]
    assert not found.works
    ended = plan([made], roomy, kubernetes="1.37")
    (says,) = (says for each in ended.phases for says in each.rolls.values())
    assert re.search(r"played through on .*, the new (group|cluster) finds a place$", says)
    assert ended.works
    assert not any("rollout status" in command for each in ended.phases for command in commands(each.steps))


@pytest.mark.parametrize(
    "made",
    [
        leader_worker_set("a", 2, 2, 4),
        ray_service("a", 2, 8, upgradeStrategy={"type": "None"}),
        leader_worker_set("a", 0, 2, 8),
    ],
)
def test_groups_that_go_first_or_are_not_exchanged_need_no_room(made: dict[str, Any]):
    assert plan([made], "hgx-h100 x 2", kubernetes="1.37").works


@pytest.mark.parametrize("amount", [float("inf"), float("nan"), [], {}, "x", -1])
def test_a_strategy_without_sense_ends_no_plan(amount: Any):
    amounts = {"maxSurge": amount, "partition": amount}
    ways = {"strategy": {"rollingUpdate": amounts}, "updateStrategy": {"rollingUpdate": amounts}}
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        made = deployment("a", 2, 1) | {"kind": kind}
        assert plan([{**made, "spec": {**made["spec"], **ways}}], "t4 x 2", "1.37").phases
    assert plan([leader_worker_set("a", 2, 1, 1, **amounts)], "t4 x 2", "1.37").phases
    for strategy in (
        amount,
        {"canary": {**amounts, "steps": amount}},
        {"canary": {"steps": [{"pause": amount}]}},
    ):
        made = rollout("a", 2, 1)
        assert plan([{**made, "spec": {**made["spec"], "strategy": strategy}}], "t4 x 2", "1.37").phases


@pytest.mark.parametrize(("gpus", "works"), [(4, True), (5, False)])
def test_a_daemon_set_that_starts_the_new_pod_first_needs_room_for_both_on_each_node(gpus: int, works: bool):
    made = daemon_set("d", gpus)
    made["spec"]["updateStrategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    found = plan([made], "hgx-h100 x 2", kubernetes="1.37")
    assert found.works == works
    for hint in (each for phase in found.phases for each in phase.stuck.values()):
        assert "updateStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}" in hint


@pytest.mark.parametrize(("allowed", "is_stuck"), [(8, True), (11, True), (12, False)])
def test_a_rollout_whose_surge_a_quota_refuses_waits_for_ever(allowed: int, is_stuck: bool):
    found = plan([quota(allowed), deployment("a", 2, 4)], "hgx-h100 x 3", kubernetes="1.37")
    (phase,) = (each for each in found.phases if each.moves)
    assert bool(phase.stuck) == is_stuck
    assert found.works != is_stuck
    for ref, hint in phase.stuck.items():
        assert "{maxSurge: 0, maxUnavailable: 1}" in hint
        assert f"ResourceQuota ml/gpus allows {allowed} of " in phase.rolls[ref]


def test_a_quota_lets_a_rollout_end_that_stops_an_old_pod_first():
    stops = deployment("a", 2, 4)
    stops["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    assert plan([quota(8), stops], "hgx-h100 x 3", kubernetes="1.37").works


def test_two_rollouts_share_the_room_of_a_quota_one_after_the_other():
    both = [quota(20), deployment("a", 2, 4), deployment("b", 2, 4)]
    assert plan(both, "hgx-h100 x 4", kubernetes="1.37").works


@pytest.mark.parametrize(
    ("strategy", "gpus"),
    [
        ({"canary": {"trafficRouting": {"nginx": {}}, "dynamicStableScale": True}}, 12),
        ({"canary": {"trafficRouting": {"nginx": {}}}}, 16),
        ({"blueGreen": {"activeService": "a"}}, 16),
    ],
)
def test_a_rollout_of_argo_needs_room_for_what_its_strategy_runs_beside_old_pods(
    strategy: dict[str, Any], gpus: int
):
    # Eight old pods of one GPU on nodes of four; both versions are whole where traffic moves between them.
    tight = plan([rollout("a", 8, 1, **strategy)], f"t4 x {gpus // 4 - 1}", "1.37")
    (phase,) = (each for each in tight.phases if each.moves)
    assert phase.stuck
    assert not tight.works
    for hint in phase.stuck.values():
        assert "strategy: {canary: {maxSurge: 0, maxUnavailable: 1" in hint
    assert plan([rollout("a", 8, 1, **strategy)], f"t4 x {gpus // 4}", "1.37").works
    assert plan([rollout("a", 8, 1, canary={})], "t4 x 2", "1.37").works


def test_a_quota_refuses_the_surge_of_a_rollout_of_argo():
    found = plan([quota(8), rollout("a", 2, 4, canary={"maxUnavailable": 0})], "hgx-h100 x 3", "1.37")
    (phase,) = (each for each in found.phases if each.moves)
    assert "ResourceQuota ml/gpus allows 8 of " in next(iter(phase.rolls.values()))
    assert "{canary: {maxSurge: 0, maxUnavailable: 1}}" in next(iter(phase.stuck.values()))


@pytest.mark.parametrize(
    ("strategy", "waits"),
    [
        ({"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}}, True),
        ({"canary": {"steps": [{"setWeight": 20}, {"pause": None}]}}, True),
        ({"canary": {"steps": [{"setWeight": 20}, {"pause": {"duration": "10m"}}]}}, False),
        ({"canary": {}}, False),
        ({"blueGreen": {"autoPromotionEnabled": False}}, True),
        ({"blueGreen": {}}, False),
    ],
)
def test_a_rollout_of_argo_that_waits_for_somebody_is_promoted_there_and_back(
    strategy: dict[str, Any], waits: bool
):
    found = plan([rollout("a", 2, 1, **strategy)], "t4 x 4")
    (phase,) = (each for each in found.phases if each.moves)
    wanted = ["kubectl argo rollouts promote a --full -n ml"] if waits else []
    wanted.append("kubectl argo rollouts status a -n ml")
    for steps in (phase.steps, phase.back):
        assert [each for each in commands(steps) if " argo " in each] == wanted
    assert ("until it is promoted" in next(iter(phase.rolls.values()))) == waits
    assert "apply Rollout ml/a as it was" in " ".join(each.what for each in phase.back)


def hint_for(made: dict[str, Any], **spec: Any) -> str:
    """What to do about a workload that rolls over on nodes without room for any of its pods."""
    objects = [{**made, "spec": {**made["spec"], **spec}}]
    kubernetes = "1.37"
    estate = Estate.of(objects, migrated(objects), workload_kinds(), has_driver=False)
    fleet = load_fleet("t4 x 1", kubernetes=kubernetes)
    (release,) = ClusterTarget(kubernetes=kubernetes).releases
    question = ask(estate.at(frozenset()), fleet, release=release)
    (found,) = foresee_rollouts(estate.units, question).values()
    return found.hint


HINTS = {
    "rollingUpdate:": ({"maxUnavailable": 0}, "{canary: {maxSurge: 0, maxUnavailable: 1}} stops an old pod"),
    "type: Recreate": ({"maxUnavailable": 1}, "{canary: {maxSurge: 0, maxUnavailable: 100%}} stops all old"),
    "kubectl rollout resume": ({}, "kubectl argo rollouts promote, when it may"),
}
"""By words of hints for a Deployment: an amount with which there is such a hint, none where it is paused, and what a Rollout's says."""


@pytest.mark.parametrize("words", dict.fromkeys([*HINTS, *_OF_ARGO]))
def test_each_hint_for_a_deployment_has_its_words_for_a_rollout_of_argo(words: str):
    amounts, wanted = HINTS[words]
    more = {} if amounts else {"paused": True}
    assert words in hint_for(deployment("a", 8, 4), strategy={"rollingUpdate": amounts}, **more)
    hint = hint_for(rollout("a", 8, 4, canary=amounts), **more)
    assert wanted in hint
    assert words not in hint


def test_a_rollout_of_argo_with_the_template_of_a_deployment_leaves_the_plan_open():
    of_another = rollout("r", 2, 8, canary={})
    source = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    of_another["spec"] = {"replicas": 2, "workloadRef": source, "strategy": {"canary": {}}}
    found = plan([deployment("a", 0, 8), of_another], "hgx-h100 x 2")
    assert found.verdict == "not-decided"
    assert found.reasons[0].startswith(
        "Rollout ml/r makes its pods of Deployment ml/a and rolls over with it"
    )
    source["name"] = "without-devices"
    assert plan([deployment("a", 1, 8), of_another], "hgx-h100 x 2").works


def test_nodes_of_two_kinds_go_in_groups_of_their_own():
    h100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    objects = [
        deployment("a", 1, 8, nodeSelector=h100),
        deployment("t", 1, 1, nodeSelector={"nvidia.com/gpu.product": "Tesla-T4"}),
    ]
    found = plan(objects, "hgx-h100 x 1, t4 x 1")
    assert moves(found) == [
        (("hgx-h100-0",), ("Deployment ml/a",)),
        (("t4-0",), ("Deployment ml/t",)),
    ]


def test_autoscalers_at_their_most_have_a_verdict_of_their_own():
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "namespace": "ml"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            "maxReplicas": 20,
        },
    }
    found = plan([deployment("a", 1, 4), scaler], "hgx-h100 x 2")
    assert found.works
    assert [each.at_most and each.at_most.verdict for each in found.phases] == ["never"] * len(found.phases)
    assert any("✗ With autoscalers at their most: never fit" in each for each in write_lines(found))
    assert all(each.at_most is None for each in plan([deployment("a", 1, 4)], "hgx-h100 x 2").phases)


def test_quotas_have_both_keys_until_the_plugin_goes():
    found = plan([quota(16), deployment("a", 1, 8)], "hgx-h100 x 2")
    keys = [dict(each.keys) for phase in found.phases for each in phase.quotas]
    assert commands(last(found).steps) == ["dra-infra migrate PATH --check"]
    assert keys == [*[{OLD_KEY: "16", DEVICES: "16"}] * (len(found.phases) - 1), {DEVICES: "16"}]
    assert any("ResourceQuota ml/gpus" in each.what for each in last(found).steps)


def test_what_only_looks_like_a_key_of_devices_is_no_key_in_force():
    held = quota(16)
    held["spec"]["hard"]["example.com/devices"] = "4"
    found = plan([held, deployment("a", 1, 8)], "hgx-h100 x 2")
    assert [dict(each.keys) for each in last(found).quotas] == [{DEVICES: "16"}]


def test_a_template_moves_with_the_last_nodes_and_has_a_way_back():
    objects = [deployment("a", 1, 8), template("later", 1)]
    found = plan(objects, "hgx-h100 x 2")
    assert moves(found)[-1] == (("hgx-h100-1",), ("WorkflowTemplate ml/later",))
    phase = found.phases[-2]
    assert any("WorkflowTemplate ml/later as migrated" in each.what for each in phase.steps)
    assert any("WorkflowTemplate ml/later as it was" in each.what for each in phase.back)
    assert all("ResourceClaimTemplate" not in each.what for each in found.phases[0].steps)
    assert all("WorkflowTemplate ml/later" in map(str, each.unmigrated) for each in found.phases[:-2])
    assert found.works


def test_a_template_alone_moves_with_all_nodes():
    found = plan([template("later", 1)], "hgx-h100 x 1")
    assert moves(found) == [(("hgx-h100-0",), ("WorkflowTemplate ml/later",))]


def test_a_template_that_is_not_migrated_keeps_the_plugin_for_ever():
    found = plan([deployment("a", 1, 8), template("later", "${GPUS}")], "hgx-h100 x 2")
    assert last(found).joint.reasons[0].startswith("WorkflowTemplate ml/later still asks the plugin: ")
    assert not found.works


@pytest.mark.parametrize(("limits", "works"), [({}, False), ({"cpu": "2"}, True)])
def test_a_quota_on_limits_refuses_pods_without_one_in_every_phase(limits: dict[str, str], works: bool):
    held = quota(16)
    pods = deployment("a", 1, 8)
    held["spec"]["hard"]["limits.cpu"] = "4"
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    container["resources"]["limits"] |= limits
    found = plan([held, pods], "hgx-h100 x 2")
    assert found.works == works
    assert ("and container main has no limit of cpu" in str(found.phases[0].joint)) != works


def test_queues_of_kueue_have_both_keys_until_the_plugin_goes():
    found = plan([queue(one=8, two=4), deployment("a", 1, 8)], "hgx-h100 x 2")
    keys = [dict(each.keys) for phase in found.phases for each in phase.quotas]
    both = {"nvidia.com/gpu": "8 + 4", DEVICES: "8 + 4"}
    assert keys == [*[both] * (len(found.phases) - 1), {DEVICES: "8 + 4"}]
    assert any("ClusterQueue all" in each.what for each in found.phases[0].steps)
    assert any("ClusterQueue all" in each.what for each in found.phases[0].back)
    assert any("ClusterQueue all" in each.what for each in last(found).steps)
    (after,) = (each for each in last(found).objects if each["kind"] == "ClusterQueue")
    (group,) = after["spec"]["resourceGroups"]
    assert group["coveredResources"] == ["cpu", DEVICES]
    assert [[each["name"] for each in one["resources"]] for one in group["flavors"]] == [["cpu", DEVICES]] * 2


def test_a_quota_that_is_too_small_shows_in_the_first_phase():
    found = plan([quota(4), deployment("a", 1, 8)], "hgx-h100 x 2")
    assert found.phases[0].joint.verdict == "never"
    assert "ResourceQuota ml/gpus" in str(found.phases[0].joint)
    assert not found.works


def test_a_job_is_created_anew_and_a_deployment_rolls_over():
    found = plan([deployment("a", 1, 8), job("t", 1, 8)], "hgx-h100 x 2")
    told = {str(ref): how for phase in found.phases for ref, how in phase.rolls.items()}
    assert told["Deployment ml/a"].startswith("rolls over and needs more devices for 1 surge pod")
    assert told["Job ml/t"].startswith("is deleted and created anew")
    given = [command for phase in found.phases for command in commands(phase.steps)]
    assert "kubectl delete job t --ignore-not-found -n ml" in given
    assert "kubectl rollout status deployment/a -n ml" in given


def test_a_cron_job_leaves_jobs_that_ask_the_plugin_and_a_deployment_of_no_pods_has_nothing_to_play():
    of_job = {"schedule": "0 1 * * *", "jobTemplate": {"spec": job("x", 1, 8)["spec"]}}
    cron = {**job("nightly", 1, 8), "kind": "CronJob", "spec": of_job}
    found = plan([cron, deployment("off", 0, 8)], "hgx-h100 x 1")
    told = {str(ref): how for phase in found.phases for ref, how in phase.rolls.items()}
    assert told["CronJob ml/nightly"].endswith("ask the plugin again: delete those that wait")
    assert "new pods" not in told["Deployment ml/off"]
    assert found.works


def test_a_workload_with_claims_starts_when_there_are_nodes_for_it():
    (done,) = migrated([deployment("ready", 1, 8)])
    assert done.manifest is not None
    found = plan([*done.added, done.manifest, deployment("a", 1, 8)], "hgx-h100 x 2")
    assert found.works
    told = {
        str(ref): (number, how) for number, each in enumerate(found.phases) for ref, how in each.rolls.items()
    }
    assert told["Deployment ml/ready"] == (2, "starts, for it asks by claims and had no nodes before")


def test_running_pods_of_leaving_nodes_are_named():
    spec = deployment("a", 1, 8)["spec"]["template"]["spec"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a-1", "namespace": "ml"},
        "spec": {**spec, "nodeName": "hgx-h100-1"},
    }
    found = plan([deployment("a", 1, 8)], "hgx-h100 x 2", running=[pod])
    assert [[str(ref) for ref in each.evicted] for each in found.phases[1:-1]] == [[], ["Pod ml/a-1"]]


@pytest.mark.parametrize("is_read", [False, True])
def test_pods_of_workloads_that_have_moved_are_no_longer_there(is_read: bool):
    def made_by(kind: str, owner: str, node: str) -> dict[str, Any]:
        owners = [{"kind": kind, "name": owner, "controller": True}]
        labels = {"app": owner, "pod-template-hash": "5c4"}
        return bare_pod(f"{owner}-1", 8, node, ownerReferences=owners, labels=labels)

    running = [
        made_by("ReplicaSet", "chat-5c4", "hgx-h100-2"),
        made_by("Job", "nightly-17", "hgx-h100-1"),
        made_by("Job", "train", "hgx-h100-2"),
    ]
    spec = job("nightly", 1, 8)["spec"]
    cron = {**job("nightly", 1, 8), "kind": "CronJob", "spec": {"jobTemplate": {"spec": spec}}}
    above = {
        "chat-5c4-1": ObjectRef("Deployment", "chat", "ml"),
        "nightly-17-1": ObjectRef("CronJob", "nightly", "ml"),
        "train-1": ObjectRef("Job", "train", "ml"),
    }
    more = {"owners": lambda ref: (ref, above[ref.name])} if is_read else {}
    found = plan(
        [deployment("chat", 1, 8), job("train", 1, 8), cron], "hgx-h100 x 3", running=running, **more
    )
    # A CronJob that has changed keeps the Jobs that run.
    assert [(*map(str, each.moves), *(pod.name for pod in each.evicted)) for each in found.phases[1:-1]] == [
        ("CronJob ml/nightly",),
        ("Deployment ml/chat", "nightly-17-1"),
        ("Job ml/train", "train-1"),
    ]


@pytest.mark.parametrize(("row", "evicted"), [({"keepsPods": "keeps them"}, ["a-1", "a-2"]), ({}, ["a-1"])])
def test_pods_that_a_kind_of_a_users_own_keeps_are_there_after_it_moved(
    row: dict[str, str], evicted: list[str]
):
    part = {"template": "spec.template", "pods": ["spec.replicas"]}
    kind = {"kind": "Trainer", "group": "example.com", "parts": [part], **row}
    trainer = deployment("a", 2, 8) | {"apiVersion": "example.com/v1", "kind": "Trainer"}
    owners = [{"kind": "Trainer", "name": "a", "controller": True}]
    running = [bare_pod(f"a-{number}", 8, f"hgx-h100-{number}", ownerReferences=owners) for number in (1, 2)]
    kinds = read_workload_kinds({"kinds": [kind]}, "kinds.yaml")
    found = plan([trainer], "hgx-h100 x 3", running=running, kinds=kinds)
    assert moves(found)[1] == (("hgx-h100-1",), ("Trainer ml/a",))
    assert [each.name for phase in found.phases for each in phase.evicted] == evicted


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_pods_that_a_plan_deletes_are_not_there_after_their_controller_moved(kind: str):
    version = "apps/v1" if kind == "ReplicaSet" else "v1"
    moved = deployment("a", 1, 8) | {"apiVersion": version, "kind": kind}
    owners = [{"kind": kind, "name": "a", "controller": True}]
    running = [bare_pod("a-1", 8, "hgx-h100-1", ownerReferences=owners)]
    found = plan([moved], "hgx-h100 x 2", running=running)
    assert [nodes for nodes, _ in moves(found)] == [("hgx-h100-0",), ("hgx-h100-1",)]
    assert [each.name for phase in found.phases for each in phase.evicted] == []


def of_daemon_set(name: str, node: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": True}
    spec = daemon_set("d", 1)["spec"]["template"]["spec"]
    metadata = {"name": name, "namespace": "ml", "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "nodeName": node}}


@pytest.mark.parametrize("kubernetes", ["1.34", "1.37"])
def test_pods_of_a_daemon_set_go_before_the_driver_comes_and_before_it_goes(kubernetes: str):
    running = [of_daemon_set("d-0", "hgx-h100-0"), of_daemon_set("d-1", "hgx-h100-1")]
    found = plan([daemon_set("d", 1)], "hgx-h100 x 2", kubernetes=kubernetes, running=running)
    assert found.works
    first = found.phases[1]
    assert first.evicted == ()
    assert [each.name for each in first.deleted] == ["d-0", "d-1"][: len(first.nodes)]
    names = " ".join(first.nodes)
    key = "dra-infra/cut-over"
    delete = "kubectl delete pods -n ml -l app=d --field-selector spec.nodeName=hgx-h100-0"
    given = commands(first.steps)
    order = [
        f"kubectl taint node {names} {key}:NoSchedule --overwrite",
        next(each for each in given if each.startswith(f"kubectl label node {names} ")),
        next(each for each in given if each.startswith("kubectl wait ")),
        delete,
        f"kubectl taint node {names} {key}-",
        "kubectl get resourceslices --field-selector spec.nodeName=hgx-h100-0",
        f"kubectl uncordon {names}",
    ]
    assert [each for each in given if each in order] == order
    given = commands(first.back)
    order = [
        f"kubectl taint node {names} {key}:NoSchedule --overwrite",
        delete,
        next(each for each in given if each.startswith(f"kubectl label node {names} ")),
        f"kubectl taint node {names} {key}-",
        f"kubectl uncordon {names}",
    ]
    assert [each for each in given if each in order] == order


@pytest.mark.parametrize("kubernetes", ["1.34", "1.37"])
def test_a_daemon_set_that_tolerates_the_taint_is_away_while_its_node_goes_back(kubernetes: str):
    found = plan([daemon_set("d", 1, tolerations=[{"operator": "Exists"}])], "hgx-h100 x 2", kubernetes)
    delete = "kubectl delete pods -n ml -l app=d --field-selector spec.nodeName=hgx-h100-0"
    orphan = "kubectl delete daemonset d -n ml --cascade=orphan"
    for phase in found.phases[1:-1]:
        given = commands(phase.back)
        last_name = phase.nodes[-1]
        order = [
            next(each for each in given if each.startswith("kubectl taint ")),
            orphan,
            delete.replace("hgx-h100-0", last_name),
            next(each for each in given if each.startswith("kubectl drain ")),
            next(each for each in given if each.startswith("kubectl label ")),
        ]
        assert [each for each in given if each in order] == order
        told = [each.what for each in phase.back]
        (again,) = [at for at, each in enumerate(told) if each.startswith("apply ") and "ml/d" in each]
        assert again > told.index("let pods of DaemonSets in again")
        assert ("as it was" in told[again]) == bool(phase.moves)
    # On the way there the plugin gives out nothing before its pods are deleted, so that new ones wait for the driver.
    assert all(orphan not in commands(each.steps) for each in found.phases)
    given = commands(found.phases[1].steps)
    assert given.index(delete) > next(at for at, each in enumerate(given) if each.startswith("kubectl wait "))


def test_a_daemon_set_of_the_cluster_that_is_not_among_the_manifests_is_told_and_its_pods_deleted():
    there = [daemon_set("d", 1), of_daemon_set("d-0", "hgx-h100-0"), of_daemon_set("d-1", "hgx-h100-1")]
    found = plan([deployment("a", 1, 4)], "hgx-h100 x 2", running=there)
    (reason,) = found.reasons
    assert reason.startswith("DaemonSet ml/d of the cluster asks the plugin and is not among the manifests")
    assert not found.works
    for phase in found.phases[1:-1]:
        assert [each.name for each in phase.deleted] == [f"d-{phase.nodes[0][-1]}"]
        delete = f"kubectl delete pods -n ml -l app=d --field-selector spec.nodeName={phase.nodes[0]}"
        assert delete in commands(phase.steps)
    own = plan([daemon_set("d", 1)], "hgx-h100 x 2", running=there)
    assert own.reasons == ()
    quiet = [daemon_set("idle", 0), daemon_set("elsewhere", 1, nodeSelector={"pool": "there-is-none"})]
    assert plan([deployment("a", 1, 4)], "hgx-h100 x 2", running=quiet).works


def test_pods_of_no_controller_are_deleted_before_the_drain_stops_at_them():
    found = plan([deployment("a", 1, 8), bare_pod("bare", 8)], "hgx-h100 x 3")
    assert moves(found) == [
        (("hgx-h100-0",), ("Deployment ml/a",)), (("hgx-h100-1",), ("Pod ml/bare",)), (("hgx-h100-2",), ())
    ]  # fmt: skip
    first, second, third = found.phases[1:4]
    delete = "kubectl delete pods -n ml --field-selector metadata.name=bare,spec.nodeName="
    assert commands(first.steps)[:2] == ["kubectl cordon hgx-h100-0", f"{delete}hgx-h100-0"]
    assert commands(first.steps)[2].startswith("kubectl drain hgx-h100-0 ")
    assert first.steps[-1].what == "apply again what the drain needed away: Pod ml/bare"
    # Where it is as it was, no node of the driver has it.
    assert not any("bare" in each for each in (*commands(first.back), *(step.what for step in first.back)))
    assert f"{delete}hgx-h100-1" in commands(second.steps)
    assert not any("again" in step.what for step in second.steps)
    assert not any("bare" in each for each in commands(third.steps))
    assert f"{delete}hgx-h100-2" in commands(third.back)
    assert third.back[-1].what == "apply again what the drain needed away: Pod ml/bare"


def test_running_pods_of_no_controller_are_deleted_where_they_are():
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a-1", "controller": True}]
    running = [
        bare_pod("debug", 0, "hgx-h100-1"),
        bare_pod("a-1-x", 8, "hgx-h100-1", ownerReferences=owner),
        {**bare_pod("done", 8, "hgx-h100-1"), "status": {"phase": "Succeeded"}},
    ]
    found = plan([deployment("a", 1, 8)], "hgx-h100 x 2", running=running)
    deletes = [each for each in commands(found.phases[2].steps) if " delete " in each]
    assert deletes == [
        "kubectl delete pods -n ml --field-selector metadata.name=debug,spec.nodeName=hgx-h100-1"
    ]
    assert not any("debug" in step.what for step in found.phases[2].steps)
    assert not any(" delete " in each for each in commands(found.phases[1].steps))


@pytest.mark.parametrize(
    ("limit", "hint"),
    [
        ({"maxUnavailable": 0}, "write maxUnavailable: 1 until"),
        ({"minAvailable": 2}, "write maxUnavailable: 1 in place of minAvailable until"),
        ({"minAvailable": "51%"}, "write maxUnavailable: 1 in place of minAvailable until"),
    ],
)
@pytest.mark.parametrize("is_running", [False, True])
def test_a_drain_that_no_budget_lets_end_is_told_with_what_to_write(
    limit: dict[str, Any], hint: str, is_running: bool
):
    inside = [budget("a", **limit)]
    outside = [budget("other", maxUnavailable=0)]
    given = {"running": inside} if is_running else {}
    found = plan([deployment("a", 2, 8), *outside, *(() if is_running else inside)], "hgx-h100 x 4", **given)
    first = next(each for each in found.phases if each.nodes)
    ((ref, outlook),) = first.held.items()
    assert str(ref) == "PodDisruptionBudget ml/a"
    assert "allows no eviction" in outlook.message
    assert outlook.hint.startswith(hint)
    assert not found.works
    assert found.verdict == "always"
    # What has moved is on none of the nodes that leave.
    assert found.phases[-2].held == {}


def test_a_budget_that_lets_pods_go_one_by_one_waits_for_none_where_the_next_has_a_place():
    free = plan([deployment("a", 2, 4), budget("a", maxUnavailable=1)], "hgx-h100 x 3")
    assert free.works
    assert all(each.held == {} for each in free.phases)
    # Two pods leave one node, and no other node takes the first before it is back.
    full = plan([deployment("a", 4, 4), budget("a", maxUnavailable=1)], "hgx-h100 x 2")
    (held,) = (each.held for each in full.phases if each.nodes)
    assert (
        "allows 1 eviction, while others find no place, and guards up to 4 pods"
        in next(iter(held.values())).message
    )
    assert not full.works


def test_pods_that_run_beside_the_manifests_are_guarded_where_they_are():
    running = [budget("web", minAvailable=1), bare_pod("web", 0, "hgx-h100-1")]
    found = plan([deployment("a", 1, 8)], "hgx-h100 x 2", running=running)
    assert [[str(ref) for ref in each.held] for each in found.phases[1:3]] == [
        [], ["PodDisruptionBudget ml/web"]
    ]  # fmt: skip


def test_a_budget_of_the_manifests_takes_the_place_of_the_one_that_is_there():
    objects = [deployment("a", 1, 8), budget("a", maxUnavailable=1)]
    found = plan(objects, "hgx-h100 x 2", running=[budget("a", maxUnavailable=0)])
    assert all(each.held == {} for each in found.phases)
    assert found.works


def test_what_is_in_no_namespace_by_the_manifests_is_in_default_by_the_cluster():
    def put_in(each: dict[str, Any], **namespace: str) -> dict[str, Any]:
        metadata = {key: value for key, value in each["metadata"].items() if key != "namespace"}
        return {**each, "metadata": metadata | namespace}

    everywhere = daemon_set("d", 1, tolerations=[{"operator": "Exists"}])
    objects = [everywhere, bare_pod("bare", 4), deployment("a", 1, 1), budget("a", maxUnavailable=1)]
    there = [everywhere, bare_pod("bare", 4, "hgx-h100-0"), budget("a", maxUnavailable=0)]
    found = plan(
        list(map(put_in, objects)),
        "hgx-h100 x 4",
        running=[put_in(each, namespace="default") for each in there],
    )
    assert found.reasons == ()
    moving = [each for each in found.phases if each.kind == "move"]
    assert all(each.held == {} for each in moving)
    given = [each for phase in moving for each in (*commands(phase.steps), *commands(phase.back))]
    assert not any("-n default" in each for each in given)
    assert given.count("kubectl delete daemonset d --cascade=orphan") == len(moving)
    deleted = "kubectl delete pods --field-selector metadata.name=bare,spec.nodeName=hgx-h100-0"
    assert deleted in given
    # What a phase has moved it applies as it was, and not as migrated behind that.
    (own,) = [each for each in moving if "DaemonSet d" in map(str, each.moves)]
    assert not any("DaemonSet" in each.what and each.what.startswith("apply again") for each in own.back)


@pytest.mark.parametrize(
    "limit", [{}, {"maxUnavailable": None}, {"maxUnavailable": float("inf")}, {"minAvailable": []}]
)
def test_a_budget_that_says_nothing_holds_nothing(limit: dict[str, Any]):
    odd = deployment("b", 1, 1, overhead={"cpu": "x"})
    found = plan(
        [deployment("a", 1, 8), odd, budget("a", **limit), budget("b", maxUnavailable=0)], "hgx-h100 x 2"
    )
    assert all(each.held == {} for each in found.phases)


def test_nodes_without_a_daemon_set_are_cordoned_alone():
    elsewhere = daemon_set("d", 1, nodeSelector={"pool": "there-is-none"})
    found = plan([deployment("a", 1, 8), elsewhere], "hgx-h100 x 2")
    assert not any("taint" in each for phase in found.phases for each in commands(phase.steps))


def test_pods_of_a_daemon_set_are_told_from_others_by_all_of_its_selector():
    made = daemon_set("d", 1)
    made["spec"]["selector"]["matchExpressions"] = [{"key": "tier", "operator": "Exists"}]
    made["spec"]["template"]["metadata"]["labels"]["tier"] = "one"
    given = commands(plan([made], "hgx-h100 x 1").phases[1].steps)
    assert "kubectl delete pods -n ml -l app=d,tier=one --field-selector spec.nodeName=hgx-h100-0" in given


def test_pods_of_others_with_devices_of_the_plugin_leave_the_plan_open():
    taken = Taken(amounts={"hgx-h100-1": {"nvidia.com/gpu": 4, "cpu": 4}})
    found = plan([deployment("a", 1, 8)], "hgx-h100 x 2", taken=taken)
    (reason,) = found.reasons
    assert reason.startswith("pods that are not among the manifests have 4 of nvidia.com/gpu on hgx-h100-1")
    assert found.verdict == "not-decided"
    assert not found.works


def test_a_search_without_time_says_that_fewer_nodes_were_not_ruled_out():
    objects = [deployment("a", 1, 8), deployment("b", 1, 8)]
    found = make_plan(
        objects,
        migrated(objects),
        all_on_plugin(load_fleet("hgx-h100 x 2"), PLUGIN),
        release=ClusterTarget(kubernetes="1.34").releases[-1],
        is_late=lambda: True,
    )
    assert all("was not found to work" in each for each in found.refused)


def shape(seed: int) -> tuple[list[dict[str, Any]], str]:
    random = Random(seed)  # noqa: S311
    objects: list[dict[str, Any]] = [quota(random.choice((16, 64)))]
    for number in range(random.randint(1, 4)):
        make = random.choice((deployment, job))
        objects.append(make(f"w{number}", random.randint(1, 3), random.choice((1, 2, 4, 8))))
    return objects, f"hgx-h100 x {random.randint(1, 4)}"


def check_worlds(found: Plan, objects: list[dict[str, Any]]) -> None:
    workloads = {reference_to(each) for each in objects if each["kind"] != "ResourceQuota"}
    moved: set[Any] = set()
    nodes: list[str] = []
    for phase in found.phases:
        assert sorted((*phase.unmigrated, *phase.migrated)) == sorted(workloads)
        assert moved <= set(phase.migrated)
        moved = set(phase.migrated)
        nodes += phase.nodes
        in_force = {reference_to(each): each for each in phase.objects}
        assert {each for each in workloads if asks_plugin(in_force[each], workload_kinds())} == set(
            phase.unmigrated
        )
        for each in phase.quotas:
            assert DEVICES in each.keys
            assert phase.kind == "finish" or OLD_KEY in each.keys
            assert phase.kind != "finish" or OLD_KEY not in each.keys
    assert len(nodes) == len(set(nodes))


@pytest.mark.parametrize("seed", range(12))
def test_every_workload_is_in_one_world_and_the_end_is_what_migrate_writes(seed: int):
    objects, fleet = shape(seed)
    found = plan(objects, fleet, kubernetes=("1.34", "1.37")[seed % 2])
    check_worlds(found, objects)
    if moves(found):
        done = migrated(objects)
        wanted = [each for entry in done for each in (*entry.added, entry.manifest) if each is not None]
        before_the_end = found.phases[-2]
        assert sorted(map(str, before_the_end.objects)) == sorted(map(str, wanted))
        assert all(each.joint.works for each in found.phases[1:-1])
        assert set(itertools.chain(*(each.nodes for each in found.phases))) == {
            node.name for node in load_fleet(fleet).nodes
        }


TAINT = NodeTaint(key="nvidia.com/gpu", value="present")


def tainted(fleet: str, *taints: NodeTaint, kubernetes: str = "1.34") -> Fleet:
    found = load_fleet(fleet, kubernetes=kubernetes)
    return replace(found, nodes=tuple(replace(each, taints=taints) for each in found.nodes))


@pytest.mark.parametrize("kubernetes", ["1.34", "1.37"])
@pytest.mark.parametrize("manifest", [deployment("a", 3, 8), {**template("a", 8), "kind": "Workflow"}])
def test_pods_on_tainted_nodes_count_with_the_toleration_that_admission_added(
    kubernetes: str, manifest: dict[str, Any]
):
    objects = [manifest, *([deployment("b", 2, 8)] if manifest["kind"] == "Workflow" else [])]
    bare, found = (
        plan(objects, tainted("hgx-h100 x 3", *taints, kubernetes=kubernetes), kubernetes)
        for taints in ((), (TAINT,))
    )
    assert moves(found) == moves(bare)
    assert [each.joint for each in found.phases] == [each.joint for each in bare.phases]
    assert found.phases[0].joint.works


@pytest.mark.parametrize("state", ["not-ready", "unreachable"])
def test_a_node_that_is_not_ready_leaves_the_plan_open_with_what_to_do(state: str):
    first, *others = load_fleet("hgx-h100 x 3", kubernetes="1.34").nodes
    taint = NodeTaint(key=f"node.kubernetes.io/{state}", effect="NoExecute")
    nodes = (replace(first, taints=(taint,)), *others)
    found = plan([deployment("a", 1, 8)], replace(load_fleet("hgx-h100 x 3", kubernetes="1.34"), nodes=nodes))
    (reason,) = found.reasons
    assert "not ready: hgx-h100-0; bring it back before the drain, or delete the node" in reason
    assert found.verdict == "not-decided"
    assert not found.works


@pytest.mark.parametrize("kubernetes", ["1.34", "1.37"])
def test_pods_of_the_plugin_that_no_node_lets_in_fit_in_no_phase(kubernetes: str):
    found = plan(
        [deployment("a", 1, 8)],
        tainted("hgx-h100 x 2", NodeTaint(key="dedicated", value="x"), kubernetes=kubernetes),
        kubernetes,
    )
    assert [each.joint.verdict for each in found.phases] == ["never", "never"]
    assert "no node takes a pod of Deployment ml/a" in str(found.phases[0].joint)


def test_admission_adds_no_toleration_to_pods_of_a_daemon_set_that_its_controller_does_not_make():
    found = plan([daemon_set("d", 1), deployment("a", 1, 8)], tainted("hgx-h100 x 2", TAINT))
    # What `migrate` writes lets its pods in: then they need a GPU that the other has.
    assert found.phases[0].joint.verdict == "always"
    assert last(found).joint.verdict != "always"


def test_a_pod_of_another_group_or_without_a_spec_is_no_pod_of_the_plan():
    strange = {**bare_pod("p", 1), "apiVersion": "example.com/v1"}
    empty = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e", "namespace": "ml"}}
    found = plan([deployment("a", 1, 8), strange], "hgx-h100 x 2", running=[empty])
    assert found.works
    assert all("Pod " not in each.what for phase in found.phases for each in phase.steps)


def unlike(fleet: str, memory: int = 4) -> Fleet:
    """Nodes as a real cluster has them: each with labels of its own, and with a few KiB of memory more than the one before."""
    found = load_fleet(fleet, kubernetes="1.34")
    nodes = [
        replace(
            each,
            labels={**each.labels, "nvidia.com/gfd.timestamp": f"{1764200000 + number}"},
            allocatable={**each.allocatable, "memory": f"{2**30 + number * memory}Ki"},
        )
        for number, each in enumerate(found.nodes)
    ]
    return replace(found, nodes=tuple(nodes))


@pytest.mark.parametrize("asks_memory", [False, True])
def test_nodes_of_which_pods_see_no_difference_leave_the_plugin_together(asks_memory: bool):
    objects = [deployment("a", 2, 8), deployment("b", 2, 8)]
    for each in objects if asks_memory else ():
        (container,) = each["spec"]["template"]["spec"]["containers"]
        container["resources"]["requests"] = {"memory": "100Gi"}
    found = plan(objects, unlike("hgx-h100 x 4"))
    assert found.nodes_at_once == 2
    # Where amounts that pods ask for differ, another choice of nodes might have worked.
    says = "was not found to work" if asks_memory else "does not work"
    assert found.refused[0].startswith(f"1 node at a time {says}: never fit at once")


def test_nodes_that_let_in_other_pods_or_more_of_them_are_not_alike():
    pinned = deployment("a", 1, 8, nodeSelector={"kubernetes.io/hostname": "hgx-h100-1"})
    groups = {
        "pinned": [("hgx-h100-0", "hgx-h100-2"), ("hgx-h100-1",)],
        "large": [("hgx-h100-0", "hgx-h100-1"), ("hgx-h100-2",)],
        "spread": [("hgx-h100-0",), ("hgx-h100-1",), ("hgx-h100-2",)],
    }
    large, spread = deployment("a", 1, 8), deployment("a", 1, 8)
    (container,) = large["spec"]["template"]["spec"]["containers"]
    container["resources"]["requests"] = {"memory": f"{2**30 + 4096}Ki"}
    key = {"topologyKey": "nvidia.com/gfd.timestamp", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spread["spec"]["template"]["spec"]["topologySpreadConstraints"] = [key]
    sides = all_on_plugin(unlike("hgx-h100 x 3", 2048), PLUGIN)
    for name, each in (("pinned", pinned), ("large", large), ("spread", spread)):
        found, _ = sides.alike(list(find_pod_templates(each)))
        assert sorted(found) == groups[name]


def test_nodes_with_room_for_more_pods_than_they_may_have_are_alike():
    asked = deployment("a", 1, 0)
    (container,) = asked["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"memory": "1Mi"}}
    fleet = unlike("hgx-h100 x 3", 4096)
    first, *others = fleet.nodes
    assert int(first.allocatable["pods"]) > 8
    few = replace(first, allocatable={**first.allocatable, "pods": "8"})
    found, is_exact = all_on_plugin(replace(fleet, nodes=(few, *others)), PLUGIN).alike(
        list(find_pod_templates(asked))
    )
    assert (sorted(found), is_exact) == ([("hgx-h100-0",), ("hgx-h100-1", "hgx-h100-2")], False)


def test_nodes_that_are_cordoned_are_like_others_for_pods_of_daemon_sets_alone():
    fleet = load_fleet("hgx-h100 x 2", kubernetes="1.34")
    first, second = fleet.nodes
    sides = all_on_plugin(replace(fleet, nodes=(first, replace(second, unschedulable=True))), PLUGIN)
    on_each, other = ([*find_pod_templates(each)] for each in (daemon_set("a", 8), deployment("a", 1, 8)))
    assert sides.alike(on_each) == ([("hgx-h100-0", "hgx-h100-1")], True)
    assert sorted(sides.alike([*on_each, *other])[0]) == [("hgx-h100-0",), ("hgx-h100-1",)]
