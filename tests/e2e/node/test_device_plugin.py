"""A device plugin on a real node, alone and beside the node plugin of a DRA driver."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.e2e.node.device_plugin_standin import MOUNTS, VARIABLE, DevicePlugin, replicas
from tests.support.node.workloads import Workloads, request

pytestmark = pytest.mark.e2e

GPU = "nvidia.com/gpu"
LAST_LINE = "that is all of it"
SCRIPT = f"env; ls {MOUNTS}; echo {LAST_LINE}"
SLICE = "resource.k8s.io/v1/ResourceSlice"
UUIDS = [f"GPU-{number}" for number in range(8)]


def pod_with_limit(workloads: Workloads, name: str, number: int) -> None:
    limits = {"limits": {GPU: number}}
    workloads.pod(name, workloads.container(script=SCRIPT, resources=limits))


def mounted(workloads: Workloads, pod: str) -> list[str]:
    """The devices for which a container has a file."""
    lines = workloads.wait_for_log(pod, LAST_LINE).splitlines()
    return [each for each in lines if each.startswith("GPU-")]


def variable(workloads: Workloads, pod: str) -> list[str]:
    """The devices that the container's variable names."""
    [line] = [
        each for each in workloads.wait_for_log(pod, LAST_LINE).splitlines() if each.startswith(VARIABLE)
    ]
    return line.partition("=")[2].split(",")


def test_pod_sees_the_devices_that_the_device_plugin_gave_it(workloads, real_node, node_api):
    with DevicePlugin(real_node, node_api, {GPU: UUIDS}) as device_plugin:
        pod_with_limit(workloads, "pair", 2)
        workloads.wait_running("pair")
        assert device_plugin.given == [(GPU, frozenset(mounted(workloads, "pair")))]
        assert variable(workloads, "pair") == mounted(workloads, "pair")
        workloads.delete("pair")


def test_replicas_are_more_than_the_devices_that_containers_see(workloads, real_node, node_api):
    with DevicePlugin(real_node, node_api, {GPU: replicas(UUIDS[:1], 4)}):
        for number in range(4):
            pod_with_limit(workloads, f"replica-{number}", 1)
        for number in range(4):
            workloads.wait_running(f"replica-{number}")
            assert mounted(workloads, f"replica-{number}") == UUIDS[:1]
        workloads.remove_all()


def test_pod_waits_where_the_device_plugin_has_gone(workloads, real_node, node_api):
    with DevicePlugin(real_node, node_api, {GPU: UUIDS}):
        pass
    pod_with_limit(workloads, "late", 1)
    workloads.wait_not_placed("late", f"Insufficient {GPU}")


def test_device_plugin_and_driver_on_one_node_give_every_gpu_twice(claims, plugin, real_node, node_api):
    def uuids_of(devices: Sequence[str]) -> set[str]:
        [one] = [each for each in node_api.list(SLICE) if each["spec"]["nodeName"] == real_node.name]
        by_name = {
            each["name"]: each["attributes"]["uuid"]["string"] for each in one["spec"].get("devices", ())
        }
        return {by_name[each] for each in devices}

    everything = sorted(uuids_of([f"gpu-{number}" for number in range(8)]))
    with DevicePlugin(real_node, node_api, {GPU: everything}):
        pod_with_limit(claims, "by-plugin", 8)
        claims.claim("all", request(8))
        claims.pod_with_claim("by-claim", "all")
        for pod in ("by-plugin", "by-claim"):
            # Neither the scheduler nor the kubelet compares the two accounts.
            claims.wait_running(pod)
        assert mounted(claims, "by-plugin") == everything
        assert uuids_of(claims.devices("by-claim")) == set(everything)
        claims.remove_all()
