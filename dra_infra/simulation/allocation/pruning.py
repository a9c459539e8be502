"""The search with proofs: the same answers as the plain one, without the tries that can be seen to lead nowhere.

Nothing is left out where the plain search could meet an error, or where a bug of the minor makes the order of the tries
part of the answer. Proofs come in two steps: a count of free devices before the search, at which most impossible
requests end, and `Bounds` and `States` once the search has met a few dead ends.
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
        self._demands: Demands | None = None
        self._dead_ends = 0
        self._proofs: tuple[States, Bounds] | None = None
        self._failed: set[Hashable] = set()

    def _find(self) -> bool:
        self._demands = gather_demands(
            self.wanted, self._claims, self._candidates, self._tried, self._around, self._variant
        )
        if self._demands is not None and self._demands.are_short():
            return False
        return super()._find()

    def _depth(self) -> int:
        # Each device is one call deeper here.
        return 2 * super()._depth()

    def _allocate_any(self, key: Key, wanted: Wanted, number: int, *, is_entry: bool, start: int) -> Found:
        if self._dead_ends >= PATIENCE and self._demands is not None:
            self._begin_proofs(self._demands)
        if self._proofs is None:
            found = super()._allocate_any(key, wanted, number, is_entry=is_entry, start=start)
            self._dead_ends += found is Found.NO
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

    def _begin_proofs(self, demands: Demands) -> None:
        # Once: where there are no proofs, the count of dead ends is not looked at again.
        self._demands = None
        facts = gather_facts(demands, self._claims, self._around.state, self._availability)
        if facts is not None:
            self._proofs = States(facts), Bounds(facts)
