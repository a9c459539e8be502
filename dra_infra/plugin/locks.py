"""Files that one process locks at a time (flock): the kernel frees a lock when its holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from dra_infra.plugin.disk import explained


def open_lock(path: Path) -> int:
    """A handle of a lock's file, which is made where it is not there.

    Raises:
        PluginError: `plugin-folder-not-usable`.
    """
    with explained("cannot be locked", path):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def try_lock(handle: int, path: Path) -> bool:
    """Lock the file; whether that could be had now, and nobody else has it.

    Raises:
        PluginError: `plugin-folder-not-usable`, where its file system knows no locks.
    """
    with explained("cannot be locked", path):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
