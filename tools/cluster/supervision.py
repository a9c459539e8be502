"""The near end of `supervisor`: start processes that cannot outlive this one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, cast

from tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PROGRAM = Path(__file__).with_name("supervisor.py")
_LOG_LINES_IN_ERRORS = 12


class Supervision:
    """Processes in one folder that end, and a folder that goes, when this object or this process does.

    Attributes:
        folder: State folder with mode 0700; made and removed by the supervisor.
        pids: Process id by name of everything started so far.

    Args:
        start_seconds: How long the supervisor itself may take to start.
        keep_open: File descriptors that stay open until all is cleaned up, such as one that holds a lock.

    Raises:
        ToolError: When a process cannot be started or has ended by itself; the message holds the end of its log.
    """

    def __init__(self, *, start_seconds: float = 60.0, keep_open: Iterable[int] = ()) -> None:
        self._process = subprocess.Popen(
            # -I and -S: neither the user's environment nor site packages can keep it from starting.
            [sys.executable, "-I", "-S", str(_PROGRAM), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C in a terminal goes to the whole process group; the supervisor leaves when its starter does.
            start_new_session=True,
            pass_fds=tuple(keep_open),
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._events = cast("IO[bytes]", self._process.stdout)
        self._buffer = b""
        self._ending: str | None = None
        self.pids: dict[str, int] = {}
        try:
            self.folder = Path(self._expect("folder", seconds=start_seconds)["folder"])
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """Process id of the supervisor."""
        return self._process.pid

    def start(
        self,
        name: str,
        argv: list[str],
        *,
        environment: Mapping[str, str] = MappingProxyType({}),
        seconds: float = 60.0,
    ) -> None:
        """Start *argv* with the state folder as working directory and its output in ``<name>.log`` there.

        It gets *environment*, a home and a path, and nothing of the caller's.
        """
        self._ask({"name": name, "argv": argv, "environment": dict(environment)}, name)
        self.pids[name] = int(self._expect("started", seconds=seconds)["pid"])

    def at_end(self, argv: list[str], *, seconds: float = 60.0) -> None:
        """Have *argv* run when all processes have ended, however that came, before the folder goes; last first."""
        self._ask({"at_end": argv}, argv[0])
        self._expect("noted", seconds=seconds)

    def end(self, name: str, number: int = signal.SIGKILL, *, seconds: float = 60.0) -> None:
        """Send a signal to one process and wait for its end; it may be started again."""
        self._ending = name
        try:
            os.kill(self.pids[name], number)
            self._expect("exited", seconds=seconds)
        finally:
            self._ending = None
        del self.pids[name]

    def pause(self, seconds: float) -> None:
        """Let *seconds* pass, but raise at once when one of the processes ends."""
        deadline = time.monotonic() + seconds
        while self._next_event(deadline) is not None:
            pass

    def log(self, name: str) -> str:
        """Everything that the process called *name* has printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def stop(self) -> None:
        """End all processes and remove the folder; harmless when repeated."""
        with contextlib.suppress(OSError):
            self._requests.close()
        self._process.wait()
        self._events.close()

    def _ask(self, request: dict[str, Any], name: str) -> None:
        try:
            self._requests.write(json.dumps(request).encode() + b"\n")
            self._requests.flush()
        except (OSError, ValueError) as error:
            raise ToolError(f"{name} cannot be started: the supervisor process is gone") from error

    def _expect(self, what: str, *, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (event := self._next_event(deadline)) is not None:
            if what in event:
                return event
        raise ToolError(f"the supervisor process said nothing about {what!r} in {seconds:g} s")

    def _next_event(self, deadline: float) -> dict[str, Any] | None:
        descriptor = self._events.fileno()
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return None
            chunk = os.read(descriptor, 65536)
            if not chunk:
                raise ToolError("the supervisor process ended unexpectedly")
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        event: dict[str, Any] = json.loads(line)
        if "refused" in event:
            raise ToolError(f"{event['refused']} cannot be started: {event['reason']}")
        if "exited" in event and event["exited"] != self._ending:
            tail = "\n".join(self.log(event["exited"]).splitlines()[-_LOG_LINES_IN_ERRORS:])
            raise ToolError(f"{event['exited']} ended with status {event['code']}; its last lines:\n{tail}")
        return event
