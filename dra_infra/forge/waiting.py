"""How long to wait before the same request is sent again. Pure: what the forge said, which try, what time it is."""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from typing import Final

FIRST_PAUSE: Final = 1.0
"""Seconds before the second try; each later pause is twice as long, up to `LONGEST_PAUSE`."""

LONGEST_PAUSE: Final = 30.0

SECONDARY_PAUSE: Final = 60.0
"""Seconds that GitHub asks to wait after a secondary limit that names no time.

https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


def is_rate_limit(status: int, headers: Mapping[str, str], text: str) -> bool:
    """Whether an answer says "too many requests". GitHub says it with 403 too, then by header or text."""
    if status == 429:
        return True
    if status != 403:
        return False
    return (
        "retry-after" in headers
        or headers.get("x-ratelimit-remaining", "").strip() == "0"
        or "rate limit" in text.lower()
    )


def pause_before_next(
    status: int, headers: Mapping[str, str], text: str, *, attempt: int, now: float, jitter: float
) -> float | None:
    """Seconds until the next try; None when another try is of no use.

    Args:
        status: HTTP status of the answer; 0 when there was none.
        headers: Of the answer, with names that are found in any case.
        text: Of the answer.
        attempt: The try that failed, from 1.
        now: Seconds since 1970.
        jitter: 0 to 1, drawn at random by the caller: runs that failed together must not come back together.
    """
    limited = is_rate_limit(status, headers, text)
    if status and status not in _PASSING and not limited:
        return None
    backoff = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1)) * (0.5 + jitter / 2)
    said = _retry_after(headers.get("retry-after", ""), now)
    if said is not None:
        # Never before the time that was named, and not all at that very moment.
        return said + jitter
    if limited and headers.get("x-ratelimit-remaining", "").strip() == "0":
        reset = _number(headers.get("x-ratelimit-reset", ""))
        if reset is not None:
            return max(0.0, reset - now) + jitter
    if status == 403:
        return SECONDARY_PAUSE * 2.0 ** (attempt - 1) + jitter
    return backoff


def _retry_after(value: str, now: float) -> float | None:
    """Seconds, or a date (RFC 9110, 10.2.3)."""
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(value: str) -> float | None:
    text = value.strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None
