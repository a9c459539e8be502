"""The requests of claims one by one, each with the name and the field by which a person knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dra_infra.model.resource_claim import ResourceClaim
from dra_infra.simulation.allocation.requests import Key, Wanted, check_features, describe, leaves
from dra_infra.simulation.explaining.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Leaf:
    """One request, or one entry of a prioritized list.

    Args:
        key: Where it is in the claims.
        wanted: What it asks for.
        claim_name: Of the claim or template, as `ResourceClaimTemplate ml/trainer`.
        path: Its field below `spec` of the claim.
    """

    key: Key
    wanted: Wanted
    claim_name: str
    path: str

    @property
    def name(self) -> str:
        """`request gpu of ResourceClaim ml/x`."""
        return f"request {self.wanted.full_name} of {self.claim_name}"

    @property
    def is_all(self) -> bool:
        """Whether it asks for all devices that match."""
        return self.wanted.leaf.allocation_mode == "All"


def name_claims(claims: Sequence[ResourceClaim], names: Sequence[str] = ()) -> list[str]:
    """*names*, and for claims without one the claim's own."""
    found = list(names)
    for claim in claims[len(found) :]:
        namespace, name = claim.metadata.namespace, claim.metadata.name or ""
        found.append(f"ResourceClaim {namespace}/{name}" if namespace else f"ResourceClaim {name}")
    return found


def read_requests(
    cluster: Inventory, claims: Sequence[ResourceClaim], names: Sequence[str] = ()
) -> list[tuple[Leaf, ...]]:
    """The requests of all claims in order, each with its entries.

    Raises:
        AllocationError: For a claim that the allocator refuses before it looks at devices.
    """
    called = name_claims(claims, names)
    found = []
    for number, claim in enumerate(claims):
        for position, request in enumerate(claim.spec.devices.requests or ()):
            check_features(claim, request, cluster.variant)
            path = f"devices.requests[{position}]"
            entries = []
            for sub, leaf in enumerate(leaves(request)):
                wanted = describe(claim, request, leaf, cluster.classes, cluster.variant)
                below = f"firstAvailable[{sub}]" if request.first_available else "exactly"
                entries.append(Leaf(Key(number, position, sub), wanted, called[number], f"{path}.{below}"))
            found.append(tuple(entries))
    return found
