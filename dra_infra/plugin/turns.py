"""One preparation at a time on a node, also while two instances of the plugin are alive in a rolling update."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dra_infra.errors import PluginError, Problem


class Turns:
    """A lock file that names who had the last turn. The kernel frees it when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = secrets.token_hex(16).encode()
        self._here = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[bool]:
        """Wait for a turn.

        Yields:
            Whether somebody else had one since our last, so that what we remember may be old.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        with self._here:
            handle = self._lock()
            try:
                # No fsync: after a crash of the machine every instance is new.
                others = os.pread(handle, 64, 0) != self._name
                if others:
                    os.pwrite(handle, self._name, 0)
                yield others
            finally:
                os.close(handle)

    def _lock(self) -> int:
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
            fcntl.flock(handle, fcntl.LOCK_EX)
        except BaseException:
            os.close(handle)
            raise
        return handle
