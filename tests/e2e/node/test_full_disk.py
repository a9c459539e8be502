"""The disk with the plugin's state is full."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest

from tests.support.node.invariants import settled
from tests.support.node.plugin_process import ONE_RETRY, PluginProcess

pytestmark = pytest.mark.e2e


@pytest.fixture
def plugin(device_classes, real_node, tmp_path):
    """Its state lies on a disk of 1 MiB, which the node has mounted."""
    folder = real_node.folder / "small-disk"
    folder.mkdir()
    in_node = ("nsenter", f"--mount={real_node.mounts}", "--")
    subprocess.run([*in_node, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
    process = PluginProcess(
        real_node,
        tmp_path / "plugin.log",
        fleet="hgx-h100",
        options=("--state-folder", str(folder)),
        prefix=in_node,
    )
    with contextlib.closing(process):
        process.start()
        yield process


@pytest.fixture
def state(plugin, real_node):
    """The state folder as the plugin sees it."""
    return Path(f"/proc/{plugin.pid}/root{real_node.folder}/small-disk")


def test_claims_are_refused_with_the_reason_released_all_the_same_and_prepared_when_there_is_room(
    workloads, plugin, state, node_api, real_node
):
    workloads.claim("before")
    workloads.pod_with_claim("before", "before")
    workloads.wait_running("before")
    ballast = state / "ballast"
    _fill(ballast)
    workloads.claim("during")
    workloads.pod_with_claim("during", "during")
    workloads.wait_for_event("during", "FailedPrepareDynamicResources", "No space left on device")
    workloads.delete("before")
    ballast.unlink()
    workloads.wait_running("during", timeout=ONE_RETRY)
    assert len(settled(node_api, real_node, state=state / "claims")) == 1
    workloads.remove_all()
    assert settled(node_api, real_node, state=state / "claims") == frozenset()


def _fill(path):
    """Write until there is no room, to the last byte."""
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
