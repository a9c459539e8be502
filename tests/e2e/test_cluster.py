from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.cluster import (
    Api,
    ApiError,
    Connection,
    ControlPlane,
    NodeStandIn,
    WaitTimeoutError,
    create_fleet,
    node,
)
from tools.cluster import components as parts
from tools.errors import ToolError

pytestmark = pytest.mark.e2e

DRIVER = "gpu.example.com"
CLEAN_UP_SECONDS = 300.0

HOLD_A_CLUSTER = """
import json
from tools.cluster import ControlPlane
plane = ControlPlane()
plane.start()
print(json.dumps({"pids": plane.pids, "folder": str(plane.folder)}), flush=True)
plane.hold()
"""


def resource_slice(node_name, *, devices):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"gpu-{index}", "attributes": {"index": {"int": index}}} for index in range(devices)
            ],
        },
    }


def device_class():
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }


def claim_template(name, *, count):
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def pod_spec(*, template=None, **fields):
    container = {"name": "main", "image": "registry.invalid/none"}
    spec = {"containers": [container], **fields}
    if template:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return spec


def pod(name, **fields):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": pod_spec(**fields),
    }


def deployment(name, *, replicas, **fields):
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(**fields)},
        },
    }


def job(name, **fields):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": pod_spec(restartPolicy="Never", **fields)}},
    }


def allocated_devices(claim):
    results = claim["status"]["allocation"]["devices"]["results"]
    return sorted((result["pool"], result["device"]) for result in results)


def is_allocated(claims):
    return claims and all("allocation" in claim.get("status", {}) for claim in claims)


@pytest.fixture
def plane(fresh_control_plane):
    return fresh_control_plane


@pytest.fixture
def cluster(plane):
    """A fresh control plane with one node of two GPUs."""
    with plane.api() as client:
        create_fleet(client, [device_class(), node("gpu-node-1"), resource_slice("gpu-node-1", devices=2)])
        yield client


def is_running(pid):
    # A zombie still has a process id, but an empty command line.
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_end(pids, *, seconds=CLEAN_UP_SECONDS):
    """Wait until none of the processes runs; returns those that still do after *seconds*."""
    deadline = time.monotonic() + seconds
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        os.close(descriptor)
    return [pid for pid in pids if is_running(pid)]


@pytest.fixture
def held_cluster(binaries):
    """A control plane of another process: that process, and what it says of itself."""
    binaries(parts.APISERVER)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_A_CLUSTER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_control_plane_serves_the_newest_pinned_version(binaries):
    with ControlPlane(binaries=binaries) as plane, plane.api() as client:
        assert client.request("GET", "/version")["gitVersion"] == "v1.37.1"


def test_two_control_planes_run_side_by_side_without_sharing_anything(
    control_plane, fresh_control_plane, api
):
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "only-in-one"}})
    with fresh_control_plane.api() as other:
        assert api.find("v1/Namespace", "only-in-one") is not None
        assert other.find("v1/Namespace", "only-in-one") is None


def test_token_of_one_control_plane_is_refused_by_another(control_plane, fresh_control_plane):
    mixed = Connection(
        url=control_plane.url, ca=control_plane.ca.read_text(), token=fresh_control_plane.token
    )
    with Api(mixed) as client, pytest.raises(ApiError) as caught:
        client.list("v1/Namespace")
    assert caught.value.status == 401


def test_kubeconfig_is_enough_for_a_client(control_plane):
    with Api.from_kubeconfig(control_plane.kubeconfig) as client:
        assert client.get("v1/Namespace", "default")["metadata"]["name"] == "default"


def test_kubectl_works_with_the_kubeconfig(control_plane, binaries):
    command = [
        binaries("kubectl"),
        "--kubeconfig",
        control_plane.kubeconfig,
        "get",
        "ns",
        "default",
        "-o",
        "name",
    ]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "namespace/default\n"


def listening_addresses(pid):
    """Hexadecimal addresses on which a process listens, as the kernel lists them."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # One that is closed meanwhile does not listen.
        with contextlib.suppress(FileNotFoundError):
            inodes.add(descriptor.readlink().name.removeprefix("socket:[").removesuffix("]"))
    lines = Path("/proc/net/tcp").read_text().splitlines() + Path("/proc/net/tcp6").read_text().splitlines()
    entries = (line.split() for line in lines)
    return {entry[1].rpartition(":")[0] for entry in entries if entry[3] == "0A" and entry[9] in inodes}


@pytest.mark.parametrize("server", parts.ALL)
def test_server_listens_on_loopback_only(control_plane, server):
    assert listening_addresses(control_plane.pids[server]) == {"0100007F"}


def test_state_folder_is_private(control_plane):
    assert control_plane.folder.stat().st_mode & 0o777 == 0o700


def test_stop_leaves_no_process_and_no_folder(binaries):
    plane = ControlPlane(binaries=binaries, components=(parts.ETCD, parts.APISERVER))
    plane.start()
    pids = plane.pids.values()
    folder = plane.folder
    assert all(is_running(pid) for pid in pids)
    plane.stop()
    assert not [pid for pid in pids if is_running(pid)]
    assert not folder.exists()


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name
)
def test_end_of_the_parent_by_a_signal_leaves_no_process_and_no_folder(held_cluster, number):
    process, held = held_cluster
    assert set(held["pids"]) == {*parts.ALL, "supervisor"}
    process.send_signal(number)
    process.wait(CLEAN_UP_SECONDS)
    assert wait_for_end(held["pids"].values()) == []
    assert not Path(held["folder"]).exists()


def test_kill_of_the_supervisor_ends_the_servers(held_cluster):
    _, held = held_cluster
    os.kill(held["pids"]["supervisor"], signal.SIGKILL)
    try:
        assert wait_for_end(held["pids"].values()) == []
    finally:
        # Nobody is left to do it but the next one that starts, which may be at it.
        shutil.rmtree(held["folder"], ignore_errors=True)


def test_exception_in_the_body_stops_the_control_plane(binaries):
    plane = ControlPlane(binaries=binaries, components=(parts.ETCD, parts.APISERVER))
    with contextlib.suppress(ZeroDivisionError), plane:
        pids = plane.pids.values()
        folder = plane.folder
        raise ZeroDivisionError
    assert not [pid for pid in pids if is_running(pid)]
    assert not folder.exists()


def test_server_that_refuses_its_flags_is_named_with_its_last_words(binaries):
    plane = ControlPlane(binaries=binaries, feature_gates={"NoSuchGate": True})
    with pytest.raises(ToolError, match=r"kube-apiserver ended with status 1[\s\S]*NoSuchGate"):
        plane.start()


def test_missing_binary_is_told_before_anything_starts(tmp_path):
    def find(name):
        raise ToolError(f"{name} is not built", hint="run `make tools`")

    plane = ControlPlane(binaries=find)
    with pytest.raises(ToolError, match="etcd is not built") as caught:
        plane.start()
    assert caught.value.hint == "run `make tools`"


def test_api_only_control_plane_validates_and_deletes_but_places_nothing(binaries):
    with (
        ControlPlane(binaries=binaries, components=(parts.ETCD, parts.APISERVER)) as plane,
        plane.api() as client,
    ):
        with pytest.raises(ApiError) as caught:
            client.create(claim_template("negative", count=-1))
        assert caught.value.status == 422
        assert [cause["field"] for cause in caught.value.causes] == [
            "spec.spec.devices.requests[0].exactly.count"
        ]
        create_fleet(client, [node("gpu-node-1")])
        created = client.create(pod("waits"))
        assert "nodeName" not in created["spec"]
        client.delete("v1/Pod", "waits", grace_seconds=0)
        client.delete("v1/Pod", "waits", missing_ok=True)
        with pytest.raises(ApiError) as caught:
            client.delete("v1/Pod", "waits")
        assert caught.value.status == 404


def test_emulated_minor_serves_what_that_minor_served(binaries):
    with (
        ControlPlane(
            binaries=binaries, components=(parts.ETCD, parts.APISERVER), emulated_version="1.34"
        ) as plane,
        plane.api() as client,
    ):
        assert client.request("GET", "/version")["emulationMinor"] == "34"


def test_pod_with_a_template_claim_is_bound_and_its_claim_allocated(cluster):
    cluster.create(claim_template("two-gpus", count=2))
    cluster.create(pod("trainer", template="two-gpus"))
    bound = cluster.wait_until("v1/Pod", "trainer", lambda pod: pod["spec"].get("nodeName"))
    assert bound["spec"]["nodeName"] == "gpu-node-1"
    [claim] = cluster.wait_for("resource.k8s.io/v1/ResourceClaim", is_allocated, namespace="default")
    assert allocated_devices(claim) == [("gpu-node-1", "gpu-0"), ("gpu-node-1", "gpu-1")]


def test_pod_that_asks_for_more_than_there_is_stays_unscheduled(cluster):
    cluster.create(claim_template("three-gpus", count=3))
    cluster.create(pod("greedy", template="three-gpus"))

    def is_refused(pod):
        # At first the scheduler may say that the claim is not there yet.
        return any(
            condition.get("reason") == "Unschedulable"
            and "cannot allocate all claims" in condition["message"]
            for condition in pod["status"].get("conditions", [])
        )

    cluster.wait_until("v1/Pod", "greedy", is_refused)


def test_wait_that_is_not_fulfilled_tells_what_was_seen(cluster):
    cluster.create(claim_template("three-gpus", count=3))
    cluster.create(pod("greedy", template="three-gpus"))
    with pytest.raises(WaitTimeoutError, match=r"v1/Pod greedy: waited 0\.5 s; last seen: .*Pending"):
        cluster.wait_until("v1/Pod", "greedy", lambda pod: pod["spec"].get("nodeName"), timeout=0.5)


def test_stand_in_makes_a_deployment_available(plane, cluster):
    cluster.create(claim_template("one-gpu", count=1))
    with NodeStandIn(plane.connection):
        cluster.create(deployment("serving", replicas=2, template="one-gpu"))
        available = cluster.wait_until(
            "apps/v1/Deployment", "serving", lambda item: item["status"].get("availableReplicas") == 2
        )
    conditions = {item["type"]: item["status"] for item in available["status"]["conditions"]}
    assert conditions["Available"] == "True"


def test_deployment_does_not_become_available_without_the_stand_in(cluster):
    cluster.create(deployment("serving", replicas=1))
    cluster.wait_for("v1/Pod", lambda pods: pods and all("nodeName" in pod["spec"] for pod in pods))
    assert not cluster.get("apps/v1/Deployment", "serving")["status"].get("availableReplicas")


def test_stand_in_completes_a_job_and_its_devices_are_free_again(plane, cluster):
    cluster.create(claim_template("two-gpus", count=2))
    with NodeStandIn(plane.connection):
        for name in ("first", "second"):
            cluster.create(job(name, template="two-gpus"))
        for name in ("first", "second"):
            cluster.wait_until("batch/v1/Job", name, lambda item: item["status"].get("succeeded") == 1)


def test_pods_of_a_held_job_keep_their_devices_until_they_are_let_go(plane, cluster):
    cluster.create(claim_template("two-gpus", count=2))
    with NodeStandIn(plane.connection, finish_jobs=False) as stand_in:
        cluster.create(job("train", template="two-gpus"))
        cluster.wait_until("batch/v1/Job", "train", lambda item: item["status"].get("ready") == 1)
        [claim] = cluster.list("resource.k8s.io/v1/ResourceClaim")
        assert allocated_devices(claim) == [("gpu-node-1", "gpu-0"), ("gpu-node-1", "gpu-1")]
        stand_in.finish_jobs()
        cluster.wait_until("batch/v1/Job", "train", lambda item: item["status"].get("succeeded") == 1)


@pytest.mark.parametrize("finish_jobs", [True, False])
def test_deleted_workloads_go_with_their_pods_and_claims(plane, cluster, finish_jobs):
    cluster.create(claim_template("one-gpu", count=1))
    with NodeStandIn(plane.connection, finish_jobs=finish_jobs):
        cluster.create(deployment("serving", replicas=1, template="one-gpu"))
        cluster.create(job("train", template="one-gpu"))
        done = "succeeded" if finish_jobs else "ready"
        cluster.wait_until("batch/v1/Job", "train", lambda item: item["status"].get(done) == 1)
        cluster.wait_until(
            "apps/v1/Deployment", "serving", lambda item: item["status"].get("availableReplicas") == 1
        )
        cluster.delete("apps/v1/Deployment", "serving", propagation="Foreground")
        cluster.delete("batch/v1/Job", "train", propagation="Foreground")
        cluster.wait_gone("apps/v1/Deployment", "serving")
        cluster.wait_gone("batch/v1/Job", "train")
        cluster.wait_for("v1/Pod", lambda pods: not pods)
        cluster.wait_for("resource.k8s.io/v1/ResourceClaim", lambda claims: not claims)


def test_stand_in_leaves_pods_of_other_nodes_alone(plane, cluster):
    create_fleet(cluster, [node("other")])
    with NodeStandIn(plane.connection, nodes=["other"]):
        for name in ("gpu-node-1", "other"):
            cluster.create(pod(f"on-{name}", nodeName=name))
        cluster.wait_until("v1/Pod", "on-other", lambda pod: pod["status"].get("phase") == "Running")
    assert cluster.get("v1/Pod", "on-gpu-node-1")["status"]["phase"] == "Pending"
