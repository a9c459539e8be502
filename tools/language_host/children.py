"""The processes that a language host starts, and their end."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path


class Children:
    """Running child processes of this host; safe to use from several threads."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def start(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path | None = None,
        captured: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start *arguments* with no standard input; *captured* makes pipes of its two output streams."""
        pipe = subprocess.PIPE if captured else None
        child = subprocess.Popen(
            list(arguments),
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
        with self._lock:
            self._running.add(child)
        return child

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        """Wait for *child* to end and return its exit status (negative: ended by that signal)."""
        status = child.wait()
        with self._lock:
            self._running.discard(child)
        return status

    def kill(self) -> None:
        """Kill every child at once: a program blocked in gRPC survives SIGINT and SIGTERM."""
        with self._lock:
            running = tuple(self._running)
        for child in running:
            child.kill()
