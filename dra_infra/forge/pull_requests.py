"""Finds the pull request of a stranger's commit, as GitHub itself says, and sets the verdict on that commit.

A workflow that runs after another one, with rights, is not told the pull request of a fork; what the other one left
says nothing that counts. So GitHub is asked, for the one open pull request whose head the commit is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dra_infra.errors import ForgeError, Problem
from dra_infra.forge.forges import is_identifier, items_of, text_at
from dra_infra.forge.refusals import not_an_answer
from dra_infra.forge.session import Session

Verdict = Literal["open", "closed", "none"]

_STATES: Final[Mapping[Verdict, str]] = {"open": "success", "closed": "failure", "none": "error"}
_SAID: Final[Mapping[Verdict, str]] = {
    "open": "nothing closes the gate",
    "closed": "the gate is closed: see the review",
    "none": "there is no review: see the log",
}
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH: Final = re.compile(r"[\w./+#@-]{1,250}", re.ASCII)
"""A name that can stand in a line of a workflow's outputs."""

_TRIES: Final = 5
"""GitHub merges a pull request for a test when it is asked about it, and answers null until it has."""
_PAUSE: Final = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PullRequest:
    """One open pull request of GitHub.

    Args:
        number: Its number.
        head: The newest commit of its branch.
        merge: The commit that merges it with the target branch for a test; its first parent is the base.
        target: The branch that it goes into.
    """

    number: int
    head: str
    merge: str
    target: str


def find_pull_request(session: Session, commit: str) -> PullRequest:
    """The one open pull request whose newest commit is *commit*.

    All of them are looked at: whoever has the commit of another's can open a second one, whose verdict would stand at both.

    Args:
        session: With a token that may read pull requests.
        commit: Full hash.

    Raises:
        ForgeError: `pull-request-not-found` when there is none or more than one, and what `Session.ask` raises.
    """
    repository = f"/repos/{session.destination.repository}"
    doing = "read pull requests"
    found = [
        each["number"]
        for each in items_of(session, f"{repository}/pulls?state=open", doing=doing)
        if is_identifier(each.get("number")) and text_at(each, "head", "sha") == commit
    ]
    if len(found) != 1:
        raise ForgeError([_not_found(commit, len(found))])
    for attempt in range(_TRIES):
        _, answer, _ = session.request("GET", f"{repository}/pulls/{found[0]}", doing=doing)
        item: Mapping[str, Any] = answer if isinstance(answer, dict) else {}
        target = text_at(item, "base", "ref")
        if text_at(item, "head", "sha") != commit or not _BRANCH.fullmatch(target):
            raise ForgeError([_not_found(commit, 0)])
        merge = text_at(item, "merge_commit_sha")
        if _COMMIT.fullmatch(merge):
            return PullRequest(number=found[0], head=commit, merge=merge, target=target)
        if attempt + 1 < _TRIES:
            session.pause(_PAUSE)
    raise not_an_answer(
        session.destination, "the pull request has no merge commit: it conflicts with its target"
    )


def set_verdict(session: Session, commit: str, verdict: Verdict, *, context: str) -> None:
    """Show *verdict* at a commit, where rules of a branch can ask for it (a commit status).

    Args:
        session: With a token that may write statuses.
        commit: Full hash.
        verdict: `open`, `closed`, or `none` when there is no answer.
        context: What the status is called.

    Raises:
        ForgeError: What `Session.ask` raises.
    """
    session.request(
        "POST",
        f"/repos/{session.destination.repository}/statuses/{commit}",
        doing="write the status of a commit",
        body={"state": _STATES[verdict], "context": context, "description": _SAID[verdict]},
    )


def check_commit(commit: str) -> None:
    """Refuse what is not the full hash of a commit, before it goes into an address.

    Raises:
        ForgeError: `forge-settings`.
    """
    if not _COMMIT.fullmatch(commit):
        message = f"{commit[:80]!r} is not the full hash of a commit"
        raise ForgeError.of(path="--commit", code="forge-settings", message=message)


def _not_found(commit: str, count: int) -> Problem:
    how_many = "no open pull request has" if count == 0 else f"{count} open pull requests have"
    return Problem(
        path="--commit",
        code="pull-request-not-found",
        message=f"{how_many} {commit[:12]} as newest commit",
        hint="it was pushed to, closed or merged since: the run of its newest commit tells",
    )
