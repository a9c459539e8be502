"""Taking one device for a request, with all that it costs, and giving everything back.

Source: allocateDevice and rollbackDevice. Before 1.36 a device that was refused late kept what it had taken until
then: counters after a taint or a constraint, everything after a capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dra_infra.kubernetes.api.device_taints import DeviceTaint, DeviceToleration
from dra_infra.kubernetes.api.quantity import Quantity
from dra_infra.kubernetes.api.resource_slice import Device
from dra_infra.kubernetes.scheduler.allocator.capacity import CapacityError, consumed_amounts
from dra_infra.kubernetes.scheduler.allocator.constraints import Constraint
from dra_infra.kubernetes.scheduler.allocator.counters import CounterUse, GroupUse
from dra_infra.kubernetes.scheduler.allocator.identity import AllocationError, Failed, Published, abort
from dra_infra.kubernetes.scheduler.allocator.pools import Pool
from dra_infra.kubernetes.scheduler.allocator.refusals import Check, Tracer, refuse
from dra_infra.kubernetes.scheduler.allocator.requests import Wanted
from dra_infra.kubernetes.scheduler.allocator.slices import SliceIndex
from dra_infra.kubernetes.scheduler.allocator.state import Picked, Undo, Usage
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant

OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
"""Feature of a node that can leave out calls of the driver, in its `status.declaredFeatures`."""


class Taking:
    """Everything that changes while devices are picked and given back in one attempt."""

    def __init__(
        self,
        usage: Usage,
        counters: CounterUse,
        groups: GroupUse,
        index: SliceIndex,
        declared: frozenset[str],
        variant: Variant,
        tracer: Tracer | None = None,
    ) -> None:
        self.usage = usage
        self.constraints: list[list[Constraint]] = []
        self.picked: list[list[Picked]] = []
        self._counters = counters
        self._groups = groups
        self._index = index
        self._declared = declared
        self._variant = variant
        self._tracer = tracer

    def take(
        self, claim: int, wanted: Wanted, pool: Pool, published: Published, *, number: int
    ) -> Undo | None:
        """Take a device that passes the selectors, or find out that it is not to be had.

        Returns:
            What gives it back; None when it is not to be had.

        Raises:
            AllocationError: When the attempt ends.
        """
        is_share = self._variant.features.consumable_capacity and published.shareable
        # A share for admin access is not looked at: nothing marks the device.
        if not (is_share and wanted.admin) and not self.usage.is_free(wanted, published, claim):
            return None
        undone: list[Undo] = []
        if (
            self.admit(wanted, pool, published, undone, is_share=is_share)
            and self._take_constraints(claim, wanted, published, undone)
            and self._take_device(claim, wanted, published, undone, number=number)
        ):
            return lambda: _undo(undone)
        if not self._variant.has(Quirk.REFUSED_KEEPS):
            _undo(undone)
        return None

    def admit(
        self, wanted: Wanted, pool: Pool, published: Published, undone: list[Undo], *, is_share: bool
    ) -> bool:
        """Check features and taints of a device, and take its counters."""
        if not self._is_allowed(published) and refuse(self._tracer, published, Check.FEATURE):
            return False
        return self._take_counters(pool, published, undone, is_share=is_share) and not (
            self._is_kept_away(published.device, wanted) and refuse(self._tracer, published, Check.TAINT)
        )

    def _is_allowed(self, published: Published) -> bool:
        return not find_missing_feature(published, self._declared, self._variant)

    def _is_kept_away(self, device: Device, wanted: Wanted) -> bool:
        return bool(list_untolerated(device, wanted.leaf.tolerations or (), self._variant))

    def _take_counters(self, pool: Pool, published: Published, undone: list[Undo], *, is_share: bool) -> bool:
        if not published.device.consumes_counters or (is_share and self.usage.has_shares(published.id)):
            return True
        if self._variant.features.compatibility_groups:
            before = self._groups.take(pool, published)
            if before is not None:
                undone.append(partial(self._groups.restore, before))
            elif refuse(self._tracer, published, Check.COMPATIBILITY_GROUPS):
                return False
        if not self._counters.take(pool, published):
            return not refuse(self._tracer, published, Check.COUNTERS)
        # Before 1.36 the counters of a share are never given back.
        if not is_share or not self._variant.has(Quirk.REFUSED_KEEPS):
            undone.append(lambda: self._counters.give_back(published))
        return True

    def _take_constraints(self, claim: int, wanted: Wanted, published: Published, undone: list[Undo]) -> bool:
        added: list[Constraint] = []
        for constraint in self.constraints[claim]:
            if not constraint.add(wanted, published):
                if wanted.all_devices is not None:
                    raise abort(
                        f"{wanted.where}: cannot add device {published.id} because a claim constraint would not be satisfied"
                    )
                for each in reversed(added):
                    each.remove(wanted)
                return False
            added.append(constraint)
        undone.extend(partial(each.remove, wanted) for each in added)
        return True

    def _take_device(
        self, claim: int, wanted: Wanted, published: Published, undone: list[Undo], *, number: int
    ) -> bool:
        has_shares = self._variant.features.consumable_capacity
        is_share = has_shares and published.shareable
        if not is_share:
            undone.append(self.usage.mark(published.id, claim))
        if has_shares and not self._still_fits(wanted, published, number):
            return False
        consumed: dict[str, Quantity] = {}
        if is_share:
            consumed = consumed_amounts(wanted.capacity, published.device.capacity or {}, self._variant)
            undo = self.usage.take_capacity(published.id, consumed)
            if undo is not None:
                undone.append(undo)
        results = self.picked[claim]
        results.append(Picked(wanted, published, is_share, consumed))
        undone.append(results.pop)
        return True

    def _still_fits(self, wanted: Wanted, published: Published, number: int) -> bool:
        if self._variant.has(Quirk.CAPACITY_OF_ANOTHER):
            # It looks at another device of the slice: that with the number which this one has in its request.
            devices = self._index.devices(published.slice)
            if number >= len(devices):
                text = f"runtime error: index out of range [{number}] with length {len(devices)}"
                raise AllocationError(Failed(text, crashes=True))
            published = devices[number]
        try:
            return self.usage.has_capacity(wanted, published)
        except CapacityError as error:
            raise abort(f"{wanted.where}: rechecking capacity for device {published.id}: {error}") from error


def find_missing_feature(published: Published, declared: frozenset[str], variant: Variant) -> str:
    """Return the feature that a device needs and that is off; empty where there is none."""
    features = variant.features
    if published.device.consumes_counters and not features.partitionable_devices:
        return "consumesCounters needs the gate DRAPartitionableDevices"
    # Calls of the driver to leave out: only the experimental copy asks whether that can be done.
    if variant.channel != "experimental" or not published.slice.spec.skip_node_operations:
        return ""
    if not features.optional_node_operations:
        return "skipNodeOperations needs the gate DRAOptionalNodeOperations"
    if OPTIONAL_NODE_OPERATIONS not in declared:
        return f"skipNodeOperations needs a node that declares {OPTIONAL_NODE_OPERATIONS}"
    return ""


def list_untolerated(
    device: Device, tolerations: Sequence[DeviceToleration], variant: Variant
) -> list[DeviceTaint]:
    """List the taints that keep a request away from a device; in 1.34 every effect does."""
    if not variant.features.device_taints:
        return []
    return [
        taint
        for taint in device.taints or ()
        if (variant.number == 34 or taint.effect in ("NoSchedule", "NoExecute"))
        and not any(_tolerates(toleration, taint) for toleration in tolerations)
    ]


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """ToleratesTaint in k8s.io/dynamic-resource-allocation/resourceclaim."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _undo(undone: list[Undo]) -> None:
    for each in reversed(undone):
        each()
