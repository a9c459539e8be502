"""Lock files that one process holds at a time (flock), and turns for preparations.

The kernel frees a lock when its holder dies. There is one preparation at a time on a node, also while two instances
of the plugin are alive in a rolling update.
"""

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

from dra_infra.errors import PluginError
from dra_infra.plugin.disk import explain_os_errors


def open_lock(path: Path) -> int:
    """A handle of a lock's file, which is made where it is not there.

    Raises:
        PluginError: `plugin-folder-not-usable`.
    """
    with explain_os_errors("cannot be locked", path):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def try_lock(handle: int, path: Path) -> bool:
    """Lock the file; whether that could be had now, and nobody else has it.

    Raises:
        PluginError: `plugin-folder-not-usable`, where its file system knows no locks.
    """
    with explain_os_errors("cannot be locked", path):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


LOCK_SECONDS: Final = 30.0
"""Seconds to wait for a turn: the kubelet gives a call up after 45 (pkg/kubelet/cm/dra), and would not learn why."""

_LONGEST_PAUSE: Final = 0.05


class PreparationLock:
    """A lock file that names who had the last turn. The kernel frees it when its holder dies.

    Args:
        path: The file.
        patience: Seconds to wait for a turn.
    """

    def __init__(self, path: Path, *, patience: float = LOCK_SECONDS) -> None:
        self._path = path
        self._patience = patience
        self._name = secrets.token_hex(16).encode()
        self._here = threading.Lock()

    @contextmanager
    def acquire(self, *, within: float | None = None) -> Iterator[bool]:
        """Wait for a turn.

        Args:
            within: Seconds that the caller has left, where that may be less than our patience.

        Yields:
            Whether somebody else had one since our last, so that what we remember may be old.

        Raises:
            PluginError: `plugin-folder-not-usable`, `turn-not-had`.
        """
        patience = self._patience if within is None else max(0.0, min(within, self._patience))
        until = time.monotonic() + patience
        if not self._here.acquire(timeout=patience):
            raise self._not_had(patience)
        try:
            handle = open_lock(self._path)
            try:
                if not self._lock(handle, until):
                    raise self._not_had(patience)
                with explain_os_errors("cannot be written", self._path):
                    # No fsync: after a crash of the machine every instance is new.
                    others = os.pread(handle, 64, 0) != self._name
                    if others:
                        os.pwrite(handle, self._name, 0)
                yield others
            finally:
                os.close(handle)
        finally:
            self._here.release()

    def _lock(self, handle: int, until: float) -> bool:
        pause = 0.001
        # flock has no time limit of its own, and a signal to end it would reach other threads.
        while not try_lock(handle, self._path):
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def _not_had(self, patience: float) -> PluginError:
        return PluginError.of(
            path=str(self._path),
            code="turn-not-had",
            message=f"another preparation on this node did not end within {patience:.3g} s",
            hint="the kubelet asks again; if it stays so, see the plugin's log for what the device does",
        )
