"""A fleet as the scheduler of one release reads it, the search on one of its nodes, and the shapes of nodes.

Nodes that are the same to the claims of a pod have one shape, so that each shape is searched once, with the same
things in use. Two nodes have one shape for some claims when a search would go the same way on both: their pools in
order, the devices in them in all that selectors, constraints and the allocator look at, and values under a constraint
up to their names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from dra_infra.explanation.decisive_bugs import find_decisive_bugs
from dra_infra.explanation.node_reasons import NodeReason, explain_node
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import (
    AllocationResult,
    Amounts,
    Device,
    DeviceClass,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    Node,
    ObjectMeta,
    ObjectRef,
    Release,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
    drop_from_slice,
    with_defaults,
)
from dra_infra.kubernetes.api.limits import MAX_RESULTS
from dra_infra.kubernetes.scheduler import DeviceAmounts, node_amounts, with_taint_rules
from dra_infra.kubernetes.scheduler.allocator import (
    NO_USE,
    Allocated,
    AllocatedState,
    AllocationError,
    Allocator,
    Cannot,
    CapacityError,
    DeviceID,
    Pool,
    Published,
    Quirk,
    device_matches_node,
    fits_capacity,
    passes_selectors,
    static_attribute,
)
from dra_infra.placement.demand import Demand, ReadFields
from dra_infra.placement.outcomes import Aborted, Chosen, Impossible, NotDecided, Outcome, Pick
from dra_infra.target import ClusterTarget

STEPS_LIMIT: Final = 200_000
"""Steps of one search before it is given up; the scheduler has a limit of 10 s per node instead."""

_TOO_LATE: Final = "devices are there, and the scheduler has to try so many others before them that it may give up: it stops after 10 s"

_CLAIM: Final = "claim-{}-of-the-pod"
"""Claims are searched under these names, so that equal claims of other names share the answer."""
_NAMED: Final = re.compile(r"claim-([0-9]+)-of-the-pod")

_COMPARED: Final = frozenset({"name", "attributes", "capacity"})
"""Fields of a device that are looked at one by one; all others count as they are."""


def newest_release() -> Release:
    """The newest minor with its default gates."""
    return ClusterTarget().releases[-1]


class Cluster:
    """Nodes, slices and classes behind one release's server.

    Args:
        fleet: What there is.
        release: Whose server dropped fields and whose scheduler allocates.
        is_late: Asked during searches; true ends them.
        objects: Objects beside the fleet, of which DeviceTaintRules taint devices; `problems` has those that are not
            understood.
    """

    def __init__(
        self,
        fleet: Fleet,
        release: Release,
        is_late: Callable[[], bool] | None = None,
        *,
        objects: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        slices, self.problems = with_taint_rules(fleet.slices, objects, release)
        self.fleet = fleet
        self.release = release
        self.nodes: tuple[Node, ...] = tuple(sorted(fleet.nodes, key=lambda node: node.name))
        self.slices = [_stored(each, release) for each in slices]
        self.offered = _find_offered(self.nodes)
        """What each node offers, whatever runs on it."""
        self.device_amounts = DeviceAmounts(self.slices, release)
        self._is_late = is_late
        self._base = Allocator(release, self.slices, ())
        self._variant = self._base.variant
        self.kinds = self._base.kinds
        self._pools: list[tuple[Pool, ...] | None] = [None] * len(self.nodes)
        self._allocators: dict[tuple[str, ...], Allocator] = {}

    def pools(self, node: int) -> tuple[Pool, ...]:
        """The pools of a node, in the order in which they are tried."""
        found = self._pools[node]
        if found is None:
            found = self._pools[node] = self._base.pools(self.nodes[node])
        return found

    def find_parse_error(self, node: int) -> str:
        """Return the error on a slice, of whichever driver, that ends every attempt on a node; empty for none."""
        return self._base.find_parse_error(self.nodes[node])

    def device(self, node: int, pick: Pick) -> DeviceID:
        """The device that a pick means on a node."""
        return self.pools(node)[pick.pool].devices[pick.position].id

    def search(self, node: int, demands: Sequence[Demand], state: AllocatedState) -> Outcome:
        """Searches a node for devices of claims that are not allocated yet."""
        steps = _Steps(self._is_late)
        claims = _claims(demands)
        allocator = self._allocator(demands, state)
        outcome = allocator.allocate(self.nodes[node], claims, is_cancelled=steps.count)
        if steps.why:
            return NotDecided("search-stopped", steps.why)
        if isinstance(outcome, Allocated):
            again = _Steps(self._is_late)
            if outcome.leaves_out and not allocator.answers_in_time(
                self.nodes[node], claims, is_cancelled=again.count
            ):
                return NotDecided("search-stopped", again.why or _TOO_LATE)
            return self._choose(node, outcome.results)
        if isinstance(outcome, Cannot):
            return Impossible()
        if not outcome.decided:
            return NotDecided(outcome.code, outcome.text, outcome.on_node)
        if outcome.on_node:
            return Impossible()
        return Aborted(outcome.text, outcome.crashes)

    def may_abort(self, node: int, demands: Sequence[Demand]) -> bool:
        """True if something on a node may end an attempt that comes to it: a device without a value, or a request for all devices."""
        classes = {each.metadata.name: each for each in _classes(demands)}
        pools = self.pools(node)
        if any(pool.invalid for pool in pools) or self.find_parse_error(node):
            return True
        for claim in _claims(demands):
            devices = claim.spec.devices
            for leaf in (leaf for each in devices.requests or () for _, _, leaf in each.leaves):
                # All devices that match have to satisfy the constraints, be complete and be few enough.
                if leaf.allocation_mode == "All" and (
                    devices.constraints
                    or any(pool.is_incomplete for pool in pools)
                    or sum(len(pool.devices) for pool in pools) > MAX_RESULTS
                ):
                    return True
                selectors = (*(classes[leaf.device_class_name].spec.selectors or ()), *(leaf.selectors or ()))
                if leaf.derived_attributes or self._has_error(pools, leaf, selectors):
                    return True
        return False

    def _has_error(
        self,
        pools: Sequence[Pool],
        leaf: ExactDeviceRequest | DeviceSubRequest,
        selectors: Sequence[DeviceSelector],
    ) -> bool:
        """True if the selectors, or the capacity of a request, have no value on some device."""
        consumes = self._variant.features.consumable_capacity
        if consumes and self._variant.has(Quirk.CAPACITY_OF_ANOTHER) and leaf.count != 1:
            # The scheduler panics at a device whose number in the request is beyond the devices of its slice.
            return True
        requested = leaf.capacity.requests if leaf.capacity else None
        try:
            for device in (each for pool in pools for each in (*pool.devices, *pool.elsewhere)):
                if passes_selectors(selectors, "", device, self._base.evaluator, self._variant) and consumes:
                    fits_capacity(
                        requested or {}, device.device.capacity or {}, NO_USE, NO_USE, self._variant
                    )
        except (AllocationError, CapacityError):
            return True
        return False

    def find_matching(self, node: int, demand: Demand) -> list[DeviceID]:
        """Return the devices of a node that any request of a claim may get, whoever has them."""
        by_request = (self.find_for_request(node, demand, leaf) for _, leaf in demand.leaves)
        return list(dict.fromkeys(device.id for devices in by_request for device in devices))

    def find_for_request(
        self, node: int, demand: Demand, leaf: ExactDeviceRequest | DeviceSubRequest
    ) -> list[Published]:
        """Return the devices of a node that one request of a claim may get; those whose selectors have an error count too."""
        classes = {each.metadata.name: each for each in demand.classes}
        selectors = (*(classes[leaf.device_class_name].spec.selectors or ()), *(leaf.selectors or ()))
        devices = (device for pool in self.pools(node) for device in pool.devices)
        return [device for device in devices if self._may_match(selectors, device)]

    def _may_match(self, selectors: Sequence[DeviceSelector], device: Published) -> bool:
        try:
            return passes_selectors(selectors, "", device, self._base.evaluator, self._variant)
        except (AllocationError, CapacityError):
            return True

    def find_bugs(self, node: int, demands: Sequence[Demand], state: AllocatedState) -> tuple[str, ...]:
        """Return the bugs of the minor, in words, without which a node that serves claims would not serve them."""
        classes, claims = _classes(demands), _claims(demands)

        def differs(bugs: Set[Quirk]) -> bool:
            variant = replace(self._variant, quirks=self._variant.quirks - bugs)
            base = self._base
            allocator = Allocator(variant, base.index, classes, state, evaluator=base.evaluator)
            steps = _Steps(self._is_late)
            outcome = allocator.allocate(self.nodes[node], claims, is_cancelled=steps.count)
            return not steps.why and not isinstance(outcome, Allocated)

        return find_decisive_bugs(self._variant.quirks, differs)

    def allocate(
        self, node: int, demands: Sequence[Demand], state: AllocatedState
    ) -> tuple[AllocationResult, ...]:
        """`status.allocation` of each claim on a node that can serve them."""
        claims = _claims(demands)
        outcome = self._allocator(demands, state).allocate(self.nodes[node], claims)
        return outcome.results if isinstance(outcome, Allocated) else ()

    def explain(
        self, node: int, demands: Sequence[Demand], state: AllocatedState, claims: Sequence[ObjectRef]
    ) -> NodeReason:
        """The first reason why a node cannot serve claims, which are called by their own names."""
        question = self._base.with_classes(_classes(demands)).with_state(state)
        named = [
            claim.changed({"metadata": ObjectMeta().changed({"name": ref.name, "namespace": ref.namespace})})
            for claim, ref in zip(_claims(demands), claims, strict=True)
        ]
        return explain_node(question, self.nodes[node], named, names=[str(ref) for ref in claims])

    def _allocator(self, demands: Sequence[Demand], state: AllocatedState) -> Allocator:
        """The allocator with the classes that claims name."""
        key = tuple(demand.key for demand in demands)
        known = self._allocators.get(key)
        if known is None:
            known = self._allocators[key] = self._base.with_classes(_classes(demands))
        return known.with_state(state)

    def _choose(self, node: int, results: Sequence[AllocationResult]) -> Outcome:
        places = {
            each.id: (pool, position)
            for pool, found in enumerate(self.pools(node))
            for position, each in enumerate(found.devices)
        }
        picks: list[Pick] = []
        for claim, result in enumerate(results):
            for each in result.devices.results or ():
                device = DeviceID(each.driver, each.pool, each.device)
                pool, position = places[device]
                if unknown := _find_unknown(self.pools(node)[pool].devices[position].device.model_extra):
                    return NotDecided("not-modelled", f"device {device}: {unknown}")
                picks.append(
                    Pick(
                        claim,
                        each.request,
                        pool,
                        position,
                        admin=each.admin_access is True,
                        share=each.share_id is not None,
                        consumed=each.consumed_capacity,
                    )
                )
        return Chosen(tuple(picks))


class _Steps:
    """Counts the steps of a search, and says when it is enough."""

    def __init__(self, is_late: Callable[[], bool] | None) -> None:
        self._left = STEPS_LIMIT
        self._is_late = is_late
        self.why = ""

    def count(self) -> bool:
        self._left -= 1
        if self._left < 0:
            self.why = f"after {STEPS_LIMIT:,} devices tried"
        elif self._is_late is not None and (STEPS_LIMIT - self._left) % 1024 == 1 and self._is_late():
            self.why = "when the time was up"
        return bool(self.why)


class NodeShapes:
    """Finds the shapes of a cluster's nodes; claims that look at the same share them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[ReadFields, Sequence[int]] = {}
        self._rest: dict[int, Hashable] = {}

    def of(self, fields: ReadFields) -> Sequence[int]:
        """The number of each node's shape, for what is looked at."""
        shapes = self._known.get(fields)
        if shapes is None:
            shapes = self._known[fields] = self._find(fields)
        return shapes

    def _find(self, fields: ReadFields) -> Sequence[int]:
        describe = _Description(self._cluster, fields, self._rest)
        seen: dict[Hashable, int] = {}
        nodes = range(len(self._cluster.nodes))
        return [seen.setdefault(describe.node(node), len(seen)) for node in nodes]


class _Description:
    """Hashable descriptions of devices and nodes, for one way of looking at them."""

    def __init__(self, cluster: Cluster, fields: ReadFields, rest: dict[int, Hashable]) -> None:
        self._cluster = cluster
        self._fields = fields
        self._rest = rest
        self._devices: dict[int, int] = {}
        self._kinds: dict[Hashable, int] = {}

    def node(self, node: int) -> Hashable:
        pools = self._cluster.pools(node)
        devices = [each for pool in pools for each in pool.devices]
        names: dict[str, int] = {}
        where = self._cluster.nodes[node]
        return (
            self._cluster.find_parse_error(node),
            # In 1.35 pools of one name and several drivers share counters.
            tuple(names.setdefault(pool.id.pool, len(names)) for pool in pools),
            tuple(self._pool(pool) for pool in pools),
            tuple(_number_values(devices, name) for name in self._fields.attributes),
            tuple(
                device_matches_node(each.device, where)
                for each in devices
                if each.slice.spec.per_device_node_selection
            ),
        )

    def _pool(self, pool: Pool) -> Hashable:
        return (
            pool.id.driver,
            pool.is_incomplete,
            pool.invalid,
            pool.counts,
            # Where a slice begins counts: 1.34 and 1.35 look at other devices of it.
            tuple((self._kind(each), each.index) for each in pool.devices),
            tuple(self._kind(each) for each in pool.elsewhere if each.device.consumes_counters),
            _freeze(pool.counters) if pool.counters else None,
        )

    def _kind(self, published: Published) -> int:
        known = self._devices.get(id(published))
        if known is None:
            described = (
                self._cluster.kinds.number(self._fields.reads, published),
                self._describe_rest(published),
                self._describe_capacity(published.device),
            )
            known = self._devices[id(published)] = self._kinds.setdefault(described, len(self._kinds))
        return known

    def _describe_capacity(self, device: Device) -> Hashable:
        """Capacities, where amounts of them are counted."""
        capacity = device.capacity or {}
        has_policy = any(each.request_policy is not None for each in capacity.values())
        if not (self._fields.capacity or has_policy or device.allow_multiple_allocations):
            return None
        return _freeze(capacity)

    def _describe_rest(self, published: Published) -> Hashable:
        """Everything that the allocator looks at beside attributes and capacity; the same for any claims."""
        known = self._rest.get(id(published))
        if known is None:
            device = published.device
            spec = published.slice.spec
            others: Hashable = None
            if not device.model_fields_set <= _COMPARED or device.model_extra:
                manifest = device.to_manifest()
                others = _freeze({name: value for name, value in manifest.items() if name not in _COMPARED})
            known = self._rest[id(published)] = (
                published.id.driver,
                others,
                bool(spec.per_device_node_selection),
                bool(spec.node_name),
                _freeze(spec.skip_node_operations) if spec.skip_node_operations else None,
            )
        return known


def _number_values(devices: Iterable[Published], name: str) -> Hashable:
    """The values of an attribute up to their names: equal numbers for equal values, in the order of appearance."""
    numbers: dict[Hashable, int] = {}
    numbered: list[Hashable] = []
    for each in devices:
        attribute = static_attribute(each, name)
        if attribute is None:
            numbered.append(None)
            continue
        found = attribute.to_manifest().items()
        if not found:
            numbered.append(())
        for kind, value in found:
            # A list is compared with single values of its type where lists are known.
            several = value if isinstance(value, list) else [value]
            one = kind.removesuffix("s")
            numbers_of = tuple(numbers.setdefault((one, item), len(numbers)) for item in several)
            numbered.append(numbers_of if isinstance(value, list) else numbers_of[0])
    return tuple(numbered)


def _freeze(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: object) -> object:
    return value.to_manifest() if hasattr(value, "to_manifest") else str(value)


def name_claims(text: str, claims: Sequence[ObjectRef]) -> str:
    """An error of the allocator with the names of the pod's claims in it."""
    return _NAMED.sub(lambda match: f"{_of(claims[int(match[1])])}", text)


def _of(claim: ObjectRef) -> str:
    return f"{claim.namespace}/{claim.name}" if claim.namespace else claim.name


@lru_cache(maxsize=4096)
def _spec(key: str, demand: Demand) -> ResourceClaimSpec:  # noqa: ARG001  (equal demands have equal keys)
    return ResourceClaimSpec().changed({"devices": demand.devices})


def _claims(demands: Sequence[Demand]) -> list[ResourceClaim]:
    return [_claim(demand, _CLAIM.format(number)) for number, demand in enumerate(demands)]


def _classes(demands: Sequence[Demand]) -> list[DeviceClass]:
    found = {each.metadata.name: each for demand in demands for each in demand.classes}
    return list(found.values())


def _claim(demand: Demand, name: str) -> ResourceClaim:
    return ResourceClaim().changed(
        {"metadata": ObjectMeta().changed({"name": name}), "spec": _spec(demand.key, demand)}
    )


def _stored(slice_: ResourceSlice, release: Release) -> ResourceSlice:
    """A slice as the server has it."""
    spec = drop_from_slice(slice_.spec, release)[0]
    return with_defaults(slice_ if spec is slice_.spec else slice_.changed({"spec": spec}))


def _find_offered(nodes: Sequence[Node]) -> list[Amounts]:
    by_allocatable: dict[tuple[tuple[str, str], ...], Amounts] = {}
    found: list[Amounts] = []
    for node in nodes:
        key = tuple(sorted(node.allocatable.items()))
        if key not in by_allocatable:
            by_allocatable[key] = node_amounts(node.allocatable)
        found.append(by_allocatable[key])
    return found


def _find_unknown(extra: object) -> str:
    """A field of the future, which may decide what nobody here knows."""
    return (
        next((name for name, value in sorted(extra.items()) if value), "") if isinstance(extra, dict) else ""
    )
