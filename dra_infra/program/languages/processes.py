"""Starts the processes of a program in another language, ends them with all that they started, and reads all that they print.

What was written before the end is all in the pipes, so these are read to their ends before anything is made of the output.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from dra_infra.program.pipe_reader import PipeReader

_KEPT: Final = 2**18
"""Bytes of output that are kept: the last ones."""

_PORT_LINE: Final = 64
"""Bytes in which a plugin names its port."""


class _Output:
    """The last bytes that a process printed, read as they come.

    Args:
        process: A process whose streams are pipes.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._kept = bytearray()
        self._lock = threading.Lock()
        self._readers: list[PipeReader] = []

    def read(self, work: Callable[[IO[bytes]], None], pipe: IO[bytes] | None) -> None:
        """Read *pipe* in a thread. Where none can be started, the process is ended."""
        assert pipe is not None  # noqa: S101  (it was asked for)
        try:
            self._readers.append(PipeReader(pipe, work))
        except RuntimeError:
            self.end()
            for each in filter(None, (self._process.stdout, self._process.stderr)):
                each.close()
            raise

    def read_all(self, pipe: IO[bytes]) -> None:
        """Keep all that comes from *pipe*, to its end."""
        while chunk := os.read(pipe.fileno(), 2**16):
            self.keep(chunk)

    def keep(self, chunk: bytes) -> None:
        """Keep *chunk*."""
        with self._lock:
            self._kept += chunk
            del self._kept[:-_KEPT]

    def end(self) -> str:
        """End the process and its group, and return what they printed."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for reader in self._readers:
            reader.wait_for_end()
        with self._lock:
            return self._kept.decode(errors="replace")


def run_to_end(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], deadline: float
) -> tuple[int | None, str]:
    """Run a command, and return its exit status and what it printed; None where it did not end in time.

    Args:
        command: The command line.
        folder: The folder in which it runs.
        environment: Its environment variables.
        deadline: Until when it may run, of `time.monotonic`.
    """
    process = _start(command, folder, environment, stderr=subprocess.STDOUT)
    output = _Output(process)
    output.read(output.read_all, process.stdout)
    status: int | None = None
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        printed = output.end()
    return status, printed


def _start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, stderr: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(command),
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        # A group of its own, so that all that it starts can be ended.
        start_new_session=True,
    )


class PluginDiedError(Exception):
    """The plugin ended before it named a port; the text is what it printed."""


class PluginProcess:
    """A plugin of Pulumi: a process that prints the port on which it serves gRPC.

    Args:
        command: The command line.
        folder: The folder in which it runs.
        environment: Its environment variables.
    """

    def __init__(self, command: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = _start(command, folder, environment, stderr=subprocess.PIPE)
        self._first = bytearray()
        self._has_port = threading.Event()
        self._output = _Output(self._process)
        self._output.read(self._read_port, self._process.stdout)
        self._output.read(self._output.read_all, self._process.stderr)

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
        """End the plugin and all that it started, and return what they printed."""
        return self._output.end()

    def _read_port(self, pipe: IO[bytes]) -> None:
        """Read the first line, and the rest as output."""
        while b"\n" not in self._first and len(self._first) < _PORT_LINE:
            chunk = os.read(pipe.fileno(), _PORT_LINE)
            if not chunk:
                break
            self._first += chunk
        self._has_port.set()
        self._output.keep(bytes(self._first).partition(b"\n")[2])
        self._output.read_all(pipe)
