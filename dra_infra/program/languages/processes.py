"""Starts a plugin of Pulumi, a process that prints the port on which it serves gRPC, and reads all that it prints."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

_KEPT: Final = 2**18
"""Bytes of output that are kept: the last ones."""

_PORT_LINE: Final = 64
"""Bytes in which a plugin names its port."""

_ENDING: Final = 5.0
"""Seconds in which a plugin and its output come to their end."""


class PluginDiedError(Exception):
    """The plugin ended before it named a port; the text is what it printed."""


class PluginProcess:
    """A plugin.

    Args:
        command: The command line.
        folder: The folder in which it runs.
        environment: Its environment variables.
    """

    def __init__(self, command: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A group of its own, so that all that it starts can be ended.
            start_new_session=True,
        )
        self._kept = bytearray()
        self._first = bytearray()
        self._has_port = threading.Event()
        assert self._process.stdout is not None  # noqa: S101  (it was asked for)
        assert self._process.stderr is not None  # noqa: S101
        self._lock = threading.Lock()
        self._readers = [
            threading.Thread(target=self._read_ports, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def port(self, seconds: float) -> int:
        """Return the port, once the plugin has named it.

        Raises:
            PluginDiedError: It names none in time.
        """
        self._has_port.wait(seconds)
        line, end, _ = bytes(self._first).partition(b"\n")
        if not end or not line.strip().isdigit():
            raise PluginDiedError(self.stop())
        return int(line)

    @property
    def is_running(self) -> bool:
        """Whether the plugin has not ended."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> None:
        """Wait for the end of the plugin.

        Raises:
            subprocess.TimeoutExpired: It takes longer.
        """
        self._process.wait(seconds)

    def stop(self) -> str:
        """End the plugin and all that it started, and return what they printed.

        What was written before the end is all in the pipes, so they are read to their ends.
        """
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for reader in self._readers:
            reader.join(_ENDING)
        with self._lock:
            return self._kept.decode(errors="replace")

    def _read_ports(self, pipe: IO[bytes]) -> None:
        """Read the first line, and the rest as output."""
        with pipe:
            while b"\n" not in self._first and len(self._first) < _PORT_LINE:
                chunk = os.read(pipe.fileno(), _PORT_LINE)
                if not chunk:
                    break
                self._first += chunk
            self._has_port.set()
            self._keep(bytes(self._first).partition(b"\n")[2])
            self._read_open(pipe)

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            self._read_open(pipe)

    def _read_open(self, pipe: IO[bytes]) -> None:
        while chunk := os.read(pipe.fileno(), 2**16):
            self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        with self._lock:
            self._kept += chunk
            del self._kept[:-_KEPT]
