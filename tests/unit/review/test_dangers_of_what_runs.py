"""Dangers that a snapshot, a namespace or a whole kind is part of, and surges on a fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_infra.answers.reviewing import compare
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.catalog.workload_kinds import read_workload_kinds
from dra_infra.placement.running import Running
from dra_infra.review import review
from dra_infra.review.changes import compare_programs
from dra_infra.review.comparison import Comparison
from dra_infra.review.reviews import find_dangers
from tests.support.placing import place


def dangers(make, before, after, *running, fleet=None, kinds=None):
    base, head = make.program(*before), make.program(*after)
    snapshot = Snapshot(fleet=fleet or make.fleet(), objects=running) if running or fleet else None
    placed = [
        place([each.manifest for each in side.objects], fleet) if fleet else None for side in (base, head)
    ]
    changes = compare_programs(base, head)
    runs = Running.of(snapshot, base, head)
    return find_dangers(
        Comparison.of(changes, base, head, running=runs, before=placed[0], after=placed[1], kinds=kinds)
    )


def codes(found):
    return [danger.code for danger in found]


def running(kind, name, *, owner=None, namespace="ml", api="v1", **rest):
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def allocated(make, name, device_class="h100"):
    return running(
        "ResourceClaim",
        name,
        api="resource.k8s.io/v1",
        spec=make.claim_spec(1, device_class),
        status={"allocation": {"devices": {"results": []}}, "reservedFor": [{"name": "p"}]},
    )


# Jobs and pods that are killed


def a_job(make, image="a"):
    return make.workload("Job", "train", make.pod_spec(image=image))


def test_a_replaced_job_says_how_many_of_its_pods_run(make):
    pods = [running("Pod", f"train-{index}", owner=("Job", "train")) for index in range(2)]
    (danger,) = dangers(make, [a_job(make)], [a_job(make, "b")], *pods)
    assert danger.message == "is replaced (spec.template), its 2 running pods are killed"


def test_a_job_that_is_done_only_runs_again(make):
    done = running(
        "Job", "train", api="batch/v1", status={"conditions": [{"type": "Complete", "status": "True"}]}
    )
    (danger,) = dangers(make, [a_job(make)], [a_job(make, "b")], done)
    assert danger.message == "is replaced (spec.template) and runs again: the old one is done"
    assert dangers(make, [a_job(make)], [], done) == ()


def test_a_deleted_workload_with_devices_is_a_danger(make):
    template = make.template("t", "t-1")
    user = make.workload("Job", "train", make.pod_spec(template="t-1"))
    (danger,) = dangers(make, [template, user], [template])
    assert (danger.code, danger.message) == ("workload-deleted", "is deleted, its running pods are killed")


def test_a_deleted_workload_without_devices_is_one_when_it_runs(make):
    assert dangers(make, [a_job(make)], []) == ()
    (danger,) = dangers(make, [a_job(make)], [], running("Pod", "train-a", owner=("Job", "train")))
    assert danger.message == "is deleted, its running pod is killed"


# Rollovers


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ({"type": "OnDelete"}, "keeps its pods as they are until each is deleted (updateStrategy OnDelete)"),
        (
            {"rollingUpdate": {"maxSurge": 2}},
            "rolls over with old and new pod side by side on up to 2 nodes at a time: 1 more device on each",
        ),
    ],
)
def test_a_daemon_set_rolls_as_its_strategy_says(make, strategy, said):
    sides = [
        [
            make.template("t", name, expression=name),
            make.workload("DaemonSet", "probe", make.pod_spec(template=name), updateStrategy=strategy),
        ]
        for name in ("t-1", "t-2")
    ]
    (danger,) = dangers(make, *sides)
    assert (danger.code, danger.message) == ("workload-rolls", said)


@pytest.mark.parametrize(
    ("replacement", "hint"),
    [
        ("provider", 'write updateStrategy={"type": "RollingUpdate"}'),
        ("in-place", "write updateStrategy: {type: RollingUpdate}"),
    ],
)
def test_a_hint_is_in_the_language_of_the_source(make, replacement, hint):
    sides = [
        [
            make.template("t", name, expression=name),
            replace(
                make.workload(
                    "DaemonSet", "probe", make.pod_spec(template=name), updateStrategy={"type": "OnDelete"}
                ),
                replacement=replacement,
            ),
        ]
        for name in ("t-1", "t-2")
    ]
    (danger,) = dangers(make, *sides)
    assert danger.hint == f"delete the pods one by one, or {hint}"


def test_a_paused_deployment_rolls_later(make):
    sides = [
        [
            make.template("t", name, expression=name),
            make.workload("Deployment", "serve", make.pod_spec(template=name), paused=True),
        ]
        for name in ("t-1", "t-2")
    ]
    (danger,) = dangers(make, *sides)
    assert danger.message == "is paused, and rolls over once it is resumed"


def a_server(make, count, *, replicas=2, beside=0):
    name = f"server-{count}"
    objects = [
        make.device_class(),
        make.template("server", name, count=count),
        make.workload("Deployment", "serve", make.pod_spec(template=name), replicas=replicas),
    ]
    if beside:
        objects += [
            make.template("z", "z-1", count=1),
            make.workload("StatefulSet", "zz", make.pod_spec(template="z-1"), replicas=beside),
        ]
    return objects


def test_old_pods_hold_their_devices_while_smaller_new_ones_start(make):
    # Eight GPUs: two old pods of four hold all of them, so that no pod of two starts before one has gone.
    fleet = make.fleet(make.node("n0", gpus=8), name="small")
    (danger,) = dangers(make, a_server(make, 4), a_server(make, 2), fleet=fleet)
    assert danger.code == "workload-rolls"
    assert danger.level == "danger"
    assert danger.message.endswith(
        "but small has room for no more pods: the rollout may wait without end, at new pod 1 of 2; it asks for 2 devices, "
        "and n0, the only node that could take it, has 0 free: 2 are missing"
    )


def test_pods_that_do_not_change_hold_theirs_too(make):
    fleet = make.fleet(make.node("n0", gpus=8), name="small")
    (danger,) = dangers(make, a_server(make, 2), a_server(make, 3), fleet=fleet)
    assert danger.message.endswith(
        "until the old ones are gone; played through on small, all 2 new pods find a place"
    )
    assert danger.level == "note"
    (danger,) = dangers(make, a_server(make, 2, beside=2), a_server(make, 3, beside=2), fleet=fleet)
    assert "small has room for no more pods" in danger.message


def test_devices_of_others_are_no_room_for_a_surge(make):
    fleet = make.fleet(make.node("n0", gpus=8), name="small")
    results = [{"driver": "gpu.nvidia.com", "pool": "n0", "device": f"gpu-{index}"} for index in range(2)]
    other = allocated(make, "other")
    other["status"]["allocation"]["devices"]["results"] = results
    (danger,) = dangers(make, a_server(make, 2), a_server(make, 3), other, fleet=fleet)
    assert "small has room for no more pods" in danger.message


def a_larger_server(make, count, *, kind="Deployment", replicas=2, beside=0, **spec):
    """One side in manifests: the template is another object, not a renamed one."""
    name = f"server-{count}"
    template = make.template(name, name, count=count)
    pods = make.pod_spec(template=name)
    beside = [
        make.template("z", "z-1"),
        make.workload("Job", "zz", make.pod_spec(template="z-1"), replicas=beside),
    ]
    return [make.device_class(), template, make.workload(kind, "serve", pods, replicas=replicas, **spec), *beside]  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "before", "after", "where"),
    [
        (
            1,
            1,
            4,
            "it asks for 4 devices, and n0, the only node that could take it, has 3 free: 1 is missing",
        ),
        # On two nodes the old pods share one, and both have to go before a whole node is free.
        (
            2,
            1,
            8,
            "it asks for 8 devices, and n0, the best of 2 nodes that could take it, has 7 free: 1 is missing",
        ),
    ],
)
def test_a_rollout_whose_first_pod_fits_and_whose_second_does_not_may_wait_without_end(
    make, nodes, before, after, where
):
    fleet = make.fleet(*(make.node(f"n{index}") for index in range(nodes)), name="small")
    found = dangers(make, a_larger_server(make, before), a_larger_server(make, after), fleet=fleet)
    (danger,) = [each for each in found if each.code == "workload-rolls"]
    assert danger.level == "danger"
    assert "but only 1 of 2 new pods finds room on small" in danger.message
    assert danger.message.endswith(f"the rollout may wait without end, at new pod 2 of 2; {where}")
    assert danger.cause == f"ResourceClaimTemplate ml/server-{before} (now server-{after})"
    assert "Recreate" in danger.hint


def test_a_rollout_that_comes_to_its_end_waits_for_nothing(make):
    fleet = make.fleet(make.node("n0"), name="small")
    for sides in [(1, 3), (2, 3)]:
        (danger,) = dangers(make, *(a_larger_server(make, count) for count in sides), fleet=fleet)
        assert (danger.level, danger.hint) == ("note", "")
        assert "without end" not in danger.message


def test_what_runs_beside_stops_a_rollout_half_way(make):
    fleet = make.fleet(make.node("n0"), name="small")
    sides = [a_larger_server(make, count, beside=1) for count in (1, 3)]
    (danger,) = dangers(make, *sides, fleet=fleet)
    assert "without end" not in danger.message
    # 3 + 1 + 2 beside leave two of eight, and the second new pod wants three.
    sides = [a_larger_server(make, count, beside=2) for count in (1, 3)]
    (danger,) = dangers(make, *sides, fleet=fleet)
    assert "only 1 of 2 new pods finds room" in danger.message


def test_a_stateful_set_stops_a_pod_first_and_may_wait_too(make):
    fleet = make.fleet(make.node("n0"), name="small")
    sides = [a_larger_server(make, count, kind="StatefulSet") for count in (1, 4)]
    (danger,) = dangers(make, *sides, fleet=fleet)
    assert "without end" not in danger.message
    # The other set took its place on the only node of eight, and stays there.
    small = make.fleet(make.node("n0"), make.node("n1", gpus=4), name="small")
    other = [
        make.template("z-4", "z-4", count=4),
        make.workload("StatefulSet", "zz", make.pod_spec(template="z-4")),
    ]
    sides = [[*a_larger_server(make, count, kind="StatefulSet", replicas=1), *other] for count in (1, 8)]
    rolls, crowded = sorted(dangers(make, *sides, fleet=small), key=lambda each: each.code, reverse=True)
    assert (rolls.code, crowded.code) == ("workload-rolls", "crowded-out")
    assert "but only 0 of 1 new pod finds room on small" in rolls.message
    assert "Recreate" not in rolls.hint
    assert rolls.message.endswith(
        "it asks for 8 devices, and n0, the only node that could take it, has 4 free: 4 are missing"
    )
    # Up to the partition its pods stay as they are.
    keeps = {"updateStrategy": {"rollingUpdate": {"partition": 1}}}
    sides = [a_larger_server(make, count, kind="StatefulSet", **keeps) for count in (1, 4)]
    (danger,) = dangers(make, *sides, fleet=fleet)
    assert danger.level == "note"
    assert danger.message.endswith("played through on small, the new pod finds a place")


def test_a_rollout_that_waits_for_more_than_devices_says_for_what(make):
    # The node has 224 cores: two old pods leave too few for a third one.
    fleet = make.fleet(make.node("n0"), name="small")
    sides = [a_larger_server(make, count) for count in (1, 2)]
    for server in (side[2] for side in sides):
        (container,) = server.manifest["spec"]["template"]["spec"]["containers"]
        container["resources"]["requests"] = {"cpu": "100"}
    (danger,) = dangers(make, *sides, fleet=fleet)
    assert danger.level == "danger"
    assert danger.message.endswith(
        "at new pod 1 of 2; n0, the only node that could take it, has too little cpu left"
    )


def test_a_rollout_that_hangs_names_the_kind_of_the_nearest_node(make):
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100"}
    fleet = make.fleet(make.node("n0", gpus=5), make.node("n1", labels=labels), name="small")
    sides = [a_larger_server(make, count, replicas=2, beside=4) for count in (1, 5)]
    (danger,) = [each for each in dangers(make, *sides, fleet=fleet) if each.code == "workload-rolls"]
    # Of six pods that run before, n0 has five; the first new pod takes five of the seven others.
    assert danger.message.endswith(
        "at new pod 2 of 2; it asks for 5 devices, and n1 (NVIDIA-H100), the best of 2 nodes that could take it, has 2 free: 3 are missing"
    )


def test_a_rollout_that_ends_does_not_close_the_gate_for_dangers(make):
    fleet = make.fleet(make.node("n0"), name="small")

    def reviewed(*counts):
        base, head = (make.program(*a_larger_server(make, count)) for count in counts)
        return compare(base, head, base_label="main", fleet=fleet)

    ends, hangs = reviewed(1, 3), reviewed(1, 4)
    assert (ends.dangers, len(ends.rollouts), ends.grade) == ((), 1, "ok")
    assert not ends.is_blocked("danger")
    assert ends.is_blocked("change")
    assert (len(hangs.dangers), hangs.rollouts, hangs.grade) == (1, (), "danger")
    assert hangs.is_blocked("danger")


def a_larger_probe(make, count, **strategy):
    """A DaemonSet whose pod on each node asks for so many devices."""
    name = f"probe-{count}"
    pods = make.pod_spec(template=name)
    rolling = {"updateStrategy": {"rollingUpdate": strategy}} if strategy else {}
    return [
        make.device_class(),
        make.template(name, name, count=count),
        make.workload("DaemonSet", "probe", pods, **rolling),
    ]


def test_a_daemon_set_with_a_surge_hangs_where_a_node_has_no_room_for_both_pods(make):
    fleet = make.fleet(make.node("n0"), make.node("n1", gpus=5), name="small")
    surge = {"maxSurge": 1, "maxUnavailable": 0}
    (ends,) = dangers(make, *(a_larger_probe(make, count, **surge) for count in (2, 3)), fleet=fleet)
    assert (ends.level, ends.hint) == ("note", "")
    assert ends.message.endswith("played through on small, all 2 new pods find a place")
    (hangs,) = dangers(make, *(a_larger_probe(make, count, **surge) for count in (2, 4)), fleet=fleet)
    assert (hangs.level, hangs.code) == ("danger", "workload-rolls")
    assert (
        "on up to 1 node at a time: 4 more devices on each, but only 1 of 2 new pods finds room"
        in hangs.message
    )
    assert hangs.message.endswith(
        "at new pod 2 of 2; it asks for 4 devices, and n1, the only node that could take it, has 3 free: 1 is missing"
    )
    assert '"maxSurge": 0' in hangs.hint


def test_a_daemon_set_without_a_surge_stops_the_pod_of_a_node_first(make):
    fleet = make.fleet(make.node("n0"), make.node("n1", gpus=5), name="small")
    (danger,) = dangers(make, *(a_larger_probe(make, count) for count in (2, 5)), fleet=fleet)
    assert danger.level == "note"
    assert danger.message == (
        "rolls over node by node, its pods need no more devices meanwhile; "
        "played through on small, all 2 new pods find a place"
    )


def test_a_recreated_deployment_always_comes_to_its_end(make):
    fleet = make.fleet(make.node("n0"), name="small")
    sides = [a_larger_server(make, count, strategy={"type": "Recreate"}) for count in (1, 4)]
    (danger,) = dangers(make, *sides, fleet=fleet)
    assert "without end" not in danger.message


# Classes


def test_a_class_that_changes_names_the_claims_that_are_allocated_now(make):
    before = [make.device_class()]
    after = [make.device_class(expression="true")]
    (danger,) = dangers(make, before, after, allocated(make, "a"), allocated(make, "b", "other"))
    assert danger.message.startswith("changes under 1 allocated claim (ResourceClaim ml/a):")
    (danger,) = dangers(make, before, after, allocated(make, "b", "other"))
    assert danger.message.startswith("changes, and no claim of it is allocated now:")


def test_a_deleted_class_names_who_uses_it_beside_the_program(make):
    template = running(
        "ResourceClaimTemplate",
        "of-others",
        namespace="other",
        api="resource.k8s.io/v1",
        spec={"spec": make.claim_spec(1, "h100")},
    )
    (danger,) = dangers(make, [make.device_class()], [], template)
    assert danger.code == "used-object-deleted"
    assert "ResourceClaimTemplate other/of-others still names it" in danger.message


def test_another_name_for_the_same_content_is_said(make):
    found = dangers(make, [make.template("t", "t-1")], [make.template("t", "t-2")])
    assert codes(found) == ["name-only-changed"]
    assert "has another name than t-1 and the same content" in found[0].message


# Namespaces and definitions


def test_a_deleted_template_names_who_uses_it_by_a_kind_of_the_users_own(make):
    entry = {"kind": "TrainingRun", "group": "ml.example.com", "parts": [{"template": "spec.template"}]}
    kinds = read_workload_kinds({"kinds": [entry]}, "kinds.yaml")
    spec = {"template": {"spec": make.pod_spec(template="t-1")}}
    user = running("TrainingRun", "train", api="ml.example.com/v1", spec=spec)
    template = make.template("t", "t-1")
    (danger,) = dangers(make, [template], [], user, kinds=kinds)
    assert "TrainingRun ml/train still names it" in danger.message
    assert dangers(make, [template], [], user) == ()


def test_a_deleted_namespace_takes_everything_in_it(make):
    gone = make.object("Namespace", "ml", None, namespace="")
    kept = make.template("t", "t-1")
    (danger,) = dangers(make, [gone, kept], [kept])
    assert danger.code == "namespace-deleted"
    assert danger.message == "is deleted with everything in it: ResourceClaimTemplate ml/t-1 of this program"
    (danger,) = dangers(make, [gone], [], running("Pod", "p"), allocated(make, "c"))
    assert danger.message == "is deleted with everything in it: 1 pod and 1 allocated claim"
    (danger,) = dangers(make, [gone], [])
    assert danger.message.endswith(", also what this program does not have")


def test_workloads_of_a_deleted_namespace_are_not_said_again(make):
    gone = make.object("Namespace", "ml", None, namespace="")
    user = make.workload("Job", "train", make.pod_spec(template="t-1"))
    assert codes(dangers(make, [gone, make.template("t", "t-1"), user], [])) == ["namespace-deleted"]


def test_a_namespace_that_another_resource_makes_stays(make):
    gone = make.object("Namespace", "ml", None, namespace="")
    moved = replace(gone, urn=gone.urn.replace("quickstart::", "quickstart::team:index:Team$"))
    assert codes(dangers(make, [gone], [moved])) == ["object-moved"]


def test_a_deleted_definition_takes_every_object_of_its_kind(make):
    spec = {"group": "resource.nvidia.com", "names": {"kind": "ComputeDomain"}}
    gone = make.object("CustomResourceDefinition", "computedomains.resource.nvidia.com", spec, namespace="")
    domain = make.object("ComputeDomain", "rack", {}, api_version="resource.nvidia.com/v1beta1")
    (danger,) = dangers(
        make, [gone, domain], [domain], running("ComputeDomain", "x", api="resource.nvidia.com/v1beta1")
    )
    assert danger.code == "definition-deleted"
    assert (
        danger.message
        == "is deleted, and every ComputeDomain with it: ComputeDomain ml/rack of this program and 1 that exists now"
    )


def test_dangers_know_where_their_object_is_written(make):
    from dra_infra.errors import Place

    after = replace(make.device_class(expression="true"), place=Place(file="main.py", line=3))
    (danger,) = dangers(make, [make.device_class()], [after])
    assert danger.place == Place(file="main.py", line=3)


def test_a_review_says_what_a_snapshot_lacks(make):
    program = make.program(make.device_class())
    result = review(
        program, program, base_label="main", running=Running.of(Snapshot(fleet=make.fleet()), program)
    )
    assert "nodes" in {each.name for each in result.not_known}
