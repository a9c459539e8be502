"""One preparation at a time on a node, also while two instances of the plugin are alive in a rolling update."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dra_infra.errors import PluginError, Problem

PATIENCE: Final = 30.0
"""Seconds to wait for a turn: the kubelet gives a call up after 45 (pkg/kubelet/cm/dra), and would not learn why."""

_LONGEST_PAUSE: Final = 0.05


class Turns:
    """A lock file that names who had the last turn. The kernel frees it when its holder dies.

    Args:
        path: The file.
        patience: Seconds to wait for a turn.
    """

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        self._path = path
        self._patience = patience
        self._name = secrets.token_hex(16).encode()
        self._here = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[bool]:
        """Wait for a turn.

        Yields:
            Whether somebody else had one since our last, so that what we remember may be old.

        Raises:
            PluginError: `plugin-folder-not-usable`, `turn-not-had`.
        """
        until = time.monotonic() + self._patience
        if not self._here.acquire(timeout=self._patience):
            raise self._not_had()
        try:
            handle = self._lock(until)
            try:
                # No fsync: after a crash of the machine every instance is new.
                others = os.pread(handle, 64, 0) != self._name
                if others:
                    os.pwrite(handle, self._name, 0)
                yield others
            finally:
                os.close(handle)
        finally:
            self._here.release()

    def _lock(self, until: float) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(self._path, flags, 0o600)
        except OSError as error:
            problem = Problem(
                path=str(self._path),
                code="plugin-folder-not-usable",
                message=f"cannot be locked: {error.strerror or error}",
                hint="see the folder's permissions and its mount",
            )
            raise PluginError([problem]) from error
        try:
            self._wait(handle, until)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _wait(self, handle: int, until: float) -> None:
        pause = 0.001
        while True:
            try:
                # flock has no time limit of its own, and a signal to end it would reach other threads.
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > until:
                    raise self._not_had() from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _not_had(self) -> PluginError:
        problem = Problem(
            path=str(self._path),
            code="turn-not-had",
            message=f"another preparation on this node did not end within {self._patience:g} s",
            hint="the kubelet asks again; if it stays so, see the plugin's log for what the device does",
        )
        return PluginError([problem])
