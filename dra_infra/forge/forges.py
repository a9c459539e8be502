"""GitHub and GitLab: comments of a pull request, and notes of a merge request.

GitHub is called by its REST API (api.github.com, or https://HOST/api/v3 of Enterprise Server), GitLab by its API v4.
Lists are read over all pages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

from requests.utils import parse_header_links

from dra_infra.forge.refusals import FIRST_PAUSE, not_an_answer
from dra_infra.forge.session import OutcomeNotKnownError, Session

PER_PAGE: Final = 100
"""The most that both APIs give at once."""


MOST_PAGES: Final = 1_000
"""Forges end a conversation long before 100,000 comments."""


def items_of(session: Session, path: str, *, doing: str) -> Iterator[Mapping[str, Any]]:
    """Every item of a list. Pages are asked for by number: an address in an answer is never followed.

    Raises:
        ForgeError: With code `forge-answer` when an answer is no list, and what `Session.ask` raises.
    """
    seen: set[Any] = set()
    page = 1
    while True:
        if page > MOST_PAGES:
            raise not_an_answer(session.destination, f"a list has more than {MOST_PAGES:,} pages")
        joint = "&" if "?" in path else "?"
        _, items, headers = session.request(
            "GET", f"{path}{joint}per_page={PER_PAGE}&page={page}", doing=doing
        )
        if not isinstance(items, list):
            raise not_an_answer(session.destination, "an answer that should be a list of comments is none")
        fresh = [
            item
            for item in items
            if isinstance(item, dict) and is_identifier(item.get("id")) and item["id"] not in seen
        ]
        seen.update(item["id"] for item in fresh)
        yield from fresh
        # A server that takes no page numbers would give the first page for ever.
        if not fresh or not _has_more(headers, len(items)):
            return
        page += 1


def is_identifier(value: Any) -> bool:
    """True where *value* is the number of a comment; it goes into an address, so nothing else will do."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def text_at(item: Mapping[str, Any], *keys: str) -> str:
    """The text at a path of keys; empty when there is none, as for accounts that are gone."""
    value: Any = item
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _has_more(headers: Mapping[str, str], count: int) -> bool:
    if headers.get("x-next-page", "").strip():
        return True
    links = parse_header_links(headers.get("link", ""))
    return any(link.get("rel") == "next" for link in links) or count >= PER_PAGE


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    """A comment as the forge has it; identifiers grow with time, so the lowest is the oldest."""

    identifier: int
    body: str
    author: str = ""
    by_program: bool = False
    url: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """The account whose comments are ours.

    Args:
        login: Name of the account; empty when the API does not tell it. Installation tokens of GitHub, such as a
            workflow's own, may not ask; then the comments of programs count, and those of people never.
    """

    login: str = ""

    def wrote(self, comment: Comment) -> bool:
        """True where *comment* may be changed by us: anybody can write our marker into a comment of their own."""
        if not self.login:
            return comment.by_program
        return comment.author.casefold() in (self.login.casefold(), f"{self.login}[bot]".casefold())


class Forge(ABC):
    """Comments of one pull request or merge request.

    Args:
        session: Asks the forge.
        thread: Path of the comments.
        one: Path of one of them, without its number.
    """

    _word: ClassVar[str]
    _verb_of_update: ClassVar[str]
    _gone: ClassVar[tuple[int, ...]]
    """Answers for a comment that is not there any more."""

    def __init__(self, session: Session, *, thread: str, one: str) -> None:
        self.session = session
        self._thread = thread
        self._one = one

    @abstractmethod
    def account(self) -> Account:
        """Find the account of the token."""

    @abstractmethod
    def comments(self) -> Iterator[Comment]:
        """All comments, over all pages, the oldest first."""

    @abstractmethod
    def _comment(self, item: Mapping[str, Any]) -> Comment:
        """The comment that an item of an answer is."""

    def create(self, body: str, *, attempt: int) -> Comment:
        """A new comment.

        Raises:
            OutcomeNotKnownError: It may be there or not.
        """
        _, made, _ = self.session.request(
            "POST",
            self._thread,
            doing=f"write a {self._word}",
            body={"body": body},
            repeatable=False,
            attempt=attempt,
        )
        if not isinstance(made, dict) or not is_identifier(made.get("id")):
            raise OutcomeNotKnownError(FIRST_PAUSE, accepted=True)
        return self._comment(made)

    def update(self, identifier: int, body: str) -> Comment | None:
        """The comment with a new text; None when it was deleted."""
        doing = f"change its {self._word}"
        status, _, _ = self.session.request(
            self._verb_of_update,
            f"{self._one}/{identifier}",
            doing=doing,
            body={"body": body},
            expected=self._gone,
        )
        return None if status in self._gone else Comment(identifier=identifier, body=body)

    def delete(self, identifier: int) -> bool:
        """Delete a comment; false where somebody else was faster, or has to do it."""
        refused = (403, *self._gone)
        status, _, _ = self.session.request(
            "DELETE", f"{self._one}/{identifier}", doing=f"delete its {self._word}", expected=refused
        )
        return status not in refused


HEADERS: Final = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
"""https://docs.github.com/en/rest/issues/comments: comments of a pull request are those of its issue."""

_INSTALLATION: Final = "ghs_"
"""Prefixes of the tokens of apps, a workflow's own among them; they belong to no user."""


class GitHub(Forge):
    """One pull request."""

    _word = "comment"
    _verb_of_update = "PATCH"
    _gone = (404, 410)

    def __init__(self, session: Session) -> None:
        issues = f"/repos/{session.destination.repository}/issues"
        thread = f"{issues}/{session.destination.number}/comments"
        super().__init__(session, thread=thread, one=f"{issues}/comments")

    def account(self) -> Account:
        """The user of the token; without a name when the token is one of an app, which GitHub then refuses."""
        token = self.session.destination.token
        if not token or token.startswith(_INSTALLATION):
            return Account()
        _, user, _ = self.session.request("GET", "/user", doing="ask whose it is", expected=(403, 404))
        return Account(login=text_at(user, "login")) if isinstance(user, dict) else Account()

    def comments(self) -> Iterator[Comment]:
        """All comments, the oldest first."""
        return map(self._comment, items_of(self.session, self._thread, doing="read the comments"))

    def _comment(self, item: Mapping[str, Any]) -> Comment:
        return Comment(
            identifier=item["id"],
            body=text_at(item, "body"),
            author=text_at(item, "user", "login"),
            by_program=text_at(item, "user", "type") == "Bot",
            url=text_at(item, "html_url"),
        )


class GitLab(Forge):
    """One merge request. https://docs.gitlab.com/api/notes/#merge-requests."""

    _word = "note"
    _verb_of_update = "PUT"
    _gone = (404,)

    def __init__(self, session: Session) -> None:
        where = session.destination
        # A path is one part of the address: its slashes are escaped.
        notes = f"/projects/{quote(where.repository, safe='')}/merge_requests/{where.number}/notes"
        super().__init__(session, thread=notes, one=notes)

    def account(self) -> Account:
        """The user of the token; tokens of projects and groups have a user of their own."""
        if not self.session.destination.token:
            return Account()
        _, user, _ = self.session.request("GET", "/user", doing="ask whose it is")
        name = text_at(user, "username") if isinstance(user, dict) else ""
        if not name:
            raise not_an_answer(self.session.destination, "the answer does not say whose the token is")
        return Account(login=name)

    def comments(self) -> Iterator[Comment]:
        """All notes that people and programs wrote; those of the system are left out."""
        path = f"{self._thread}?sort=asc&order_by=created_at"
        items = items_of(self.session, path, doing="read the notes")
        return (self._comment(item) for item in items if item.get("system") is not True)

    def _comment(self, item: Mapping[str, Any]) -> Comment:
        return Comment(
            identifier=item["id"], body=text_at(item, "body"), author=text_at(item, "author", "username")
        )
