"""One publisher at a time on a node, also while two instances of the plugin are alive in a rolling update.

Two that publish other things would overwrite each other for as long as both are there. The one that was there first goes
on until it ends; the kernel then frees the file, and the other one takes over.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from dra_infra.plugin.locks import open_lock, try_lock

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
        self.waited = False
        """Whether another one has it, or had it before."""

    def take(self, ended: threading.Event) -> bool:
        """Wait until it is ours, or *ended*.

        Returns:
            Whether it is ours.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        if self._path is None or self._handle is not None:
            return not ended.is_set()
        handle = open_lock(self._path)
        try:
            while not ended.is_set():
                if try_lock(handle, self._path):
                    self._handle = handle
                    return True
                self.waited = True
                ended.wait(_AGAIN)
            return False
        finally:
            if self._handle is None:
                os.close(handle)

    def leave(self) -> None:
        """Let another one have it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
