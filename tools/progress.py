"""Show that a long step is alive."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

_TERMINAL_SECONDS = 1.0
_LOG_SECONDS = 30.0


class Progress:
    """Lines on *stream*, and while something runs the time it has taken: live on a terminal, else twice a minute."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()

    def say(self, text: str) -> None:
        """Print *text* at once."""
        print(text, file=self._stream, flush=True)

    def wait(self, process: subprocess.Popen[bytes], name: str) -> int:
        """Wait for *process*, called *name*, and return its exit status."""
        started = time.monotonic()
        interval = _TERMINAL_SECONDS if self._is_terminal else _LOG_SECONDS
        try:
            while True:
                try:
                    return process.wait(timeout=interval)
                except subprocess.TimeoutExpired:
                    self._tick(name, time.monotonic() - started)
        finally:
            if self._is_terminal:
                # Clears the line, so that what comes next does not stand behind the counter.
                self._stream.write("\r\x1b[K")
                self._stream.flush()

    def _tick(self, name: str, seconds: float) -> None:
        minutes, rest = divmod(int(seconds), 60)
        text = f"  {name}: {minutes}:{rest:02} so far"
        if self._is_terminal:
            self._stream.write(f"\r{text}\x1b[K")
            self._stream.flush()
        else:
            self.say(text)
