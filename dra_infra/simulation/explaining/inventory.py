"""What a question about claims is asked of: devices, classes, what is in use, and whose allocator answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.resource_slice import ResourceSlice
from dra_infra.model.target import Release
from dra_infra.simulation.allocation.allocator import Allocator
from dra_infra.simulation.allocation.kinds import KindEvaluator
from dra_infra.simulation.allocation.selection import Evaluator
from dra_infra.simulation.allocation.slices import SliceIndex
from dra_infra.simulation.allocation.state import AllocatedState
from dra_infra.simulation.allocation.variants import Variant, choose_variant


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything but the nodes and the claims.

    Args:
        variant: The allocator's copy of one minor.
        index: All slices.
        classes: All device classes, by name.
        state: What is in use.
        evaluator: What evaluates selectors.
        allocator: What answers.
    """

    variant: Variant
    index: SliceIndex
    classes: Mapping[str, DeviceClass]
    state: AllocatedState
    evaluator: Evaluator
    allocator: Allocator

    @classmethod
    def of(
        cls,
        release: Release | Variant,
        slices: Sequence[ResourceSlice] | SliceIndex,
        classes: Iterable[DeviceClass],
        state: AllocatedState | None = None,
        *,
        evaluator: Evaluator | None = None,
    ) -> Inventory:
        """The same arguments as `Allocator`."""
        variant = choose_variant(release) if isinstance(release, Release) else release
        index = slices.under(variant) if isinstance(slices, SliceIndex) else SliceIndex(slices, variant)
        known = {each.metadata.name or "": each for each in classes}
        state = AllocatedState() if state is None else state
        evaluator = KindEvaluator(variant) if evaluator is None else evaluator
        allocator = Allocator(variant, index, known.values(), state, evaluator=evaluator)
        return cls(variant, index, known, state, evaluator, allocator)

    def with_state(self, state: AllocatedState) -> Inventory:
        """The same with other devices in use."""
        return replace(self, state=state, allocator=self.allocator.with_state(state))

    def with_class(self, changed: DeviceClass) -> Inventory:
        """The same with one class changed."""
        classes = {**self.classes, changed.metadata.name or "": changed}
        return Inventory.of(self.variant, self.index, classes.values(), self.state, evaluator=self.evaluator)

    def with_slices(self, slices: Sequence[ResourceSlice]) -> Inventory:
        """The same with other slices."""
        return Inventory.of(self.variant, slices, self.classes.values(), self.state, evaluator=self.evaluator)
