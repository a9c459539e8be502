"""Processes that somebody else ended: whether they run, and when they no longer do."""

from __future__ import annotations

import time
from pathlib import Path

SECONDS = 300.0
"""Seconds for which the end of a process is waited: one that waits for a disk ends later."""


def is_running(number: int) -> bool:
    """True for a process that is there and has not ended; one that nobody has waited for yet has ended."""
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_for_end(number: int) -> bool:
    """True once a process has ended; False where it still runs after a minute."""
    until = time.monotonic() + SECONDS
    while is_running(number):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
