"""The plugin's command, unchanged, but for a disk that kills the process at one of its steps.

``DIES_IN`` is ``prepare`` or ``release`` and ``DIES_AT`` a number: the process kills itself before the step of that
number, counted from 0, that such a call takes on the disk. Steps are what the next life can see: a file half written,
written, renamed, removed. The last one is behind the call's work, before its answer.

``SPEAKS`` has the versions of services that it says to have, in place of all of them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dra_infra.plugin.command.program import run
from dra_infra.plugin.disk import Disk
from dra_infra.plugin.preparations import Preparations
from dra_infra.plugin.service import sockets

_AT_WORK = threading.local()


class MortalDisk(Disk):
    """Kills the process at a step of a call."""

    def __init__(self, call: str, number: int) -> None:
        self._call = call
        self._left = number

    def step(self) -> None:
        if getattr(_AT_WORK, "call", "") == self._call:
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1

    def write_new(self, path: Path, content: bytes, mode: int) -> None:
        self.step()
        # As a process leaves it that dies in the middle of writing; then as if it had not begun.
        path.write_bytes(content[: len(content) // 2])
        self.step()
        path.unlink()
        super().write_new(path, content, mode)

    def rename(self, old: Path, new: Path) -> None:
        self.step()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self.step()
        super().remove(path)

    def settle(self, path: Path) -> None:
        self.step()
        super().settle(path)

    def watch(self, call: str) -> None:
        """Know when a preparation or release is at work."""
        method: Callable[..., Any] = getattr(Preparations, call)

        def watched(*arguments: Any, **named: Any) -> Any:
            _AT_WORK.call = call
            try:
                answer = method(*arguments, **named)
                # All is done, and the kubelet does not learn of it.
                self.step()
                return answer
            finally:
                _AT_WORK.call = ""

        setattr(Preparations, call, watched)


if __name__ == "__main__":
    disk = None
    if "DIES_IN" in os.environ:
        disk = MortalDisk(os.environ["DIES_IN"], int(os.environ["DIES_AT"]))
        disk.watch(os.environ["DIES_IN"])
    if "SPEAKS" in os.environ:
        assert sockets.VERSIONS
        vars(sockets)["VERSIONS"] = tuple(os.environ["SPEAKS"].split(","))
    sys.exit(run(sys.argv[1:], os.environ, disk=disk))
