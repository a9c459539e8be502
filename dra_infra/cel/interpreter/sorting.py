"""`sort` and `sortBy` of lists (cel-go's ext/lists.go)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from dra_infra.cel.interpreter.arithmetic import is_comparable
from dra_infra.cel.interpreter.comparing import method_equal
from dra_infra.cel.interpreter.values import (
    LISTS,
    NO_SUCH_OVERLOAD,
    Duration,
    Err,
    Timestamp,
    UndecidedError,
    Value,
    go_type,
    items_of,
    type_name,
)


def sort(values: Value) -> Value:
    """The list in order; a list is known to be one."""
    return _sort_by(values, values)


def sort_by(values: Value, keys: Value) -> Value:
    """The list in the order of other values."""
    return _sort_by(values, keys) if type(keys) in LISTS else Err(f"{NO_SUCH_OVERLOAD}: {go_type(keys)}")


def _sort_by(values: Any, keys: Any) -> Value:
    items, order = items_of(values), items_of(keys)
    if len(items) != len(order):
        return Err(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(order)} elements respectively"
        )
    if not items:
        return values
    if not is_comparable(order[0]):
        return Err("list elements must be comparable")
    if any(type_name(key) != type_name(order[0]) for key in order):
        return Err("list elements must have the same type")
    ranks = [_rank(key) for key in order]
    if len(ranks) > 1 and any(rank != rank for rank in ranks):
        raise UndecidedError("the order of NaN")
    places = sorted(range(len(items)), key=ranks.__getitem__)
    # Go's sort keeps no order among equals in lists longer than it sorts by insertion.
    if len(items) > 12 and any(
        ranks[i] == ranks[j] and method_equal(items[i], items[j]) is not True for i, j in pairwise(places)
    ):
        raise UndecidedError("the order of equal elements")
    return [items[place] for place in places]


def _rank(key: Value) -> Any:
    """What orders a key among those of its type."""
    if type(key) is Duration:
        return key.nanos
    return (key.seconds, key.nanos) if type(key) is Timestamp else key
