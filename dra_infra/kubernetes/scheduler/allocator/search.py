"""The search on one node: every combination of devices in order, until one serves all claims.

Source: allocateOne. The order decides the answer, so nothing here is shortened.

The preparation finds what is known before the search: how many devices each request needs, and which ones mode `All`
means. Source: the first half of Allocate, and validateDeviceRequest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.kubernetes.api.limits import MAX_RESULTS
from dra_infra.kubernetes.api.nodes import Node
from dra_infra.kubernetes.api.resource_claim import ResourceClaim
from dra_infra.kubernetes.scheduler.allocator.capacity import CapacityError, fits_capacity
from dra_infra.kubernetes.scheduler.allocator.constraints import build_constraints
from dra_infra.kubernetes.scheduler.allocator.identity import Published, abort
from dra_infra.kubernetes.scheduler.allocator.matching import Matching, Reach
from dra_infra.kubernetes.scheduler.allocator.pools import Pool
from dra_infra.kubernetes.scheduler.allocator.refusals import Check, Refusal, Tracer, refuse
from dra_infra.kubernetes.scheduler.allocator.requests import (
    DeviceCount,
    RequestKey,
    Wanted,
    check_features,
    describe_request,
    request_leaves,
    wrap_int64,
)
from dra_infra.kubernetes.scheduler.allocator.slices import SliceIndex
from dra_infra.kubernetes.scheduler.allocator.state import NO_USE, AllocatedState
from dra_infra.kubernetes.scheduler.allocator.taking import Taking
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to serve the claims of a pod on one node.

    Args:
        claims: The claims of a pod that are not allocated yet.
        pools: The pools of the node, in order.
        classes: All device classes, by name.
        taking: The devices that are taken, and the constraints of the claims.
        matching: Which devices a request can have.
        variant: Whose rules.
        index: The slices of the cluster.
        state: What is in use before the attempt.
        reach: What requests can have while nothing is in use.
        node: The node.
        declared: `status.declaredFeatures` of the node.
        is_cancelled: Asked at each step; true ends the attempt as the scheduler's timeout of a node does.
        tracer: Who receives refusals.
    """

    claims: Sequence[ResourceClaim]
    pools: Sequence[Pool]
    classes: Mapping[str, DeviceClass]
    taking: Taking
    matching: Matching
    variant: Variant
    index: SliceIndex
    state: AllocatedState
    reach: Reach
    node: Node
    declared: frozenset[str]
    is_cancelled: Callable[[], bool]
    tracer: Tracer | None = None


class Preparation:
    """Looks at the claims one after the other, as upstream does: the first error is the answer."""

    def __init__(self, attempt: Attempt) -> None:
        self._wanted: dict[RequestKey, Wanted] = {}
        self._claims = attempt.claims
        self._pools = attempt.pools
        self._classes = attempt.classes
        self._taking = attempt.taking
        self._matching = attempt.matching
        self._variant = attempt.variant

    def run(self) -> dict[RequestKey, Wanted]:
        """The requests of all claims.

        Raises:
            AllocationError: When a claim is not one that can be served anywhere, or has no answer here.
        """
        for number, claim in enumerate(self._claims):
            self._prepare(number, claim)
        return self._wanted

    def _prepare(self, number: int, claim: ResourceClaim) -> None:
        count = DeviceCount(claim, self._variant)
        for position, request in enumerate(claim.spec.devices.requests or ()):
            check_features(claim, request, self._variant)
            counts = []
            for sub, leaf in enumerate(request_leaves(request)):
                wanted = describe_request(claim, request, leaf, self._classes, self._variant)
                key = RequestKey(number, position, sub)
                if leaf.allocation_mode == "All":
                    shares = self._variant.has(Quirk.ALL_SHARES_MATCHES)
                    kept = RequestKey(number, position, max(sub - 1, 0)) if shares else key
                    wanted.all_devices = tuple(self._select_all(kept, wanted))
                    wanted.count = len(wanted.all_devices)
                self._wanted[key] = wanted
                counts.append(wanted.count)
            count.add(request, min(counts))
        count.finish()
        self._taking.picked.append([])
        self._taking.constraints.append(build_constraints(claim, self._matching.attribute, self._variant))

    def _select_all(self, key: RequestKey, wanted: Wanted) -> list[tuple[Pool, Published]]:
        where = wanted.where
        found: list[tuple[Pool, Published]] = []
        for pool in self._pools:
            if pool.is_incomplete:
                raise abort(
                    f"{where}: asks for all devices, but resource pool {pool.id} is currently being updated"
                )
            if pool.invalid:
                raise abort(
                    f"{where}: asks for all devices, but resource pool {pool.id} is currently invalid"
                )
            found.extend(
                (pool, each)
                for each in pool.devices
                if self._matching.is_selectable(key, wanted, each) and self._could_serve(wanted, each)
            )
        return found

    def _could_serve(self, wanted: Wanted, published: Published) -> bool:
        """From 1.37 on a device counts that is large enough, before one that has enough left."""
        if not self._variant.features.consumable_capacity:
            return True
        if self._variant.number < 37:
            return self._taking.usage.has_capacity(wanted, published)
        try:
            return fits_capacity(
                wanted.capacity, published.device.capacity or {}, NO_USE, NO_USE, self._variant
            )
        except CapacityError as error:
            raise abort(
                f"{wanted.where}: checking capacity for device {published.device.name}: {error}"
            ) from error


_CALLS_BESIDE: Final = 200
"""Calls below the search: evaluation of expressions, and whatever the caller's own stack needs of its limit."""


@contextmanager
def _room_for(depth: int) -> Iterator[None]:
    """Let Python call itself as deeply as a pod with many claims needs."""
    limit = sys.getrecursionlimit()
    if depth + _CALLS_BESIDE > limit // 2:
        sys.setrecursionlimit(limit + depth + _CALLS_BESIDE)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class Found(Enum):
    """Result of one step of a search."""

    YES = "everything from here on is allocated"
    NO = "nothing possible from here on"
    TOO_MANY = "nothing possible, because a claim would get more devices than a result holds"


class Search:
    """One attempt; used once."""

    def __init__(self, attempt: Attempt) -> None:
        self.wanted: dict[RequestKey, Wanted] = {}
        self._claims = attempt.claims
        self._preparation = Preparation(attempt)
        self._taking = attempt.taking
        self._usage = attempt.taking.usage
        self._matching = attempt.matching
        self._variant = attempt.variant
        self._is_cancelled = attempt.is_cancelled
        self._tracer = attempt.tracer
        self._pools = attempt.pools
        self._candidates: list[tuple[Pool, Published | None]] = []

    def run(self) -> bool:
        """Searches; true when all claims got their devices, which are in `taking.picked` then.

        Raises:
            AllocationError: When the attempt ends with an error.
        """
        self._candidates = [
            (pool, each)
            for pool in self._pools
            if pool.is_tried(self._variant)
            for each in (pool.devices if not pool.invalid else (None,))
        ]
        self.wanted.update(self._preparation.run())
        self._matching.forget()
        return self._find()

    def _find(self) -> bool:
        with _room_for(self._depth()):
            outcome = self._allocate(RequestKey(0, 0), 0, is_entry=False, start=0)
        if outcome is Found.TOO_MANY:
            # The least that the first claim needs was checked before, so this is only reached where its sum overflowed.
            raise abort("allocation max size exceeded")
        return outcome is Found.YES

    def _depth(self) -> int:
        """Most calls that the search is deep: those of each device, request and claim."""
        devices = sum(min(each.count, MAX_RESULTS) for each in self.wanted.values())
        return 3 * (devices + len(self.wanted) + len(self._claims))

    def _allocate(self, key: RequestKey, number: int, *, is_entry: bool, start: int) -> Found:
        """allocateOne: device *number* of a request and everything after it.

        Args:
            key: The request.
            number: Which of its devices is next.
            is_entry: Whether one entry of a prioritized list is tried already.
            start: The first candidate to look at.
        """
        if self._is_cancelled():
            raise abort("filter operation aborted: context deadline exceeded")
        if key.claim >= len(self._claims):
            return Found.YES
        if key.request >= len(self._claims[key.claim].spec.devices.requests or ()):
            later = self._allocate(RequestKey(key.claim + 1, 0), 0, is_entry=False, start=0)
            # The claim after this one may need fewer devices once this one has others.
            return Found.NO if later is Found.TOO_MANY else later
        wanted = self.wanted[key]
        if wanted.parent and not is_entry:
            return self._allocate_first_available(key, number)
        if wanted.all_devices is not None and not wanted.all_devices:
            return Found.NO
        if number >= wanted.count:
            return self._allocate(RequestKey(key.claim, key.request + 1), 0, is_entry=False, start=0)
        if self._is_too_many(wanted.count - number, len(self._taking.picked[key.claim])):
            return Found.TOO_MANY
        if wanted.all_devices is not None:
            return self._allocate_all(key, wanted, wanted.all_devices[number], number, is_entry=is_entry)
        return self._allocate_any(key, wanted, number, is_entry=is_entry, start=start)

    def _is_too_many(self, wanted: int, picked: int) -> bool:
        """Checks that a result cannot hold *wanted* devices more."""
        if self._variant.has(Quirk.COUNTS_OVERFLOW):
            return wrap_int64(picked + wanted) > MAX_RESULTS
        return wanted > MAX_RESULTS - picked

    def _allocate_first_available(self, key: RequestKey, number: int) -> Found:
        all_too_many = True
        sub = 0
        while (entry := RequestKey(key.claim, key.request, sub)) in self.wanted:
            found = self._allocate(entry, number, is_entry=True, start=0)
            if found is Found.YES:
                self.wanted[key].selected = sub
                return found
            all_too_many = all_too_many and found is Found.TOO_MANY
            sub += 1
        return Found.TOO_MANY if all_too_many else Found.NO

    def _allocate_all(
        self,
        key: RequestKey,
        wanted: Wanted,
        candidate: tuple[Pool, Published],
        number: int,
        *,
        is_entry: bool,
    ) -> Found:
        undo = self._taking.take(key.claim, wanted, *candidate, number=number)
        if undo is None:
            return Found.NO
        returns = self._variant.has(Quirk.ALL_GOES_ON_WITH_FIRST)
        following = RequestKey(key.claim, key.request) if returns else key
        found = self._allocate(following, number + 1, is_entry=is_entry, start=0)
        if found is not Found.YES:
            undo()
        return found

    def _allocate_any(
        self, key: RequestKey, wanted: Wanted, number: int, *, is_entry: bool, start: int
    ) -> Found:
        for position in range(start if self._variant.picks_combinations else 0, len(self._candidates)):
            pool, published = self._candidates[position]
            if published is None:
                raise abort(f"pool {pool.id.pool} is invalid: {pool.invalid}")
            if not self.can_have(key, wanted, published):
                continue
            undo = self._taking.take(key.claim, wanted, pool, published, number=number)
            if undo is None:
                continue
            found = self._allocate(key, number + 1, is_entry=is_entry, start=position + 1)
            if found is Found.YES:
                return found
            undo()
            if found is Found.TOO_MANY:
                return found
        return Found.NO

    def can_have(self, key: RequestKey, wanted: Wanted, published: Published) -> bool:
        """Checks that a device is free, selected and large enough, cheap tests first."""
        if not self._usage.is_free(wanted, published, key.claim):
            # This is what a search does most often, so nothing is called without a tracer.
            if self._tracer is None:
                return False
            self._tracer(Refusal(published.id, Check.IN_USE))
        if not self._matching.is_selectable(key, wanted, published):
            return False
        if not self._variant.features.consumable_capacity:
            return True
        try:
            return self._usage.has_capacity(wanted, published) or not refuse(
                self._tracer, published, Check.CAPACITY
            )
        except CapacityError as error:
            if not refuse(self._tracer, published, Check.CAPACITY, str(error)):
                return True
            raise abort(f"{wanted.where}: checking capacity for device {published.id}: {error}") from error


class Look:
    """Looks at devices of a node one by one, with nothing picked beside them.

    Args:
        attempt: An attempt to serve nothing, which reports to *refusals*.
        make_taking: Makes what takes a device; another one for each that draws on counters, which stay taken.
        refusals: What is reported.
    """

    def __init__(self, attempt: Attempt, make_taking: Callable[[], Taking], refusals: list[Refusal]) -> None:
        self._search = Search(attempt)
        self._matching = attempt.matching
        self._taking = attempt.taking
        self._variant = attempt.variant
        self._make_taking = make_taking
        self._refusals = refusals

    def refusals(
        self, wanted: Wanted, pool: Pool, published: Published, *, in_full: bool = True
    ) -> list[Refusal]:
        """List the checks that a device fails for a request, in the order of the search.

        Args:
            wanted: The request.
            pool: The pool of the device.
            published: The device.
            in_full: Whether to make also the checks from `Check.FEATURE` on of a device that fails one before. The search
                never does, and in 1.35 it matters of which pool counters are looked at first.
        """
        self._refusals.clear()
        self._matching.forget()
        self._search.can_have(RequestKey(0, 0), wanted, published)
        if in_full or not self._refusals:
            is_share = self._variant.features.consumable_capacity and published.shareable
            taking = self._make_taking() if published.device.consumes_counters else self._taking
            taking.admit(wanted, pool, published, [], is_share=is_share)
        return list(self._refusals)
