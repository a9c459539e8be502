"""Many pods come and go: nothing leaks, and none is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dra_infra.plugin.driver import THREADS
from dra_infra.plugin.publishing.slice_writing import MANAGED_BY
from tests.support.node.invariants import DRIVER, settled

pytestmark = pytest.mark.e2e

IS_SOAK = bool(os.environ.get("DRA_INFRA_SOAK"))
DEVICES = 8
PODS = 200 if IS_SOAK else 40
GROWTH = 8 * 1024 * 1024


def memory(pid):
    [line] = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def open_files(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def files_of(plugin, node):
    """What the plugin and the runtime keep."""
    kept = [path for root in (plugin.folder, node.cdi_folder) for path in root.rglob("*")]
    return {str(path) for path in kept}


def one_batch(claims, names):
    """Run a pod with a claim for each name at once."""
    for name in names:
        claims.pod_of_template(name, "own")

    def all_run(pods):
        running = {each["metadata"]["name"] for each in pods if each["status"].get("phase") == "Running"}
        return running >= set(names)

    claims.api.wait_for("v1/Pod", all_run, namespace=claims.namespace, timeout=180.0)


def test_pods_that_come_and_go_leave_nothing_and_none_is_refused(claims, plugin, node_api, real_node):
    claims.template("own")

    def batch(number):
        names = [f"pod-{number}-{place}" for place in range(DEVICES)]
        one_batch(claims, names)
        # A pod whose claim was not prepared at once is told so; the kubelet asks again after 10 s.
        assert [told for name in names for told in claims.events(name, "FailedPrepareDynamicResources")] == []
        assert len(settled(node_api, real_node)) == DEVICES
        for name in names:
            claims.api.delete("v1/Pod", name, namespace=claims.namespace)
        for kind in ("v1/Pod", "resource.k8s.io/v1/ResourceClaim"):
            claims.api.wait_for(kind, lambda items: not items, namespace=claims.namespace, timeout=180.0)
        assert settled(node_api, real_node) == frozenset()

    # The first makes what stays: connections, buffers, folders.
    batch(0)
    files = files_of(plugin, real_node)
    memory_before = memory(plugin.pid)
    open_before = open_files(plugin.pid)
    for number in range(1, PODS // DEVICES):
        batch(number)
    assert files_of(plugin, real_node) == files
    assert memory(plugin.pid) < memory_before + GROWTH
    # A connection to the API server is kept for each thread that had one at the same time as others.
    assert open_files(plugin.pid) <= open_before + THREADS


def slices(api):
    return [one for one in api.list("resource.k8s.io/v1/ResourceSlice") if one["spec"]["driver"] == DRIVER]


def test_slices_that_somebody_deletes_come_back(plugin, node_api):
    [before] = slices(node_api)
    node_api.delete("resource.k8s.io/v1/ResourceSlice", before["metadata"]["name"])
    again = node_api.wait_for(
        "resource.k8s.io/v1/ResourceSlice",
        lambda found: any(
            one["spec"]["driver"] == DRIVER and one["metadata"]["uid"] != before["metadata"]["uid"]
            for one in found
        ),
    )
    [after] = [one for one in again if one["spec"]["driver"] == DRIVER]
    assert after["spec"]["devices"] == before["spec"]["devices"]


def test_plugin_that_takes_over_from_another_driver_of_its_name_waits_until_the_kubelet_has_deleted_its_slices(
    claims, plugin, node_api
):
    claims.claim("one")
    claims.pod_with_claim("pod", "one")
    claims.wait_running("pod")
    plugin.kill()
    # As another driver leaves them, whose chart was uninstalled.
    [left] = slices(node_api)
    del left["metadata"]["labels"][MANAGED_BY]
    name = left["metadata"]["name"]
    node_api.request("PUT", f"/apis/resource.k8s.io/v1/resourceslices/{name}", json=left)
    # The kubelet deletes them 30 s after the last plugin of the name went, and only if none has come meanwhile.
    plugin.start()
    assert "driver-name-taken" in plugin.log_of_this_life
    [ours] = slices(node_api)
    assert ours["metadata"]["uid"] != left["metadata"]["uid"]
    assert ours["spec"]["devices"] == left["spec"]["devices"]
    claims.claim("later")
    claims.pod_with_claim("later", "later")
    claims.wait_running("later")
    assert claims.devices("pod") != claims.devices("later")
