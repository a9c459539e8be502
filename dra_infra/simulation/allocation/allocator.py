"""The allocator of one scheduling attempt: what each node would give the claims of a pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.fleet import Node
from dra_infra.model.resource_claim import ResourceClaim
from dra_infra.model.resource_slice import ResourceSlice
from dra_infra.model.target import Release
from dra_infra.simulation.allocation.assembly import assemble
from dra_infra.simulation.allocation.counters import (
    CounterAvailability,
    CounterUse,
    GroupBaseline,
    GroupUse,
)
from dra_infra.simulation.allocation.demands import Surroundings
from dra_infra.simulation.allocation.kinds import KindEvaluator
from dra_infra.simulation.allocation.matching import Matching
from dra_infra.simulation.allocation.outcomes import Allocated, AllocationError, Cannot, Failed, Outcome
from dra_infra.simulation.allocation.pools import Pool, gather_pools
from dra_infra.simulation.allocation.pruning import PrunedSearch
from dra_infra.simulation.allocation.quirks import Quirk
from dra_infra.simulation.allocation.reach import Reach
from dra_infra.simulation.allocation.search import Search
from dra_infra.simulation.allocation.selection import Evaluator
from dra_infra.simulation.allocation.slices import SliceIndex
from dra_infra.simulation.allocation.state import AllocatedState
from dra_infra.simulation.allocation.taking import Taking
from dra_infra.simulation.allocation.usage import Usage
from dra_infra.simulation.allocation.variants import Variant, choose_variant


def _never() -> bool:
    return False


class Allocator:
    """Allocates as the scheduler of one release does.

    Args:
        release: The minor and its gates, or the variant that they choose.
        slices: All slices of the cluster, or what another allocator of the minor read of them. Where pools are not sorted (1.34, 1.35, and without most gates), the order
            of the slices stands for what is random upstream: the answer is one that the scheduler may give.
        classes: All device classes.
        state: What is allocated already.
        evaluator: What evaluates expressions; the default evaluates each once per kind of device.
        prune: Whether to leave out what provably leads nowhere; the answers are the same, for an impossible request much sooner.
    """

    def __init__(
        self,
        release: Release | Variant,
        slices: Sequence[ResourceSlice] | SliceIndex,
        classes: Iterable[DeviceClass],
        state: AllocatedState | None = None,
        *,
        evaluator: Evaluator | None = None,
        prune: bool = True,
    ) -> None:
        self.variant = choose_variant(release) if isinstance(release, Release) else release
        self._index = (
            slices.under(self.variant) if isinstance(slices, SliceIndex) else SliceIndex(slices, self.variant)
        )
        self._classes: Mapping[str, DeviceClass] = {each.metadata.name or "": each for each in classes}
        self._state = AllocatedState() if state is None else state
        self._evaluator = KindEvaluator(self.variant) if evaluator is None else evaluator
        self._prune = prune
        self._reach = Reach(self._evaluator, self.variant)
        self._pools: dict[Node, tuple[Pool, ...]] = {}
        self._availability = CounterAvailability(self._state, self.variant)
        self._baseline = GroupBaseline(self._state)

    def with_state(self, state: AllocatedState) -> Allocator:
        """The same cluster with other devices in use; slices are not read again."""
        other = copy(self)
        other._state = state  # noqa: SLF001
        other._availability = CounterAvailability(state, self.variant)  # noqa: SLF001
        other._baseline = GroupBaseline(state)  # noqa: SLF001
        return other

    def with_classes(self, classes: Iterable[DeviceClass]) -> Allocator:
        """The same cluster with other classes; slices are not read again."""
        other = copy(self)
        other._classes = {each.metadata.name or "": each for each in classes}  # noqa: SLF001
        # What a request can have is known by the name of its class.
        other._reach = Reach(self._evaluator, self.variant)  # noqa: SLF001
        return other

    def find_quirks(
        self, node: Node, claims: Sequence[ResourceClaim], *, declared: frozenset[str] = frozenset()
    ) -> tuple[Quirk, ...]:
        """The bugs of the minor without which `allocate` would answer something else."""
        answer = self.allocate(node, claims, declared=declared)
        return tuple(
            quirk
            for quirk in Quirk
            if self.variant.has(quirk)
            and self._without(quirk).allocate(node, claims, declared=declared) != answer
        )

    def _without(self, quirk: Quirk) -> Allocator:
        variant = replace(self.variant, quirks=self.variant.quirks - {quirk})
        return Allocator(
            variant,
            self._index,
            self._classes.values(),
            self._state,
            evaluator=self._evaluator,
            prune=self._prune,
        )

    def pools(self, node: Node) -> tuple[Pool, ...]:
        """The pools of a node, in the order in which they are tried; gathered once for all states."""
        pools = self._pools.get(node)
        if pools is None:
            pools = self._pools[node] = gather_pools(self._index, node, self.variant)
        return pools

    def allocate(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        *,
        declared: frozenset[str] = frozenset(),
        is_cancelled: Callable[[], bool] = _never,
    ) -> Outcome:
        """What a node gives the claims of one pod.

        Args:
            node: The node.
            claims: Those of the pod that are not allocated yet, in the order of the pod, with the server's defaults.
            declared: `status.declaredFeatures` of the node.
            is_cancelled: Asked at each step of the search, which can take for ever; true ends it with an error.
        """
        pools = self.pools(node)
        taking = Taking(
            Usage(self._state, self.variant),
            CounterUse(self._availability, self.variant),
            GroupUse(self._baseline),
            self._index,
            declared,
            self.variant,
        )
        matching = Matching(self._evaluator, node, self.variant)
        search = self._search(claims, pools, taking, matching, node, declared, is_cancelled)
        try:
            if search.run():
                return Allocated(
                    tuple(
                        assemble(number, claim, taking.picked[number], search.wanted, node, self.variant)
                        for number, claim in enumerate(claims)
                    )
                )
        except AllocationError as error:
            return error.failed
        if self.variant.number >= 35 and any(pool.invalid for pool in pools):
            return Failed("invalid resource pools were encountered", on_node=True)
        return Cannot()

    def _search(
        self,
        claims: Sequence[ResourceClaim],
        pools: Sequence[Pool],
        taking: Taking,
        matching: Matching,
        node: Node,
        declared: frozenset[str],
        is_cancelled: Callable[[], bool],
    ) -> Search:
        if not self._prune:
            return Search(claims, pools, self._classes, taking, matching, self.variant, is_cancelled)
        around = Surroundings(self._index, self._state, self._reach, node, declared)
        return PrunedSearch(
            claims,
            pools,
            self._classes,
            taking,
            matching,
            self.variant,
            is_cancelled,
            around=around,
            availability=self._availability,
        )
