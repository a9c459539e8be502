"""Which devices a request can have at all, whatever is in use; each pair is looked at once in an attempt.

Source: isSelectable, selectorsMatch and lookupAttribute.
"""

from __future__ import annotations

from collections.abc import Sequence

from dra_infra.model.device import DeviceAttribute
from dra_infra.model.device_class import DeviceSelector
from dra_infra.model.fleet import Node
from dra_infra.simulation.allocation.attributes import static_attribute
from dra_infra.simulation.allocation.identity import DeviceID, Published
from dra_infra.simulation.allocation.outcomes import AllocationError, Failed
from dra_infra.simulation.allocation.requests import Key, Wanted
from dra_infra.simulation.allocation.selection import Evaluator, Trouble, passes
from dra_infra.simulation.allocation.slices import device_matches_node
from dra_infra.simulation.allocation.variants import Variant


class Matching:
    """Verdicts on devices during one attempt."""

    def __init__(self, evaluator: Evaluator, node: Node, variant: Variant) -> None:
        self._evaluator = evaluator
        self._node = node
        self._variant = variant
        self._known: dict[tuple[DeviceID, Key], bool] = {}
        self._derived: dict[tuple[DeviceID, str], DeviceAttribute] = {}

    def forget(self) -> None:
        """Judge all pairs anew, as upstream does once the devices of mode `All` are known."""
        self._known.clear()

    def is_selectable(self, key: Key, wanted: Wanted, published: Published) -> bool:
        """Whether a device passes the selectors of class and request and is for the node.

        Args:
            key: Under what the verdict is kept.
            wanted: The request.
            published: The device.

        Raises:
            AllocationError: When a selector has no value on the device.
        """
        device = published.device
        if device.binding_conditions and not self._variant.features.binding_conditions:
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
        return passes(selectors or (), owner, published, self._evaluator, self._variant)
