"""Make a case that shows a difference as small as it gets."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator

from tests.support.parity.cases import Case, Object
from tests.support.parity.faults import get, positions

_ATTEMPTS = 400


def shrink(case: Case, still_differs: Callable[[Case], bool]) -> Case:
    """The smallest case found by leaving out one position after the other, the largest parts first."""
    attempts = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(case):
            attempts += 1
            if attempts > _ATTEMPTS:
                return case
            attempt = dataclasses.replace(case, object=candidate)
            if still_differs(attempt):
                case = attempt
                smaller = True
                break
    return case


def _smaller(case: Case) -> Iterator[Object]:
    for path in positions(case.object):
        # The name of what is updated is part of the request's address.
        if case.old is not None and path in (("metadata",), ("metadata", "name")):
            continue
        changed = copy.deepcopy(case.object)
        del get(changed, path[:-1])[path[-1]]
        yield changed
