"""Comments of a pull request by GitHub's REST API (api.github.com, or https://HOST/api/v3 of Enterprise Server)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.forge.comments import Account, Comment
from dra_infra.forge.pages import is_identifier, items_of, text_at
from dra_infra.forge.session import OutcomeNotKnownError, Session
from dra_infra.forge.waiting import FIRST_PAUSE

HEADERS: Final = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
"""https://docs.github.com/en/rest/issues/comments: comments of a pull request are those of its issue."""

_INSTALLATION: Final = "ghs_"
"""How tokens of apps begin, a workflow's own among them; they belong to no user."""

_GONE: Final = (404, 410)


class GitHub:
    """One pull request."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._repository = f"/repos/{session.destination.repository}"
        self._thread = f"{self._repository}/issues/{session.destination.number}/comments"

    def account(self) -> Account:
        """The user of the token; without a name when the token is one of an app, which GitHub then refuses."""
        token = self.session.destination.token
        if not token or token.startswith(_INSTALLATION):
            return Account()
        _, user, _ = self.session.ask("GET", "/user", doing="ask whose it is", expected=(403, 404))
        return Account(login=text_at(user, "login")) if isinstance(user, dict) else Account()

    def comments(self) -> Iterator[Comment]:
        """All comments, the oldest first."""
        return map(_comment, items_of(self.session, self._thread, doing="read the comments"))

    def create(self, body: str, *, attempt: int) -> Comment:
        """A new comment."""
        _, made, _ = self.session.ask(
            "POST",
            self._thread,
            doing="write a comment",
            body={"body": body},
            repeatable=False,
            attempt=attempt,
        )
        if not isinstance(made, dict) or not is_identifier(made.get("id")):
            raise OutcomeNotKnownError(FIRST_PAUSE, accepted=True)
        return _comment(made)

    def update(self, identifier: int, body: str) -> Comment | None:
        """The comment with a new text; None when it was deleted."""
        path = f"{self._repository}/issues/comments/{identifier}"
        status, _, _ = self.session.ask(
            "PATCH", path, doing="change its comment", body={"body": body}, expected=_GONE
        )
        return None if status in _GONE else Comment(identifier=identifier, body=body)

    def delete(self, identifier: int) -> bool:
        """Whether it is deleted now; somebody else may have been faster, or may have to do it."""
        path = f"{self._repository}/issues/comments/{identifier}"
        status, _, _ = self.session.ask("DELETE", path, doing="delete its comment", expected=(403, *_GONE))
        return status not in (403, *_GONE)


def _comment(item: Mapping[str, Any]) -> Comment:
    return Comment(
        identifier=item["id"],
        body=text_at(item, "body"),
        author=text_at(item, "user", "login"),
        by_program=text_at(item, "user", "type") == "Bot",
        url=text_at(item, "html_url"),
    )
