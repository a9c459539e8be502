"""What breaks on a node while pods have devices; in the end all parties agree, and everything can be released."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path

import pytest

from dra_infra.plugin.claims import ClaimReference
from tests.support.node.invariants import DRIVER, look, settled
from tests.support.node.plugin_process import ONE_RETRY
from tests.support.node.workloads import CLAIM, request
from tools.cluster import components

pytestmark = pytest.mark.e2e

OUTAGE_SECONDS = 30.0 if os.environ.get("DRA_INFRA_SOAK") else 8.0

UNKNOWN = "00000000-0000-4000-8000-000000000000"
FROZEN = Path(__file__).parents[2] / "unit" / "plugin" / "frozen" / "format-1.json"


@pytest.fixture
def running(claims):
    """A pod with a device, which all tests find as it was."""
    claims.claim("one")
    claims.pod_with_claim("pod", "one")
    before = claims.wait_running("pod")["status"]["containerStatuses"][0]["containerID"]
    device = claims.devices("pod")
    yield claims.api.get(CLAIM, "one", namespace=claims.namespace)["metadata"]["uid"]
    pod = claims.wait_running("pod")
    assert pod["status"]["containerStatuses"][0]["containerID"] == before
    assert claims.devices("pod") == device


def another_pod_runs(claims, plugin, name="later", *, timeout=ONE_RETRY):
    claims.claim(name)
    claims.pod_with_claim(name, name)
    claims.wait_running(name, timeout=timeout)
    assert len(claims.devices(name)) == 1


def test_plugin_that_is_killed_while_pods_start(running, claims, plugin, node_api, real_node):
    names = [f"pod-{number}" for number in range(4)]
    for name in names:
        claims.claim(name)
        claims.pod_with_claim(name, name)
    plugin.kill()
    plugin.start()
    for name in names:
        claims.wait_running(name, timeout=ONE_RETRY)
    assert len({*claims.devices("pod"), *(one for name in names for one in claims.devices(name))}) == 5
    assert len(settled(node_api, real_node)) == 5


def test_plugin_that_is_away_while_a_pod_ends(running, claims, plugin, node_api, real_node):
    another_pod_runs(claims, plugin)
    plugin.kill()
    claims.api.delete("v1/Pod", "later", namespace=claims.namespace)
    plugin.start()
    claims.api.wait_gone("v1/Pod", "later", namespace=claims.namespace, timeout=ONE_RETRY)
    assert settled(node_api, real_node) == {running}


def test_kubelet_that_is_killed(running, claims, plugin, node_api, real_node):
    registered = plugin.log_of_this_life.count("registered at the kubelet")
    real_node.kubelet.kill()
    assert look(node_api, real_node).recorded == {running}
    real_node.kubelet.start()
    plugin.wait_registered(registered + 1)
    another_pod_runs(claims, plugin)
    assert len(settled(node_api, real_node)) == 2


def test_containerd_that_is_killed(running, claims, plugin, node_api, real_node):
    real_node.containerd.kill()
    real_node.containerd.start()
    another_pod_runs(claims, plugin)
    assert len(settled(node_api, real_node)) == 2


def test_api_server_that_is_away(running, claims, plugin, node_plane, node_api, real_node):
    with node_plane.without(components.APISERVER):
        # One that starts meanwhile waits for it too.
        plugin.kill()
        plugin.start(publishes=False)
        threading.Event().wait(OUTAGE_SECONDS)
        assert plugin.is_running
        with plugin.called() as kubelet:
            # Releasing needs no API server.
            unknown = ClaimReference(namespace="ml", name="nobody", uid=UNKNOWN)
            assert not kubelet.release(unknown)[UNKNOWN].error
    another_pod_runs(claims, plugin, timeout=180.0)
    assert len(settled(node_api, real_node)) == 2


def test_record_that_is_damaged(running, claims, plugin, node_api, real_node):
    plugin.kill()
    spec = real_node.cdi_folder / f"k8s.{DRIVER}-claim_{running}.json"
    before = spec.read_bytes()
    record = plugin.folder / "claims" / f"{running}.json"
    record.write_bytes(record.read_bytes()[:-20])
    plugin.start()
    assert "checkpoint-unreadable" in plugin.log_of_this_life
    # The record is there again, with the ids under which the kubelet and the runtime know its devices.
    assert settled(node_api, real_node) == {running}
    assert spec.read_bytes() == before
    # Its device is nobody else's meanwhile.
    claims.claim("others", request(7))
    claims.pod_with_claim("others", "others")
    claims.wait_running("others", timeout=ONE_RETRY)
    assert not {*claims.devices("pod")} & {*claims.devices("others")}
    claims.delete("others")


def test_record_of_the_first_format_is_read(running, claims, plugin, node_api, real_node):
    plugin.stop()
    file = plugin.folder / "claims" / f"{running}.json"
    frozen = json.loads(FROZEN.read_text())
    record = json.loads(file.read_text())["record"]
    # As the first release wrote it, whatever the format has by now.
    record = _as_in(frozen["record"], record)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    checksum = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    file.write_text(json.dumps({"format": 1, "checksum": checksum, "record": record}))
    plugin.start()
    assert settled(node_api, real_node) == {running}


def test_claim_that_is_deleted_with_force(claims, node_api, real_node):
    claims.claim("one")
    claims.pod_with_claim("pod", "one")
    claims.wait_running("pod")
    claims.api.delete(CLAIM, "one", namespace=claims.namespace)
    claims.api.patch(CLAIM, "one", {"metadata": {"finalizers": None}}, namespace=claims.namespace)
    claims.api.wait_gone(CLAIM, "one", namespace=claims.namespace)
    claims.delete("pod")
    assert settled(node_api, real_node) == frozenset()


def test_pod_that_is_deleted_with_force(claims, node_api, real_node):
    claims.claim("one")
    claims.pod_with_claim("pod", "one")
    claims.wait_running("pod")
    claims.api.delete("v1/Pod", "pod", namespace=claims.namespace, grace_seconds=0)
    claims.api.wait_gone("v1/Pod", "pod", namespace=claims.namespace)
    # The pod is gone before anything of it ends: all parties agree for a moment longer that it has the claim.
    claims.api.wait_until(
        CLAIM,
        "one",
        lambda claim: not claim.get("status", {}).get("reservedFor"),
        namespace=claims.namespace,
        timeout=120.0,
    )
    assert settled(node_api, real_node) == frozenset()


def _as_in(frozen, value):
    """What of *value* the frozen one has too."""
    if isinstance(frozen, dict):
        return {key: _as_in(inner, value[key]) for key, inner in frozen.items()}
    if isinstance(frozen, list) and frozen:
        return [_as_in(frozen[0], one) for one in value]
    return value
