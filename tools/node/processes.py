"""The near end of `inside`: a program that runs in the node's namespaces, to be started, ended and killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_END_SECONDS = 60.0
_CHECK_SECONDS = 0.02
_LOG_LINES_IN_ERRORS = 12


class NodeProcess:
    """One program of a node: its kubelet, its containerd.

    Args:
        name: As in its log's name.
        folder: State folder of the node, where `inside` listens.
        argv: Command that starts it.
        environment: All environment variables that it gets.
        is_ready: Whether it does its work, asked after each start.
        ready_seconds: How long that may take.

    Raises:
        ToolError: When it ends by itself while it is waited for, or is not ready in time.
    """

    def __init__(
        self,
        name: str,
        *,
        folder: Path,
        argv: list[str],
        environment: Mapping[str, str],
        is_ready: Callable[[], bool],
        ready_seconds: float = 180.0,
    ) -> None:
        self.name = name
        self._folder = folder
        self._argv = argv
        self._environment = dict(environment)
        self._is_ready = is_ready
        self._ready_seconds = ready_seconds

    @property
    def log(self) -> str:
        """Everything that it has printed since the node was started."""
        return (self._folder / f"{self.name}.log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return bool(self._ask({"state": self.name})["running"])

    def start(self) -> None:
        """Start it and return when it is ready."""
        self._ask({"start": self.name, "argv": self._argv, "env": self._environment})
        self.wait_ready()

    def wait_ready(self) -> None:
        """Return when it is ready."""
        deadline = time.monotonic() + self._ready_seconds
        while not self._is_ready():
            state = self._ask({"state": self.name})
            late = time.monotonic() > deadline
            if late or not state["running"]:
                why = (
                    f"is not ready after {self._ready_seconds:g} s" if late else f"ended with {state['code']}"
                )
                tail = "\n".join(self.log.splitlines()[-_LOG_LINES_IN_ERRORS:])
                raise ToolError(f"{self.name} {why}; its last lines:\n{tail}")
            time.sleep(_CHECK_SECONDS)

    def stop(self) -> None:
        """Ask it to end, and return when it has."""
        self._ask({"end": self.name, "signal": signal.SIGTERM}, seconds=_END_SECONDS)

    def kill(self) -> None:
        """End it with SIGKILL, which leaves it no time for anything, and return when it is gone."""
        self._ask({"end": self.name, "signal": signal.SIGKILL}, seconds=_END_SECONDS)

    def restart(self) -> None:
        """Stop it and start it again; returns when it is ready."""
        self.stop()
        self.start()

    def _ask(self, request: dict[str, Any], *, seconds: float = 30.0) -> dict[str, Any]:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(seconds)
                connection.connect(os.fspath(self._folder / "inside.sock"))
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile("rb") as stream:
                    answer: dict[str, Any] = json.loads(stream.readline())
        except (OSError, ValueError) as error:
            raise ToolError(f"{self.name}: the node's first process does not answer {request}") from error
        if "error" in answer:
            raise ToolError(f"{self.name}: {answer['error']}")
        return answer
