"""Keeps exactly one comment of a review on a pull request: found again, created or updated.

It is never doubled for long.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from dra_infra.forge.messages import Message
from dra_infra.forge.refusals import not_an_answer
from dra_infra.forge.session import OutcomeNotKnownError, Session

Action = Literal["created", "updated", "unchanged", "would-create", "would-update"]


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of the comment; `removed` are identifiers of our own second comments, deleted."""

    action: Action
    identifier: int = 0
    url: str = ""
    removed: tuple[int, ...] = ()


class Forge(Protocol):
    """Operations of both APIs on the comments of one pull request."""

    session: Session

    def account(self) -> Account:
        """Find the account of the token."""

    def comments(self) -> Iterator[Comment]:
        """All comments, over all pages."""

    def create(self, body: str, *, attempt: int) -> Comment:
        """A new comment.

        Raises:
            OutcomeNotKnownError: It may be there or not.
        """

    def update(self, identifier: int, body: str) -> Comment | None:
        """The comment with a new text; None when it is not there any more."""

    def delete(self, identifier: int) -> bool:
        """Delete a comment; true where this deleted it."""


def look(forge: Forge, message: Message, *, account: Account | None = None) -> Outcome:
    """Find what `keep_one` would do, and only read."""
    mine = _search(forge, message, account or forge.account())
    if not mine:
        return Outcome(action="would-create")
    first = mine[0]
    return Outcome(
        action="unchanged" if message.same_as(first.body) else "would-update",
        identifier=first.identifier,
        url=first.url,
    )


def keep_one(forge: Forge, message: Message, *, account: Account | None = None) -> Outcome:
    """Create the comment, or update the oldest one of ours; delete our younger ones of the same review.

    A comment is replaced whole by one request. What somebody wrote into it is replaced too, for a verdict that was
    edited is none. Nothing is sent when the text is the same.

    Raises:
        ForgeError: The forge refuses or is away.
    """
    who = account or forge.account()
    mine = _search(forge, message, who)
    return _settle(forge, message, mine) or _create(forge, message, who)


def _search(forge: Forge, message: Message, account: Account) -> list[Comment]:
    found = {
        each.identifier: each for each in forge.comments() if message.marks(each.body) and account.wrote(each)
    }
    return [found[identifier] for identifier in sorted(found)]


def _settle(forge: Forge, message: Message, mine: list[Comment]) -> Outcome | None:
    """The oldest of *mine* gets the text, the others go; None when there is none, or none any more."""
    for position, comment in enumerate(mine):
        same = message.same_as(comment.body)
        kept = comment if same else forge.update(comment.identifier, message.body)
        if kept is not None:
            # The text is there before anything is deleted.
            younger = [each.identifier for each in mine[position + 1 :]]
            return Outcome(
                action="unchanged" if same else "updated",
                identifier=comment.identifier,
                url=comment.url,
                removed=tuple(identifier for identifier in younger if forge.delete(identifier)),
            )
    return None


def _create(forge: Forge, message: Message, account: Account) -> Outcome:
    for attempt in itertools.count(1):
        try:
            made = forge.create(message.body, attempt=attempt)
        except OutcomeNotKnownError as error:
            forge.session.pause(error.pause)
            # It may have arrived: a second one would be a double.
            settled = _settle(forge, message, _search(forge, message, account))
            if settled is not None:
                return settled
            if error.accepted:
                reason = "the answer to a new comment cannot be read, and the comment is not there"
                raise not_an_answer(forge.session.destination, reason) from None
        else:
            return _give_way(forge, message, account, made)
    raise AssertionError  # pragma: no cover  (the loop has no end)


def _give_way(forge: Forge, message: Message, account: Account, made: Comment) -> Outcome:
    """Two runs that found nothing both create: the younger comment goes, by the run that made it."""
    older = [each for each in _search(forge, message, account) if each.identifier < made.identifier]
    settled = _settle(forge, message, older)
    if settled is None:
        return Outcome(action="created", identifier=made.identifier, url=made.url)
    own = (made.identifier,) if forge.delete(made.identifier) else ()
    return Outcome(
        action="updated", identifier=settled.identifier, url=settled.url, removed=(*settled.removed, *own)
    )
