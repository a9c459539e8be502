"""The real node by itself: what later tests take for granted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.e2e.node.conftest import NODE
from tools.cluster.api import PATIENCE
from tools.errors import ToolError
from tools.node import machine

pytestmark = pytest.mark.e2e


def tasks(node):
    """Containers with a process."""
    return set(node.ctr("tasks", "list", "--quiet").split())


def groups_of(node, uid):
    """Control groups of a pod of the node, in all hierarchies."""
    own = machine.name_of(node.number)
    roots = [root for start in ("", "*/") for root in Path("/sys/fs/cgroup").glob(f"{start}{own}")]
    # Path.rglob would fail where one goes meanwhile.
    return [name for root in roots for name, _, _ in os.walk(root) if name.endswith(f"pod{uid}")]


def test_pod_runs_and_its_log_can_be_read(workloads):
    workloads.pod("one", workloads.container(script="echo hello from $HOSTNAME"))
    pod = workloads.wait_running("one")
    assert pod["spec"]["nodeName"] == NODE
    workloads.wait_for_log("one", "hello")
    assert workloads.log("one") == "hello from one\n"


def test_pod_that_is_deleted_leaves_no_process_and_no_control_group(workloads, real_node):
    before = tasks(real_node)
    uid = workloads.pod("one")["metadata"]["uid"]
    workloads.wait_running("one")
    # One holds the pod's namespaces.
    assert len(tasks(real_node) - before) == 2
    assert groups_of(real_node, uid)
    workloads.delete("one")
    # The kubelet looks for groups of pods that are gone every two seconds.
    deadline = time.monotonic() + PATIENCE
    while (tasks(real_node) - before) or groups_of(real_node, uid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_pod_reaches_the_api_server_at_the_address_of_its_service(workloads):
    # On a busy machine an answer may take longer than nc waits.
    ask = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null"
    script = f"until {ask}; do sleep 1; done; echo reached"
    workloads.pod("one", workloads.container(script=script))
    workloads.wait_running("one")
    assert workloads.wait_for_log("one", "reached")


def test_address_of_the_bridge_stays_when_pods_come_and_go(workloads, real_node):
    # Pods send to the one that they know. A bridge without one of its own takes the lowest of theirs.
    bridge = Path("/sys/class/net", machine.name_of(real_node.number), "address")
    before = bridge.read_text()
    workloads.pod("one")
    workloads.wait_running("one")
    assert bridge.read_text() == before
    workloads.delete("one")
    assert bridge.read_text() == before


def test_pod_in_the_network_of_the_host_runs(workloads):
    workloads.pod("one", hostNetwork=True)
    status = workloads.wait_running("one")["status"]
    assert status["podIP"] == status["hostIP"]


@pytest.mark.parametrize("part", ["kubelet", "containerd"])
@pytest.mark.parametrize("way", ["restart", "kill"])
def test_pods_run_on_while_a_part_of_the_node_is_away(workloads, real_node, part, way):
    workloads.pod("old")
    before = workloads.wait_running("old")["status"]["containerStatuses"][0]["containerID"]
    process = getattr(real_node, part)
    if way == "kill":
        process.kill()
        assert not process.is_running
        process.start()
    else:
        process.restart()
    workloads.pod("new")
    workloads.wait_running("new")
    [status] = workloads.wait_running("old")["status"]["containerStatuses"]
    assert (status["containerID"], status["restartCount"]) == (before, 0)


def test_part_that_cannot_start_says_why(real_node):
    real_node.kubelet.stop()
    settings = real_node.folder / "kubelet.json"
    good = settings.read_text()
    settings.write_text("{}")
    try:
        with pytest.raises(ToolError, match="kubelet ended with 1; its last lines"):
            real_node.kubelet.start()
    finally:
        settings.write_text(good)
        real_node.kubelet.start()
