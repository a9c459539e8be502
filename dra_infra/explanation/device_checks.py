"""Checks of each device of a node for one request: the first thing that keeps it from being given away.

Everything that does not depend on what is in use comes first, so that what is left before `Stage.USED` is what the
request could have if all were free. Upstream looks at use first, which decides nothing but which errors are met.

Pool troubles are the pools that give no devices away, and why; and what can be given away of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from dra_infra.explanation.question import Inventory, Leaf
from dra_infra.explanation.shares import refuse_share
from dra_infra.kubernetes.api.device_class import DeviceSelector
from dra_infra.kubernetes.scheduler.allocator.capacity import CapacityError, fits
from dra_infra.kubernetes.scheduler.allocator.counters import (
    CounterAvailability,
    CounterUse,
    GroupBaseline,
    GroupUse,
)
from dra_infra.kubernetes.scheduler.allocator.identity import DeviceID, PoolID, Published
from dra_infra.kubernetes.scheduler.allocator.pools import Pool
from dra_infra.kubernetes.scheduler.allocator.requests import Key, Wanted
from dra_infra.kubernetes.scheduler.allocator.selection import Trouble
from dra_infra.kubernetes.scheduler.allocator.slices import device_matches_node, pool_of
from dra_infra.kubernetes.scheduler.allocator.state import NO_USE, AllocatedState, Usage
from dra_infra.kubernetes.scheduler.allocator.taking import OPTIONAL_NODE_OPERATIONS, is_kept_away
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant
from dra_infra.kubernetes.scheduler.fleet import Node


@dataclass(frozen=True, slots=True)
class UnusablePool:
    """A pool that gives no devices away, and why; `devices` are those that the node would see in it, of what is published."""

    pool: PoolID
    state: str
    why: str
    devices: tuple[Published, ...]

    def __str__(self) -> str:
        return f"resource pool {self.pool} is {self.state}: {self.why}"


def tried_devices(pools: Iterable[Pool], variant: Variant) -> tuple[tuple[Pool, Published], ...]:
    """The devices of pools that the allocator tries, in order."""
    return tuple((pool, each) for pool in pools if _is_tried(pool, variant) for each in pool.devices)


def find_unusable_pools(cluster: Inventory, node: Node) -> Iterator[UnusablePool]:
    """The pools that a node sees and whose devices nobody gets."""
    built = {pool.id: pool for pool in cluster.allocator.pools(node)}
    relevant = cluster.index.relevant(node)
    names = {pool_of(each) for each in relevant}
    for name in sorted(
        each for each in names if each not in built or not _is_tried(built[each], cluster.variant)
    ):
        slices = [each for each in relevant if pool_of(each) == name]
        generation = max(each.spec.pool.generation for each in slices)
        newest = [each for each in slices if each.spec.pool.generation == generation]
        devices = tuple(device for each in newest for device in cluster.index.devices(each))
        pool = built.get(name)
        if pool is None:
            # Its devices are history, which is told of each.
            devices = ()
            why = (
                f"slices of a newer generation than {generation} are there, and none of them is for this node"
            )
            yield UnusablePool(name, "obsolete", why, devices)
        elif pool.invalid:
            yield UnusablePool(name, "invalid", pool.invalid, devices)
        else:
            there = len(cluster.index.everywhere(name, generation) or ())
            wanted = newest[0].spec.pool.resource_slice_count
            yield UnusablePool(name, "incomplete", f"{there} of {wanted} slices are published", devices)


def _is_tried(pool: Pool, variant: Variant) -> bool:
    return not pool.invalid and (not pool.is_incomplete or variant.has(Quirk.INCOMPLETE_IS_USED))


class Stage(IntEnum):
    """Checks that a device can fail, in the order in which they are made here."""

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
        owner: Whose selector it is: `class h100` or `request`.
        number: Index of that selector.
        rank: How many selectors it passes, those of the class first.
        detail: The taint, capacity, counter set or feature; what is in use of it; why a selector has no value.
        is_error: Whether the selector has no value on the device, which ends the attempt if the search comes to it.
    """

    stage: Stage
    owner: str = ""
    number: int = 0
    rank: int = 0
    detail: str = ""
    is_error: bool = False


PASSED: Final = CheckResult(Stage.PASSED)


class DeviceChecks:
    """The devices of one node, looked at for any request."""

    def __init__(self, cluster: Inventory, node: Node, declared: frozenset[str] = frozenset()) -> None:
        self.node = node
        self._cluster = cluster
        self._variant = cluster.variant
        self._declared = declared
        self.pools: tuple[Pool, ...] = cluster.allocator.pools(node)
        self.devices = tried_devices(self.pools, self._variant)
        self._usage = Usage(cluster.state, self._variant)
        self._left = CounterAvailability(cluster.state, self._variant)
        self._whole = CounterAvailability(AllocatedState(), self._variant)
        self._groups = GroupBaseline(cluster.state)
        self._known: dict[Key, tuple[CheckResult, ...]] = {}

    def check_all(self, leaf: Leaf) -> tuple[CheckResult, ...]:
        """Check each of `devices` for a request."""
        known = self._known.get(leaf.key)
        if known is None:
            known = tuple(self.check(leaf.wanted, *each) for each in self.devices)
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

    def check(self, wanted: Wanted, pool: Pool, published: Published) -> CheckResult:
        """The first thing that keeps a device from a request, looked at alone."""
        found = next(self._unfit(wanted, pool, published), None)
        if found is not None and not found.is_error:
            return found
        used = self._used(wanted, pool, published)
        if used is not None and (found is None or self._usage_hides(wanted, published)):
            return used
        return found or PASSED

    def failures(self, leaf: Leaf, pool: Pool, published: Published) -> list[CheckResult]:
        """Everything that keeps a device from a request, in order; what `check` tells first comes first."""
        found = list(self._unfit(leaf.wanted, pool, published))
        used = self._used(leaf.wanted, pool, published)
        # What is too little of a share for all is too little of what is left of it.
        is_told = (
            used is not None
            and used.detail == "capacity"
            and Stage.CAPACITY in {each.stage for each in found}
        )
        if used is None or is_told:
            return found
        hides = bool(found) and found[0].is_error and self._usage_hides(leaf.wanted, published)
        return [used, *found] if hides else [*found, used]

    def _unfit(self, wanted: Wanted, pool: Pool, published: Published) -> Iterator[CheckResult]:
        """Yields what keeps a device from a request, whoever uses it."""
        yield from self._unselected(wanted, published)
        checks: tuple[Callable[[], CheckResult | None], ...] = (
            lambda: self._placed(published),
            lambda: self._large_enough(wanted, published),
            lambda: self._featured(published),
            lambda: self._tainted(wanted, published),
            lambda: self._counted(pool, published),
        )
        for check in checks:
            if (found := check()) is not None:
                yield found

    def _usage_hides(self, wanted: Wanted, published: Published) -> bool:
        """The device is in use, so that the search never asks the selectors about it."""
        return not self._usage.is_free(wanted, published, 0)

    def _unselected(self, wanted: Wanted, published: Published) -> Iterator[CheckResult]:
        rank = 0
        for owner, selectors in selector_lists(wanted):
            for number, selector in enumerate(selectors):
                verdict = self.test(selector, published)
                if verdict is not True:
                    is_error = isinstance(verdict, Trouble)
                    detail = verdict.text if isinstance(verdict, Trouble) else ""
                    yield CheckResult(Stage.SELECTOR, owner, number, rank, detail, is_error)
                rank += 1

    def test(self, selector: DeviceSelector, published: Published) -> bool | Trouble:
        """Evaluate one selector on a device."""
        return self.evaluate(selector.expression, published)

    def evaluate(self, expression: str, published: Published) -> bool | Trouble:
        """Evaluate an expression on a device."""
        return self._cluster.evaluator.test(expression, published)

    def _placed(self, published: Published) -> CheckResult | None:
        if published.slice.spec.per_device_node_selection and not device_matches_node(
            published.device, self.node
        ):
            return CheckResult(Stage.PLACE, detail="the device is for other nodes")
        if published.device.binding_conditions and not self._variant.features.binding_conditions:
            return CheckResult(
                Stage.PLACE, detail="bindingConditions needs the gate DRADeviceBindingConditions"
            )
        return None

    def _featured(self, published: Published) -> CheckResult | None:
        features = self._variant.features
        missing = ""
        if published.device.consumes_counters and not features.partitionable_devices:
            missing = "consumesCounters needs the gate DRAPartitionableDevices"
        elif self._variant.channel == "experimental" and published.slice.spec.skip_node_operations:
            if not features.optional_node_operations:
                missing = "skipNodeOperations needs the gate DRAOptionalNodeOperations"
            elif OPTIONAL_NODE_OPERATIONS not in self._declared:
                missing = f"skipNodeOperations needs a node that declares {OPTIONAL_NODE_OPERATIONS}"
        return CheckResult(Stage.FEATURE, detail=missing) if missing else None

    def _tainted(self, wanted: Wanted, published: Published) -> CheckResult | None:
        features = self._variant.features
        tolerations = wanted.leaf.tolerations or ()
        if not features.device_taints or not is_kept_away(published.device, tolerations, self._variant):
            return None
        taints = sorted(
            f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"
            for taint in published.device.taints or ()
            if is_kept_away(published.device.changed({"taints": [taint]}), tolerations, self._variant)
        )
        return CheckResult(Stage.TAINT, detail=", ".join(taints))

    def _large_enough(self, wanted: Wanted, published: Published) -> CheckResult | None:
        if not self._variant.features.consumable_capacity:
            return None
        capacities = published.device.capacity or {}
        try:
            if fits(wanted.capacity, capacities, NO_USE, NO_USE, self._variant):
                return None
        except CapacityError as error:
            return CheckResult(Stage.CAPACITY, detail=str(error), is_error=True)
        for name, amount in wanted.capacity.items():
            if name not in capacities:
                return CheckResult(Stage.CAPACITY, detail=f"{name} is absent")
            if not fits({name: amount}, {name: capacities[name]}, NO_USE, NO_USE, self._variant):
                text = refuse_share(name, amount, capacities[name], self._variant)
                return CheckResult(Stage.CAPACITY, detail=text)
        return CheckResult(Stage.CAPACITY, detail="what a request takes by default does not fit the device")

    def _counted(self, pool: Pool, published: Published) -> CheckResult | None:
        if not published.device.consumes_counters or self._is_paid(published):
            return None
        if CounterUse(self._whole, self._variant).take(pool, published):
            return None
        return CheckResult(Stage.COUNTER, detail=join_sets(published))

    def _used(self, wanted: Wanted, pool: Pool, published: Published) -> CheckResult | None:
        is_share = self._variant.features.consumable_capacity and published.shareable
        if not (is_share and wanted.admin) and not self._usage.is_free(wanted, published, 0):
            return CheckResult(Stage.USED, detail="device")
        if self._variant.features.consumable_capacity:
            try:
                if not self._usage.has_capacity(wanted, published):
                    return CheckResult(Stage.USED, detail="capacity")
            except CapacityError as error:
                return CheckResult(Stage.CAPACITY, detail=str(error), is_error=True)
        if published.device.consumes_counters and not self._is_paid(published):
            has_groups = self._variant.features.compatibility_groups
            if has_groups and GroupUse(self._groups).take(pool, published) is None:
                return CheckResult(Stage.USED, detail="compatibility groups")
            if not CounterUse(self._left, self._variant).take(pool, published):
                return CheckResult(Stage.USED, detail="counters")
        return None

    def _is_paid(self, published: Published) -> bool:
        """Another claim has a share of the device, and its counters are taken once."""
        is_share = self._variant.features.consumable_capacity and published.shareable
        return is_share and self._usage.has_shares(published.id)


def selector_lists(wanted: Wanted) -> Iterator[tuple[str, Sequence[DeviceSelector]]]:
    """The selectors that a device must pass, by their owner, in the order in which they are evaluated."""
    yield f"class {wanted.device_class.metadata.name}", wanted.device_class.spec.selectors or ()
    yield "request", wanted.leaf.selectors or ()


def join_sets(published: Published) -> str:
    """The counter sets that a device draws on."""
    return ", ".join(each.counter_set for each in published.device.consumes_counters or ())
