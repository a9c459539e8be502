from __future__ import annotations

import dataclasses

import pytest

from dra_infra.answers.reviewing import compare
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.kubernetes.api import DeviceClass, ObjectRef
from dra_infra.placement.running import Running
from tests.support.placing import place

DRIVER = "gpu.nvidia.com"


def running_pod(name, *, owner=None, node="n0", cpu="1", phase="Running", labels=None):
    metadata = {"name": name, "namespace": "ml", "labels": labels or {}}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": phase},
    }


def allocated_claim(name, *devices, pod="", node="n0", **result):
    metadata = {"name": name, "namespace": "ml"}
    if pod:
        metadata["ownerReferences"] = [{"kind": "Pod", "name": pod, "controller": True}]
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": node, "device": each, **result} for each in devices
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "h100"}}]}},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"name": pod}] if pod else [],
        },
    }


def a_snapshot(make, *objects, gpus=8, nodes=1):
    return Snapshot(
        fleet=make.fleet(*(make.node(f"n{index}", gpus=gpus) for index in range(nodes))), objects=objects
    )


def a_side(make, *, replicas=1, count=2):
    return make.program(
        make.device_class(),
        make.template("t", "t-1", count=count),
        make.workload("Deployment", "serve", make.pod_spec(template="t-1"), replicas=replicas),
    )


def placed(make, snapshot, program):
    taken = Running.of(snapshot, program).taken
    (workload,) = place([each.manifest for each in program.objects], snapshot.fleet, taken=taken).workloads
    return workload


def test_devices_of_other_claims_are_not_free(make):
    snapshot = a_snapshot(make, allocated_claim("other", "gpu-0", "gpu-1", "gpu-2"))
    workload = placed(make, snapshot, a_side(make, replicas=2))
    assert (workload.verdict, workload.more_pods) == ("fits", 0)
    assert [choice.device for pod in workload.pods for choice in pod.devices] == [
        "gpu-3",
        "gpu-4",
        "gpu-5",
        "gpu-6",
    ]


def test_a_node_whose_devices_are_taken_says_so(make):
    snapshot = a_snapshot(make, allocated_claim("other", *(f"gpu-{index}" for index in range(7))))
    workload = placed(make, snapshot, a_side(make))
    assert workload.verdict == "does-not-fit"
    assert [reason.code for reason in workload.reasons] == ["devices-in-use"]


def test_only_the_nodes_with_taken_devices_are_left_out(make):
    snapshot = a_snapshot(make, allocated_claim("other", *(f"gpu-{index}" for index in range(7))), nodes=2)
    workload = placed(make, snapshot, a_side(make))
    assert [node.node for node in workload.nodes] == ["n1"]
    assert workload.more_pods == 3


@pytest.mark.parametrize(
    ("phases", "users", "is_free"),
    [
        (("Succeeded",), ("job-0",), True),
        (("Failed", "Succeeded"), ("job-0", "job-1"), True),
        (("Running", "Succeeded"), ("job-0", "job-1"), False),
        (("Succeeded",), ("job-0", "not-read"), False),
        (("Succeeded",), (), False),
    ],
)
def test_pods_that_are_done_hold_no_devices(make, phases, users, is_free):
    pods = [running_pod(f"job-{number}", phase=phase) for number, phase in enumerate(phases)]
    claim = allocated_claim("other", *(f"gpu-{index}" for index in range(8)))
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": user} for user in users]
    snapshot = a_snapshot(make, *pods, claim)
    assert (placed(make, snapshot, a_side(make)).verdict == "fits") == is_free
    running = Running.of(snapshot)
    ended = {ObjectRef("ResourceClaim", "other", "ml")} if is_free else set()
    assert running.taken.gone == ended
    done = {f"job-{number}" for number, phase in enumerate(phases) if phase != "Running"}
    assert running.count_pods(ObjectRef("ResourceClaim", "other", "ml")) == len({*users} - done)


def test_a_pod_of_the_same_name_that_runs_keeps_the_devices_of_a_claim(make):
    pod = running_pod("job-0", phase="Succeeded")
    pod["metadata"]["uid"] = "1"
    claim = allocated_claim("other", *(f"gpu-{index}" for index in range(8)))
    for uid, verdict in (("1", "fits"), ("2", "does-not-fit")):
        claim["status"]["reservedFor"] = [{"resource": "pods", "name": "job-0", "uid": uid}]
        assert placed(make, a_snapshot(make, pod, claim), a_side(make)).verdict == verdict


def test_a_request_for_all_devices_does_not_take_what_is_left(make):
    program = a_side(make)
    template = next(each for each in program.objects if each.ref.kind == "ResourceClaimTemplate")
    requests = template.manifest["spec"]["spec"]["devices"]["requests"]
    requests[0]["exactly"] = {"deviceClassName": "h100", "allocationMode": "All"}
    assert placed(make, a_snapshot(make), program).verdict == "fits"
    assert placed(make, a_snapshot(make, allocated_claim("o", "gpu-0")), program).verdict == "does-not-fit"


@pytest.mark.parametrize(
    "objects",
    [
        # The chain of owners as a whole snapshot has it.
        (
            running_pod("serve-5f-a", owner=("ReplicaSet", "serve-5f")),
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": "serve-5f",
                    "namespace": "ml",
                    "ownerReferences": [{"kind": "Deployment", "name": "serve", "controller": True}],
                },
            },
        ),
        # Without ReplicaSets, by the hash that their pods carry.
        (running_pod("serve-5f-a", owner=("ReplicaSet", "serve-5f"), labels={"pod-template-hash": "5f"}),),
    ],
)
def test_what_the_program_itself_runs_takes_nothing(make, objects):
    claim = allocated_claim("serve-5f-a-gpu-x", *(f"gpu-{index}" for index in range(8)), pod="serve-5f-a")
    snapshot = a_snapshot(make, *objects, claim)
    assert placed(make, snapshot, a_side(make)).verdict == "fits"


def test_a_claim_that_the_program_has_takes_nothing(make):
    snapshot = a_snapshot(make, allocated_claim("pair", "gpu-0"))
    assert Running.of(snapshot, make.program(make.claim("pair", "pair"))).taken.devices == frozenset()


def test_admin_access_takes_no_device(make):
    snapshot = a_snapshot(make, allocated_claim("watch", "gpu-0", adminAccess=True))
    assert Running.of(snapshot).taken.devices == frozenset()


def test_cpu_of_other_pods_is_not_free_until_they_are_done(make):
    program = a_side(make)
    pods = next(each for each in program.objects if each.ref.kind == "Deployment").manifest["spec"][
        "template"
    ]["spec"]
    pods["containers"][0]["resources"]["requests"] = {"cpu": "200"}
    busy, done = running_pod("other", cpu="100"), running_pod("other", cpu="100", phase="Succeeded")
    assert placed(make, a_snapshot(make, done), program).verdict == "fits"
    workload = placed(make, a_snapshot(make, busy), program)
    assert [reason.code for reason in workload.reasons] == ["node-too-small"]


def test_pods_are_counted_for_each_of_their_owners(make):
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "nightly-1",
            "namespace": "ml",
            "ownerReferences": [{"kind": "CronJob", "name": "nightly", "controller": True}],
        },
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    }
    pods = [running_pod(f"nightly-1-{index}", owner=("Job", "nightly-1")) for index in range(2)]
    running = Running.of(a_snapshot(make, job, *pods))
    assert running.count_pods(ObjectRef(kind="Job", name="nightly-1", namespace="ml")) == 2
    assert running.count_pods(ObjectRef(kind="CronJob", name="nightly", namespace="ml")) == 2
    assert running.is_done(ObjectRef(kind="Job", name="nightly-1", namespace="ml"))


def test_owners_in_a_circle_end(make):
    pods = [running_pod("a", owner=("Pod", "b")), running_pod("b", owner=("Pod", "a"))]
    assert (
        Running.of(a_snapshot(make, *pods)).count_pods(ObjectRef(kind="Pod", name="a", namespace="ml")) >= 1
    )


def test_what_a_snapshot_lacks_is_said(make):
    not_known = Running.of(Snapshot(fleet=make.fleet())).not_counted
    assert {each.name for each in not_known} == {"nodes", "pods", "claims"}


def test_shares_of_a_snapshot_take_what_they_consume(make):
    amounts = {"memory": "10Gi", "compute": "lots"}
    shared = allocated_claim("s", "gpu-0", shareID="7b0c", consumedCapacity=amounts)
    running = Running.of(a_snapshot(make, running_pod("p"), shared))
    taken, not_known = running.taken, running.not_counted
    assert not_known == ()
    assert taken.devices == frozenset()
    assert [(device[2], dict(consumed)) for device, consumed in taken.shares] == [
        ("gpu-0", {"memory": "10Gi"})
    ]


def test_names_that_pulumi_makes_cannot_be_found_again(make):
    program = make.program(make.object("Pod", "", make.pod_spec(), resource="p"))
    not_known = Running.of(a_snapshot(make, running_pod("p-1"), allocated_claim("c")), program).not_counted
    assert [each.name for each in not_known] == ["pods of the program"]


def test_malformed_objects_of_a_snapshot_raise_nothing(make):
    objects = (
        running_pod("p", cpu="nonsense"),
        {"kind": "Pod", "metadata": None, "spec": {"nodeName": 7}},
        {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "c", "ownerReferences": 3},
         "status": {"allocation": {"devices": {"results": [None, {}]}}}},
        {"kind": "Pod", "metadata": {"name": "q"}, "spec": {"nodeName": "n0"}},
    )  # fmt: skip
    running = Running.of(a_snapshot(make, *objects))
    taken, not_known = running.taken, running.not_counted
    assert taken.devices == {("None", "None", "None")}
    assert any("malformed" in str(each) for each in not_known)


def test_pods_of_others_are_told_with_what_decides_beside_them(make):
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    other = running_pod("other", labels={"app": "db"})
    other["spec"]["affinity"] = apart
    going = running_pod("going")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    own = running_pod("own", owner=("Deployment", "serve"))
    done = running_pod("done", phase="Succeeded")
    taken = Running.of(a_snapshot(make, other, going, own, done), a_side(make)).taken
    assert [(node, dict(shape.labels), shape.is_going) for node, shape in taken.pods] == [
        ("n0", {}, True),
        ("n0", {"app": "db"}, False),
    ]
    assert [len(shape.apart) for _, shape in taken.pods] == [0, 1]
    assert Running.of(a_snapshot(make)).taken.pods is None


def test_pods_of_others_that_run_count_for_their_pod_group(make):
    own, done = (
        running_pod("own", owner=("Deployment", "serve")),
        running_pod("done", phase="Succeeded"),
    )
    pods = [running_pod("a"), running_pod("b"), own, done]
    for each in pods:
        each["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    assert Running.of(a_snapshot(make, *pods), a_side(make)).taken.grouped == {("ml", "g"): 2}


def test_the_own_pods_of_a_program_are_no_users_of_a_claim_of_others(make):
    own, other = running_pod("own", owner=("Deployment", "serve")), running_pod("other")
    claim = allocated_claim("shared", "gpu-0")
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": name} for name in ("own", "other")]
    (seen,) = Running.of(a_snapshot(make, own, other, claim), a_side(make)).taken.templates
    assert [each["name"] for each in seen["status"]["reservedFor"]] == ["other"]


def test_a_pod_that_runs_closes_its_node_to_others(make):
    other = running_pod("other", cpu="0")
    term = {"topologyKey": "name", "labelSelector": {}}
    other["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    }
    snapshot = a_snapshot(make, other, nodes=2)
    for node in snapshot.fleet.nodes:
        node.labels["name"] = node.name
    answer = placed(make, snapshot, a_side(make))
    assert [each.node for each in answer.nodes] == ["n1"]
    assert [each.code for each in answer.reasons] == ["other-pods-in-the-way"]


def a_quota(name, **hard):
    return {"kind": "ResourceQuota", "metadata": {"name": name, "namespace": "ml"}, "spec": {"hard": hard}}


def test_what_others_make_counts_for_the_quotas_of_the_snapshot(make):
    quota = a_quota("team", **{"pods": "2", "count/resourceclaims.resource.k8s.io": "4"})
    objects = (
        quota,
        running_pod("other"),
        running_pod("own", owner=("Deployment", "serve")),
        allocated_claim("c", pod="other"),
        allocated_claim("d", pod="own"),
    )
    taken = Running.of(a_snapshot(make, *objects), a_side(make)).taken
    assert taken.policies == (quota,)
    assert {key: taken.made["ml"][key] for key in ("pods", "count/resourceclaims.resource.k8s.io")} == {
        "pods": 1,
        "count/resourceclaims.resource.k8s.io": 1,
    }
    answer = placed(make, a_snapshot(make, *objects), a_side(make, replicas=2))
    assert [each.code for each in answer.reasons] == ["quota-refuses"]
    assert placed(make, a_snapshot(make, *objects), a_side(make)).verdict == "fits"


def test_a_claim_for_extended_resources_counts_once_with_its_pod(make):
    pod = running_pod("other")
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    claim = allocated_claim("c", "gpu-0", pod="other")
    claim["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    snapshot = a_snapshot(make, a_quota("team", pods="9"), pod, claim)
    shipped = make.device_class()
    shipped.manifest["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    fleet = dataclasses.replace(snapshot.fleet, classes=(DeviceClass.from_manifest(shipped.manifest),))
    taken = Running.of(dataclasses.replace(snapshot, fleet=fleet), make.program()).taken
    assert taken.made["ml"]["requests.nvidia.com/gpu"] == 1
    assert taken.made["ml"]["h100.deviceclass.resource.k8s.io/devices"] == 1


def test_claims_of_others_count_by_the_extended_resource_that_the_program_gives_their_class(make):
    class_ = make.device_class()
    class_.manifest["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    snapshot = a_snapshot(make, a_quota("team", pods="9"), allocated_claim("c", "gpu-0"))
    assert Running.of(snapshot, make.program(class_)).taken.made["ml"]["requests.nvidia.com/gpu"] == 1


def a_claim_template(name, count, *, namespace="ml", **more):
    request = {"name": "gpu", "exactly": {"deviceClassName": "h100", "count": count, **more}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def a_pod_that_names(make, template, *more):
    pods = make.workload("Deployment", "serve", make.pod_spec(template=template))
    return make.program(make.device_class(), pods, *more)


def test_a_pod_may_name_a_claim_template_of_the_cluster(make):
    snapshot = a_snapshot(make, a_claim_template("trainer", 3), a_claim_template("trainer", 9, namespace="x"))
    program = a_pod_that_names(make, "trainer")
    answer = placed(make, snapshot, program)
    assert (answer.verdict, len(answer.nodes[0].devices)) == ("fits", 3)
    reviewed = compare(program, program, base_label="main", fleet=snapshot.fleet, snapshot=snapshot)
    assert reviewed.problems == ()
    (unknown,) = compare(program, program, base_label="main", fleet=snapshot.fleet).problems
    assert unknown.code == "claim-not-known"


def test_a_claim_template_of_the_program_goes_before_that_of_the_cluster(make):
    snapshot = a_snapshot(make, a_claim_template("t-1", 3))
    answer = placed(make, snapshot, a_pod_that_names(make, "t-1", make.template("t", "t-1", count=2)))
    assert len(answer.nodes[0].devices) == 2


@pytest.mark.parametrize(
    ("labels", "codes"),
    [({"resource.kubernetes.io/admin-access": "true"}, []), ({}, ["admin-access-namespace"])],
)
def test_the_label_for_admin_access_is_that_of_the_namespace_in_the_cluster(make, labels, codes):
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": labels}}
    claim = make.claim("look", "look")
    claim.manifest["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    snapshot = a_snapshot(make, space)
    program = make.program(make.device_class(), claim)
    reviewed = compare(make.program(), program, base_label="main", fleet=snapshot.fleet, snapshot=snapshot)
    assert [each.code for each in reviewed.problems] == codes
    told = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
    assert all(told in each.message for each in reviewed.problems)
