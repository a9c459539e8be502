"""An answer that says no, as a problem with what to do about it."""

from __future__ import annotations

from typing import Final

from dra_infra.errors import ForgeError, Problem
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
    """What an answer with *status* means for who asked.

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
    """No answer at all."""
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
    return ForgeError([Problem(path=where, code=code, message=message, hint=hint)])
