"""The search with proofs: the same answers as the plain one, without the tries that can be seen to lead nowhere.

Nothing is left out where the plain search could meet an error, or where a bug of the minor makes the order of the tries
part of the answer. Proofs come in two steps: a count of free devices at the first dead end, at which most impossible
requests end, and `Bounds` and `States` after a few more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.resource_claim import ResourceClaim
from dra_infra.simulation.allocation.bounds import Bounds
from dra_infra.simulation.allocation.counters import CounterAvailability
from dra_infra.simulation.allocation.demands import Demands, Surroundings, gather_demands
from dra_infra.simulation.allocation.facts import gather_facts
from dra_infra.simulation.allocation.matching import Matching
from dra_infra.simulation.allocation.pools import Pool
from dra_infra.simulation.allocation.requests import Key, Wanted
from dra_infra.simulation.allocation.search import Found, Search, is_tried
from dra_infra.simulation.allocation.symmetry import States
from dra_infra.simulation.allocation.taking import Taking
from dra_infra.simulation.allocation.variants import Variant

PATIENCE: Final = 8
"""Dead ends after which proofs cost less than going on."""


class _NothingLeft(Exception):  # noqa: N818  (no error: a way out of all calls)
    """There are not enough devices for the requests."""


class PrunedSearch(Search):
    """One attempt with proofs; used once.

    Args:
        claims: As for `Search`, and so are the next ones.
        around: What decides about the node beside the claims.
        availability: What is left of counters before the attempt.
    """

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        pools: Sequence[Pool],
        classes: Mapping[str, DeviceClass],
        taking: Taking,
        matching: Matching,
        variant: Variant,
        is_cancelled: Callable[[], bool],
        *,
        around: Surroundings,
        availability: CounterAvailability,
    ) -> None:
        super().__init__(claims, pools, classes, taking, matching, variant, is_cancelled)
        self._tried = [pool for pool in pools if is_tried(pool, variant)]
        self._around = around
        self._availability = availability
        self._has_counted = False
        self._demands: Demands | None = None
        self._dead_ends = 0
        self._proofs: tuple[States, Bounds] | None = None
        self._failed: set[Hashable] = set()

    def _find(self) -> bool:
        # What a request can have is worth finding out once the search does not go straight on.
        if (self._dead_ends >= PATIENCE or self._is_known()) and self._is_short():
            return False
        try:
            return super()._find()
        except _NothingLeft:
            return False

    def _depth(self) -> int:
        # Each device is one call deeper here.
        return 2 * super()._depth()

    def _allocate_any(self, key: Key, wanted: Wanted, number: int, *, is_entry: bool, start: int) -> Found:
        if self._dead_ends >= PATIENCE and self._demands is not None:
            self._begin_proofs(self._demands)
        if self._proofs is None:
            found = super()._allocate_any(key, wanted, number, is_entry=is_entry, start=start)
            if found is Found.NO:
                self._dead_ends += 1
                if self._dead_ends == 1 and self._is_short():
                    raise _NothingLeft
            return found
        states, bounds = self._proofs
        picked = self._taking.picked
        state = states.describe(key, number, picked)
        if state in self._failed or bounds.forbid(key, number, picked):
            return Found.NO
        found = super()._allocate_any(key, wanted, number, is_entry=is_entry, start=start)
        if found is Found.NO:
            self._failed.add(state)
        return found

    def _is_known(self) -> bool:
        reach, declared = self._around.reach, self._around.declared
        return not reach.is_empty and all(
            reach.has_rows(each, self._tried, declared)
            for each in self.wanted.values()
            if each.all_devices is None
        )

    def _is_short(self) -> bool:
        if not self._has_counted:
            self._has_counted = True
            self._demands = gather_demands(
                self.wanted, self._claims, self._candidates, self._tried, self._around, self._variant
            )
            return self._demands is not None and self._demands.are_short()
        return False

    def _begin_proofs(self, demands: Demands) -> None:
        # Once: where there are no proofs, the count of dead ends is not looked at again.
        self._demands = None
        facts = gather_facts(demands, self._claims, self._around.state, self._availability)
        if facts is not None:
            self._proofs = States(facts), Bounds(facts)
