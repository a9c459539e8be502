"""Running pods of others that a change evicts: they are placed anew with the program, and hold nothing where they were."""

from __future__ import annotations

import random

import pytest

from dra_infra.answers.reviewing import compare
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.placement.running import Running
from dra_infra.placement.what_if import WhatIf, change_fleet
from dra_infra.target import ClusterTarget
from tests.support import draws
from tests.support.placing import place

DRIVER = "gpu.nvidia.com"
RELEASE = ClusterTarget(kubernetes="1.37").releases[0]
OTHERS = ("ReplicaSet", "others-5f")


def running_pod(name, node, gpus=(), *, owner=OTHERS, claim="", cpu="1", tolerations=(), **spec):
    """A pod with GPUs of its node by a claim of its own, or by one that is named."""
    metadata = {"name": name, "namespace": "ml", "uid": name, "labels": {"pod-template-hash": "5f"}}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container], **spec},
        "status": {"phase": "Running"},
    }
    if not gpus:
        return [pod]
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": f"of-{len(gpus)}"}
    pod["spec"]["resourceClaims"] = [{"name": "gpu", **source}]
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
    owners = [] if claim else [{"kind": "Pod", "name": name, "uid": name, "controller": True}]
    allocated = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": claim or f"{name}-gpu", "namespace": "ml", "ownerReferences": owners},
        "spec": asked(len(gpus)),
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {
                            "request": "gpu",
                            "driver": DRIVER,
                            "pool": node,
                            "device": f"gpu-{each}",
                            "tolerations": list(tolerations),
                        }
                        for each in gpus
                    ]
                }
            },
            "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
        },
    }
    return [pod, allocated]


def asked(count):
    return {
        "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "h100", "count": count}}]}
    }


TEMPLATES = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"of-{count}", "namespace": "ml"},
        "spec": {"spec": asked(count)},
    }
    for count in range(1, 9)
]
RULE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "service"},
    "spec": {
        "deviceSelector": {"driver": DRIVER, "pool": "n0"},
        "taint": {"key": "service", "effect": "NoExecute"},
    },
}


def a_snapshot(make, *groups, nodes=2, **node):
    objects = [each for group in (TEMPLATES, *groups) for each in group]
    return Snapshot(
        fleet=make.fleet(*(make.node(f"n{number}", gpus=8, **node) for number in range(nodes))),
        objects=tuple(objects),
    )


def a_program(make, *more, replicas=1, count=2, **pod):
    return make.program(
        make.device_class(),
        make.template("mine", "mine", count=count),
        make.workload("Deployment", "mine", make.pod_spec(template="mine", **pod), replicas=replicas),
        *more,
        kubernetes="1.37",
    )


def nobody(make):
    """A program without pods."""
    return make.program(make.device_class(), kubernetes="1.37")


def placed(snapshot, program, *, rules=(RULE,), fleet=None, release=RELEASE, drained=frozenset()):
    """The placement of a program once rules are there, the fleet is another one, or nodes are drained."""
    manifests = [*(each.manifest for each in program.objects), *rules]
    fleet = fleet or snapshot.fleet
    taken = Running.of(snapshot, program).without_evicted(manifests, fleet, release, drained)
    return place(manifests, fleet, taken=taken, release=release)


def whose(placement):
    """How many pods arrive or are left pending, by who makes them, in the first order that is known."""
    order = placement.joint.works or placement.joint.fails
    found = [*((each.owner, each.pods) for each in order.arrivals), *order.pending]
    counts = {}
    for owner, number in found:
        counts[str(owner)] = counts.get(str(owner), 0) + number
    return counts


@pytest.mark.parametrize(("free", "verdict"), [(8, "always"), (5, "always"), (4, "never")])
def test_pods_that_a_rule_evicts_need_room_beside_the_program(make, free, verdict):
    held = running_pod("b", "n1", range(8 - free), owner=("StatefulSet", "held"))
    snapshot = a_snapshot(make, running_pod("a", "n0", range(2)), held)
    placement = placed(snapshot, a_program(make, count=3))
    assert (placement.evicted, whose(placement)) == (1, {"Deployment ml/mine": 1, "Deployment ml/others": 1})
    assert placement.joint.verdict == verdict
    assert [each.owner.name for each in placement.workloads] == ["mine"]


@pytest.mark.parametrize("pods", [(1, 1), (2, 2, 1), (4, 4), (8,), (3, 3, 2), (1, 1, 1, 1)])
@pytest.mark.parametrize("own", [1, 3, 6])
def test_the_verdict_is_that_of_a_program_that_has_the_evicted_pods(make, pods, own):
    first = [sum(pods[:number]) for number in range(len(pods))]
    groups = [
        running_pod(f"p{number}", "n0", range(at, at + gpus), owner=("Job", f"j{number}"))
        for number, (at, gpus) in enumerate(zip(first, pods, strict=True))
    ]
    rest = running_pod("rest", "n1", range(2))
    program = a_program(make, count=own)
    jobs = [
        make.workload("Job", f"j{number}", make.pod_spec(template=f"of-{gpus}"))
        for number, gpus in enumerate(pods)
    ]
    with_them = a_program(make, *jobs, count=own)
    found = placed(a_snapshot(make, *groups, rest), program).joint
    assert found.verdict == placed(a_snapshot(make, rest), with_them).joint.verdict


def test_a_review_says_that_evicted_pods_find_no_room(make):
    held = running_pod("b", "n1", range(5), owner=("StatefulSet", "held"))
    snapshot = a_snapshot(make, running_pod("a", "n0", range(4)), held)
    rule = make.object(
        "DeviceTaintRule", "service", RULE["spec"], api_version="resource.k8s.io/v1", namespace=""
    )
    base, head = a_program(make), a_program(make, rule)
    found = compare(base, head, base_label="base", fleet=snapshot.fleet, snapshot=snapshot)
    assert [(each.code, each.path) for each in found.problems] == [("never-fit-at-once", "all workloads")]
    assert found.joint is found.after.joint
    assert "evicted, and placed anew with the others: 1 pod of Deployment ml/others" in found.notes
    assert (found.before.evicted, found.before.joint.verdict) == (0, "always")
    same = compare(head, head, base_label="base", fleet=snapshot.fleet, snapshot=snapshot)
    assert (same.before.evicted, same.problems) == (1, ())


@pytest.mark.parametrize(
    ("gpus", "evicted", "waits"),
    [(4, 0, False), (5, 0, True), (3, 2, False), (3, 3, True)],
    ids=["room", "too little on the other node", "room beside evicted pods", "too little beside them"],
)
def test_a_rollout_has_the_devices_that_a_rule_of_the_change_leaves(make, gpus, evicted, waits):
    rule = make.object(
        "DeviceTaintRule", "service", RULE["spec"], api_version="resource.k8s.io/v1", namespace=""
    )
    base, head = (
        a_program(make, count=gpus),
        a_program(make, rule, count=gpus, image="registry.example.com/app:2"),
    )
    snapshot = a_snapshot(make, running_pod("a", "n0", range(evicted)))
    found = compare(base, head, base_label="base", fleet=snapshot.fleet, snapshot=snapshot)
    assert found.problems == ()
    assert ("workload-rolls" in [each.code for each in found.dangers]) == waits


@pytest.mark.parametrize(
    ("toleration", "evicted"),
    [
        ({"operator": "Exists", "effect": "NoExecute"}, 0),
        ({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}, 1),
        ({"operator": "Exists"}, 1),
    ],
    ids=["for ever", "for a while", "for the scheduler alone"],
)
def test_a_pod_that_tolerates_the_taint_for_good_keeps_its_devices(make, toleration, evicted):
    snapshot = a_snapshot(make, running_pod("a", "n0", range(8), tolerations=[toleration]), nodes=1)
    placement = placed(snapshot, nobody(make))
    assert placement.evicted == evicted


def test_a_pod_that_no_controller_made_is_gone_and_its_devices_are_free(make):
    snapshot = a_snapshot(make, running_pod("bare", "n0", range(8), owner=None))
    fleet = change_fleet(snapshot.fleet, WhatIf(fail=("n0/gpu-0",)), RELEASE)
    placement = placed(snapshot, a_program(make, replicas=2, count=7), rules=(), fleet=fleet)
    assert (placement.evicted, placement.joint.verdict) == (0, "always")
    assert "evicted, and made anew by no controller: Pod ml/bare" in placement.notes


def on_node(name):
    """Affinity of a DaemonSet's pod, as its controller writes it."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("change", "evicted", "verdict"),
    [("rule", 1, "never"), ("drain", 0, "always"), ("remove", 0, "always"), ("cordon", 0, "always")],
)
def test_the_pod_of_a_daemon_set_goes_to_no_other_node(make, change, evicted, verdict):
    pod = running_pod("d", "n0", range(1), owner=("DaemonSet", "watch"), **on_node("n0"))
    snapshot = a_snapshot(make, pod, unschedulable=change == "cordon")
    fleet = {"remove": WhatIf(remove=("n0",)), "drain": WhatIf(drain=("n0",))}.get(change, WhatIf())
    placement = placed(
        snapshot,
        nobody(make),
        rules=(RULE,) if change == "rule" else (),
        fleet=change_fleet(snapshot.fleet, fleet, RELEASE),
        drained={"n0"} if change == "drain" else frozenset(),
    )
    assert (placement.evicted, placement.joint.verdict) == (evicted, verdict)


@pytest.mark.parametrize("what_if", [WhatIf(remove=("n0",)), WhatIf(drain=("n0",)), WhatIf(fail=("n0/*",))])
def test_pods_of_a_node_that_goes_is_drained_or_fails_need_room_elsewhere(make, what_if):
    groups = [running_pod(f"p{number}", "n0", (number,)) for number in range(3)]
    snapshot = a_snapshot(make, *groups)
    fleet = change_fleet(snapshot.fleet, what_if, RELEASE)
    found = placed(snapshot, a_program(make, count=6), rules=(), fleet=fleet, drained=set(what_if.drain))
    assert (found.evicted, whose(found)["Deployment ml/others"]) == (3, 3)
    assert found.joint.verdict == "never"


def test_a_cordoned_node_keeps_its_pods(make):
    snapshot = a_snapshot(make, running_pod("a", "n0", range(8)), unschedulable=True)
    assert placed(snapshot, a_program(make), rules=()).evicted == 0


def test_pods_without_devices_leave_a_drained_node_too(make):
    wide = running_pod("web", "n0", cpu="200", owner=("StatefulSet", "web"))
    snapshot = a_snapshot(make, wide, running_pod("db", "n1", cpu="100", owner=("StatefulSet", "db")))
    fleet = change_fleet(snapshot.fleet, WhatIf(drain=("n0",)), RELEASE)
    found = placed(snapshot, nobody(make), rules=(), fleet=fleet, drained={"n0"})
    assert (found.evicted, found.joint.verdict) == (1, "never")
    assert placed(snapshot, nobody(make)).evicted == 0


def test_an_evicted_pod_that_no_node_lets_in_any_more_is_not_left_out(make):
    pod = running_pod("web", "n0", owner=("StatefulSet", "web"), **on_node("n0"))
    snapshot = a_snapshot(make, pod)
    fleet = change_fleet(snapshot.fleet, WhatIf(remove=("n0",)), RELEASE)
    found = placed(snapshot, a_program(make), rules=(), fleet=fleet)
    assert found.joint.verdict == "never"


def test_pods_that_share_a_claim_are_placed_with_it_when_all_of_them_go(make):
    pods = [running_pod(name, "n0", range(4), claim="pair", owner=("Job", "pair")) for name in "ab"]
    (first, claim), (second, _) = pods
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": each, "uid": each} for each in "ab"]
    placement = placed(a_snapshot(make, [first, second, claim]), a_program(make, count=4))
    assert (placement.evicted, placement.joint.verdict) == (2, "always")
    assert placed(a_snapshot(make, [first, second, claim]), a_program(make, count=5)).joint.verdict == "never"


def a_pair(*nodes, terms=None):
    """Pods `a`, `b`, ... on these nodes, and a claim with four GPUs that all of them use."""
    names = "abcdef"[: len(nodes)]
    made = [
        running_pod(name, node, range(4), claim="pair", owner=("Job", "pair"))
        for name, node in zip(names, nodes, strict=True)
    ]
    claim = made[0][1]
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": each, "uid": each} for each in names]
    if terms is not None:
        claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    return [*(pod for pod, _ in made), claim]


def of_name(*names):
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


@pytest.mark.parametrize(
    ("terms", "verdict"),
    [
        (None, "always"),
        ([of_name("n0")], "never"),
        ([of_name("n0"), of_name("n1")], "always"),
        ([of_name("n2"), {}], "never"),
    ],
    ids=["all nodes", "the node that goes", "both nodes", "another node"],
)
def test_a_claim_that_a_pod_which_stays_uses_too_is_used_where_it_is_allocated(make, terms, verdict):
    snapshot = a_snapshot(make, a_pair("n0", "n1", terms=terms))
    fleet = change_fleet(snapshot.fleet, WhatIf(drain=("n0",)), RELEASE)
    running = Running.of(snapshot)
    taken = running.without_evicted((), fleet, RELEASE, {"n0"})
    assert taken.devices == running.taken.devices
    placement = place([], fleet, taken=taken, release=RELEASE)
    assert (placement.evicted, placement.joint.verdict) == (1, verdict)


@pytest.mark.parametrize(("others", "verdict"), [(254, "always"), (255, "never")])
def test_a_claim_with_all_the_pods_that_may_use_it_takes_no_more(make, others, verdict):
    pods = a_pair("n0", "n1")
    pods[-1]["status"]["reservedFor"] += [{"resource": "pods", "name": f"p{each}"} for each in range(others)]
    snapshot = a_snapshot(make, pods)
    fleet = change_fleet(snapshot.fleet, WhatIf(drain=("n0",)), RELEASE)
    joint = placed(snapshot, nobody(make), rules=(), fleet=fleet, drained={"n0"}).joint
    told = "ResourceClaim ml/pair has room for no more pods of the 256 that may use it, and 1 ask for it"
    assert (joint.verdict, told in joint.reasons) == (verdict, verdict == "never")


@pytest.mark.parametrize(("affinity", "nodes"), [({}, ["n1"]), (on_node("n1"), ["n1"]), (on_node("n0"), [])])
def test_pods_of_the_program_use_claims_of_others_where_they_are_allocated(make, affinity, nodes):
    snapshot = a_snapshot(make, a_pair("n1", terms=[of_name("n1")]))
    spec = {**make.pod_spec(claim="pair"), **affinity}
    program = make.program(make.device_class(), make.workload("Job", "more", spec), kubernetes="1.37")
    (answer,) = placed(snapshot, program, rules=()).workloads
    assert [each.node for each in answer.nodes] == nodes
    assert answer.verdict == ("fits" if nodes else "does-not-fit")


def test_a_claim_of_others_that_has_no_devices_yet_gets_some(make):
    claim = a_pair("n1")[-1]
    claim["status"] = {}
    program = make.program(
        make.device_class(),
        make.workload("Job", "more", make.pod_spec(claim="pair"), replicas=2),
        kubernetes="1.37",
    )
    (answer,) = placed(a_snapshot(make, [claim]), program, rules=()).workloads
    assert (answer.verdict, len(answer.pods[0].devices)) == ("fits", 4)


def test_pods_of_one_controller_that_differ_are_told_apart(make):
    ray = ("RayCluster", "ray")
    groups = [running_pod(f"worker-{number}", "n0", (number,), owner=ray) for number in range(2)]
    snapshot = a_snapshot(make, running_pod("head", "n0", cpu="4", owner=ray), *groups)
    fleet = change_fleet(snapshot.fleet, WhatIf(remove=("n0",)), RELEASE)
    found = placed(snapshot, a_program(make), rules=(), fleet=fleet)
    assert whose(found) == {
        "Deployment ml/mine": 1,
        "RayCluster ml/ray": 1,
        "RayCluster ml/ray/worker-0": 2,
    }


def test_an_evicted_pod_counts_once_for_a_quota(make):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": {"hard": {"h100.deviceclass.resource.k8s.io/devices": "4"}},
    }
    snapshot = a_snapshot(make, running_pod("a", "n0", range(2)), [quota])
    assert placed(snapshot, a_program(make, count=2)).joint.verdict == "always"
    assert placed(snapshot, a_program(make, count=3)).joint.verdict == "never"


@pytest.mark.parametrize(("most", "verdict"), [(2, "always"), (1, "never")])
def test_objects_of_others_count_for_a_quota_of_their_kind(make, most, verdict):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": {"hard": {"count/deployments.apps": str(most)}},
    }
    named = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "ml"}}
        for name in ("mine", "theirs")
    ]
    assert placed(a_snapshot(make, named, [quota]), a_program(make)).joint.verdict == verdict


def test_where_the_gate_is_off_no_device_taint_evicts(make):
    snapshot = a_snapshot(make, running_pod("a", "n0", range(2)))
    release = ClusterTarget(kubernetes="1.37", gates={"DRADeviceTaintRules": False}).releases[0]
    assert placed(snapshot, a_program(make), release=release).evicted == 0


def test_pods_of_the_program_that_run_are_asked_once(make):
    snapshot = a_snapshot(make, running_pod("mine-a", "n0", range(2), owner=("Deployment", "mine")))
    assert placed(snapshot, a_program(make)).evicted == 0


def test_a_pod_that_is_being_deleted_is_not_made_anew(make):
    (pod, claim) = running_pod("a", "n0", range(2))
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    snapshot = a_snapshot(make, [pod, claim])
    fleet = change_fleet(snapshot.fleet, WhatIf(remove=("n0",)), RELEASE)
    assert placed(snapshot, a_program(make), rules=(), fleet=fleet).evicted == 0


ODD = (None, 3, "?", [], {}, ["x"], {"x": "y"}, True)


def spoil(value, rng):
    """A copy in which some values are others."""
    if rng.random() < 0.04:
        return rng.choice(ODD)
    if isinstance(value, dict):
        return {name: spoil(each, rng) for name, each in value.items()}
    return [spoil(each, rng) for each in value] if isinstance(value, list) else value


@pytest.mark.draws
@pytest.mark.parametrize("seed", draws.seeds(60))
def test_odd_pods_and_claims_raise_nothing(make, seed):
    rng = random.Random(seed)  # noqa: S311  (not for secrets)
    objects = [
        *running_pod("a", "n0", range(2), **on_node("n0")),
        *running_pod("b", "n0", range(2, 4), claim="pair", owner=("RayCluster", "ray")),
        *running_pod("c", "n0", cpu="2", owner=("DaemonSet", "watch")),
    ]
    snapshot = a_snapshot(
        make, [{name: spoil(value, rng) for name, value in each.items()} for each in objects]
    )
    fleet = change_fleet(snapshot.fleet, WhatIf(remove=("n0",)), RELEASE)
    for options in ({}, {"drained": {"n0"}}, {"fleet": fleet}):
        placement = placed(snapshot, a_program(make), **options)
        assert placement.joint.verdict in ("always", "depends-on-order", "never", "not-decided")
