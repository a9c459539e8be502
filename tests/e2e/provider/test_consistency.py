"""State after refused objects, failed waits and killed engines: what is in it is in the cluster, no more."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.lab import Lab
from tools.cluster import Api
from tools.pulumi_home import VENDOR

pytestmark = pytest.mark.e2e

DEPLOYMENT = "apps/v1/Deployment"
GOOD = 'config_map("good", name="good")\n'
REFUSED = 'config_map("bad", name="bad", labels={"key": "not a label"})\n'
GATED = """
config_map("before", name="before")
component = pulumi.ComponentResource("test:index:Component", "component")
labels = {"app": "gated"}
k8s.apps.v1.Deployment("gated", opts=ResourceOptions(parent=component),
    metadata={"name": "gated", "namespace": NAMESPACE},
    spec={"selector": {"matchLabels": labels},
          "template": {"metadata": {"labels": labels}, "spec": pod_spec(nodeSelector={"gate": NAMESPACE})}})
"""
"""A Deployment whose pods run only on a node with a label that no node has."""


def open_gate(api: Api, lab: Lab) -> None:
    api.patch("v1/Node", "node-a", {"metadata": {"labels": {"gate": lab.namespace}}})


def wait_until(condition: Callable[[], object], *, what: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def plugins_of(lab: Lab) -> list[str]:
    """Return the command lines of processes that this lab's engine started."""
    wanted = lab.stack.environment["PULUMI_BACKEND_URL"].encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if wanted in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def kill_up_while_it_waits(lab: Lab, api: Api) -> None:
    """Kill the engine when the Deployment exists and the object before it is recorded."""
    engine = lab.stack.start("up", "--yes", "--skip-preview")
    api.wait_until(DEPLOYMENT, "gated", bool, namespace=lab.namespace)
    wait_until(lambda: "before" in lab.names(), what="first object in the state")
    os.kill(engine.pid, signal.SIGKILL)
    engine.wait()


def test_a_refused_object_is_not_in_the_state_and_the_others_are(lab: Lab, cluster_api: Api) -> None:
    lab.write(GOOD + REFUSED)

    up = lab.stack.up()

    assert up.exit_code == 1
    assert "metadata.labels: Invalid value" in "".join(up.errors)
    assert lab.names() == ["good"]
    assert not lab.stack.export().get("pending_operations")
    names = {found["metadata"]["name"] for found in cluster_api.list("v1/ConfigMap", namespace=lab.namespace)}
    assert names == {"good", "kube-root-ca.crt"}


def test_the_next_up_creates_the_repaired_object_only(lab: Lab) -> None:
    lab.write(GOOD + REFUSED)
    assert lab.stack.up().exit_code == 1
    lab.write(GOOD + REFUSED.replace("not a label", "a-label"))

    up = lab.stack.up().check()

    assert (up.operations("good"), up.operations("bad")) == (("same",), ("create",))


def test_a_refused_update_leaves_the_old_object_in_the_state(lab: Lab) -> None:
    lab.up('config_map("object", name="object", labels={"key": "a"})\n')
    lab.write('config_map("object", name="object", labels={"key": "not a label"})\n')
    assert lab.stack.up().exit_code == 1

    assert lab.resource("object")["outputs"]["metadata"]["labels"] == {"key": "a"}
    assert not lab.stack.export().get("pending_operations")


def test_an_object_that_does_not_become_ready_is_in_the_state_and_waited_for_again(
    lab: Lab, cluster_api: Api
) -> None:
    impatient = GATED.replace(
        '"name": "gated"', '"annotations": {"pulumi.com/timeoutSeconds": "2"}, "name": "gated"'
    )
    lab.write(impatient)

    first = lab.stack.up()
    recorded = lab.resource("gated")
    again = lab.stack.up()
    open_gate(cluster_api, lab)
    cluster_api.wait_until(
        DEPLOYMENT, "gated", lambda each: each["status"].get("readyReplicas") == 1, namespace=lab.namespace
    )
    lab.write(GATED)
    second = lab.stack.up().check()

    assert first.exit_code == 1
    assert "timed out" in first.text
    assert recorded["initErrors"]
    assert again.exit_code == 1
    assert "timed out" in again.text
    assert recorded["id"] == f"{lab.namespace}/gated"
    assert second.operations("gated") == ("update",)
    assert "initErrors" not in lab.resource("gated")


def test_a_killed_engine_leaves_no_process_behind(lab: Lab, cluster_api: Api) -> None:
    if lab.home.host == VENDOR:
        pytest.skip(
            "Pulumi's own language host (3.259.0) stays when its engine is killed; seen as the one process left"
        )
    lab.write(GATED)

    kill_up_while_it_waits(lab, cluster_api)

    wait_until(lambda: not plugins_of(lab), what="end of all plugins")


def test_an_interrupted_up_records_what_it_was_waiting_for(lab: Lab, cluster_api: Api) -> None:
    lab.write(GATED)
    engine = lab.stack.start("up", "--yes", "--skip-preview")
    cluster_api.wait_until(DEPLOYMENT, "gated", bool, namespace=lab.namespace)
    wait_until(lambda: "before" in lab.names(), what="first object in the state")

    engine.send_signal(signal.SIGINT)
    engine.wait(timeout=120)

    assert engine.returncode != 0
    assert lab.names() == ["before", "gated"]
    assert lab.resource("gated")["initErrors"]
    assert not lab.stack.export().get("pending_operations")


def test_a_killed_up_is_repaired_by_cancel_and_import(lab: Lab, cluster_api: Api, tmp_path: Path) -> None:
    lab.write(GATED)
    kill_up_while_it_waits(lab, cluster_api)
    uid = cluster_api.get(DEPLOYMENT, "gated", namespace=lab.namespace)["metadata"]["uid"]
    locked = lab.stack.up()
    missing = tmp_path / "missing.json"

    lab.stack.cancel().check()
    lab.stack.refresh("--clear-pending-creates").check()
    lab.stack.preview("--import-file", str(missing)).check()
    document = json.loads(missing.read_text())
    (resource,) = document["resources"]
    resource["id"] = f"{lab.namespace}/gated"
    missing.write_text(json.dumps(document))
    quietly = ("--yes", "--skip-preview", "--generate-code=false", "--protect=false")
    lab.stack.run("import", "--file", str(missing), *quietly, "--stack", "dev").check()
    open_gate(cluster_api, lab)
    lab.stack.up().check()

    assert "currently locked" in locked.text
    assert lab.names() == ["before", "gated"]
    assert cluster_api.get(DEPLOYMENT, "gated", namespace=lab.namespace)["metadata"]["uid"] == uid
    lab.stack.preview("--expect-no-changes").check()


def test_without_the_repair_the_object_in_the_way_is_reported(lab: Lab, cluster_api: Api) -> None:
    lab.write(GATED)
    kill_up_while_it_waits(lab, cluster_api)
    lab.stack.cancel().check()

    up = lab.stack.up()

    assert up.exit_code == 1
    assert 'deployments.apps "gated" already exists' in up.text


def test_destroy_leaves_nothing_and_waits_for_finalizers(lab: Lab, cluster_api: Api) -> None:
    lab.up(
        'claim = claim_template("claim", 1)\ndeployment("app", claim.metadata["name"])\nconfig_map("map")\n'
    )
    assert cluster_api.list("v1/Pod", namespace=lab.namespace)

    lab.stack.destroy().check()

    assert lab.resources() == []
    for kind in (DEPLOYMENT, "v1/Pod", "resource.k8s.io/v1/ResourceClaimTemplate"):
        assert cluster_api.list(kind, namespace=lab.namespace) == []
