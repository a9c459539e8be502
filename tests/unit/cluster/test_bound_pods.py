"""Pods that have their node: what keeps them from running or from ending, in `explain` and in `doctor`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dra_infra.catalog.fleet_files import gather_fleet
from dra_infra.client.kinds import NODES
from dra_infra.cluster.doctor import diagnose
from dra_infra.cluster.kubelets import describe_old_kubelet, read_version
from dra_infra.cluster.pending import SeenObjects, ask_running
from dra_infra.explanation.asking import ClusterContext, SubjectQuestion
from tests.support.cluster import samples
from tests.unit.cluster.test_pending import GPU, RELEASE, codes, template, whole

DEBUG = {"nodeName": "n1"}


def on_node(phase: str = "Pending", node: str = "n1", **more: Any) -> dict[str, Any]:
    """Pod ml/p with the claim `c`, on a node."""
    pod = samples.pod("p", phase, claims=["c"], **more.pop("status", {}))
    pod["spec"] |= {"nodeName": node, **more.pop("spec", {})}
    pod["metadata"] |= more
    return pod


def words(message: str, reason: str = "FailedPrepareDynamicResources", at: str = "1") -> dict[str, Any]:
    """A warning of the kubelet about pod ml/p."""
    return {
        "kind": "Event",
        "type": "Warning",
        "involvedObject": {"uid": "uid-p"},
        "reason": reason,
        "message": f"Failed to prepare dynamic resources: {message}",
        "lastTimestamp": f"2026-01-01T00:00:0{at}Z",
    }


def ask(
    pod: dict[str, Any],
    *claims: dict[str, Any],
    events: Any = (),
    node: dict[str, Any] | None = None,
    served: tuple[str, ...] = ("v1",),
    templates: Any = (),
) -> SubjectQuestion:
    """The question about a pod of a cluster of one node with two GPUs."""
    status = {"allocatable": {"cpu": "8", "pods": "10"}, **(node or {})}
    item = {
        "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], **status},
    }
    hardware = [
        whole("Node", item),
        whole("ResourceSlice", samples.slice_of("n1", "gpu-0", "gpu-1")),
        whole("DeviceClass", samples.device_class()),
    ]
    pod = whole("Pod", pod)
    scene = SeenObjects(
        pods=[pod],
        claims=[whole("ResourceClaim", each) for each in claims],
        templates=[whole("ResourceClaimTemplate", each) for each in templates],
        events=events,
    )
    around = ClusterContext(fleet=gather_fleet(hardware, "test"), release=RELEASE, served=served)
    return ask_running(pod, around, scene)


def allocated(*pods: str, node: str = "n1") -> dict[str, Any]:
    """Claim ml/c with a device of a node, reserved for pods."""
    claim = samples.claim("c", f"{GPU}/{node}/gpu-0", pods=pods)
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    return claim


def errors(asked: SubjectQuestion) -> list[str]:
    return [each.code for each in asked.causes if each.severity == "error"]


def test_a_pod_whose_claim_is_allocated_and_reserved_will_run():
    asked = ask(on_node(), allocated("p"))
    assert (codes(asked), asked.settled) == ([], "it has its place on n1, and does not run there yet")


def test_a_pod_that_went_past_the_scheduler_waits_for_ever():
    asked = ask(on_node(), samples.claim("c"))
    assert errors(asked) == ["claim-not-allocated"]
    assert "kubernetes.io/hostname: n1" in asked.causes[0].hint


@pytest.mark.parametrize("made", [True, False])
def test_a_pod_past_the_scheduler_with_a_template_waits_too(made: bool):
    pod = samples.pod("p", "Pending", templates=["t"])
    pod["spec"] |= DEBUG
    if made:
        pod["status"]["resourceClaimStatuses"] = [{"name": "t", "resourceClaimName": "c"}]
    claims = [samples.claim("c")] if made else []
    asked = ask(pod, *claims, templates=[template("t")])
    assert errors(asked) == (["claim-not-allocated"] if made else ["claim-not-made"])


def test_a_pod_on_its_node_whose_claim_is_not_there_waits():
    assert errors(ask(on_node())) == ["claim-not-known"]


def test_a_claim_that_is_not_reserved_is_reserved_by_its_controller():
    asked = ask(on_node(), allocated())
    assert (errors(asked), codes(asked)) == ([], ["pod-not-reserved"])


def test_a_claim_with_devices_of_another_node_is_of_no_use():
    assert errors(ask(on_node(), allocated("p", node="n2"))) == ["claim-elsewhere"]


@pytest.mark.parametrize("state", ["False", "Unknown"])
def test_a_node_that_is_not_ready_starts_nothing(state: str):
    node = {"conditions": [{"type": "Ready", "status": state}]}
    assert errors(ask(on_node(), allocated("p"), node=node)) == ["node-not-ready"]


def test_a_node_that_is_not_there_starts_nothing():
    assert errors(ask(on_node(node="gone"), allocated("p"))) == ["node-not-ready"]


@pytest.mark.parametrize(
    ("message", "code", "says"),
    [
        (f"DRA driver {GPU} is not registered", "plugin-not-ready", "does not know the driver"),
        ("ResourceClaim c: not allocated", "prepare-failed", "only the scheduler allocates claims"),
        (
            "fetch ResourceClaim c: the server could not find the requested resource",
            "kubelet-too-old",
            "version",
        ),
        ("pod p (uid-p) is not allowed to use ResourceClaim c (u)", "prepare-failed", "not reserved"),
        (
            "old ResourceClaim with same name c and different UID u still exists (previous pod force-deleted?!)",
            "prepare-failed",
            "deleted by force",
        ),
        ("ResourceClaim c is being unprepared", "prepare-failed", "still releases"),
        ('fetch ResourceClaim c: resourceclaims "c" not found', "prepare-failed", "not there any more"),
        (
            "NodePrepareResources: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
            "prepare-failed",
            "does not answer the kubelet",
        ),
        (
            "NodePrepareResources failed for ResourceClaim c: no such MIG",
            "prepare-failed",
            "the driver refuses",
        ),
    ],
)
def test_what_the_kubelet_says_of_the_devices_decides(message: str, code: str, says: str):
    asked = ask(on_node(), allocated("p"), events=[words(message)])
    (found,) = [each for each in asked.causes if each.code != "scheduler-says"]
    assert (found.code, found.severity) == (code, "error")
    assert says in found.message


def test_the_last_of_the_kubelets_words_counts():
    events = [words(f"DRA driver {GPU} is not registered"), words("ResourceClaim c: not allocated", at="2")]
    assert errors(ask(on_node(), allocated("p"), events=events)) == ["prepare-failed"]


@pytest.mark.parametrize(
    ("kubelet", "version", "is_old"),
    [
        ("v1.37.1", "v1", False),
        ("v1.34.0", "v1", False),
        ("v1.33.1", "v1beta1", True),
        ("v1.32.9-gke.1", "v1beta1", True),
        ("v1.31.4", "v1alpha3", True),
        ("v1.26.0", "v1alpha2", True),
        ("", "", False),
        ("unknown", "", False),
    ],
)
def test_a_kubelet_reads_claims_in_the_version_of_its_minor(kubelet: str, version: str, is_old: bool):
    assert read_version(kubelet) == version
    assert bool(describe_old_kubelet(kubelet, ("v1",))) == is_old
    assert not describe_old_kubelet(kubelet, ("v1", version or "v1beta1"))
    assert not describe_old_kubelet(kubelet, ())


def test_a_kubelet_that_is_older_than_what_the_server_serves_starts_no_pod_with_claims():
    node = {"nodeInfo": {"kubeletVersion": "v1.33.1"}}
    event = words("failed to fetch ResourceClaim c: the server could not find the requested resource")
    asked = ask(on_node(), allocated("p"), node=node, events=[event])
    assert errors(asked) == ["kubelet-too-old"]
    assert "v1.33.1 reads resource.k8s.io/v1beta1" in asked.causes[-1].message
    assert errors(ask(on_node(), allocated("p"), node=node, served=("v1", "v1beta1"))) == []


def test_an_old_kubelet_of_a_snapshot_is_a_warning_because_what_is_served_is_not_known():
    asked = ask(on_node(), allocated("p"), node={"nodeInfo": {"kubeletVersion": "v1.33.1"}}, served=())
    assert (errors(asked), codes(asked)) == ([], ["kubelet-too-old"])
    assert "unless --runtime-config names" in asked.causes[0].message


def test_a_pod_that_waits_for_a_node_hears_of_its_old_kubelet():
    pod = samples.pod("p", "Pending", claims=["c"])
    asked = ask(pod, samples.claim("c"), node={"nodeInfo": {"kubeletVersion": "v1.33.1"}})
    assert (errors(asked), codes(asked)) == ([], ["kubelet-too-old"])


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError"])
def test_a_container_that_cannot_start_is_named(reason: str):
    status = {"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": reason, "message": "no"}}}]}
    asked = ask(on_node(status=status), allocated("p"))
    assert errors(asked) == ["container-waits"]
    assert f"{reason}: no" in asked.causes[0].message


def test_a_container_that_is_being_made_is_no_trouble():
    status = {"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}}]}
    assert errors(ask(on_node(status=status), allocated("p"))) == []


@pytest.mark.parametrize("phase", ["Running", "Pending"])
def test_a_pod_that_is_being_deleted_does_not_run_again(phase: str):
    asked = ask(on_node(phase, deletionTimestamp="2026-07-20T10:41:53Z"), allocated("p"))
    assert errors(asked) == ["pod-deleting"]
    assert "since 2026-07-20T10:41:53Z, and still has ResourceClaim c" in asked.causes[0].message
    assert "released its devices" in asked.causes[0].hint


def test_a_pod_that_waits_for_finalizers_names_them():
    pod = on_node("Running", deletionTimestamp="2026-07-20T10:41:53Z", finalizers=["example.com/keep"])
    assert "example.com/keep" in ask(pod, allocated("p")).causes[0].hint


def test_a_pod_that_is_being_deleted_where_its_driver_is_gone_is_not_to_be_deleted_again():
    claim = samples.claim("c", "other.example.com/n1/d0", pods=["p"])
    event = words("prepare dynamic resources: DRA driver other.example.com is not registered")
    asked = ask(on_node("Running", deletionTimestamp="2026-07-20T10:41:53Z"), claim, events=[event])
    assert errors(asked) == ["pod-deleting", "plugin-not-ready"]
    assert "driver other.example.com on n1" in asked.causes[0].hint
    assert "--force" in asked.causes[0].hint


def test_a_pod_that_failed_does_not_run_again():
    status = {"reason": "UnexpectedAdmissionError", "message": "no room"}
    asked = ask(on_node("Failed", status=status), allocated("p"))
    assert errors(asked) == ["pod-failed"]
    assert "UnexpectedAdmissionError: no room" in asked.causes[0].message


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_pod_that_runs_or_has_run_to_its_end_is_settled(phase: str):
    asked = ask(on_node(phase), allocated("p"))
    assert (codes(asked), asked.settled) == ([], f"it is {phase} on n1")


def test_doctor_finds_pods_that_went_past_the_scheduler():
    evidence = samples.healthy(pods=[on_node()], resourceclaims=[samples.claim("c")])
    found = [each for each in diagnose(evidence).findings if each.code == "claim-not-allocated"]
    assert [each.path for each in found] == ["Pod ml/p"]


def test_doctor_does_not_say_to_delete_what_is_being_deleted():
    pod = on_node("Running", deletionTimestamp="2026-07-20T10:41:53Z")
    claim = samples.claim("c", f"{GPU}/n1/gone", pods=["p"])
    evidence = samples.healthy(pods=[pod], resourceclaims=[claim])
    (found,) = [each for each in diagnose(evidence).findings if each.path == "ResourceClaim ml/c"]
    assert found.code == "pod-deleting"
    assert "--force" in found.hint


@pytest.mark.parametrize(("served", "finds"), [(("v1",), True), (("v1", "v1beta1"), False), (None, False)])
def test_doctor_compares_kubelets_with_what_is_served(served: tuple[str, ...] | None, finds: bool):
    node = samples.node("n1")
    node["status"]["nodeInfo"] = {"kubeletVersion": "v1.33.1"}
    evidence = samples.healthy(served=served)
    evidence = replace(evidence, objects={**evidence.objects, NODES: (node,)})
    found = {each.path for each in diagnose(evidence).findings if each.code == "kubelet-too-old"}
    assert found == ({"Node n1"} if finds else set())
