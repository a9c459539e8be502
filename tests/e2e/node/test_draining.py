"""A node that is drained: its pods and their claims come up on a second node, and nothing is left on the first.

The second node is made by hand, with slices and a stand-in that reports its pods as running: a machine has one kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from dra_infra.catalog import load_fleet
from tests.e2e.node.conftest import FLEET, NODE
from tests.support.node.invariants import settled
from tests.support.node.workloads import CLAIM, Workloads
from tests.support.scheduler.stage import Stage
from tools.cluster import Api, ApiError, ControlPlane, Manifest, NodeStandIn, create_fleet

pytestmark = pytest.mark.e2e

DEPLOYMENT = "apps/v1/Deployment"
RULE = "resource.k8s.io/v1/DeviceTaintRule"
APP = {"app": "server"}
SECONDS = 150.0


@pytest.fixture
def second(node_plane: ControlPlane, node_api: Api) -> Iterator[str]:
    """A second node with the same devices, which takes no pods before `drain`; in the end the first is as it was."""
    fleet = [each for each in load_fleet(FLEET).to_manifests() if each["kind"] in ("Node", "ResourceSlice")]
    [name] = [each["metadata"]["name"] for each in fleet if each["kind"] == "Node"]
    with NodeStandIn(node_plane.connection, nodes=[name]):
        made = create_fleet(node_api, [_cordoned(each) for each in fleet])
        yield name
        node_api.patch("v1/Node", NODE, {"spec": {"unschedulable": None}})
        for each in reversed(made):
            node_api.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])


@pytest.fixture
def deployments(second: str, claims: Workloads) -> Iterator[Workloads]:
    """Pods and claims of a test that may make Deployments as well."""
    yield claims
    for each in claims.api.list(DEPLOYMENT, namespace=claims.namespace):
        # Last of its objects: a ReplicaSet that stays for a moment would make a pod in the place of each that is deleted.
        claims.api.delete(
            DEPLOYMENT, each["metadata"]["name"], namespace=claims.namespace, propagation="Foreground"
        )
        claims.api.wait_gone(DEPLOYMENT, each["metadata"]["name"], namespace=claims.namespace)


def _cordoned(manifest: Manifest) -> Manifest:
    if manifest["kind"] != "Node":
        return manifest
    return {**manifest, "spec": {**manifest.get("spec", {}), "unschedulable": True}}


def deploy(workloads: Workloads, **entry: str) -> None:
    """One replica, whose container has the claim of *entry*."""
    container = workloads.container(resources={"claims": [{"name": "gpu"}]})
    workloads.api.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "server", "namespace": workloads.namespace},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": APP},
                "template": {
                    "metadata": {"labels": APP},
                    "spec": {
                        "terminationGracePeriodSeconds": 5,
                        "containers": [container],
                        "resourceClaims": [{"name": "gpu", **entry}],
                    },
                },
            },
        }
    )


def wait_running_on(workloads: Workloads, node: str) -> Manifest:
    """The one pod that is left, once it runs on *node*."""
    [pod] = workloads.api.wait_for(
        "v1/Pod",
        lambda pods: (
            len(pods) == 1
            and pods[0]["spec"].get("nodeName") == node
            and pods[0]["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pods[0]["metadata"]
        ),
        namespace=workloads.namespace,
        label_selector="app=server",
        timeout=SECONDS,
    )
    return pod


def drain(api: Api, node: str, *, towards: str) -> None:
    """What `kubectl drain` does: no new pods, and an eviction of each that is there."""
    api.patch("v1/Node", towards, {"spec": {"unschedulable": None}})
    api.patch("v1/Node", node, {"spec": {"unschedulable": True}})
    # Or it may put the pod that follows on the same node again.
    Stage(api).wait_until_seen()
    for pod in api.list("v1/Pod"):
        if pod["spec"].get("nodeName") == node:
            metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
            try:
                api.request("POST", path, json=eviction)
            except ApiError as error:
                # It went by itself since it was listed.
                if error.status != httpx.codes.NOT_FOUND:
                    raise


def claim_of(workloads: Workloads) -> Manifest:
    """The one claim that is left, once there is no other."""
    [claim] = workloads.api.wait_for(CLAIM, lambda found: len(found) == 1, namespace=workloads.namespace)
    return claim


def pools_of(claim: Manifest) -> set[str]:
    """Where the devices of a claim are."""
    return {each["pool"] for each in claim["status"]["allocation"]["devices"]["results"]}


def test_pod_with_a_claim_of_its_own_gets_a_new_one_on_the_other_node(
    second, deployments, node_api, real_node
):
    deployments.template("own")
    deploy(deployments, resourceClaimTemplateName="own")
    wait_running_on(deployments, NODE)
    before = claim_of(deployments)
    assert settled(node_api, real_node) == {before["metadata"]["uid"]}
    drain(node_api, NODE, towards=second)
    wait_running_on(deployments, second)
    after = claim_of(deployments)
    assert (before["metadata"]["uid"] != after["metadata"]["uid"], pools_of(after)) == (True, {second})
    assert settled(node_api, real_node) == frozenset()


def test_claim_with_a_name_goes_to_the_other_node_when_its_last_pod_has_gone(
    second, deployments, node_api, real_node
):
    deployments.claim("kept")
    deploy(deployments, resourceClaimName="kept")
    wait_running_on(deployments, NODE)
    before = claim_of(deployments)
    assert pools_of(before) == {NODE}
    assert settled(node_api, real_node) == {before["metadata"]["uid"]}
    drain(node_api, NODE, towards=second)
    wait_running_on(deployments, second)
    after = claim_of(deployments)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert pools_of(after) == {second}
    assert settled(node_api, real_node) == frozenset()


def test_taint_that_evicts_moves_a_pod_off_its_device_and_off_the_node(
    second, deployments, node_api, real_node
):
    deployments.template("own")
    deploy(deployments, resourceClaimTemplateName="own")
    wait_running_on(deployments, NODE)
    node_api.patch("v1/Node", second, {"spec": {"unschedulable": None}})
    node_api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "maintenance"},
            "spec": {
                "deviceSelector": {"driver": "gpu.nvidia.com", "pool": NODE},
                "taint": {"key": "example.com/maintenance", "effect": "NoExecute"},
            },
        }
    )
    try:
        wait_running_on(deployments, second)
        assert pools_of(claim_of(deployments)) == {second}
        assert settled(node_api, real_node) == frozenset()
    finally:
        node_api.delete(RULE, "maintenance")
