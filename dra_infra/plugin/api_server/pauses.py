"""How long to wait before an API server that did not answer is asked again."""

from __future__ import annotations

import random
from typing import Final

_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 10.0


def pause_after(failures: int) -> float:
    """Seconds until the next try: doubled each time, of random length, so that nodes do not ask all at once."""
    return random.uniform(0.5, 1.0) * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures, 10))  # noqa: S311
