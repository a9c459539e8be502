"""A question about the pods of one object: what they ask for, where they may go, and what is in use there.

The allocator is what the question is asked of: devices, classes, and what is in use. The requests of claims come one by
one, each with the name and the field by which a person knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dra_infra.kubernetes.api import (
    AllocationResult,
    DeviceClass,
    Node,
    ObjectRef,
    ResourceClaim,
    ResourceSlice,
)
from dra_infra.kubernetes.scheduler import NodeRefusal
from dra_infra.kubernetes.scheduler.allocator import (
    AllocatedState,
    Allocator,
    DeviceID,
    RequestKey,
    Wanted,
)


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
        name: `ResourceClaim ml/a`, or what is supposed to have devices.
        users: Pods that use it.
        ref: The claim; None for what is no object.
        result: Its allocation.
        is_own: Whether one of the asked pods has it.
        priority: The highest priority of the pods that use it; None where it is not known.
    """

    name: str
    users: tuple[ObjectRef, ...] = ()
    ref: ObjectRef | None = None
    result: AllocationResult
    is_own: bool = False
    priority: int | None = None

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(map(str, self.users))})" if self.users else self.name

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
        refusals: All reasons why a pod may not go to a node, whatever devices are there; by name of the node.
        refuse: Those of them that a further node with its name and labels would have too.
        room: How many such pods a node has cpu, memory and slots for; nothing said means no limit.
        holders: Claims that have devices.
        kept: Names of those that the pods have themselves, which are no help once they are gone.
        pods: How many such pods there are to be.
        declared: `status.declaredFeatures` by name of the node.
        priority: Of the pods; None where it is not known.
        drivers_to_come: Drivers of devices of the nodes that node pools may get.
    """

    cluster: Allocator
    slices: Sequence[ResourceSlice] = field(repr=False)
    nodes: Sequence[Node] = field(repr=False)
    claims: tuple[AskedClaim, ...]
    refusals: Mapping[str, tuple[NodeRefusal, ...]] = field(default_factory=dict, repr=False)
    refuse: Callable[[Node], Iterable[NodeRefusal]] = field(default=lambda _: (), compare=False, repr=False)
    room: Mapping[str, int] = field(default_factory=dict, repr=False)
    holders: tuple[Holder, ...] = field(default=(), repr=False)
    kept: frozenset[str] = frozenset()
    pods: int = 1
    declared: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    priority: int | None = None
    drivers_to_come: frozenset[str] = frozenset()

    @cached_property
    def asked(self) -> tuple[ResourceClaim, ...]:
        """The claims as the allocator gets them."""
        return tuple(each.claim for each in self.claims)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the claims for messages."""
        return tuple(each.name for each in self.claims)

    @cached_property
    def eligible(self) -> tuple[Node, ...]:
        """The nodes to which a pod may go."""
        return tuple(node for node in self.nodes if not self.refusals.get(node.name))

    def declared_by(self, node: Node) -> frozenset[str]:
        """`status.declaredFeatures` of a node."""
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

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Names of the classes that are asked for and not there."""
        requests = [each for claim in self.asked for each in claim.spec.devices.requests or ()]
        names = dict.fromkeys(leaf.device_class_name for each in requests for _, _, leaf in each.leaves)
        return tuple(name for name in names if name and name not in self.cluster.classes)

    def with_stand_ins(self) -> Question:
        """Returns the question with a class that takes every device in the place of each missing class."""
        cluster = self.cluster
        for name in self.absent:
            cluster = cluster.with_class(DeviceClass.from_manifest({"metadata": {"name": name}, "spec": {}}))
        return self.with_cluster(cluster)

    def with_cluster(self, cluster: Allocator) -> Question:
        """A copy with other devices or classes."""
        return replace(self, cluster=cluster)

    def with_claim(self, number: int, claim: ResourceClaim) -> Question:
        """The same with one claim changed."""
        claims = list(self.claims)
        claims[number] = replace(claims[number], claim=claim)
        return replace(self, claims=tuple(claims))


@dataclass(frozen=True, slots=True)
class Leaf:
    """One request, or one entry of a prioritized list.

    Args:
        key: Where it is in the claims.
        wanted: What it asks for.
        claim_name: Of the claim or template, as `ResourceClaimTemplate ml/trainer`.
        path: Its field below `spec` of the claim.
    """

    key: RequestKey
    wanted: Wanted
    claim_name: str
    path: str

    @property
    def name(self) -> str:
        """`request gpu of ResourceClaim ml/x`."""
        return f"request {self.wanted.full_name} of {self.claim_name}"

    @property
    def is_all(self) -> bool:
        """It asks for all devices that match."""
        return self.wanted.leaf.allocation_mode == "All"


def name_claims(claims: Sequence[ResourceClaim], names: Sequence[str] = ()) -> list[str]:
    """*names*, and for claims without one the claim's own."""
    found = list(names)
    for claim in claims[len(found) :]:
        namespace = claim.metadata.namespace
        name = claim.metadata.name or ""
        found.append(f"ResourceClaim {namespace}/{name}" if namespace else f"ResourceClaim {name}")
    return found


def read_requests(
    cluster: Allocator, claims: Sequence[ResourceClaim], names: Sequence[str] = ()
) -> list[tuple[Leaf, ...]]:
    """The requests of all claims in order, each with its entries.

    Raises:
        AllocationError: For a claim that the allocator refuses before it looks at devices.
    """
    called = name_claims(claims, names)
    found = []
    for number, claim in enumerate(claims):
        for position, request in enumerate(claim.spec.devices.requests or ()):
            path = f"devices.requests[{position}]"
            entries = []
            for sub, wanted in enumerate(cluster.read_request(claim, request)):
                below = f"firstAvailable[{sub}]" if request.first_available else "exactly"
                entries.append(
                    Leaf(RequestKey(number, position, sub), wanted, called[number], f"{path}.{below}")
                )
            found.append(tuple(entries))
    return found
