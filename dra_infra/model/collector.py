"""Python's cycle collector, out of the way while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
