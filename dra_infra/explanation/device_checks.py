"""What keeps each device of a node from one request: the refusals that the allocator reports, in words.

The allocator is asked twice, also as if nothing were in use. What does not depend on use is told first, so that what
is left before `Stage.USED` is what the request could have if all were free.

Pool troubles are the pools that give no devices away, and why; and what can be given away of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain
from typing import Final, NamedTuple

from dra_infra.explanation.question import Leaf
from dra_infra.explanation.shares import refuse_share
from dra_infra.kubernetes.api import Node
from dra_infra.kubernetes.scheduler.allocator import (
    NO_USE,
    AllocatedState,
    Allocator,
    Check,
    DeviceID,
    Pool,
    PoolID,
    Published,
    Refusal,
    RequestKey,
    Trouble,
    Usage,
    Variant,
    Wanted,
    claimed_counts,
    find_missing_feature,
    fits_capacity,
    list_untolerated,
)


@dataclass(frozen=True, slots=True)
class UnusablePool:
    """A pool whose devices nobody gets.

    Args:
        pool: The pool.
        state: `incomplete`, `invalid`, or `obsolete`.
        why: What makes it so.
        devices: The devices that the node would see in it, of what is published.
        is_overfull: Whether more slices are published than they claim.
    """

    pool: PoolID
    state: str
    why: str
    devices: tuple[Published, ...]
    is_overfull: bool = False

    def __str__(self) -> str:
        return f"resource pool {self.pool} is {self.state}: {self.why}"


def tried_devices(pools: Iterable[Pool], variant: Variant) -> tuple[tuple[Pool, Published], ...]:
    """The devices of pools that the allocator tries, in order."""
    return tuple((pool, each) for pool in pools if _gives(pool, variant) for each in pool.devices)


def find_unusable_pools(cluster: Allocator, node: Node) -> Iterator[UnusablePool]:
    """Yield the pools that a node sees and whose devices nobody gets."""
    built = {pool.id: pool for pool in cluster.pools(node)}
    relevant = cluster.index.relevant(node)
    for name in sorted({PoolID.of(each) for each in relevant}):
        pool = built.get(name)
        if pool is not None and _gives(pool, cluster.variant):
            continue
        slices = [each for each in relevant if PoolID.of(each) == name]
        generation = max(each.spec.pool.generation for each in slices)
        newest = [each for each in slices if each.spec.pool.generation == generation]
        devices = tuple(device for each in newest for device in cluster.index.devices(each))
        if pool is None:
            # The devices are those of an old generation, which is reported for each of them.
            why = (
                f"slices of a newer generation than {generation} are there, and none of them is for this node"
            )
            yield UnusablePool(name, "obsolete", why, ())
        elif pool.invalid:
            yield UnusablePool(name, "invalid", pool.invalid, devices)
        else:
            published = len(cluster.index.everywhere(name, generation) or ())
            wanted = claimed_counts(newest)
            why = f"{published} of {wanted[0]} slices are published"
            if len(wanted) > 1 or published > wanted[0]:
                why = f"{published} slices are published, and they claim {' and '.join(map(str, wanted))}"
            yield UnusablePool(name, "incomplete", why, devices, is_overfull=published > wanted[-1])


def _gives(pool: Pool, variant: Variant) -> bool:
    return not pool.invalid and pool.is_tried(variant)


class Stage(IntEnum):
    """What a device can fail, in the order in which it is told."""

    SELECTOR = 0
    PLACE = 1
    CAPACITY = 2
    FEATURE = 3
    TAINT = 4
    COUNTER = 5
    USED = 6
    PASSED = 7


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How far a device comes.

    Args:
        stage: What it fails at.
        rank: How many selectors are before the one that it fails, those of the class first.
        detail: The taint, capacity, counter set or feature; what is in use of it; why a selector has no value.
        is_error: Whether the selector has no value on the device, which ends the attempt if the search comes to it.
        taints: The taints that are not tolerated, in words.
    """

    stage: Stage
    rank: int = 0
    detail: str = ""
    is_error: bool = False
    taints: tuple[str, ...] = ()


PASSED: Final = CheckResult(Stage.PASSED)

_USES: Final = {
    Check.IN_USE: "device",
    Check.CAPACITY: "capacity",
    Check.COMPATIBILITY_GROUPS: "compatibility groups",
    Check.COUNTERS: "counters",
}
"""What is in use of a device that the allocator would allocate if nothing were in use."""

_TOLD: Final = (
    Check.SELECTOR,
    Check.NODE,
    Check.BINDING_CONDITIONS,
    Check.CAPACITY,
    Check.FEATURE,
    Check.TAINT,
    Check.COMPATIBILITY_GROUPS,
    Check.COUNTERS,
)
"""Checks that a device fails even if nothing is in use, in the order in which they are told."""


class DeviceChecks:
    """The devices of one node, looked at for any request."""

    def __init__(self, cluster: Allocator, node: Node, declared: frozenset[str] = frozenset()) -> None:
        self.node = node
        self._evaluator = cluster.evaluator
        self._variant = cluster.variant
        self._declared = declared
        self.devices = tried_devices(cluster.pools(node), self._variant)
        self._usage = Usage(cluster.state, self._variant)
        # Each node sums up counters anew: it may look at pools that no attempt comes to.
        self._now = cluster.with_state(cluster.state).look(node, declared=declared)
        self._free = cluster.with_state(AllocatedState()).look(node, declared=declared)
        self._known: dict[RequestKey, tuple[CheckResult, ...]] = {}

    def check_all(self, leaf: Leaf) -> tuple[CheckResult, ...]:
        """The first thing that keeps each of `devices` from a request."""
        known = self._known.get(leaf.key)
        if known is None:
            known = tuple(next(self._failures(leaf, *each, in_full=False), PASSED) for each in self.devices)
            self._known[leaf.key] = known
        return known

    def can_have(self, leaf: Leaf, stage: Stage) -> dict[DeviceID, tuple[Pool, Published]]:
        """The devices that come as far as *stage*."""
        return {
            device[1].id: device
            for device, result in zip(self.devices, self.check_all(leaf), strict=True)
            if result.stage >= stage
        }

    def wanted_count(self, leaf: Leaf) -> int:
        """How many devices a request needs; with mode `All`, those that match, and at least one."""
        if not leaf.is_all:
            return leaf.wanted.count
        listed = (
            result.stage > Stage.CAPACITY and self._is_listed(leaf.wanted, published)
            for (_, published), result in zip(self.devices, self.check_all(leaf), strict=True)
        )
        return max(sum(listed), 1)

    def _is_listed(self, wanted: Wanted, published: Published) -> bool:
        """Before 1.37 a device of which too little is left is not one of all devices."""
        if self._variant.number >= 37 or not self._variant.features.consumable_capacity:
            return True
        return self._usage.has_capacity(wanted, published)

    def failures(self, leaf: Leaf, pool: Pool, published: Published) -> list[CheckResult]:
        """Everything that keeps a device from a request, looked at alone, in the order in which it is told.

        A refusal that stays when nothing is in use comes before one that does not, unless it is an error that the
        allocator does not meet, since it never tests a device that is in use.
        """
        return list(self._failures(leaf, pool, published, in_full=True))

    def _failures(
        self, leaf: Leaf, pool: Pool, published: Published, *, in_full: bool
    ) -> Iterator[CheckResult]:
        wanted = leaf.wanted
        refusals = self._now.refusals(wanted, pool, published, in_full=in_full)
        if not refusals:
            return iter(())
        use = next((each for each in refusals if each.check in _USES), None)
        lasting = [each for each in refusals if each.check not in _USES]
        # Of a device that fails a test whatever is in use, what is told first is known already.
        if use is not None and (in_full or not lasting):
            lasting = self._free.refusals(wanted, pool, published, in_full=in_full)
            # What is too little of a share for all is too little of what is left of it.
            if use.check is Check.CAPACITY and use in lasting:
                use = None
        lasting.sort(key=lambda each: _TOLD.index(each.check))
        results = (self._describe(each, wanted, published) for each in lasting)
        used = [] if use is None else [CheckResult(Stage.USED, detail=_USES[use.check])]
        hides = use is not None and use.check is Check.IN_USE and bool(lasting) and bool(lasting[0].error)
        return chain(used, results) if hides else chain(results, used)

    def _describe(self, refusal: Refusal, wanted: Wanted, published: Published) -> CheckResult:
        match refusal.check:
            case Check.SELECTOR:
                is_class = refusal.owner.startswith("class ")
                before = 0 if is_class else len(wanted.device_class.spec.selectors or ())
                rank = before + refusal.selector
                return CheckResult(Stage.SELECTOR, rank, refusal.error, is_error=bool(refusal.error))
            case Check.NODE:
                return CheckResult(Stage.PLACE, detail="the device is for other nodes")
            case Check.BINDING_CONDITIONS:
                text = "bindingConditions needs the gate DRADeviceBindingConditions"
                return CheckResult(Stage.PLACE, detail=text)
            case Check.CAPACITY:
                text = refusal.error or self._describe_capacity(wanted, published)
                return CheckResult(Stage.CAPACITY, detail=text, is_error=bool(refusal.error))
            case Check.FEATURE:
                text = find_missing_feature(published, self._declared, self._variant)
                return CheckResult(Stage.FEATURE, detail=text)
            case Check.TAINT:
                taints = list_untolerated(published.device, wanted.leaf.tolerations or (), self._variant)
                shown = sorted(
                    f"{each.key}{'=' + each.value if each.value else ''}:{each.effect}" for each in taints
                )
                return CheckResult(Stage.TAINT, detail=", ".join(shown), taints=tuple(shown))
            case _:
                return CheckResult(Stage.COUNTER, detail=join_sets(published))

    def evaluate(self, expression: str, published: Published) -> bool | Trouble:
        """Evaluate an expression on a device."""
        return self._evaluator.test(expression, published)

    def _describe_capacity(self, wanted: Wanted, published: Published) -> str:
        capacities = published.device.capacity or {}
        # As upstream: what is absent decides before any amount is computed, and 1.37 cannot compute each.
        for name in wanted.capacity:
            if name not in capacities:
                return f"{name} is absent"
        for name, amount in wanted.capacity.items():
            if not fits_capacity({name: amount}, {name: capacities[name]}, NO_USE, NO_USE, self._variant):
                return refuse_share(name, amount, capacities[name], self._variant)
        return "what a request takes by default does not fit the device"


class OwnedSelector(NamedTuple):
    """A selector of a class or of a request.

    Args:
        owner: `class h100` or `request`.
        number: Its index there.
        expression: What it says.
    """

    owner: str
    number: int
    expression: str

    def where(self, wanted: Wanted) -> str:
        """Name the selector of a request in an answer: `class h100, selector #1`."""
        owner = f"request {wanted.full_name}" if self.owner == "request" else self.owner
        return f"{owner}, selector #{self.number}"


def list_selectors(wanted: Wanted) -> list[OwnedSelector]:
    """List the selectors that a device must pass, in the order in which they are evaluated."""
    device_class = wanted.device_class
    owners = (
        (f"class {device_class.metadata.name}", device_class.spec.selectors),
        ("request", wanted.leaf.selectors),
    )
    return [
        OwnedSelector(owner, number, selector.expression)
        for owner, selectors in owners
        for number, selector in enumerate(selectors or ())
    ]


def join_sets(published: Published) -> str:
    """The counter sets that a device draws on."""
    return ", ".join(each.counter_set for each in published.device.consumes_counters or ())
