"""Refusals by a forge as problems with what to do, and how long to wait before a request is sent again.

The waiting time is pure: it depends on what the forge said, which try it is, and the time.
"""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from typing import Final

from dra_infra.errors import ForgeError
from dra_infra.forge.destinations import Destination

_FORBIDDEN: Final = {
    "github": "give the job `permissions: {contents: read, pull-requests: write}`; pull requests of forks and of "
    "Dependabot get a token that only reads, so show the review in the step summary there (docs/ci.md)",
    "gitlab": "the token needs the scope `api` and the role Reporter or higher in the project of the merge request; "
    "CI_JOB_TOKEN may not write notes (docs/ci.md)",
}
_NOT_FOUND: Final = (
    "look at --repository and --number; a private repository also answers so to a token that may not see it"
)
_REQUESTS: Final = {"github": "pull request", "gitlab": "merge request"}


def refusal(destination: Destination, doing: str, status: int, said: str) -> ForgeError:
    """The error for an answer with *status*.

    Args:
        destination: What was asked about.
        doing: What was tried, as in "the token may not *read the comments*".
        status: HTTP status, 400 or higher.
        said: The forge's own words, safe to print.
    """
    quoted = f" ({said})" if said else ""
    if status in (401, 403, 404) and not destination.token:
        message = f"answers {status} to a request to {doing} without a token{quoted}"
        code = {401: "forge-unauthorized", 403: "forge-forbidden", 404: "forge-not-found"}[status]
        return problem_at(
            destination, code, message, f"set {destination.token_variable} in the environment of this step"
        )
    if status == 401:
        hint = "it is expired, revoked, of another server, or cut when it was stored; make a new one"
        message = f"the token in {destination.token_variable} is not accepted{quoted}"
        return problem_at(destination, "forge-unauthorized", message, hint)
    if status == 403:
        message = f"the token in {destination.token_variable} may not {doing}{quoted}"
        return problem_at(destination, "forge-forbidden", message, _FORBIDDEN[destination.forge])
    if status in (404, 410):
        message = f"there is no such {_REQUESTS[destination.forge]}, or none for this token{quoted}"
        return problem_at(destination, "forge-not-found", message, _NOT_FOUND)
    if status >= 500:
        message = f"the server still answers {status} to the request to {doing}{quoted}"
        return problem_at(destination, "forge-unavailable", message, "run the job again later")
    message = f"the server refuses with {status} to {doing}{quoted}"
    return problem_at(
        destination, "forge-refused", message, "its words say why; a locked or deleted thread refuses so too"
    )


def rate_limited(destination: Destination, seconds: float, left: float, said: str) -> ForgeError:
    """The forge asks to wait longer than this run may."""
    quoted = f" ({said})" if said else ""
    message = f"too many requests: the forge asks to wait {seconds:,.0f} s, and {max(0.0, left):,.0f} s are left{quoted}"
    hint = "run the job again later, or allow more time with --timeout"
    return problem_at(destination, "forge-rate-limited", message, hint)


def unreachable(destination: Destination, reason: str) -> ForgeError:
    """The error for no answer at all."""
    hint = "look at --api, the network and the proxy; a certificate of your own goes into REQUESTS_CA_BUNDLE"
    return problem_at(destination, "forge-unavailable", reason, hint)


def not_an_answer(destination: Destination, reason: str) -> ForgeError:
    """An answer that the API never gives."""
    example = "https://HOST/api/v3" if destination.forge == "github" else "https://HOST/api/v4"
    hint = f"look at --api: it is the address of the API ({example}), and no login page or proxy may stand before it"
    return problem_at(destination, "forge-answer", reason, hint)


def problem_at(destination: Destination, code: str, message: str, hint: str) -> ForgeError:
    """One problem of *destination*."""
    where = f"{'GitHub' if destination.forge == 'github' else 'GitLab'} {destination}"
    return ForgeError.of(path=where, code=code, message=message, hint=hint)


FIRST_PAUSE: Final = 1.0
"""Seconds before the second try; each later pause is twice as long, up to `LONGEST_PAUSE`."""

LONGEST_PAUSE: Final = 30.0

SECONDARY_PAUSE: Final = 60.0
"""Seconds that GitHub asks to wait after a secondary limit that names no time.

https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


def is_rate_limit(status: int, headers: Mapping[str, str], text: str) -> bool:
    """True where an answer says "too many requests". GitHub says it with 403 too, then by header or text."""
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
