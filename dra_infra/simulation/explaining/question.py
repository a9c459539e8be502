"""A question about the pods of one object: what they ask for, where they may go, and what is in use there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dra_infra.model.claim_status import AllocationResult
from dra_infra.model.fleet import Node
from dra_infra.model.resource_claim import ResourceClaim
from dra_infra.model.resource_slice import ResourceSlice
from dra_infra.simulation.allocation.identity import DeviceID
from dra_infra.simulation.allocation.state import AllocatedState
from dra_infra.simulation.explaining.inventory import Inventory


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedClaim:
    """One claim of a pod.

    Args:
        claim: As the server has it, with its defaults; of a template, what the control plane would make.
        name: What to call it: `ResourceClaimTemplate ml/trainer`.
        path: Where its spec is in that object: `spec`, of a template `spec.spec`.
        is_shared: Whether all pods use this one claim.
        is_generated: Whether the scheduler makes it of extended resources, so that only numbers can be written.
    """

    claim: ResourceClaim
    name: str
    path: str = "spec"
    is_shared: bool = False
    is_generated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """A claim that has devices.

    Args:
        name: `ResourceClaim ml/a`.
        users: Pods that use it, and what else is known of who does.
        result: Its allocation.
    """

    name: str
    users: tuple[str, ...] = ()
    result: AllocationResult
    is_own: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.users)})" if self.users else self.name

    @property
    def devices(self) -> tuple[DeviceID, ...]:
        """The devices that are in use by it; those for admin access are not."""
        return tuple(
            DeviceID(each.driver, each.pool, each.device)
            for each in self.result.devices.results or ()
            if not each.admin_access
        )


@dataclass(frozen=True, kw_only=True)
class Question:
    """Why the pods of one object get no devices.

    Args:
        cluster: Devices, classes and allocator; its state is that of the holders.
        slices: All slices.
        nodes: All nodes, by name.
        claims: The claims of one pod that are not allocated yet, in its order.
        refusals: Why a pod may not go to a node, whatever devices are there; by name of the node.
        room: How many such pods a node has cpu, memory and slots for; nothing said means no limit.
        holders: Claims that have devices.
        pods: How many such pods there are to be.
        declared: `status.declaredFeatures` by name of the node.
    """

    cluster: Inventory
    slices: Sequence[ResourceSlice] = field(repr=False)
    nodes: Sequence[Node] = field(repr=False)
    claims: tuple[AskedClaim, ...]
    refusals: Mapping[str, str] = field(default_factory=dict, repr=False)
    room: Mapping[str, int] = field(default_factory=dict, repr=False)
    holders: tuple[Holder, ...] = field(default=(), repr=False)
    pods: int = 1
    declared: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)

    @cached_property
    def asked(self) -> tuple[ResourceClaim, ...]:
        """The claims as the allocator gets them."""
        return tuple(each.claim for each in self.claims)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What to call them."""
        return tuple(each.name for each in self.claims)

    @cached_property
    def eligible(self) -> tuple[Node, ...]:
        """The nodes to which a pod may go."""
        return tuple(node for node in self.nodes if not self.refusals.get(node.name))

    def declared_by(self, node: Node) -> frozenset[str]:
        """What a node declares."""
        return self.declared.get(node.name, frozenset())

    def with_holders(self, holders: Sequence[Holder]) -> Question:
        """The same with other claims that have devices."""
        free = replace(self, holders=(), cluster=self.cluster.with_state(AllocatedState()))
        return free.with_more(holders)

    def with_more(self, holders: Sequence[Holder]) -> Question:
        """The same with further claims that have devices."""
        shares = self.cluster.variant.features.consumable_capacity
        state = self.cluster.state
        for each in holders:
            state = state.with_allocation(each.result, shares=shares)
        return replace(self, holders=(*self.holders, *holders), cluster=self.cluster.with_state(state))

    def with_cluster(self, cluster: Inventory) -> Question:
        """The same with other devices or classes."""
        return replace(self, cluster=cluster)

    def with_claim(self, number: int, claim: ResourceClaim) -> Question:
        """The same with one claim changed."""
        claims = list(self.claims)
        claims[number] = replace(claims[number], claim=claim)
        return replace(self, claims=tuple(claims))
