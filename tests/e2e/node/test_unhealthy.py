"""A device that becomes unhealthy under its pod: the pod's status says so, no other pod gets it, and healing ends both."""

from __future__ import annotations

import pytest

from dra_infra.plugin.back_ends.sim_commands import Commands, fail
from tests.e2e.node.simulated_devices import taints_of, told

pytestmark = pytest.mark.e2e

FIRST = "gpu-0"
XID = 79
TAINT = ("gpu.nvidia.com/xid", str(XID), "NoSchedule")
NAMES = [f"gpu-{number}" for number in range(8)]


@pytest.fixture
def devices(node_api, plugin):
    with told(node_api, plugin) as found:
        yield found


def health(pod):
    """Health and message of each device in the status of a pod's containers."""
    return [
        (resource["health"], resource.get("message", ""))
        for container in pod["status"].get("containerStatuses", [])
        for entry in container.get("allocatedResourcesStatus", [])
        for resource in entry["resources"]
    ]


def wait_for_health(claims, pod, wanted):
    return claims.api.wait_until(
        "v1/Pod", pod, lambda found: health(found) == wanted, namespace=claims.namespace
    )


def test_pod_says_that_its_device_is_unhealthy_until_it_is_healed(claims, devices):
    claims.template("own")
    claims.pod_of_template("pod", "own")
    claims.wait_running("pod")
    assert claims.devices("pod") == [FIRST]
    wait_for_health(claims, "pod", [("Healthy", "")])
    devices.tell(fail(Commands(), FIRST, xid=XID, message="fell off the bus"))
    pod = wait_for_health(claims, "pod", [("Unhealthy", "fell off the bus")])
    # Which of its containers has it, and under which name the runtime knows it.
    [status] = pod["status"]["containerStatuses"]
    [entry] = status["allocatedResourcesStatus"]
    assert entry["name"] == "claim:gpu"
    [resource] = entry["resources"]
    assert resource["resourceID"].startswith("k8s.gpu.nvidia.com/claim=")
    # It is told, and left to its owner what to do.
    assert "running" in status["state"]
    devices.tell(Commands())
    wait_for_health(claims, "pod", [("Healthy", "")])


def test_unhealthy_device_is_given_to_no_other_pod_until_it_is_healed(claims, devices):
    claims.template("own")
    devices.tell(fail(Commands(), FIRST, xid=XID))
    found = devices.wait_for(lambda found: taints_of(found.get(FIRST, {})))
    assert {name: taints_of(device) for name, device in found.items() if taints_of(device)} == {
        FIRST: [TAINT]
    }
    since = found[FIRST]["taints"][0]["timeAdded"]
    claims.pod_of_template("early", "own")
    claims.wait_running("early")
    assert claims.devices("early") == ["gpu-1"]
    # Something else about the devices changes; this taint is as old as it was.
    devices.tell(fail(fail(Commands(), FIRST, xid=XID), "gpu-7"))
    found = devices.wait_for(lambda found: taints_of(found.get("gpu-7", {})))
    assert found[FIRST]["taints"][0]["timeAdded"] == since
    devices.tell(Commands())
    devices.wait_for(lambda found: found and not any(map(taints_of, found.values())))
    claims.pod_of_template("late", "own")
    claims.wait_running("late")
    assert claims.devices("late") == [FIRST]


def test_pod_waits_while_all_devices_are_unhealthy_and_starts_when_one_is_healed(claims, devices):
    commands = Commands()
    for name in NAMES:
        commands = fail(commands, name, xid=XID)
    devices.tell(commands)
    devices.wait_for(lambda found: found and all(map(taints_of, found.values())))
    claims.template("own")
    claims.pod_of_template("pod", "own")
    claims.wait_not_placed("pod", "cannot allocate all claims")
    healed = {name: fault for name, fault in commands.devices.items() if name != "gpu-5"}
    devices.tell(commands.model_copy(update={"devices": healed}))
    claims.wait_running("pod")
    assert claims.devices("pod") == ["gpu-5"]
