"""The node plugin as a process of its own beside the node's namespaces, to be stopped and killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.node.invariants import DRIVER
from tests.support.plugin.kubelet import Connection
from tools.node import RealNode

PROGRAM = [sys.executable, "-m", "tests.e2e.node.mortal_plugin"]
"""The plugin's own command, that can be told to die at a step of its work."""

ROOT = Path(__file__).parents[3]
REGISTERED = "registered at the kubelet"
PUBLISHED = '"published"'
SECONDS = 120.0

ONE_RETRY = 150.0
"""For what a kubelet does again after a refusal: it comes back after 10 to 15 s, on a busy machine later."""


class PluginProcess:
    """`dra-infra-plugin` for a node.

    Args:
        log: Where its lines go, of all its lives.
        fleet: What its devices are; None for the GPUs of this machine.
        options: More of its command line.
        prefix: Program that starts it.
        program: The command itself.
    """

    def __init__(
        self,
        node: RealNode,
        log: Path,
        *,
        fleet: str | None,
        options: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self.node = node
        self.path = log
        self.fleet = fleet
        self.folder = node.kubelet_root / "plugins" / DRIVER
        self._options = options
        self._prefix = prefix
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._lines_before = 0

    @property
    def socket(self) -> Path:
        """Where the kubelet calls it."""
        [found] = self.folder.glob("*.sock")
        return found

    def called(self) -> Connection:
        """A connection as the kubelet has one, to be used in a ``with`` statement."""
        return Connection(self.socket)

    def wait_registered(self, times: int = 1) -> None:
        """Wait until the kubelet has taken it that often in this life."""
        self.wait_for(lambda: self.log_of_this_life.count(REGISTERED) >= times, "it was not registered")

    @property
    def pid(self) -> int:
        """Process id of the plugin."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has printed in all its lives."""
        return self.path.read_text() if self.path.exists() else ""

    @property
    def log_of_this_life(self) -> str:
        """What it has printed since it was started last."""
        return "".join(self.log.splitlines(keepends=True)[self._lines_before :])

    def start(
        self, environment: Mapping[str, str] = {}, *, registers: bool = True, publishes: bool = True
    ) -> None:
        """Start it; returns when the kubelet has taken it and its slices are what it has, those of another fleet no more.

        Args:
            environment: More variables.
            registers: Whether there is a kubelet; without one it returns when the plugin serves.
            publishes: Whether there is an API server.
        """
        assert not self.is_running
        self._lines_before = len(self.log.splitlines())
        command = [
            *self._prefix,
            *self._program,
            *(("--back-end", "sim", "--fleet", self.fleet) if self.fleet else ("--back-end", "nvml")),
            *("--node-name", self.node.name),
            *("--kubelet-root", str(self.node.kubelet_root)),
            *("--cdi-folder", str(self.node.cdi_folder)),
            *("--kubeconfig", str(self.node.kubeconfig)),
            *("--log-format", "json"),
            *self._options,
        ]
        with self.path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if registers:
            self.wait_registered()
            if publishes:
                self.wait_for(lambda: PUBLISHED in self.log_of_this_life, "it did not publish")
        else:
            self.wait_for(self._serves, "it does not serve")

    def stop(self) -> None:
        """Ask it to end, and see that it does so without an error."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(SECONDS) == 0, self.log_of_this_life

    def close(self) -> None:
        """As `kill`: how a fixture ends it."""
        self.kill()

    def kill(self) -> None:
        """End it at once, in whatever it does; harmless when repeated."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(SECONDS)

    def wait_killed(self) -> None:
        """Wait until it has killed itself."""
        assert self._process is not None
        assert self._process.wait(SECONDS) == -signal.SIGKILL, self.log_of_this_life

    @property
    def is_running(self) -> bool:
        """Whether it lives."""
        return self._process is not None and self._process.poll() is None

    def _serves(self) -> bool:
        # A socket that a killed process left refuses.
        for path in (self.node.kubelet_root / "plugins_registry").glob("*.sock"):
            with socket.socket(socket.AF_UNIX) as client:
                try:
                    client.connect(str(path))
                except OSError:
                    continue
                return True
        return False

    def wait_for(self, probe: object, failure: str) -> None:
        """Wait until *probe* is true, and fail when it ends before."""
        assert callable(probe)
        deadline = time.monotonic() + SECONDS
        while not probe():
            assert self.is_running, f"it ended: {self.log_of_this_life[-4000:]}"
            assert time.monotonic() < deadline, f"{failure}: {self.log_of_this_life[-4000:]}"
            time.sleep(0.02)
