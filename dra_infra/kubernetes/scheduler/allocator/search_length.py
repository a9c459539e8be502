"""Length of the search that the scheduler itself makes, where proofs come to the same answer sooner.

The scheduler gives up on a node after 10 s (`filterTimeout` of DynamicResourcesArgs, gate DRASchedulerFilterTimeout), so an
answer that only proofs come to is one that it may never give. Equal states of a search take equally long as far as they
start at the same candidate, so each is gone through once and counted as often as it comes. The count is never more than the
scheduler's, and in contested cases up to two fifths less: states are equal up to devices that nothing tells apart.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from dra_infra.kubernetes.scheduler.allocator.counters import CounterAvailability
from dra_infra.kubernetes.scheduler.allocator.demands import gather_demands
from dra_infra.kubernetes.scheduler.allocator.facts import gather_facts
from dra_infra.kubernetes.scheduler.allocator.identity import abort
from dra_infra.kubernetes.scheduler.allocator.pruning import States
from dra_infra.kubernetes.scheduler.allocator.requests import Key, Wanted
from dra_infra.kubernetes.scheduler.allocator.search import Attempt, Found, Search, is_tried

LOOKS_IN_TIME: Final = 2_000_000
"""Looks at a device that the scheduler has the time for: Kubernetes' allocator of 1.37 made about 500,000 in a second."""

_MOST_STATES: Final = 2000
"""Different states that are gone through; where there are more, nothing is sure."""


class SearchLength(Search):
    """One search that is counted; used once."""

    def __init__(self, attempt: Attempt, availability: CounterAvailability) -> None:
        super().__init__(attempt)
        self._attempt = attempt
        self._availability = availability
        self._states: States | None = None
        self._known: dict[Hashable, int] = {}
        self._states_seen = 0
        self.looks = 0
        """How often a device is looked at."""

    def _find(self) -> bool:
        attempt = self._attempt
        tried = [pool for pool in attempt.pools if is_tried(pool, attempt.variant)]
        demands = gather_demands(attempt, self.wanted, self._candidates, tried)
        facts = gather_facts(demands, self._claims, attempt.state, self._availability) if demands else None
        self._states = States(facts) if facts else None
        return super()._find()

    def _depth(self) -> int:
        # Each device is one call deeper here.
        return 2 * super()._depth()

    def _allocate_any(self, key: Key, wanted: Wanted, number: int, *, is_entry: bool, start: int) -> Found:
        if self.looks > LOOKS_IN_TIME or self._states_seen > _MOST_STATES:
            raise abort("filter operation aborted: context deadline exceeded")
        state: Hashable = None
        if self._states is not None:
            state = self._states.describe(key, number, self._taking.picked), start
            if (known := self._known.get(state)) is not None:
                self.looks += known
                return Found.NO
        self._states_seen += 1
        before = self.looks
        self.looks += len(self._candidates) - start
        found = super()._allocate_any(key, wanted, number, is_entry=is_entry, start=start)
        if found is Found.NO and state is not None:
            self._known[state] = self.looks - before
        return found
