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

from dra_infra.plugin.back_ends.sim_commands import Commands, bind, hold, write_commands
from tests.e2e.node.simulated_devices import SLICE
from tests.support.node.workloads import Workloads
from tools.cluster import Api

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
SECONDS = 300.0


def read_until(process: subprocess.Popen[bytes], word: str) -> str:
    assert process.stdout is not None
    text = ""
    deadline = time.monotonic() + SECONDS
    while word not in text:
        left = max(0.0, deadline - time.monotonic())
        assert select.select([process.stdout], [], [], left)[0], text
        chunk = os.read(process.stdout.fileno(), 65536).decode()
        assert chunk, text
        text += chunk
    return text


def heed_interrupts() -> None:
    """As in a terminal: what a shell starts in the background ignores them, and so do all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_one_command_gives_a_cluster_whose_pods_get_simulated_devices():
    command = [sys.executable, "-m", "tools.cluster", "--node", "--fleet", "example"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - nothing is done there that a thread could hold.
    ) as process:
        try:
            said = read_until(process, "kubectl logs one-device")
            kubeconfig = Path(re.findall(r"KUBECONFIG=(\S+)", said)[0])
            manifest = Path(re.findall(r"kubectl apply -f (\S+)", said)[0])
            (commands,) = set(map(Path, re.findall(r"--file (\S+)", said)))
            write_commands(commands, hold(Commands()))
            with Api.from_kubeconfig(kubeconfig) as api:
                # Its plugin may also say that a device is bound: with the first rights that it had here it could not.
                api.wait_for(SLICE, lambda slices: "bindingConditions" in json.dumps(slices), timeout=SECONDS)
                for item in json.loads(manifest.read_text())["items"]:
                    api.create({**item, "metadata": {**item["metadata"], "namespace": "default"}})
                pods = Workloads(api, "default")
                write_commands(commands, bind(hold(Commands()), "default/one-device"))
                pods.wait_running("one-device")
                pods.wait_for_log("one-device", "GPU_DEVICE_0=gpu-0")
        finally:
            process.send_signal(signal.SIGINT)
            try:
                # To its very end: a line that nobody reads would be an error of the command's.
                last_words = process.communicate(timeout=SECONDS)[0]
            finally:
                # Else it would be waited for without an end.
                process.kill()
        assert b"stopped, nothing is left" in last_words
    assert process.returncode == 0
    assert not kubeconfig.exists()
    assert not manifest.exists()
