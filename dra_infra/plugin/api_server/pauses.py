"""How long to wait before an API server that did not answer, or has too much to do, is asked again."""

from __future__ import annotations

import random
from typing import Final

_SHORTEST: Final = 0.1
_FIRST: Final = 0.5
_LONGEST: Final = 10.0
"""Seconds: bounds of the random part, the second of which doubles until it is the third."""

_LONGEST_ASKED: Final = 60.0
"""Seconds that a server gets when it asks for more: the node's slices would be as they are for so long."""


def pause_after(failures: int, asked: float = 0.0) -> float:
    """Seconds until the next try: any within a window that doubles with each failure, behind what the server asked for.

    Any, and not a fixed pause give or take a part of it: when an API server restarts, all nodes of a fleet lose their
    watches in the same moment. A thousand of them that wait a second each, more or less, come back as one wave, and again so
    after the next failure; spread over the whole window they come as evenly as can be. What a server asks for is the same
    number for all of them, so the random part comes on top.

    Args:
        failures: So many in a row; 0 where a watch ended as watches do, which is also how a restart looks from here.
        asked: Seconds, from `asked_pause`.
    """
    window = min(_LONGEST, _FIRST * 2.0 ** min(failures, 10))
    return min(asked, _LONGEST_ASKED) + random.uniform(_SHORTEST, window)  # noqa: S311


def asked_pause(retry_after: str | None) -> float:
    """Seconds that a server's Retry-After says; 0 for none, and for a date, which proxies write by clocks of their own."""
    digits = (retry_after or "").strip()
    return float(digits) if digits.isascii() and digits.isdigit() else 0.0
