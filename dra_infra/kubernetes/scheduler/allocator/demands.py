"""Demands of an attempt: the devices that its requests can have, and whether those are enough at all.

They are gathered before the attempt begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from dra_infra.kubernetes.scheduler.allocator.identity import Published
from dra_infra.kubernetes.scheduler.allocator.pools import Pool
from dra_infra.kubernetes.scheduler.allocator.requests import RequestKey, Wanted
from dra_infra.kubernetes.scheduler.allocator.search import Attempt
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant


def positions(bits: int) -> Iterator[int]:
    """The numbers of the bits that are set, the lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def union(sets: Iterable[int]) -> int:
    """The bits that are set in any."""
    return reduce(or_, sets, 0)


@dataclass(frozen=True, slots=True)
class Demands:
    """Requests and candidates. Sets of candidates are bits, the lowest for the first.

    Args:
        wanted: The requests.
        candidates: All devices that the search looks at, with their pools.
        allowed: What each request can have if nobody has it; for mode `All` what it must have.
        free: Those of them that no earlier claim has to itself.
        shares: Those of them that many may have.
        variant: Whose rules.
    """

    wanted: Mapping[RequestKey, Wanted]
    candidates: Sequence[tuple[Pool, Published]]
    allowed: Mapping[RequestKey, int]
    free: int
    shares: int
    variant: Variant

    def open_to(self, key: RequestKey) -> int:
        """Devices that a request can have at the beginning; admin access does not ask who has one."""
        return self.allowed[key] if self.wanted[key].admin else self.allowed[key] & self.free

    def requests(self) -> Iterator[list[RequestKey]]:
        """The entries of each request, in order."""
        entries: list[RequestKey] = []
        for key in self.wanted:
            if entries and key[:2] != entries[0][:2]:
                yield entries
                entries = []
            entries.append(key)
        if entries:
            yield entries

    def are_short(self) -> bool:
        """A request wants more devices than there are for it, or all requests together do."""
        total = together = 0
        for entries in self.requests():
            possible = [key for key in entries if self._is_enough(key)]
            if not possible:
                return True
            devices = union(map(self.open_to, possible))
            if not devices & self.shares and not any(self.wanted[key].admin for key in possible):
                total += min(self._least(key) for key in possible)
                together |= devices
        return total > together.bit_count()

    def candidates_in_question(self) -> list[int]:
        """The candidates that some request can have if nobody has them."""
        return list(positions(union(self.allowed.values())))

    def _is_enough(self, key: RequestKey) -> bool:
        devices = self.open_to(key)
        if devices & self.shares and not self.variant.picks_combinations:
            # One request may have several shares of a device.
            return True
        return (
            max(self._least(key), 1 if self.wanted[key].all_devices is not None else 0) <= devices.bit_count()
        )

    def _least(self, key: RequestKey) -> int:
        """The least number of devices of an entry; in 1.34 and 1.35 mode `All` in a list may end after one."""
        wanted = self.wanted[key]
        if wanted.all_devices and wanted.parent and self.variant.has(Quirk.ALL_GOES_ON_WITH_FIRST):
            return 1
        return wanted.count


def gather_demands(
    attempt: Attempt,
    wanted: Mapping[RequestKey, Wanted],
    candidates: Sequence[tuple[Pool, Published | None]],
    tried: Sequence[Pool],
) -> Demands | None:
    """Find out what can be had, if no step of the search can end it with an error; else None.

    Args:
        attempt: What is asked.
        wanted: The requests of its claims.
        candidates: The devices that the search looks at; None stands for a pool that ends it.
        tried: The pools of the candidates, in order.
    """
    variant = attempt.variant
    features = attempt.variant.features
    looks_elsewhere = features.consumable_capacity and variant.has(Quirk.CAPACITY_OF_ANOTHER)
    if looks_elsewhere or attempt.index.counts_by_node():
        return None
    known = [(pool, published) for pool, published in candidates if published is not None]
    if len(known) < len(candidates) or any(
        attempt.claims[key.claim].spec.devices.constraints and _may_fail(each, variant)
        for key, each in wanted.items()
    ):
        return None
    allowed: dict[RequestKey, int] = {}
    uncertain: dict[RequestKey, int] = {}
    for key, each in wanted.items():
        if each.all_devices is None:
            rows = attempt.reach.rows(each, tried, attempt.node, attempt.declared)
            allowed[key], uncertain[key] = _join(rows, tried)
        else:
            listed = {published for _, published in each.all_devices}
            allowed[key] = sum(1 << at for at, (_, published) in enumerate(known) if published in listed)
    free = shares = 0
    for at in positions(union((*allowed.values(), *uncertain.values()))):
        published = known[at][1]
        if not attempt.state.has_whole(published.id):
            free |= 1 << at
        if published.shareable and features.consumable_capacity:
            shares |= 1 << at
    if any(bits if wanted[key].admin else bits & free for key, bits in uncertain.items()):
        return None
    return Demands(wanted, known, allowed, free, shares, variant)


def _may_fail(wanted: Wanted, variant: Variant) -> bool:
    """A constraint may end the search: it cannot hold for all devices, or its value cannot be derived."""
    return wanted.all_devices is not None or bool(wanted.derived and variant.features.derived_attributes)


def _join(rows: Iterable[tuple[int, int]], pools: Iterable[Pool]) -> tuple[int, int]:
    allowed = uncertain = offset = 0
    for (some, doubtful), pool in zip(rows, pools, strict=True):
        allowed |= some << offset
        uncertain |= doubtful << offset
        offset += len(pool.devices)
    return allowed, uncertain
