"""The forge and pull request to comment on: options first, else what the CI says in its environment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from dra_infra.errors import ForgeError, Problem

FORGES: Final = ("github", "gitlab")

TOKEN_VARIABLES: Final = {"github": ("GITHUB_TOKEN", "GH_TOKEN"), "gitlab": ("GITLAB_TOKEN",)}
"""Variables that a token is looked for in. GitLab's `CI_JOB_TOKEN` is not among them: it may not write notes."""

_PUBLIC: Final = {"github": "https://api.github.com", "gitlab": "https://gitlab.com/api/v4"}
_API_VARIABLES: Final = {"github": "GITHUB_API_URL", "gitlab": "CI_API_V4_URL"}
_REPOSITORY_VARIABLES: Final = {
    "github": ("GITHUB_REPOSITORY",),
    # In a pipeline of a fork, CI_PROJECT_ID is the fork; the merge request is one of the other project.
    "gitlab": ("CI_MERGE_REQUEST_PROJECT_ID", "CI_PROJECT_ID"),
}
_NUMBER_PLACES: Final = {"github": "GITHUB_EVENT_PATH or GITHUB_REF", "gitlab": "CI_MERGE_REQUEST_IID"}
_SEGMENT: Final = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_.-]+"
_REPOSITORY: Final = {
    "github": re.compile(rf"{_SEGMENT}/{_SEGMENT}"),
    "gitlab": re.compile(rf"[0-9]+|{_SEGMENT}(?:/{_SEGMENT})+"),
}
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Destination:
    """One pull request (GitHub) or merge request (GitLab).

    Args:
        forge: `github` or `gitlab`.
        api: Address of the API, without a slash at the end.
        repository: `owner/name`; on GitLab also the number of the project.
        number: Of the pull request, or the IID of the merge request.
        token: What proves who we are; empty when there is none. Never printed.
        token_variable: Where the token was found, or looked for.
    """

    forge: str
    api: str
    repository: str
    number: int
    token: str = field(default="", repr=False)
    token_variable: str = ""

    def __str__(self) -> str:
        return f"{self.repository}{'#' if self.forge == 'github' else '!'}{self.number}"


def destination_of(
    environment: Mapping[str, str],
    *,
    forge: str | None = None,
    api: str | None = None,
    repository: str | None = None,
    number: int | None = None,
    token_variable: str | None = None,
    with_token: bool = True,
    with_number: bool = True,
) -> Destination:
    """Find the pull request to post on; without options, from the variables that GitHub Actions or GitLab CI sets.

    Raises:
        ForgeError: With code `forge-settings`; all that is missing or malformed at once.
    """
    if forge is not None and forge not in FORGES:
        raise ForgeError([_problem("--forge", f"{forge!r} is none of {', '.join(FORGES)}")])
    chosen = forge or _forge_of(environment, api)
    problems: list[Problem] = []
    address = (api or environment.get(_API_VARIABLES[chosen], "") or _PUBLIC[chosen]).rstrip("/")
    problems += _check_address(address)
    name = repository or next(
        (environment[key] for key in _REPOSITORY_VARIABLES[chosen] if environment.get(key)), ""
    )
    problems += _check_repository(chosen, name)
    found = number
    if found is None:
        found = _number_of(chosen, environment) if with_number else 0
    if with_number and (found is None or found < 1):
        said = "no pull request is named" if found is None else f"{found} is not the number of a pull request"
        hint = f"write --number 42, or run where the CI sets {_NUMBER_PLACES[chosen]} (on pull or merge requests)"
        problems.append(_problem("--number", said, hint))
    variables = (token_variable,) if token_variable else TOKEN_VARIABLES[chosen]
    variable = next((key for key in variables if environment.get(key, "").strip()), variables[0])
    token = environment.get(variable, "").strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        # A header with it would be refused by an error that shows the header.
        said = f"what {variable} holds is not a token: it has spaces, line breaks or other characters in it"
        problems.append(_problem(variable, said, "store the token alone, as the forge printed it"))
    elif with_token and not token:
        said = "there is no token, so nothing can be posted"
        names = " or ".join(variables)
        problems.append(
            _problem(variable, said, f"set {names} in the environment of this step, not on the command line")
        )
    if problems:
        raise ForgeError(problems)
    return Destination(
        forge=chosen,
        api=address,
        repository=name,
        number=found or 0,
        token=token,
        token_variable=variable,
    )


def _forge_of(environment: Mapping[str, str], api: str | None) -> str:
    if api:
        return "gitlab" if "/api/v4" in api else "github"
    if environment.get("GITHUB_ACTIONS") == "true":
        return "github"
    return "gitlab" if environment.get("GITLAB_CI") or environment.get("CI_PROJECT_ID") else "github"


def _check_address(address: str) -> list[Problem]:
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        user = parts.username is not None or parts.password is not None
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
        host = ""
        user = False
    if user or parts.query or parts.fragment:
        # The address is not shown: what is in it may be a password.
        return [_problem("--api", "has a user, a password, a query or a fragment in it", "leave them out")]
    if parts.scheme not in ("https", "http") or not host:
        return [_problem("--api", f"{address!r} is not an address of an API", f"such as {_PUBLIC['github']}")]
    if parts.scheme == "http" and host not in _LOOPBACK:
        said = f"{address!r} is not https, so anybody on the way could read the token"
        return [_problem("--api", said, "write https://")]
    return []


def _check_repository(forge: str, name: str) -> list[Problem]:
    if _REPOSITORY[forge].fullmatch(name):
        return []
    said = f"{name!r} is not owner/name" if name else "no repository is named"
    names = " or ".join(_REPOSITORY_VARIABLES[forge])
    return [_problem("--repository", said, f"write --repository owner/name, or set {names}")]


def _number_of(forge: str, environment: Mapping[str, str]) -> int | None:
    if forge == "gitlab":
        return _count(environment.get("CI_MERGE_REQUEST_IID", ""))
    from_event = _number_in_event(environment.get("GITHUB_EVENT_PATH", ""))
    if from_event is not None:
        return from_event
    reference = re.fullmatch(r"refs/pull/([0-9]+)/(?:merge|head)", environment.get("GITHUB_REF", ""))
    return _count(reference[1]) if reference else None


def _number_in_event(path: str) -> int | None:
    """The pull request of the event that GitHub wrote to a file: of the pull request, or of a comment on one."""
    if not path:
        return None
    try:
        event = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    for key in ("pull_request", "issue"):
        inner = event.get(key) if isinstance(event, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("number"), int):
            return int(inner["number"])
    return None


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None


def _problem(path: str, message: str, hint: str = "") -> Problem:
    return Problem(path=path, code="forge-settings", message=message, hint=hint)
