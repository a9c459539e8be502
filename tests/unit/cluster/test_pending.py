"""What the objects of a cluster say about a pod or claim that waits."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.catalog.fleet_files import gather_fleet
from dra_infra.cluster.pending import SeenObjects, ask_running, find_amounts, find_holders, find_placed
from dra_infra.explanation.asking import ClusterContext, SubjectQuestion
from dra_infra.target import ClusterTarget
from tests.support.cluster import samples

GPU = samples.GPU
(RELEASE,) = ClusterTarget(kubernetes="1.37").releases


def texts_of(asked):
    """Return the reasons of each node in words."""
    return {node: tuple(map(str, reasons)) for node, reasons in asked.question.refusals.items()}


def whole(kind: str, manifest: dict[str, Any]) -> dict[str, Any]:
    groups = {"Pod": "v1", "Node": "v1", "Deployment": "apps/v1", "ReplicaSet": "apps/v1"}
    return {"apiVersion": groups.get(kind, "resource.k8s.io/v1"), "kind": kind, **manifest}


def template(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r0", "exactly": {"deviceClassName": GPU}}]}}},
    }


def ask(manifest: dict[str, Any], kind: str = "Pod", **objects: Any) -> SubjectQuestion:
    """What is asked about an object, with *objects* of the cluster by field of a scene."""
    names = {"pods": "Pod", "claims": "ResourceClaim", "templates": "ResourceClaimTemplate"}
    found: dict[str, Any] = {
        field: [whole(names[field], each) for each in items] if field in names else items
        for field, items in objects.items()
    }
    manifest = whole(kind, manifest)
    if kind == "Pod":
        found["pods"] = [*found.get("pods", ()), manifest]
    scene = SeenObjects(**found)
    fleet = gather_fleet(
        [
            whole(
                "Node",
                samples.node(
                    "n1", **{"kubernetes.io/hostname": "n1"}, allocatable={"cpu": "8", "pods": "10"}
                ),
            ),
            whole("ResourceSlice", samples.slice_of("n1", "gpu-0", "gpu-1")),
            whole("DeviceClass", samples.device_class()),
        ],
        "test",
    )
    around = ClusterContext(
        fleet=fleet,
        release=RELEASE,
        holders=find_holders(scene),
        taken=find_amounts(scene),
        placed=find_placed(scene, fleet.nodes),
    )
    return ask_running(manifest, around, scene)


def codes(subject_question: SubjectQuestion) -> list[str]:
    return [each.code for each in subject_question.causes]


def test_a_pod_that_waits_is_asked_with_its_claim():
    subject_question = ask(samples.pod("p", "Pending", claims=["c"]), claims=[samples.claim("c")])
    assert codes(subject_question) == []
    assert subject_question.question is not None
    assert subject_question.question.names == ("ResourceClaim ml/c",)


def test_the_devices_of_others_are_held_by_their_pods():
    held = samples.claim("theirs", f"{GPU}/n1/gpu-0", pods=["other"])
    subject_question = ask(samples.pod("p", "Pending", claims=["c"]), claims=[samples.claim("c"), held])
    assert subject_question.question is not None
    (holder,) = subject_question.question.holders
    assert str(holder) == "ResourceClaim ml/theirs (Pod ml/other)"


def test_a_claim_that_is_not_there_is_told():
    assert codes(ask(samples.pod("p", "Pending", claims=["c"]))) == ["claim-not-known"]


def test_a_claim_that_may_not_be_seen_is_not_called_missing():
    assert codes(ask(samples.pod("p", "Pending", claims=["c"]), saw_claims=False)) == []


def test_a_claim_that_is_not_made_yet_is_told_and_its_template_asked():
    subject_question = ask(samples.pod("p", "Pending", templates=["t"]), templates=[template("t")])
    assert codes(subject_question) == ["claim-not-made"]
    assert subject_question.question is not None
    assert subject_question.question.names == ("ResourceClaimTemplate ml/t",)


def test_a_template_that_is_missing_is_told():
    subject_question = ask(samples.pod("p", "Pending", templates=["t"]))
    assert codes(subject_question) == ["claim-not-known"]
    assert "no ResourceClaimTemplate ml/t" in subject_question.causes[0].message


def test_a_claim_that_is_being_deleted_is_told_with_its_finalizers():
    claim = samples.claim("c")
    claim["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["resource.kubernetes.io/delete-protection"],
    }
    subject_question = ask(samples.pod("p", "Pending", claims=["c"]), claims=[claim])
    assert codes(subject_question) == ["claim-deleting"]
    assert "resource.kubernetes.io/delete-protection" in subject_question.causes[0].message


def test_a_claim_that_is_held_for_a_pod_that_has_ended_is_told():
    claim = samples.claim("c", f"{GPU}/n1/gpu-0", pods=["old"])
    subject_question = ask(
        samples.pod("p", "Pending", claims=["c"]),
        claims=[claim],
        pods=[samples.pod("old", "Succeeded", claims=["c"])],
    )
    assert codes(subject_question) == ["claim-reserved"]


def test_a_claim_of_as_many_pods_as_may_have_it_is_told():
    claim = samples.claim("c", f"{GPU}/n1/gpu-0", pods=[f"p{index}" for index in range(256)])
    pods = [samples.pod(f"p{index}", claims=["c"]) for index in range(256)]
    subject_question = ask(samples.pod("p", "Pending", claims=["c"]), claims=[claim], pods=pods)
    assert codes(subject_question) == ["claim-reserved"]


def test_a_pod_must_go_where_its_claim_has_devices():
    claim = samples.claim("c", f"{GPU}/n2/gpu-0")
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    subject_question = ask(samples.pod("p", "Pending", claims=["c"]), claims=[claim])
    assert subject_question.question is not None
    assert texts_of(subject_question) == {"n1": ("ResourceClaim ml/c is allocated, and not for this node",)}


def test_scheduling_gates_are_told():
    pod = samples.pod("p", "Pending", claims=["c"])
    pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    assert codes(ask(pod, claims=[samples.claim("c")])) == ["pod-gated"]


def test_the_scheduler_is_quoted():
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    pod = samples.pod("p", "Pending", claims=["c"], conditions=[condition])
    subject_question = ask(pod, claims=[samples.claim("c")])
    assert codes(subject_question) == ["scheduler-says"]
    assert subject_question.causes[0].message == "Pod p: 0/1 nodes are available"


def test_a_kubelet_that_does_not_know_the_driver_is_told():
    pod = samples.pod("p", "Pending", claims=["c"])
    pod["spec"]["nodeName"] = "n1"
    event = {
        "involvedObject": {"uid": "uid-p"},
        "reason": "FailedPrepareDynamicResources",
        "message": f"prepare: DRA driver {GPU} is not registered",
    }
    subject_question = ask(pod, claims=[samples.claim("c", f"{GPU}/n1/gpu-0")], events=[event])
    assert "plugin-not-ready" in codes(subject_question)
    assert subject_question.settled == "it has its place on n1, and does not run there yet"


def test_a_pod_that_runs_has_nothing_to_explain():
    subject_question = ask(samples.pod("p", claims=["c"]), claims=[samples.claim("c", f"{GPU}/n1/gpu-0")])
    assert (subject_question.question, subject_question.settled) == (None, "it is Running on n1")


def test_a_claim_that_no_pod_uses_is_told():
    subject_question = ask(samples.claim("c"), "ResourceClaim", claims=[samples.claim("c")])
    assert codes(subject_question) == ["claim-unused"]
    assert subject_question.question is not None


def test_a_claim_is_explained_by_the_pod_that_waits_for_it():
    subject_question = ask(
        samples.claim("c"),
        "ResourceClaim",
        claims=[samples.claim("c")],
        pods=[samples.pod("p", "Pending", claims=["c"])],
    )
    assert subject_question.subject == "ResourceClaim ml/c of Pod ml/p"


def test_a_claim_with_devices_says_which():
    claim = samples.claim("c", f"{GPU}/n1/gpu-0")
    assert ask(claim, "ResourceClaim", claims=[claim]).settled == f"it has {GPU}/n1/gpu-0"


@pytest.mark.parametrize("waits", [True, False])
def test_a_deployment_is_explained_by_its_first_pod_that_waits(waits):
    owner = {"metadata": {"name": "d", "namespace": "ml", "uid": "uid-d"}}
    middle = {
        "metadata": {
            "name": "d-1",
            "namespace": "ml",
            "uid": "uid-rs",
            "ownerReferences": [{"controller": True, "uid": "uid-d"}],
        }
    }
    pod = samples.pod("p", "Pending" if waits else "Running", claims=["c"])
    pod["metadata"]["ownerReferences"] = [{"controller": True, "uid": "uid-rs"}]
    owners = [whole("Deployment", owner), whole("ReplicaSet", middle)]
    subject_question = ask(owner, "Deployment", owners=owners, pods=[pod], claims=[samples.claim("c")])
    assert subject_question.subject == ("Pod ml/p" if waits else "Deployment ml/d")
    assert subject_question.settled == ("" if waits else "1 pods of it are there, and none waits")


def test_cpu_of_running_pods_is_not_left_for_others():
    other = samples.pod("other")
    other["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "7"}}}]
    pod = samples.pod("p", "Pending", claims=["c"])
    pod["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    subject_question = ask(pod, claims=[samples.claim("c")], pods=[other])
    assert subject_question.question is not None
    assert texts_of(subject_question) == {"n1": ("the pod requests 2 cpu, and 1 is left",)}


def test_a_pod_that_keeps_apart_from_one_that_runs_is_refused_by_its_node():
    labels = {"app": "train"}
    other = samples.pod("other")
    other["metadata"]["labels"] = labels
    pod = samples.pod("p", "Pending", claims=["c"])
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    subject_question = ask(pod, claims=[samples.claim("c")], pods=[other])
    assert subject_question.question is not None
    assert list(subject_question.question.refusals) == ["n1"]
    assert subject_question.unmodelled == ()


def test_a_port_that_is_taken_is_told():
    ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    other = samples.pod("other")
    other["spec"]["containers"] = ports
    pod = samples.pod("p", "Pending", claims=["c"])
    pod["spec"]["containers"] = ports
    subject_question = ask(pod, claims=[samples.claim("c")], pods=[other])
    assert subject_question.question is not None
    assert texts_of(subject_question)["n1"] == ("host port 80/TCP is taken",)
