"""Lists over all pages, and the fields of what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from requests.utils import parse_header_links

from dra_infra.forge.refusals import not_an_answer
from dra_infra.forge.session import Session

PER_PAGE: Final = 100
"""The most that both APIs give at once."""


def items_of(session: Session, path: str, *, doing: str) -> Iterator[Mapping[str, Any]]:
    """Every item of a list. Pages are asked for by number: an address in an answer is never followed.

    Raises:
        ForgeError: With code `forge-answer` when an answer is no list, and what `Session.ask` raises.
    """
    seen: set[Any] = set()
    page = 1
    while True:
        joint = "&" if "?" in path else "?"
        _, items, headers = session.ask("GET", f"{path}{joint}per_page={PER_PAGE}&page={page}", doing=doing)
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
    """Whether *value* is the number of a comment; it goes into an address, so nothing else will do."""
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
