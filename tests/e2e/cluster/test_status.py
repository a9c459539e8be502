"""`dra-infra status` of a real cluster: what the real scheduler gave, and its words for what waits."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster.conftest import (
    CLAIM,
    DEPLOYMENT,
    GPUS,
    MAIN,
    NAMESPACE,
    PLANTED,
    Grant,
    Run,
    deployment,
    namespace,
)
from tools.cluster import Api, ControlPlane

pytestmark = pytest.mark.e2e

SECONDS = 120


def test_claims_show_the_devices_nodes_and_pods_that_the_scheduler_chose(
    api: Api, lister: Path, dra_infra: Run
) -> None:
    said = dra_infra("status", "--kubeconfig", lister, "--namespace", NAMESPACE, "--json")
    assert said.code == 0, said.err
    assert PLANTED not in said.out
    found = {each["name"]: each for each in json.loads(said.out)["claims"]}
    for claim in api.list(CLAIM, namespace=NAMESPACE):
        shown = found.pop(claim["metadata"]["name"])
        allocation = claim.get("status", {}).get("allocation")
        if not allocation:
            assert (shown["state"], shown["devices"], shown["classes"]) == ("pending", [], [GPUS])
            (reason,) = shown["reasons"]
            assert "0/2 nodes are available" in reason
            continue
        results = allocation["devices"]["results"]
        assert [(each["pool"], each["device"]) for each in shown["devices"]] == [
            (each["pool"], each["device"]) for each in results
        ]
        assert shown["state"] == "in use"
        assert shown["node"] == results[0]["pool"]
        assert shown["consumers"] == [f"Pod {each['name']}" for each in claim["status"]["reservedFor"]]
    assert not found


def test_teams_hold_what_the_scheduler_gave_their_claims(
    api: Api, lister: Path, plane: ControlPlane, dra_infra: Run, tmp_path: Path
) -> None:
    results = [
        each
        for claim in api.list(CLAIM, namespace=NAMESPACE)
        for each in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    ]
    assert results
    said = dra_infra("status", "--kubeconfig", lister, "--by-team", "--json")
    found = json.loads(said.out)
    [team] = [each for each in found["teams"] if each["name"] == NAMESPACE]
    [held] = [each for each in team["devices"] if each["driver"] == GPUS]
    assert held["names"] == sorted(f"{each['pool']}/{each['device']}" for each in results)
    assert (held["used"], held["unused"]) == (len(results), 0)
    assert found["free"][GPUS] <= found["published"][GPUS] - len(results)

    snapshot = tmp_path / "cluster.yaml"
    assert dra_infra("snapshot", "--kubeconfig", lister, "--output", snapshot).code == 0
    of_snapshot = dra_infra("status", "--by-team", "--snapshot", snapshot, "--namespace", NAMESPACE, "--json")
    assert json.loads(of_snapshot.out)["teams"] == [team]

    label = "kubernetes.io/metadata.name"
    options = ("--team-label", label, "--format", "prometheus", "--namespace", NAMESPACE)
    told = dra_infra("status", "--kubeconfig", plane.kubeconfig, *options).out
    line = f'dra_infra_team_devices{{team="{NAMESPACE}",driver="{GPUS}",state="used"}} {len(results)}'
    assert line in told.splitlines()


def test_the_graph_leads_from_the_pod_to_its_devices(plane: ControlPlane, dra_infra: Run) -> None:
    said = dra_infra("status", "--kubeconfig", plane.kubeconfig, "--graph")
    lines = said.out.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"Pod {NAMESPACE}/serve-"))
    assert "(Running on" in lines[start]
    assert lines[start + 1].startswith(f"└─ ResourceClaim {NAMESPACE}/serve-")
    assert lines[start + 2] == f"   └─ DeviceClass {GPUS}, request gpu"
    assert lines[start + 3].startswith(f"      ├─ {GPUS}/")
    assert dra_infra("status", "--kubeconfig", plane.kubeconfig, "--format", "dot").out.startswith("digraph")


def test_a_user_without_rights_is_told(kubeconfig_of: Grant, dra_infra: Run) -> None:
    said = dra_infra("status", "--kubeconfig", kubeconfig_of())
    assert said.code == 2
    assert "[cluster-forbidden]" in said.err


class Watching:
    """A watch that runs, and the states that it printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def until(self, wanted: Any) -> dict[str, Any]:
        """The first state for which *wanted* holds."""
        while True:
            state: dict[str, Any] = json.loads(self._lines.get(timeout=SECONDS))
            if wanted(state):
                return state

    def end(self) -> tuple[int, str]:
        """Exit code and errors after Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=SECONDS)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()

    def close(self) -> None:
        """End it, however it is."""
        self.process.kill()
        self._reader.join()
        with self.process:
            pass


@contextmanager
def watch(kubeconfig: Path, of: str) -> Iterator[Watching]:
    arguments = ["status", "--kubeconfig", str(kubeconfig), "--namespace", of, "--json", "--watch"]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    watching = Watching(process)
    try:
        yield watching
    finally:
        watching.close()


@pytest.mark.parametrize("who", ["administrator", "lister"])
def test_a_watch_follows_changes_and_ends_with_ctrl_c(
    plane: ControlPlane, api: Api, lister: Path, who: str
) -> None:
    name = f"watched-{who}"
    api.create(namespace(name))
    api.wait_until("v1/ServiceAccount", "default", bool, namespace=name)
    kubeconfig = plane.kubeconfig if who == "administrator" else lister
    with watch(kubeconfig, name) as watching:
        watching.until(lambda state: not state["claims"])
        requests = [{"name": "gpu", "exactly": {"deviceClassName": GPUS, "count": 1}}]
        api.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "one", "namespace": name},
                "spec": {"spec": {"devices": {"requests": requests}}},
            }
        )
        workload = deployment("one")
        workload["metadata"]["namespace"] = name
        api.create(workload)
        state = watching.until(lambda state: any(each["state"] == "in use" for each in state["claims"]))
        assert len(state["claims"][0]["devices"]) == 1
        api.delete(DEPLOYMENT, "one", namespace=name)
        watching.until(lambda state: not state["claims"])
        code, errors = watching.end()
    assert code == 0
    assert "Traceback" not in errors
    api.delete("v1/Namespace", name)
