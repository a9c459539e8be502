"""A node leaves the machine as it found it, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.node.conftest import NODE
from tests.support.node.workloads import Workloads
from tools.cluster import ControlPlane
from tools.node import RealNode, machine

pytestmark = pytest.mark.e2e

SECONDS = 120.0

HOLD_A_NODE = """
import json, sys
from pathlib import Path
from tools.cluster import Api
from tools.node import BUSYBOX, RealNode

class Plane:
    # The cluster of the process that started this one.
    url, admin, node = sys.argv[1:]
    def api(self): return Api.from_kubeconfig(Path(self.admin))
    def node_kubeconfig(self, name): return Path(self.node)

node = RealNode(Plane())
node.start()
pod = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "held-", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": BUSYBOX, "command": ["sleep", "3600"]}]},
}
with Plane().api() as api:
    name = api.create(pod)["metadata"]["name"]
    api.wait_until("v1/Pod", name, lambda pod: pod["status"].get("phase") == "Running")
    api.delete("v1/Pod", name, grace_seconds=60)
print(json.dumps({"folder": str(node.folder), "supervisor": node.supervisor}), flush=True)
node.hold()
"""
"""The pod still runs when it is told of; its object goes with the next node's kubelet, or stays, and is in nobody's way."""


def machine_now():
    """All on this machine that a kubelet, containerd or the network plugins could change for others."""
    settings = {}
    for group in ("vm", "net/ipv4"):
        # Not Path.rglob, which fails where a folder goes meanwhile: each interface has some.
        for folder, _, names in os.walk(Path("/proc/sys", group)):
            settings[folder] = ""
            for name in names:
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    settings[f"{folder}/{name}"] = Path(folder, name).read_text()
    for name in (
        "panic",
        "panic_on_oops",
        "keys/root_maxkeys",
        "keys/root_maxbytes",
        "pid_max",
        "core_pattern",
    ):
        settings[name] = Path("/proc/sys/kernel", name).read_text()
    return {
        "settings": settings,
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "links": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "groups": sorted(str(path) for path in Path("/sys/fs/cgroup").glob("*/dra-*")),
        "folders": [folder for folder in machine.PRIVATE_FOLDERS if Path(folder).exists()],
    }


def processes_of(folder):
    """Processes that were started with something of a node's folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if folder.encode() in file.read_bytes():
                found.append(int(file.parent.name))
    return found


def wait_until(probe):
    deadline = time.monotonic() + SECONDS
    while not probe():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def quiet_machine():
    """Nobody else has a node here: what it changes could not be told from what is left."""
    deadline = time.monotonic() + SECONDS
    while any(Path("/run/dra-infra-nodes").glob("*.json")):
        # A run that was killed leaves nodes that nobody would undo: only here no node is made before.
        machine.undo_dead()
        if time.monotonic() > deadline:
            pytest.fail(
                "a node is left on this machine, or somebody else has one: end it first", pytrace=False
            )
        time.sleep(0.1)


@pytest.fixture
def hold_a_node(node_plane):
    """Starts another process that has a node with a pod; returns it and what it printed first."""
    started = []

    def start():
        plane = [node_plane.url, str(node_plane.kubeconfig), str(node_plane.node_kubeconfig(NODE))]
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD_A_NODE, *plane], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process, json.loads(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_node_that_is_stopped_leaves_nothing(node_plane, binaries):
    before = machine_now()
    with RealNode(node_plane, binaries=binaries) as node:
        folder = str(node.folder)
        during = machine_now()
        assert processes_of(folder)
    assert during["links"] != before["links"]
    assert during["folders"] != before["folders"]
    # Of the namespaces of its own.
    assert during["mounts"] == before["mounts"]
    assert machine_now() == before
    assert processes_of(folder) == []
    assert not Path(folder).exists()


def test_node_whose_process_is_killed_leaves_nothing(hold_a_node):
    before = machine_now()
    process, told = hold_a_node()
    assert processes_of(told["folder"])
    process.send_signal(signal.SIGKILL)
    wait_until(lambda: not Path(told["folder"]).exists())
    wait_until(lambda: machine_now() == before)
    assert processes_of(told["folder"]) == []


@pytest.fixture
def kill_with_supervisor(hold_a_node):
    """Starts a node and kills it in a way that leaves nobody to undo it; returns its folder."""

    def kill():
        process, told = hold_a_node()
        process.send_signal(signal.SIGSTOP)
        os.kill(told["supervisor"], signal.SIGKILL)
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: processes_of(told["folder"]) == [])
        return told["folder"]

    return kill


def test_what_a_killed_supervisor_leaves_is_undone_by_the_next_node(
    kill_with_supervisor, node_plane, binaries
):
    before = machine_now()
    folder = kill_with_supervisor()
    assert machine_now() != before
    with RealNode(node_plane, binaries=binaries):
        pass
    assert machine_now() == before
    assert not Path(folder).exists()


def test_what_a_killed_supervisor_leaves_is_undone_without_a_node(kill_with_supervisor):
    before = machine_now()
    kill_with_supervisor()
    assert machine_now() != before
    machine.undo_dead()
    wait_until(lambda: machine_now() == before)


def test_nodes_run_side_by_side_and_the_last_puts_the_settings_back(node_plane, binaries):
    before = machine_now()
    with (
        ControlPlane(binaries=binaries, nodes=["other"]) as plane,
        plane.api() as api,
        RealNode(node_plane, binaries=binaries) as first,
        RealNode(plane, name="other", binaries=binaries) as second,
    ):
        during = machine_now()
        assert len(set(during["links"]) - set(before["links"])) >= 2
        assert first.number != second.number
        first.stop()
        # Nothing of what the other one needs is gone.
        assert machine_now()["settings"]["/proc/sys/vm/overcommit_memory"] == "1\n"
        workloads = Workloads(api, "default")
        workloads.pod("one")
        workloads.wait_running("one")
    # The kernel takes a pod's links away a moment after its namespace.
    wait_until(lambda: machine_now() == before)
