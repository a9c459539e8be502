"""How the time of a piece of work grows with its input, without a bound in seconds that a busy machine passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_TIMES: Final = 8
"""How much larger the large input is than the small one."""
_MOST: Final = 3 * _TIMES
"""What is linear takes 8 times as long, and three times that where other work has slowed it down; what is quadratic takes 64 times."""
_SECONDS: Final = 0.25
"""Less than this is noise, for the large input."""


def takes_linear_time(prepare: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Return whether work takes time in proportion to its input, in one of three tries.

    Args:
        prepare: Makes an input of a size, and returns the work on it.
        size: The size of the large input.
    """
    return any(
        _measure(prepare(size)) < _MOST * _measure(prepare(size // _TIMES)) + _SECONDS for _ in range(3)
    )


def _measure(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
