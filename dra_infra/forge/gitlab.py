"""Notes of a merge request by GitLab's API v4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from dra_infra.forge.comments import Account, Comment
from dra_infra.forge.pages import is_identifier, items_of, text_at
from dra_infra.forge.refusals import not_an_answer
from dra_infra.forge.session import OutcomeNotKnownError, Session
from dra_infra.forge.waiting import FIRST_PAUSE


class GitLab:
    """One merge request. https://docs.gitlab.com/api/notes/#merge-requests."""

    def __init__(self, session: Session) -> None:
        self.session = session
        where = session.destination
        # A path is one part of the address: its slashes are escaped.
        self._notes = f"/projects/{quote(where.repository, safe='')}/merge_requests/{where.number}/notes"

    def account(self) -> Account:
        """The user of the token; tokens of projects and groups have a user of their own."""
        if not self.session.destination.token:
            return Account()
        _, user, _ = self.session.ask("GET", "/user", doing="ask whose it is")
        name = text_at(user, "username") if isinstance(user, dict) else ""
        if not name:
            raise not_an_answer(self.session.destination, "the answer does not say whose the token is")
        return Account(login=name)

    def comments(self) -> Iterator[Comment]:
        """All notes that people and programs wrote; those of the system are left out."""
        path = f"{self._notes}?sort=asc&order_by=created_at"
        items = items_of(self.session, path, doing="read the notes")
        return (_comment(item) for item in items if item.get("system") is not True)

    def create(self, body: str, *, attempt: int) -> Comment:
        """A new note."""
        _, made, _ = self.session.ask(
            "POST", self._notes, doing="write a note", body={"body": body}, repeatable=False, attempt=attempt
        )
        if not isinstance(made, dict) or not is_identifier(made.get("id")):
            raise OutcomeNotKnownError(FIRST_PAUSE, accepted=True)
        return _comment(made)

    def update(self, identifier: int, body: str) -> Comment | None:
        """The note with a new text; None when it was deleted."""
        path = f"{self._notes}/{identifier}"
        status, _, _ = self.session.ask(
            "PUT", path, doing="change its note", body={"body": body}, expected=(404,)
        )
        return None if status == 404 else Comment(identifier=identifier, body=body)

    def delete(self, identifier: int) -> bool:
        """Whether it is deleted now."""
        path = f"{self._notes}/{identifier}"
        status, _, _ = self.session.ask("DELETE", path, doing="delete its note", expected=(403, 404))
        return status not in (403, 404)


def _comment(item: Mapping[str, Any]) -> Comment:
    return Comment(
        identifier=item["id"], body=text_at(item, "body"), author=text_at(item, "author", "username")
    )
