"""Process-wide behaviour: Ctrl-C while a program still loads, and Python's cycle collector.

Ctrl-C is taken before a program of ours can answer to it: loading one takes a moment, and nobody wants to read where
it was. The cycle collector is kept out of the way while much is made that stays.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Final

EXIT_INTERRUPTED: Final = 130
"""What shells give to a command that Ctrl-C ended."""


def end_quietly(code: int = EXIT_INTERRUPTED) -> None:
    """From now on Ctrl-C ends the process at once: there is nothing to put back. Who ignores it goes on to do so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, partial(_end, code))


def unwind() -> None:
    """From now on Ctrl-C is KeyboardInterrupt, as Python has it: what was begun is put back first."""
    if getattr(signal.getsignal(signal.SIGINT), "func", None) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(code: int, _number: int, _frame: FrameType | None) -> None:
    for stream in (sys.stdout, sys.stderr):
        # It may be in the middle of a line, or closed.
        with suppress(Exception):
            stream.flush()
    os._exit(code)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the collector from going through all that is made inside, again and again.

    What was made counts as old afterwards: as young, all of it would be gone through at once when the collector starts
    again, a twentieth of the time of a large run.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Objects that somebody froze stay so: thawing is for all or none.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
