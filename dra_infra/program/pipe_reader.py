"""Reads the pipe of another process to its end, so that no answer is made of the part that has arrived by chance."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from typing import IO, Any, Final

_QUIET: Final = 5.0
"""Seconds without a byte after which a pipe that somebody keeps open counts as not ending."""

_LONGEST: Final = 60.0
"""Seconds after which a pipe counts as not ending, whatever still comes."""


class PipeReader:
    """A thread that reads a pipe, so that whoever writes to it is never held up, and closes it at its end.

    Args:
        pipe: The end to read.
        read: Reads it to its end.
    """

    def __init__(self, pipe: IO[bytes], read: Callable[[IO[bytes]], Any]) -> None:
        self._pipe = pipe
        self._read = read
        # The poll and the close exclude each other: a closed descriptor may be another file's by then.
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            pipe.close()
            raise

    def wait_for_end(self) -> bool:
        """Wait until the pipe was read to its end, which comes when all processes that have it have ended.

        Returns:
            False if the end does not come: a process keeps the pipe open, and writes nothing or without an end.
        """
        deadline = time.monotonic() + _LONGEST
        while True:
            self._thread.join(min(_QUIET, max(0.0, deadline - time.monotonic())))
            if not self._thread.is_alive():
                return True
            # On a busy machine this thread may run again before the other one has read what is there.
            if not self._has_more() or time.monotonic() >= deadline:
                return False

    def _has_more(self) -> bool:
        """Return whether there is something to read, or the end."""
        with self._closing:
            if self._pipe.closed:
                return True
            ready = select.poll()
            ready.register(self._pipe, select.POLLIN)
            return bool(ready.poll(0))

    def _run(self) -> None:
        try:
            self._read(self._pipe)
        finally:
            with self._closing:
                self._pipe.close()
