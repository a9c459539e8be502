"""What is known before the search: how many devices each request needs, and which ones mode `All` means.

Source: the first half of Allocate, and validateDeviceRequest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.resource_claim import ResourceClaim
from dra_infra.simulation.allocation.capacity import CapacityError, fits
from dra_infra.simulation.allocation.constraints import build_constraints
from dra_infra.simulation.allocation.identity import Published
from dra_infra.simulation.allocation.matching import Matching
from dra_infra.simulation.allocation.outcomes import abort
from dra_infra.simulation.allocation.pools import Pool
from dra_infra.simulation.allocation.quirks import Quirk
from dra_infra.simulation.allocation.requests import (
    DeviceCount,
    Key,
    Wanted,
    check_features,
    describe,
    leaves,
)
from dra_infra.simulation.allocation.state import NOTHING
from dra_infra.simulation.allocation.taking import Taking
from dra_infra.simulation.allocation.variants import Variant


class Preparation:
    """Looks at the claims one after the other, as upstream does: the first error is the answer.

    Args:
        claims: The claims of a pod that are not allocated yet.
        pools: The pools of the node, in order.
        classes: All device classes, by name.
        taking: Where the constraints of the claims are put.
        matching: Which devices a request can have.
        variant: Whose rules.
    """

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        pools: Sequence[Pool],
        classes: Mapping[str, DeviceClass],
        taking: Taking,
        matching: Matching,
        variant: Variant,
    ) -> None:
        self._wanted: dict[Key, Wanted] = {}
        self._claims = claims
        self._pools = pools
        self._classes = classes
        self._taking = taking
        self._matching = matching
        self._variant = variant

    def run(self) -> dict[Key, Wanted]:
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
            for sub, leaf in enumerate(leaves(request)):
                wanted = describe(claim, request, leaf, self._classes, self._variant)
                key = Key(number, position, sub)
                if leaf.allocation_mode == "All":
                    shares = self._variant.has(Quirk.ALL_SHARES_MATCHES)
                    kept = Key(number, position, max(sub - 1, 0)) if shares else key
                    wanted.all_devices = tuple(self._select_all(kept, wanted))
                    wanted.count = len(wanted.all_devices)
                self._wanted[key] = wanted
                counts.append(wanted.count)
            count.add(request, min(counts))
        count.finish()
        self._taking.picked.append([])
        self._taking.constraints.append(build_constraints(claim, self._matching.attribute, self._variant))

    def _select_all(self, key: Key, wanted: Wanted) -> list[tuple[Pool, Published]]:
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
            return fits(wanted.capacity, published.device.capacity or {}, NOTHING, NOTHING, self._variant)
        except CapacityError as error:
            raise abort(
                f"{wanted.where}: checking capacity for device {published.device.name}: {error}"
            ) from error
