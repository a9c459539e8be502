"""Looks at the file of commands now and then, which costs less than a thousandth of a processor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.back_ends.sim_commands import Commands, read_commands

INTERVAL: Final = 1.0
"""Seconds between two looks."""


class WatchedCommands:
    """The commands as they were last right.

    Args:
        path: The file, which need not be there; None for no commands ever.
        noticed: Is told what is wrong with the file, each time that it changes.
        judge: What else is wrong with commands that can be read.
    """

    def __init__(
        self,
        path: Path | None,
        noticed: Callable[[Sequence[Problem]], None],
        judge: Callable[[Commands], Iterable[Problem]],
    ) -> None:
        self._path = path
        self._noticed = noticed
        self._judge = judge
        self._commands = Commands()
        self._seen: object = None
        self._told: object = None
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self.ended = threading.Event()

    def now(self) -> Commands:
        """What holds now: the file is read where it changed."""
        self._refresh()
        return self._commands

    def watch(self, changed: Callable[[], None]) -> None:
        """Call *changed* when the file changed."""
        self._refresh()
        with self._lock:
            self._callbacks.append(changed)
            if self._path and not self._thread:
                self._told = self._seen
                self._thread = threading.Thread(target=self._look, name="sim-commands", daemon=True)
                self._thread.start()

    def tell(self) -> None:
        """Call all who watch."""
        for each in tuple(self._callbacks):
            each()

    def close(self) -> None:
        """Look no more."""
        self.ended.set()
        if self._thread:
            self._thread.join()

    def _look(self) -> None:
        while not self.ended.wait(INTERVAL):
            self._refresh()
            # Another thread may have read it first.
            if self._seen != self._told:
                self._told = self._seen
                self.tell()

    def _refresh(self) -> None:
        if not self._path:
            return
        with self._lock:
            try:
                found = self._path.stat()
                seen: object = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            except OSError:
                seen = "none"
            if seen == self._seen:
                return
            try:
                commands = read_commands(self._path)
                problems = tuple(self._judge(commands))
                self._commands = commands
            except PluginError as error:
                problems = error.problems
            self._seen = seen
        if problems:
            self._noticed(problems)
