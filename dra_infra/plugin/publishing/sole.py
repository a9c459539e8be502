"""One publisher at a time on a node, also while two instances of the plugin are alive in a rolling update.

Two that publish other things would overwrite each other for as long as both are there. The one that was there first goes
on until it ends; the kernel then frees the file, and the other one takes over.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import Final

from dra_infra.errors import PluginError, Problem

_AGAIN: Final = 0.5
"""Seconds between two looks at the file."""


class Sole:
    """A lock file that one holds until it ends.

    Args:
        path: On a file system that both instances see; without one nobody else is looked for.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._handle: int | None = None
        self.waits = False
        """Whether another one has it now."""

    def take(self, ended: threading.Event) -> bool:
        """Wait until it is ours, or *ended*.

        Returns:
            Whether it is ours.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        if self._path is None or self._handle is not None:
            return not ended.is_set()
        handle = self._open(self._path)
        while not ended.is_set():
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.waits = True
                ended.wait(_AGAIN)
                continue
            self._handle, self.waits = handle, False
            return True
        os.close(handle)
        return False

    def leave(self) -> None:
        """Let another one have it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self, path: Path) -> int:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            problem = Problem(
                path=str(path),
                code="plugin-folder-not-usable",
                message=f"cannot be locked: {error.strerror or error}",
                hint="see the folder's permissions and its mount",
            )
            raise PluginError([problem]) from error
