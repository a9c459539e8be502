"""What a question about claims is asked of: devices, classes, what is in use, and whose allocator answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.resource_slice import ResourceSlice
from dra_infra.model.target import Release
from dra_infra.simulation.allocation.allocator import Allocator
from dra_infra.simulation.allocation.selection import CelEvaluator, Evaluator
from dra_infra.simulation.allocation.slices import SliceIndex
from dra_infra.simulation.allocation.state import AllocatedState
from dra_infra.simulation.allocation.variants import Variant, choose_variant


@dataclass(frozen=True, slots=True)
class Cluster:
    """Everything but the nodes and the claims.

    Args:
        variant: The allocator's copy of one minor.
        index: All slices.
        classes: All device classes, by name.
        state: What is in use.
        evaluator: What evaluates selectors.
    """

    variant: Variant
    index: SliceIndex
    classes: Mapping[str, DeviceClass]
    state: AllocatedState
    evaluator: Evaluator

    @classmethod
    def of(
        cls,
        release: Release | Variant,
        slices: Sequence[ResourceSlice] | SliceIndex,
        classes: Iterable[DeviceClass],
        state: AllocatedState | None = None,
        *,
        evaluator: Evaluator | None = None,
    ) -> Cluster:
        """The same arguments as `Allocator`."""
        variant = choose_variant(release) if isinstance(release, Release) else release
        return cls(
            variant=variant,
            index=slices.under(variant) if isinstance(slices, SliceIndex) else SliceIndex(slices, variant),
            classes={each.metadata.name or "": each for each in classes},
            state=AllocatedState() if state is None else state,
            evaluator=CelEvaluator(variant) if evaluator is None else evaluator,
        )

    @property
    def allocator(self) -> Allocator:
        """The allocator that answers."""
        return Allocator(
            self.variant, self.index, self.classes.values(), self.state, evaluator=self.evaluator
        )

    def with_state(self, state: AllocatedState) -> Cluster:
        """The same with other devices in use."""
        return replace(self, state=state)

    def with_class(self, changed: DeviceClass) -> Cluster:
        """The same with one class changed."""
        return replace(self, classes={**self.classes, changed.metadata.name or "": changed})
