"""Devices that a request can have at all, whatever is in use.

Each pair is looked at once in an attempt. Source: isSelectable, selectorsMatch and lookupAttribute.

The reach of a request is what it can have while nothing is in use, by pool: what no attempt needs to find out again.
It is for bounds only. The search itself asks one device at a time, for an error ends it where upstream meets one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from dra_infra.kubernetes.api.device_class import DeviceSelector
from dra_infra.kubernetes.api.nodes import Node
from dra_infra.kubernetes.api.resource_slice import DeviceAttribute
from dra_infra.kubernetes.scheduler.allocator.capacity import CapacityError, fits_capacity
from dra_infra.kubernetes.scheduler.allocator.constraints import static_attribute
from dra_infra.kubernetes.scheduler.allocator.identity import AllocationError, DeviceID, Failed, Published
from dra_infra.kubernetes.scheduler.allocator.pools import Pool
from dra_infra.kubernetes.scheduler.allocator.refusals import Check, Tracer, refuse
from dra_infra.kubernetes.scheduler.allocator.requests import RequestKey, Wanted
from dra_infra.kubernetes.scheduler.allocator.selection import Evaluator, Trouble, passes_selectors
from dra_infra.kubernetes.scheduler.allocator.slices import device_matches_node
from dra_infra.kubernetes.scheduler.allocator.state import NO_USE
from dra_infra.kubernetes.scheduler.allocator.taking import find_missing_feature, list_untolerated
from dra_infra.kubernetes.scheduler.allocator.variants import Variant


class Matching:
    """Verdicts on devices during one attempt."""

    def __init__(
        self, evaluator: Evaluator, node: Node, variant: Variant, tracer: Tracer | None = None
    ) -> None:
        self._evaluator = evaluator
        self._node = node
        self._variant = variant
        self._tracer = tracer
        self._known: dict[tuple[DeviceID, RequestKey], bool] = {}
        self._derived: dict[tuple[DeviceID, str], DeviceAttribute] = {}

    def forget(self) -> None:
        """Judge all pairs anew, as upstream does once the devices of mode `All` are known."""
        self._known.clear()

    def is_selectable(self, key: RequestKey, wanted: Wanted, published: Published) -> bool:
        """Checks that a device passes the selectors of class and request and is for the node.

        Raises:
            AllocationError: When a selector has no value on the device.
        """
        device = published.device
        if (
            device.binding_conditions
            and not self._variant.features.binding_conditions
            and refuse(self._tracer, published, Check.BINDING_CONDITIONS)
        ):
            return False
        known = self._known.get((published.id, key))
        if known is None:
            device_class = wanted.device_class
            known = self._known[published.id, key] = (
                self._passes(device_class.spec.selectors, f"class {device_class.metadata.name}", published)
                and self._passes(wanted.leaf.selectors, f"claim {wanted.claim}", published)
                and (
                    not published.slice.spec.per_device_node_selection
                    or device_matches_node(device, self._node)
                    or not refuse(self._tracer, published, Check.NODE)
                )
            )
        return known

    def attribute(self, wanted: Wanted, published: Published, name: str) -> DeviceAttribute | None:
        """The attribute that constraints compare: one that the request derives comes before one of the device.

        Raises:
            AllocationError: When a derived attribute has no value.
        """
        expression = wanted.derived.get(name) if self._variant.features.derived_attributes else None
        if expression is None:
            return static_attribute(published, name)
        known = self._derived.get((published.id, expression))
        if known is None:
            value = self._evaluator.derive(expression, published)
            if isinstance(value, Trouble):
                what = f"evaluate derived attribute {name} on device {published.id} failed"
                if not value.compiles:
                    what = f"compile derived attribute {name} failed"
                raise AllocationError(Failed(f"{what}: {value.text}", decided=value.decided))
            known = self._derived[published.id, expression] = value
        return known

    def _passes(self, selectors: Sequence[DeviceSelector] | None, owner: str, published: Published) -> bool:
        return passes_selectors(
            selectors or (), owner, published, self._evaluator, self._variant, self._tracer
        )


class Row(NamedTuple):
    """Devices of a pool as bits, the lowest for the first.

    Args:
        allowed: Those that nothing but their use can keep from the request.
        uncertain: Those at which the search may end with an error.
    """

    allowed: int
    uncertain: int


class Reach:
    """Rows of all pools that were looked at, whatever is in use; for all attempts of an allocator."""

    def __init__(self, evaluator: Evaluator, variant: Variant) -> None:
        self._evaluator = evaluator
        self._variant = variant
        self._rows: dict[Hashable, dict[Pool, Row]] = {}
        self._equal: dict[Row, Row] = {}

    @property
    def is_empty(self) -> bool:
        """Nobody has asked yet."""
        return not self._rows

    def rows(self, wanted: Wanted, pools: Iterable[Pool], node: Node, declared: frozenset[str]) -> list[Row]:
        """Devices that a request can have of some pools of a node, the one that the pools were gathered for."""
        known = self._known(wanted, declared)
        found = []
        for pool in pools:
            row = known.get(pool)
            if row is None:
                row = self._compute(wanted, pool, node, declared)
                row = known[pool] = self._equal.setdefault(row, row)
            found.append(row)
        return found

    def has_rows(self, wanted: Wanted, pools: Iterable[Pool], declared: frozenset[str]) -> bool:
        """The devices that a request can have are known already."""
        known = self._known(wanted, declared)
        return all(pool in known for pool in pools)

    def _known(self, wanted: Wanted, declared: frozenset[str]) -> dict[Pool, Row]:
        if wanted.content is None:
            wanted.content = _content(wanted, declared)
        known = self._rows.get(wanted.content)
        if known is None:
            known = self._rows[wanted.content] = {}
        return known

    def _compute(self, wanted: Wanted, pool: Pool, node: Node, declared: frozenset[str]) -> Row:
        allowed = uncertain = 0
        for number, published in enumerate(pool.devices):
            verdict = self._judge(wanted, published, node, declared)
            if verdict is None:
                uncertain |= 1 << number
            elif verdict:
                allowed |= 1 << number
        return Row(allowed, uncertain)

    def _judge(
        self, wanted: Wanted, published: Published, node: Node, declared: frozenset[str]
    ) -> bool | None:
        """Judges one device; None where a selector or an amount has no value on it."""
        device = published.device
        features = self._variant.features
        if device.binding_conditions and not features.binding_conditions:
            return False
        for selector in (*(wanted.device_class.spec.selectors or ()), *(wanted.leaf.selectors or ())):
            expression = selector.expression
            verdict = self._evaluator.test(expression, published)
            if verdict is False:
                return False
            if verdict is not True:
                return None
        if published.slice.spec.per_device_node_selection and not device_matches_node(device, node):
            return False
        try:
            if features.consumable_capacity and not fits_capacity(
                wanted.capacity, device.capacity or {}, NO_USE, NO_USE, self._variant
            ):
                return False
        except CapacityError:
            return None
        return not find_missing_feature(published, declared, self._variant) and not list_untolerated(
            device, wanted.leaf.tolerations or (), self._variant
        )


def _content(wanted: Wanted, declared: frozenset[str]) -> Hashable:
    """All of a request, and of the node in the same attempt, that decides about a row."""
    leaf = wanted.leaf
    return (
        wanted.device_class.metadata.name,
        tuple(each.expression for each in leaf.selectors or ()),
        tuple(sorted(wanted.capacity.items())),
        tuple((each.key, each.operator, each.value, each.effect) for each in leaf.tolerations or ()),
        declared,
    )
