"""Bugs of the real allocators, by the minors that have them.

They are part of the answer: the scheduler of such a minor does what is said here. `find_quirks` tells which of them
decided about one.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Quirk(Enum):
    """One bug, in the words of an answer."""

    DISTINCT_BY_POINTER = "distinctAttribute takes equal values of two devices for distinct"
    DISTINCT_FORGETS = "distinctAttribute compares only with the last device of each request"
    LISTS_STAY_NARROW = "matchAttribute keeps what a device had in common after the device is given back"
    ALL_GOES_ON_WITH_FIRST = (
        "mode All in a later entry of a prioritized list goes on with the first entry after one device"
    )
    ALL_SHARES_MATCHES = (
        "mode All in a later entry of a prioritized list takes what the entry before it selected"
    )
    REFUSED_KEEPS = "a device that is refused for a taint, a constraint or its capacity keeps its counters"
    CAPACITY_OF_ANOTHER = (
        "the capacity of another device of the slice is checked, and beyond the slice the scheduler panics"
    )
    COUNTERS_BY_POOL_NAME = "drivers with pools of one name share the counters of the first"
    SHARES_PAY_AGAIN = "every share of a device takes the counters of the device again"
    EMPTY_SHARES_PAY_AGAIN = (
        "a share without capacity is not seen, so the next one takes the counters of the device again"
    )
    CONFIG_FOR_EACH = "configuration is there once for each request that it names"
    INCOMPLETE_IS_USED = "devices of incomplete pools are given away"


_LAST: Final = {
    Quirk.DISTINCT_BY_POINTER: (34, 34),
    Quirk.DISTINCT_FORGETS: (34, 36),
    Quirk.LISTS_STAY_NARROW: (36, 36),
    Quirk.ALL_GOES_ON_WITH_FIRST: (34, 35),
    Quirk.ALL_SHARES_MATCHES: (34, 35),
    Quirk.REFUSED_KEEPS: (34, 35),
    Quirk.CAPACITY_OF_ANOTHER: (34, 34),
    Quirk.COUNTERS_BY_POOL_NAME: (35, 35),
    Quirk.SHARES_PAY_AGAIN: (34, 34),
    Quirk.EMPTY_SHARES_PAY_AGAIN: (35, 36),
    Quirk.CONFIG_FOR_EACH: (34, 36),
    Quirk.INCOMPLETE_IS_USED: (34, 34),
}
"""The first and the last minor that has the bug."""


def quirks_of(number: int) -> frozenset[Quirk]:
    """The bugs of a minor, 37 for 1.37."""
    return frozenset(quirk for quirk, (first, last) in _LAST.items() if first <= number <= last)
