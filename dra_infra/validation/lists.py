"""Size and uniqueness of lists, as both of the server's engines check them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

from dra_infra.validation.field_errors import FieldError, duplicate, too_many

Item = TypeVar("Item")

MAX_ITEMS = 32


def check_items(
    items: Sequence[Item] | None,
    path: str,
    check: Callable[[Item, str], Iterator[FieldError]],
    *,
    size_rule: str,
    limit: int = MAX_ITEMS,
    goes_on: bool = False,
    covered: bool = True,
) -> Iterator[FieldError]:
    """Check a list: too many items, else each item.

    Args:
        items: The list; None and empty are alike.
        path: Its path.
        check: What to check of an item at its path.
        size_rule: Rule of the list's size.
        limit: Most items; below zero for none.
        goes_on: Whether items of a list that is too long are checked too, as up to 1.34.
        covered: Whether the generated rules know the size as well.
    """
    items = items or ()
    if 0 <= limit < len(items):
        yield too_many(size_rule, path, len(items), limit, origin="maxItems", covered=covered)
        if not goes_on:
            return
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")


def check_unique(
    items: Sequence[Item] | None,
    path: str,
    key: Callable[[Item], Hashable],
    *,
    rule: str,
    below: str = "",
    shown: Callable[[Item], Any] | None = None,
    covered: bool = True,
) -> Iterator[FieldError]:
    """Report every item whose key an earlier item has.

    Args:
        items: The list.
        path: Its path.
        key: What must be unique.
        rule: Rule of the uniqueness.
        below: Field below the item that the finding is reported at.
        shown: What is printed as bad value, the key when None.
        covered: Whether the generated rules know it as well.
    """
    seen: set[Hashable] = set()
    for index, item in enumerate(items or ()):
        found = key(item)
        if found in seen:
            yield duplicate(rule, f"{path}[{index}]{below}", (shown or key)(item), covered=covered)
        seen.add(found)


MAX_KEY = 96
"""Bytes of a name of an attribute or capacity: a domain, a slash and an identifier."""


def keyed(key: str, limit: int = MAX_KEY) -> str:
    """*key* of a map as paths have it: a long one is cut in the middle (truncateIfTooLong)."""
    encoded = key.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit:
        return key
    left = limit - len("...")
    return (encoded[: (left + 1) // 2] + b"..." + encoded[len(encoded) - left // 2 :]).decode(
        "utf-8", "replace"
    )
