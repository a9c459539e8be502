"""Room for a workload by moving running pods: which move, which stay, what it costs, and why there is none."""

from __future__ import annotations

import pytest

from dra_infra.placement.movable_pods import MoveRules
from tests.support.running_clusters import (
    a_budget,
    a_request,
    a_running_pod,
    a_snapshot,
    a_template,
    a_workload,
    ask_for_room,
    small_claims,
)

TWO = "hgx-h100 x 2"
EIGHT = [a_template("eight", a_request(8)), a_workload("Job", "train", "eight")]


def moved(answer):
    return [(each.pod.ref.name, each.pod.node, each.lands) for each in answer.made.plan.moves]


def test_the_node_that_is_cheapest_to_free_is_freed_and_its_pods_go_elsewhere():
    answer = ask_for_room(a_snapshot(TWO, *small_claims()), "job/train", *EIGHT)
    assert (answer.made.verdict, answer.exit_code) == ("moves", 0)
    assert moved(answer) == [("notebook-1", "hgx-h100-1", "hgx-h100-0")]
    plan = answer.made.plan
    assert plan.cordon == ("hgx-h100-1",)
    assert plan.moves[0].takes == ("hgx-h100-0/gpu-3",)
    assert [each.node for each in plan.arrivals] == ["hgx-h100-1"]
    assert plan.cost == (0, 1, 0, 1)
    assert plan.is_cheapest


def test_what_fits_already_needs_no_move():
    few = [a_template("four", a_request(4)), a_workload("Job", "train", "four")]
    answer = ask_for_room(a_snapshot(TWO, *small_claims()), "job/train", *few)
    assert (answer.made.verdict, answer.exit_code, answer.steps) == ("fits-now", 0, ())
    assert answer.made.plan.moves == ()


def test_more_devices_than_there_are_is_never_with_the_numbers():
    many = [a_template("eight", a_request(8)), a_workload("Job", "train", "eight", 2)]
    answer = ask_for_room(a_snapshot(TWO, *small_claims()), "job/train", *many)
    assert (answer.made.verdict, answer.exit_code) == ("never", 1)
    assert answer.made.reasons[0].startswith(
        "22 devices are needed, 16 by the wanted pods and 6 by 4 pods that may be moved"
    )


def test_a_claim_for_more_than_a_node_has_is_never():
    wide = [a_template("wide", a_request(9)), a_workload("Job", "train", "wide")]
    answer = ask_for_room(a_snapshot(TWO, *small_claims()), "job/train", *wide)
    assert answer.made.verdict == "never"
    assert answer.made.reasons[0] == "no node takes one of its pods, even without every pod that may be moved"


@pytest.mark.parametrize(("rules", "verdict"), [(MoveRules(), "never"), (MoveRules(bare_pods=True), "moves")])
def test_pods_without_a_controller_stay_unless_they_are_asked_for(rules, verdict):
    pods = [
        each
        for number in range(2)
        for each in a_running_pod(f"bare-{number}", "one", f"hgx-h100-{number}", ["gpu-0"], owner=None)
    ]
    snapshot = a_snapshot(TWO, a_template("one", a_request()), *pods)
    answer = ask_for_room(snapshot, "job/train", *EIGHT, rules=rules)
    assert answer.made.verdict == verdict
    if verdict == "moves":
        assert moved(answer) == [("bare-0", "hgx-h100-0", "")]
        assert answer.made.plan.cost[2] == 1
    else:
        assert answer.made.stays == ("2 pods not moved: no controller replaces it (ml/bare-0 and ml/bare-1)",)


def test_a_budget_that_allows_no_eviction_keeps_its_pods():
    objects = [*small_claims(), a_budget("quiet", "notebook", 0)]
    answer = ask_for_room(a_snapshot(TWO, *objects), "job/train", *EIGHT)
    assert answer.made.verdict == "never"
    assert answer.made.stays == (
        "2 pods not moved: PodDisruptionBudget ml/quiet allows no eviction (ml/notebook-0 and ml/notebook-1)",
    )


def test_a_budget_without_a_status_is_counted_from_its_spec():
    budget = a_budget("quiet", "notebook", 0)
    del budget["status"]
    answer = ask_for_room(a_snapshot(TWO, *small_claims(), budget), "job/train", *EIGHT)
    assert answer.made.verdict == "never"
    budget["spec"] |= {"maxUnavailable": "50%"}
    answer = ask_for_room(a_snapshot(TWO, *small_claims(), budget), "job/train", *EIGHT)
    assert answer.made.verdict == "moves"
    assert "kubectl get pdb -n ml quiet -o 'jsonpath={.status.disruptionsAllowed}'" in answer.steps[1].before


@pytest.mark.parametrize(
    ("priority", "above", "verdict"), [(5, False, "never"), (5, True, "moves"), (0, False, "moves")]
)
def test_pods_with_a_higher_priority_stay(priority, above, verdict):
    objects = [
        {**each, "spec": {**each["spec"], "priority": priority}} if each["kind"] == "Pod" else each
        for each in small_claims()
    ]
    rules = MoveRules(above_priority=above)
    answer = ask_for_room(a_snapshot(TWO, *objects), "job/train", *EIGHT, rules=rules)
    assert answer.made.verdict == verdict


def test_a_job_that_one_more_failed_pod_ends_is_not_moved():
    job = a_workload("Job", "study", "one")
    job["spec"]["backoffLimit"] = 0
    pods = [
        *a_running_pod("study-a", "one", "hgx-h100-0", ["gpu-0"], owner=("Job", "study")),
        *a_running_pod("serve-a", "one", "hgx-h100-1", ["gpu-0"], owner=("Deployment", "serve")),
        *a_running_pod("serve-b", "one", "hgx-h100-1", ["gpu-1"], owner=("Deployment", "serve")),
    ]
    objects = [a_template("one", a_request()), job, a_workload("Deployment", "serve", "one", 2), *pods]
    answer = ask_for_room(a_snapshot(TWO, *objects), "job/train", *EIGHT)
    assert [name for name, _, _ in moved(answer)] == ["serve-a", "serve-b"]
    assert answer.made.stays == (
        "1 pod not moved: its Job fails with one more failed pod (backoffLimit 0) (ml/study-a)",
    )


def test_hours_of_work_count_before_numbers_of_pods():
    pods = [
        *a_running_pod("study-a", "one", "hgx-h100-0", ["gpu-0"], owner=("Job", "study")),
        *a_running_pod("serve-a", "one", "hgx-h100-1", ["gpu-0"], owner=("Deployment", "serve")),
        *a_running_pod("serve-b", "one", "hgx-h100-1", ["gpu-1"], owner=("Deployment", "serve")),
    ]
    objects = [
        a_template("one", a_request()),
        a_workload("Job", "study", "one"),
        a_workload("Deployment", "serve", "one", 2),
        *pods,
    ]
    snapshot = a_snapshot(TWO, *objects)
    assert [name for name, _, _ in moved(ask_for_room(snapshot, "job/train", *EIGHT))] == ["study-a"]
    rules = MoveRules(run_times={"ml/job/study": 12.5})
    answer = ask_for_room(snapshot, "job/train", *EIGHT, rules=rules)
    assert [name for name, _, _ in moved(answer)] == ["serve-a", "serve-b"]


def test_a_pod_moves_so_that_another_one_can():
    """Node 0 is to be free. Its pod of four fits nowhere until the pod of two on node 1 goes to node 2."""
    objects = [a_template(name, a_request(count)) for name, count in (("two", 2), ("four", 4))]
    objects += [a_workload("Deployment", "two", "two", 4), a_workload("Deployment", "four", "four", 4)]
    places = [
        ("four-0", "four", 0, range(4)),
        ("four-1", "four", 1, range(4)),
        ("two-1", "two", 1, (4, 5)),
        ("four-2", "four", 2, range(4)),
        ("two-2", "two", 2, (4, 5)),
    ]
    for name, template, node, devices in places:
        names = [f"gpu-{each}" for each in devices]
        objects += a_running_pod(name, template, f"hgx-h100-{node}", names, owner=("Deployment", template))
    answer = ask_for_room(a_snapshot("hgx-h100 x 3", *objects), "job/train", *EIGHT)
    assert moved(answer) == [
        ("two-1", "hgx-h100-1", "hgx-h100-2"),
        ("four-0", "hgx-h100-0", "hgx-h100-1"),
    ]
    # The node that takes the second pod is closed before and opened for it alone.
    assert [command for step in answer.steps for command in step.commands] == [
        "kubectl cordon hgx-h100-0 hgx-h100-1",
        "kubectl delete pod -n ml two-1",
        "kubectl uncordon hgx-h100-1",
        "kubectl delete pod -n ml four-0",
        "kubectl cordon hgx-h100-1",
        "kubectl uncordon hgx-h100-0 hgx-h100-1",
    ]
    assert answer.made.plan.is_cheapest


def test_a_workload_of_the_cluster_waits_and_is_stopped_while_pods_move():
    waiting = a_workload("Deployment", "large", "eight", 1)
    pod = a_running_pod("large-a", "eight", "", [], owner=("Deployment", "large"))[0]
    del pod["spec"]["nodeName"]
    pod["status"] = {"phase": "Pending"}
    snapshot = a_snapshot(TWO, *small_claims(), EIGHT[0], waiting, pod)
    answer = ask_for_room(snapshot, "deployment/large")
    assert (answer.made.verdict, answer.made.waiting) == ("moves", 1)
    assert answer.steps[0].commands == ("kubectl scale deployment/large -n ml --replicas=0",)
    assert answer.steps[-1].commands[-1] == "kubectl scale deployment/large -n ml --replicas=1"


def test_a_workload_that_runs_whole_needs_no_room():
    answer = ask_for_room(a_snapshot(TWO, *small_claims()), "deployment/notebook")
    assert (answer.made.verdict, answer.made.reasons) == ("fits-now", ("all of its pods have a node",))


def test_a_claim_that_nobody_uses_yet_finds_room():
    claim = {**a_template("alone", a_request(8)), "kind": "ResourceClaim"}
    claim["spec"] = claim["spec"]["spec"]
    answer = ask_for_room(a_snapshot(TWO, *small_claims()), "claim/alone", claim)
    assert (answer.made.verdict, answer.made.pods) == ("moves", 1)


def test_another_pod_that_waits_is_named():
    pod = a_running_pod("other", "one", "", [], owner=("Deployment", "notebook"))[0]
    del pod["spec"]["nodeName"]
    pod["status"] = {"phase": "Pending"}
    answer = ask_for_room(a_snapshot(TWO, *small_claims(), pod), "job/train", *EIGHT)
    assert answer.made.notes[0] == "1 other pod waits for a node and may take what becomes free: ml/other"


def test_a_rack_is_freed_for_a_shape():
    objects = [a_template("one", a_request()), a_workload("Deployment", "serve", "one", 3)]
    for number, node in enumerate(("gb200-nvl72-00", "gb200-nvl72-03", "gb200-nvl72-23")):
        objects += a_running_pod(f"serve-{number}", "one", node, ["gpu-0"], owner=("Deployment", "serve"))
    snapshot = a_snapshot("gb200-nvl72 x 2", *objects)
    answer = ask_for_room(snapshot, "a rack of gb200")
    assert [name for name, _, _ in moved(answer)] == ["serve-2"]
    assert len(answer.made.plan.arrivals) == 18
    assert len({each.node for each in answer.made.plan.arrivals}) == 18
    some = ask_for_room(snapshot, "17 nodes of a rack of gb200")
    assert some.made.verdict == "fits-now"


def test_pods_that_need_one_nvlink_domain_get_one_and_are_kept_off_the_others():
    """All pods name each other by required affinity, as those of an NVLink group do."""
    labels = {"app": "pretrain"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "nvidia.com/gpu.clique"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    wanted = a_workload("Job", "pretrain", "four", 18, affinity=affinity)
    objects = [a_template("one", a_request()), a_workload("Deployment", "serve", "one", 3)]
    for number, node in enumerate(("gb200-nvl72-00", "gb200-nvl72-03", "gb200-nvl72-23")):
        objects += a_running_pod(f"serve-{number}", "one", node, ["gpu-0"], owner=("Deployment", "serve"))
    snapshot = a_snapshot("gb200-nvl72 x 2", *objects)
    answer = ask_for_room(snapshot, "job/pretrain", a_template("four", a_request(4)), wanted)
    assert [name for name, _, _ in moved(answer)] == ["serve-2"]
    plan = answer.made.plan
    assert {each.node for each in plan.arrivals} == {f"gb200-nvl72-{number}" for number in range(18, 36)}
    # A first pod on the other rack would keep all others from this one.
    assert len(plan.keep_off) == 16
    opening, reopening = answer.steps[-2:]
    assert opening.commands[0].startswith("kubectl cordon gb200-nvl72-01 gb200-nvl72-02 ")
    assert reopening.commands == (f"kubectl uncordon {' '.join(plan.keep_off)}",)


def test_pods_move_one_after_the_other_where_a_budget_allows_one():
    objects = [*small_claims(), a_budget("one", "notebook", 1)]
    answer = ask_for_room(a_snapshot(TWO, *objects), "job/train", *EIGHT)
    assert moved(answer) == [("notebook-1", "hgx-h100-1", "hgx-h100-0")]
    assert [str(each) for each in answer.made.plan.moves[0].pod.budgets] == ["PodDisruptionBudget ml/one"]


def test_a_pod_with_a_volume_leaves_a_doubt():
    objects = small_claims()
    for each in objects:
        if each["kind"] == "Pod":
            each["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    answer = ask_for_room(a_snapshot(TWO, *objects), "job/train", *EIGHT)
    assert answer.made.plan.doubts == (
        "whether volumes let pods go to other nodes is not looked at: PersistentVolumeClaim ml/data",
    )


def test_a_daemon_set_finds_no_room_elsewhere():
    daemons = a_workload("Deployment", "agents", "eight")
    daemons["kind"] = "DaemonSet"
    del daemons["spec"]["replicas"]
    answer = ask_for_room(a_snapshot(TWO, *small_claims()), "daemonset/agents", EIGHT[0], daemons)
    assert (answer.made.verdict, answer.exit_code) == ("not-decided", 2)
    assert "makes a pod on every node" in answer.made.reasons[0]


def test_a_class_that_is_not_known_leaves_the_question_open():
    unknown = a_template("eight", a_request(8, device_class="elsewhere"))
    answer = ask_for_room(a_snapshot(TWO, *small_claims()), "job/train", unknown, EIGHT[1])
    assert answer.exit_code == 2


def test_the_plan_keeps_its_word_on_every_supported_minor():
    for minor in ("1.34", "1.35", "1.36", "1.37"):
        answer = ask_for_room(a_snapshot(TWO, *small_claims()), "job/train", *EIGHT, kubernetes=minor)
        assert moved(answer) == [("notebook-1", "hgx-h100-1", "hgx-h100-0")]
