"""Pruned search: the answers of the plain search, without tries that provably lead nowhere.

Nothing is left out where the plain search could meet an error, or where a bug of the minor makes the order of the
tries part of the answer. Proofs come in two steps: a count of free devices at the first dead end, at which most
impossible requests end, and `Bounds` and `States` after a few more.

Some states of a search come to the same: what failed in one of them fails in the other. Candidates that share values
of constraints or counters form a cluster. Two clusters of one structure can stand for each other, and so can two
candidates of one description in a cluster. A state is what is taken of how many clusters of each structure, so that
devices that nothing tells apart are tried once.

That a state failed means that no choice of further devices fulfils what is left, in whatever order: those with a
device before the last one were tried before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from dra_infra.kubernetes.scheduler.allocator.bounds import Bounds
from dra_infra.kubernetes.scheduler.allocator.counters import CounterAvailability
from dra_infra.kubernetes.scheduler.allocator.demands import Demands, gather_demands, positions
from dra_infra.kubernetes.scheduler.allocator.facts import ConstraintValues, Facts, gather_facts
from dra_infra.kubernetes.scheduler.allocator.identity import abort
from dra_infra.kubernetes.scheduler.allocator.requests import RequestKey, Wanted
from dra_infra.kubernetes.scheduler.allocator.search import Attempt, Found, Search
from dra_infra.kubernetes.scheduler.allocator.state import Picked
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk

_Clusters = dict[int, tuple[list[Hashable], list[Hashable]]]
"""By cluster what is taken of it, and what constraints make of its values."""


class States:
    """Describes states so that equal descriptions have equal futures."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._demands = facts.demands
        self._has_admin = any(wanted.admin for wanted in facts.demands.wanted.values())
        self._relevant = facts.demands.candidates_in_question()
        self._cluster: dict[int, int] = {}
        self._structures: list[int] = []
        self._descriptions: dict[int, int] = {}
        # By claim and limit, the value's number in its cluster; one that a single device has tells nothing.
        self._ranks: dict[tuple[int, int, int], int] = {}
        self._value_clusters: dict[tuple[int, int, int], int] = {}
        self._numbers: dict[Hashable, int] = {}
        self._form_clusters()

    def describe(self, key: RequestKey, number: int, picked: Sequence[Sequence[Picked]]) -> Hashable:
        """The state before device *number* of a request, with what is picked for each claim until then."""
        clusters: _Clusters = {}
        for position, holds in self._holds(picked).items():
            cluster = self._cluster.get(position)
            if cluster is not None:
                content = (self._descriptions[position], self._sum(position, holds, key))
                clusters.setdefault(cluster, ([], []))[0].append(content)
        over: list[Hashable] = []
        for limit_number, limit in enumerate(self._facts.limits[key.claim]):
            self._mark(key.claim, limit_number, limit, picked[key.claim], clusters, over)
        return (
            key,
            number,
            _bag(
                (self._structures[cluster], _bag(taken), _bag(marks))
                for cluster, (taken, marks) in clusters.items()
            ),
            tuple(over),
        )

    def _holds(self, picked: Sequence[Sequence[Picked]]) -> dict[int, list[tuple[int, Picked]]]:
        """By candidate the claims that have it."""
        found: dict[int, list[tuple[int, Picked]]] = {}
        for claim, devices in enumerate(picked):
            for each in devices:
                found.setdefault(self._facts.at[each.published], []).append((claim, each))
        return found

    def _sum(self, position: int, holds: Iterable[tuple[int, Picked]], key: RequestKey) -> Hashable:
        """Summary of those who have a candidate: of shares how much, and whether this request has one."""
        if not self._demands.shares >> position & 1:
            # For admin access it matters which claim has a device.
            return frozenset(claim for claim, _ in holds) if self._has_admin else True
        sums: dict[str, int] = {}
        for _, each in holds:
            for name, amount in each.consumed.items():
                sums[name] = sums.get(name, 0) + amount.nanos
        current = self._demands.wanted[key]
        return frozenset(sums.items()), any(each.wanted is current for _, each in holds)

    def _mark(
        self,
        claim: int,
        number: int,
        limit: ConstraintValues,
        devices: Sequence[Picked],
        clusters: _Clusters,
        over: list[Hashable],
    ) -> None:
        """Add to clusters what their devices may still have of a constraint."""
        found = [
            limit.values[self._facts.at[each.published]]
            for each in devices
            if limit.scope.covers(each.wanted)
        ]
        if not found:
            return
        values = frozenset.intersection(*found) if limit.is_match else frozenset.union(*found)
        known = [value for value in values if (claim, number, value) in self._ranks]
        if limit.is_match and not known:
            over.append(number)
        by_cluster: dict[int, list[int]] = {}
        for value in known:
            place = (claim, number, value)
            by_cluster.setdefault(self._value_clusters[place], []).append(self._ranks[place])
        for cluster, ranks in by_cluster.items():
            clusters.setdefault(cluster, ([], []))[1].append((number, frozenset(ranks)))

    def _form_clusters(self) -> None:
        parents = {position: position for position in self._relevant}

        def root(position: int) -> int:
            while parents[position] != position:
                parents[position] = parents[parents[position]]
                position = parents[position]
            return position

        for group in self._groups():
            for position in group[1:]:
                parents[root(position)] = root(group[0])
        members: dict[int, list[int]] = {}
        for position in self._relevant:
            members.setdefault(root(position), []).append(position)
        for cluster, group in enumerate(members.values()):
            self._describe_cluster(cluster, group)

    def _groups(self) -> list[list[int]]:
        """Candidates that have a value or a counter set in common."""
        known = set(self._relevant)
        groups = [
            [position for position in positions(bits) if position in known]
            for limits in self._facts.limits
            for limit in limits
            for bits in limit.holders.values()
        ]
        by_counter_set: dict[int, list[int]] = {}
        for position, draws in self._facts.draws.items():
            for counter_set in {number for number, _, _ in draws} if position in known else ():
                by_counter_set.setdefault(counter_set, []).append(position)
        return [group for group in (*groups, *by_counter_set.values()) if group]

    def _describe_cluster(self, cluster: int, members: Sequence[int]) -> None:
        counter_sets: dict[int, int] = {}
        ranks: dict[tuple[int, int], int] = {}
        described = []
        for position in members:
            self._cluster[position] = cluster
            limits = []
            for claim, each in enumerate(self._facts.limits):
                for number, limit in enumerate(each):
                    named = set()
                    for value in sorted(limit.values.get(position, ())):
                        if limit.holders[value].bit_count() == 1 and not self._demands.shares >> position & 1:
                            continue
                        rank = ranks.setdefault((claim, number, value), len(ranks))  # type: ignore[arg-type]
                        self._ranks[claim, number, value] = rank
                        self._value_clusters[claim, number, value] = cluster
                        named.add(rank)
                    limits.append((position in limit.values, frozenset(named)))
            draws = frozenset(
                (counter_sets.setdefault(counter_set, len(counter_sets)), name, amount)
                for counter_set, name, amount in self._facts.draws.get(position, ())
            )
            description = (self._describe_device(position), tuple(limits), draws)
            self._descriptions[position] = self._number(description)
            described.append(self._descriptions[position])
        contents = tuple(
            frozenset(self._facts.counter_sets[counter_set].items()) for counter_set in counter_sets
        )
        self._structures.append(self._number((tuple(described), contents)))

    def _describe_device(self, position: int) -> Hashable:
        demands = self._demands
        state = self._facts.state
        _, published = demands.candidates[position]
        consumed = state.consumed(published.id)
        capacity = ""
        if consumed or demands.shares >> position & 1:
            capacity = repr(sorted((published.device.capacity or {}).items()))
        return (
            tuple(bits >> position & 1 for bits in demands.allowed.values()),
            demands.free >> position & 1,
            demands.shares >> position & 1,
            frozenset(consumed.items()),
            capacity,
        )

    def _number(self, content: Hashable) -> int:
        return self._numbers.setdefault(content, len(self._numbers))


def _bag(items: Iterable[Hashable]) -> frozenset[tuple[Hashable, int]]:
    return frozenset(Counter(items).items())


DEAD_ENDS_BEFORE_PROOFS: Final = 8
"""Dead ends after which proofs cost less than going on."""


class _NothingLeft(Exception):  # noqa: N818  (no error: a way out of all calls)
    """There are not enough devices for the requests."""


class PrunedSearch(Search):
    """One attempt with proofs; used once."""

    def __init__(self, attempt: Attempt, availability: CounterAvailability) -> None:
        super().__init__(attempt)
        self._tried = [pool for pool in attempt.pools if pool.is_tried(attempt.variant)]
        self._attempt = attempt
        self._availability = availability
        self._has_counted = False
        self._demands: Demands | None = None
        self._dead_ends = 0
        self._proofs: tuple[States, Bounds] | None = None
        self._failed: set[Hashable] = set()
        self.leaves_out = False
        """True where tries were left out that the plain search makes: it comes to the same end, and later."""

    def _find(self) -> bool:
        # What a request can have is worth finding out once the search does not go straight on.
        if (self._dead_ends >= DEAD_ENDS_BEFORE_PROOFS or self._is_known()) and self._is_short():
            return False
        try:
            return super()._find()
        except _NothingLeft:
            return False

    def _depth(self) -> int:
        # Each device is one call deeper here.
        return 2 * super()._depth()

    def _allocate_any(
        self, key: RequestKey, wanted: Wanted, number: int, *, is_entry: bool, start: int
    ) -> Found:
        if self._dead_ends >= DEAD_ENDS_BEFORE_PROOFS and self._demands is not None:
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
            self.leaves_out = True
            return Found.NO
        found = super()._allocate_any(key, wanted, number, is_entry=is_entry, start=start)
        if found is Found.NO:
            self._failed.add(state)
        return found

    def _is_known(self) -> bool:
        reach, declared = self._attempt.reach, self._attempt.declared
        return not reach.is_empty and all(
            reach.has_rows(each, self._tried, declared)
            for each in self.wanted.values()
            if each.all_devices is None
        )

    def _is_short(self) -> bool:
        if not self._has_counted:
            self._has_counted = True
            if self._may_overflow():
                return False
            self._demands = gather_demands(self._attempt, self.wanted, self._candidates, self._tried)
            return self._demands is not None and self._demands.are_short()
        return False

    def _may_overflow(self) -> bool:
        """Checks for counts with which the plain search may end in an error, and not because devices are missing."""
        most = sum(each.count for each in self.wanted.values())
        return self._variant.has(Quirk.COUNTS_OVERFLOW) and most >= 2**63

    def _begin_proofs(self, demands: Demands) -> None:
        # Once: where there are no proofs, the count of dead ends is not looked at again.
        self._demands = None
        facts = gather_facts(demands, self._claims, self._attempt.state, self._availability)
        if facts is not None:
            self._proofs = States(facts), Bounds(facts)


LOOKS_IN_TIME: Final = 2_000_000
"""Looks at a device that the scheduler has the time for: Kubernetes' allocator of 1.37 made about 500,000 in a second."""

_MOST_STATES: Final = 2000
"""Different states that are gone through; where there are more, nothing is sure."""


class SearchLength(Search):
    """The search that the scheduler itself makes, counted, where proofs come to the same answer sooner; used once.

    The scheduler gives up on a node after 10 s (`filterTimeout` of DynamicResourcesArgs, gate
    DRASchedulerFilterTimeout), so an answer that only proofs come to is one that it may never give. Equal states of a
    search take equally long as far as they start at the same candidate, so each is gone through once and counted as
    often as it comes. The count is never more than the scheduler's, and in contested cases up to two fifths less:
    states are equal up to devices that nothing tells apart.
    """

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
        tried = [pool for pool in attempt.pools if pool.is_tried(attempt.variant)]
        demands = gather_demands(attempt, self.wanted, self._candidates, tried)
        facts = gather_facts(demands, self._claims, attempt.state, self._availability) if demands else None
        self._states = States(facts) if facts else None
        return super()._find()

    def _depth(self) -> int:
        # Each device is one call deeper here.
        return 2 * super()._depth()

    def _allocate_any(
        self, key: RequestKey, wanted: Wanted, number: int, *, is_entry: bool, start: int
    ) -> Found:
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
