"""Many pods come and go; nothing leaks, and none is late."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from dra_infra.plugin.driver import THREADS
from dra_infra.plugin.publishing.slice_writing import MANAGED_BY
from tests.e2e.node.invariants import DRIVER, settled

pytestmark = pytest.mark.e2e

IS_SOAK = bool(os.environ.get("DRA_INFRA_SOAK"))
DEVICES = 8
PODS = 200 if IS_SOAK else 40
LATE_SECONDS = 5.0
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


@contextmanager
def stalls_of_the_disk(folder):
    """A list of one number: the longest time, in seconds, that a small file took to be on the disk meanwhile."""
    longest, ended = [0.0], threading.Event()

    def watch():
        while not ended.wait(0.1):
            began = time.monotonic()
            with (folder / "stalls").open("w") as file:
                file.write("x")
                file.flush()
                os.fsync(file.fileno())
            longest[0] = max(longest[0], time.monotonic() - began)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield longest
    finally:
        ended.set()
        watching.join()


def check_none_is_late(took, stalled):
    """Of one batch, whose pods had the same machine: one that was refused comes 10 s behind the others.

    A disk that stands still between two pods makes the later one late as well.
    """
    median = took[len(took) // 2]
    assert took[-1] < median + LATE_SECONDS + stalled, (
        f"{median:.2f} s is the median of {[round(each, 2) for each in took]}; the disk took {stalled:.2f} s"
    )


def one_batch(claims, names):
    """Run a pod with a claim for each name at once; returns how long each took, the slowest last."""
    started = time.monotonic()
    for name in names:
        claims.pod_of_template(name, "own")
    waiting, took = set(names), []

    def note(pods):
        running = {
            pod["metadata"]["name"]
            for pod in pods
            if pod["status"].get("phase") == "Running" and pod["metadata"]["name"] in waiting
        }
        took.extend([time.monotonic() - started] * len(running))
        waiting.difference_update(running)
        return not waiting

    claims.api.wait_for("v1/Pod", note, namespace=claims.namespace, timeout=180.0)
    return took


def test_pods_that_come_and_go_leave_nothing_and_none_is_late(claims, plugin, node_api, real_node, tmp_path):
    claims.template("own")

    def batch(number):
        names = [f"pod-{number}-{place}" for place in range(DEVICES)]
        with stalls_of_the_disk(tmp_path) as stalled:
            took = one_batch(claims, names)
        # What a late pod would be told, however fast the machine is.
        assert [told for name in names for told in claims.events(name, "FailedPrepareDynamicResources")] == []
        assert len(settled(node_api, real_node)) == DEVICES
        for name in names:
            claims.api.delete("v1/Pod", name, namespace=claims.namespace)
        for kind in ("v1/Pod", "resource.k8s.io/v1/ResourceClaim"):
            claims.api.wait_for(kind, lambda items: not items, namespace=claims.namespace, timeout=180.0)
        assert settled(node_api, real_node) == frozenset()
        return took, *stalled

    # The first makes what stays: connections, buffers, folders.
    batch(0)
    files, memory_before, open_before = (
        files_of(plugin, real_node),
        memory(plugin.pid),
        open_files(plugin.pid),
    )
    for number in range(1, PODS // DEVICES):
        check_none_is_late(*batch(number))
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
