"""Keeps exactly one comment of a review on a pull request: found again, created or updated.

It is never doubled for long.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

from dra_infra.forge.forges import Account, Comment, Forge
from dra_infra.forge.messages import Message
from dra_infra.forge.refusals import not_an_answer
from dra_infra.forge.session import OutcomeNotKnownError

Action = Literal["created", "updated", "unchanged", "would-create", "would-update"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of the comment; `removed` are identifiers of our own second comments, deleted."""

    action: Action
    identifier: int = 0
    url: str = ""
    removed: tuple[int, ...] = ()


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
