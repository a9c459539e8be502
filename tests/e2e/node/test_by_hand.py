"""`make cluster FLEET=...`: from one command to a pod with a simulated device."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.node.workloads import Workloads
from tools.cluster import Api

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
SECONDS = 120.0


def read_until(process: subprocess.Popen[bytes], word: str) -> str:
    assert process.stdout is not None
    text, deadline = "", time.monotonic() + SECONDS
    while word not in text:
        left = max(0.0, deadline - time.monotonic())
        assert select.select([process.stdout], [], [], left)[0], text
        chunk = os.read(process.stdout.fileno(), 65536).decode()
        assert chunk, text
        text += chunk
    return text


def test_one_command_gives_a_cluster_whose_pods_get_simulated_devices():
    command = [sys.executable, "-m", "tools.cluster", "--node", "--fleet", "example"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        try:
            said = read_until(process, "kubectl logs one-device")
            kubeconfig = Path(re.findall(r"KUBECONFIG=(\S+)", said)[0])
            manifest = Path(re.findall(r"kubectl apply -f (\S+)", said)[0])
            with Api.from_kubeconfig(kubeconfig) as api:
                for item in json.loads(manifest.read_text())["items"]:
                    api.create({**item, "metadata": {**item["metadata"], "namespace": "default"}})
                pods = Workloads(api, "default")
                pods.wait_running("one-device")
                pods.wait_for_log("one-device", "GPU_DEVICE_0=gpu-0")
        finally:
            process.send_signal(signal.SIGINT)
        # To its very end: a line that nobody reads would be an error of the command's.
        assert b"stopped, nothing is left" in process.communicate(timeout=SECONDS)[0]
    assert process.returncode == 0
    assert not kubeconfig.exists()
    assert not manifest.exists()
