"""Claims from the scheduler to the variables of containers, and back."""

from __future__ import annotations

import json

import pytest

from tests.support.node.invariants import settled
from tests.support.node.workloads import CLAIM, request

pytestmark = pytest.mark.e2e

FLEET = "hgx-h100 driver=25.12"
"""The last release in which a whole GPU without a config gets slices of time of the length Default."""
DEVICES = 8


def allocated(claims, name):
    """The devices of a claim, as the scheduler wrote them down."""
    status = claims.api.get(CLAIM, name, namespace=claims.namespace)["status"]
    return sorted(result["device"] for result in status["allocation"]["devices"]["results"])


def uid_of(claims, name):
    return claims.api.get(CLAIM, name, namespace=claims.namespace)["metadata"]["uid"]


def test_pod_sees_the_device_that_its_claim_was_allocated(claims, node_api, real_node):
    claims.claim("one")
    claims.pod_with_claim("pod", "one")
    claims.wait_running("pod")
    assert claims.devices("pod") == allocated(claims, "one")
    assert claims.environment("pod")["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert settled(node_api, real_node) == {uid_of(claims, "one")}


def test_containers_of_a_pod_see_one_device(claims):
    claims.claim("one")
    claims.pod_with_claim("pod", "one", claims.container("first"), claims.container("second"))
    claims.wait_running("pod")
    assert claims.devices("pod", "first") == claims.devices("pod", "second") == allocated(claims, "one")


def test_container_that_lists_no_claim_sees_no_device(claims):
    claims.claim("one")
    aside = claims.container("aside", script="env; echo that is all", resources={})
    claims.pod_with_claim("pod", "one", claims.container("main"), aside)
    claims.wait_running("pod")
    assert "GPU_DEVICE" not in claims.wait_for_log("pod", "that is all", "aside")
    assert claims.devices("pod", "main") == allocated(claims, "one")


def test_claim_of_two_devices_gives_both(claims):
    claims.claim("two", request(2))
    claims.pod_with_claim("pod", "two")
    claims.wait_running("pod")
    assert len(claims.devices("pod")) == 2
    assert claims.devices("pod") == allocated(claims, "two")


def test_containers_get_the_device_of_the_request_that_they_name(claims):
    claims.claim("two", request(name="train"), request(name="serve"))
    containers = [
        claims.container(name, resources={"claims": [{"name": "gpu", "request": name}]})
        for name in ("train", "serve")
    ]
    claims.pod_with_claim("pod", "two", *containers)
    claims.wait_running("pod")
    [train], [serve] = claims.devices("pod", "train"), claims.devices("pod", "serve")
    assert sorted([train, serve]) == allocated(claims, "two")


def test_pods_share_the_device_of_a_claim_until_the_last_is_gone(claims, node_api, real_node):
    claims.claim("shared")
    for pod in ("first", "second"):
        claims.pod_with_claim(pod, "shared")
        claims.wait_running(pod)
    assert claims.devices("first") == claims.devices("second") == allocated(claims, "shared")
    claims.delete("first")
    assert settled(node_api, real_node) == {uid_of(claims, "shared")}
    claims.delete("second")
    assert settled(node_api, real_node) == frozenset()


def test_devices_of_a_template_are_each_pods_own_and_the_last_waits_for_one(claims, node_api, real_node):
    claims.template("own")
    names = [f"pod-{number}" for number in range(DEVICES)]
    for name in names:
        claims.pod_of_template(name, "own")
    for name in names:
        claims.wait_running(name)
    seen = [device for name in names for device in claims.devices(name)]
    assert sorted(seen) == [f"gpu-{number}" for number in range(DEVICES)]
    assert len(settled(node_api, real_node)) == DEVICES
    claims.pod_of_template("late", "own")
    claims.wait_not_placed("late", "cannot allocate all claims")
    free = claims.devices(names[3])
    claims.delete(names[3])
    claims.wait_running("late")
    assert claims.devices("late") == free


LONG_SLICES = {
    "driver": "gpu.nvidia.com",
    "parameters": {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
    },
}


def test_interval_of_time_slicing_reaches_the_container(claims):
    claims.claim("sliced", config=LONG_SLICES)
    claims.pod_with_claim("pod", "sliced")
    claims.wait_running("pod")
    [device] = allocated(claims, "sliced")
    number = device.removeprefix("gpu-")
    variables = claims.environment("pod")
    assert variables[f"GPU_DEVICE_{number}_SHARING_STRATEGY"] == "TimeSlicing"
    assert variables[f"GPU_DEVICE_{number}_TIMESLICE_INTERVAL"] == "Long"


@pytest.mark.parametrize(
    ("named", "others", "given"),
    [
        ("gpu/whole", ["other"], "Long"),
        ("gpu", ["other"], "Default"),
        # The scheduler of 1.37 names none where it would name all.
        ("gpu", [], "Long"),
    ],
)
def test_config_of_a_prioritized_request_reaches_the_container_as_with_the_driver(
    claims, named, others, given
):
    first = {"name": "whole", "deviceClassName": "gpu.nvidia.com", "count": 1}
    requests = [{"name": "gpu", "firstAvailable": [first]}, *(request(name=name) for name in others)]
    claims.claim("sliced", *requests, config=LONG_SLICES, config_of=[named])
    resources = {"claims": [{"name": "gpu", "request": "gpu"}]}
    claims.pod_with_claim("pod", "sliced", claims.container(resources=resources))
    claims.wait_running("pod")
    variables = claims.environment("pod").items()
    [interval] = [value for name, value in variables if name.endswith("_TIMESLICE_INTERVAL")]
    assert interval == given


@pytest.fixture
def started_with(plugin):
    """Starts the plugin with more variables. Asked for before `claims`, so that these are gone when it is as it was."""

    def start(environment):
        plugin.stop()
        plugin.start(environment)

    yield start
    start({})


def test_container_reads_what_its_device_is(started_with, claims, node_api):
    started_with({"DRA_INFRA_PLUGIN_METADATA_FILES": "on"})
    claims.claim("one")
    path = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/one/gpu/gpu.nvidia.com-metadata.json"
    claims.pod_with_claim("pod", "one", claims.container(script=f"cat {path}; echo that was it"))
    printed = claims.wait_for_log("pod", "that was it")
    newest, _ = json.JSONDecoder().raw_decode(printed, printed.index("{"))
    assert newest["apiVersion"] == "metadata.resource.k8s.io/v1beta1"
    [of_request] = newest["requests"]
    [seen] = of_request["devices"]
    [device] = [
        each
        for found in node_api.list("resource.k8s.io/v1/ResourceSlice")
        for each in found["spec"].get("devices", [])
        if [each["name"]] == allocated(claims, "one")
    ]
    assert (seen["name"], seen["attributes"]) == (device["name"], device["attributes"])


def test_kubelet_that_calls_older_versions_of_the_services_is_answered(started_with, claims):
    started_with({"SPEAKS": "v1beta1.DRAPlugin,v1alpha1.DRAResourceHealth"})
    claims.claim("one")
    claims.pod_with_claim("pod", "one")
    claims.wait_running("pod")
    assert claims.devices("pod") == allocated(claims, "one")
    claims.api.wait_until(
        "v1/Pod",
        "pod",
        lambda pod: "Healthy" in {each.get("health") for each in resources_of(pod)},
        namespace=claims.namespace,
    )


def resources_of(pod):
    """The devices in the status of a pod's containers."""
    return [
        resource
        for container in pod["status"].get("containerStatuses", [])
        for entry in container.get("allocatedResourcesStatus", [])
        for resource in entry["resources"]
    ]


def test_config_that_the_driver_refuses_is_told_at_the_pod(claims):
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharng": {}}
    claims.claim("wrong", config={"driver": "gpu.nvidia.com", "parameters": parameters})
    claims.pod_with_claim("pod", "wrong")
    claims.wait_for_event("pod", "FailedPrepareDynamicResources", "sharng")


def test_container_that_starts_again_sees_the_same_device(claims, real_node):
    claims.claim("one")
    claims.pod_with_claim(
        "pod", "one", claims.container(script="test -e /tmp/again || { touch /tmp/again; }")
    )
    claims.wait_running("pod")
    before = claims.devices("pod")
    real = claims.api.get("v1/Pod", "pod", namespace=claims.namespace)["status"]["containerStatuses"][0]
    real_node.ctr("tasks", "kill", "--signal", "SIGKILL", real["containerID"].removeprefix("containerd://"))
    claims.api.wait_until(
        "v1/Pod",
        "pod",
        lambda pod: (
            pod["status"]["containerStatuses"][0]["restartCount"] == 1
            and "running" in pod["status"]["containerStatuses"][0]["state"]
        ),
        namespace=claims.namespace,
    )
    assert claims.devices("pod") == before
