"""`dra-infra-plugin --check` beside a real kubelet and a real API server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from tools.node import RealNode

pytestmark = pytest.mark.e2e

SECONDS = 120.0


PATIENT = """
from dra_infra.plugin.command import checks, main
checks.ask_kubelet.__kwdefaults__["seconds"] = 60
main.main()
"""
"""A busy kubelet may take longer than the check gives it."""


def check(
    node: RealNode, program: tuple[str, ...] = ("-c", PATIENT)
) -> tuple[int, dict[str, dict[str, Any]]]:
    result = subprocess.run(
        [
            *(sys.executable, *program, "--check", "--json"),
            *("--back-end", "sim", "--fleet", "example", "--node-name", node.name),
            *("--kubelet-root", str(node.kubelet_root), "--cdi-folder", str(node.cdi_folder)),
            *("--kubeconfig", str(node.kubeconfig)),
        ],
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    assert result.stdout, result.stderr
    return result.returncode, {each["what"]: each for each in json.loads(result.stdout)["checks"]}


def test_everything_holds_on_a_node_and_nothing_is_left_there(real_node: RealNode):
    before = sorted(real_node.kubelet_root.glob("plugins*/*"))
    code, found = check(real_node)
    assert [each for each in found.values() if not each["holds"]] == []
    assert code == 0
    assert found["kubelet"]["found"] == f"watches {real_node.kubelet_root}/plugins_registry"
    assert found["API server"]["found"].endswith("resource.k8s.io/v1")
    assert sorted(real_node.kubelet_root.glob("plugins*/*")) == before


def test_a_kubelet_that_is_stopped_is_told(real_node: RealNode):
    real_node.kubelet.stop()
    try:
        code, found = check(real_node, ("-m", "dra_infra.plugin.command.main"))
    finally:
        real_node.kubelet.start()
    assert code == 1
    assert [each["problem"]["code"] for each in found.values() if not each["holds"]] == [
        "kubelet-not-watching"
    ]


def test_the_kubelet_takes_the_plugin_that_was_checked_before(real_node: RealNode, tmp_path):
    """The check leaves nothing in the kubelet that would keep the plugin out."""
    check(real_node)
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "dra_infra.plugin.command.main", "--log-format", "json"),
                *("--back-end", "sim", "--fleet", "example", "--node-name", real_node.name),
                *("--kubelet-root", str(real_node.kubelet_root), "--cdi-folder", str(real_node.cdi_folder)),
                *("--kubeconfig", str(real_node.kubeconfig)),
            ],
            stderr=output,
        )
    try:
        until = time.monotonic() + SECONDS
        while "registered at the kubelet" not in log.read_text() or '"published"' not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
    finally:
        process.terminate()
        assert process.wait(SECONDS) == 0
