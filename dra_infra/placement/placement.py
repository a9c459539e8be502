"""The answer of a placement, as records: per workload the nodes that can take a pod, the devices, and why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from dra_infra.explanation.records import FitVerdict
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.scheduler.fleet import Fleet


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class DeviceChoice:
    """One device that the scheduler would allocate.

    Args:
        entry: Name of the entry in the pod's `spec.resourceClaims`.
        claim: The ResourceClaim, or the ResourceClaimTemplate from which the pod's claim is made.
        request: Name of the request in the claim.
        driver: Driver of the device.
        pool: Pool of the device.
        device: Name of the device in its pool.
        admin: Whether it is for admin access, which takes it from nobody.
        share: Whether others can have shares of it beside this one.
        consumed: What a share takes, capacity and amount, by name.
    """

    entry: str
    claim: str
    request: str
    driver: str
    pool: str
    device: str
    admin: bool = False
    share: bool = False
    consumed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class NodePlacement:
    """A node for one pod, with the devices that the pod gets there, in the order of allocation."""

    node: str
    devices: tuple[DeviceChoice, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """Why a pod does not go somewhere, or why nothing can be said.

    Args:
        code: Stable slug from `dra_infra.codes.CODES`.
        message: In the user's words, with counts.
        nodes: How many nodes it holds for; 0 where it is not about single nodes.
        example: The first of these nodes.
    """

    code: str
    message: str
    nodes: int = 0
    example: str = ""

    def __str__(self) -> str:
        if not self.nodes:
            return self.message
        where = f"{self.nodes} nodes" if self.nodes > 1 else f"node {self.example}"
        return f"{where}: {self.message}"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadPlacement:
    """The placement of the pods of one object.

    Args:
        owner: The object that makes the pods.
        replicas: How many pods it makes at once.
        verdict: `fits` when all its pods can be placed on the otherwise free fleet, by the order of the scheduler.
        nodes: Every node of the free fleet that can take one pod, by name, with the devices it gets there.
        more_pods: How many such pods would fit beyond `replicas` on the otherwise free fleet; 0 unless it fits.
        reasons: Why not, most nodes first. Filled for nodes that are left out of a workload that fits too.
        unmodelled: What the pods use and the answer does not take into account, by field path.
        pods: Where the joint placement of all workloads put this one's pods, at most `replicas` of them.
        most: The most pods that an autoscaler makes of it; None where nothing scales it. `replicas` are the fewest then.
    """

    owner: ObjectRef
    replicas: int
    verdict: FitVerdict
    nodes: Sequence[NodePlacement] = ()
    more_pods: int = 0
    reasons: tuple[Reason, ...] = ()
    unmodelled: tuple[str, ...] = ()
    pods: tuple[NodePlacement, ...] = ()
    most: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """How much fits at one moment.

    Args:
        claims: Claims of one device that fit on all nodes together.
        largest: Most devices that one claim can get on one node, at most 32.
        per_node: Nodes by how many claims of one device fit on them, none left out but those with none.
    """

    claims: int
    largest: int
    per_node: Mapping[int, int] = field(hash=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Headroom:
    """Room for one kind of claim, before and after.

    Args:
        name: The device class, and the profile behind it where it is about one.
        before: While nothing of the program runs.
        after: When its pods are placed.
    """

    name: str
    before: Room
    after: Room


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrivals:
    """Pods of one workload that arrive one after the other and go to one node."""

    owner: ObjectRef
    node: str
    pods: int = 1

    def __str__(self) -> str:
        number = f"{self.pods:,} x " if self.pods > 1 else ""
        return f"{number}{self.owner} on {self.node}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """An order of arrival, played through by the allocator.

    Args:
        arrivals: The pods that found a node, in order.
        pending: Workloads with pods that then find none, and the number of these.
    """

    arrivals: tuple[Arrivals, ...]
    pending: tuple[tuple[ObjectRef, int], ...] = ()

    def __str__(self) -> str:
        shown = [str(each) for each in self.arrivals[:_SHOWN]]
        if len(self.arrivals) > _SHOWN:
            shown.append(f"{len(self.arrivals) - _SHOWN:,} arrivals more")
        waiting = [f"{number:,} x {owner}" for owner, number in self.pending[:_SHOWN]]
        if len(self.pending) > _SHOWN:
            waiting.append(f"{len(self.pending) - _SHOWN:,} workloads more")
        return "; ".join(
            [", ".join(shown) or "nothing", *([f"pending: {', '.join(waiting)}"] if waiting else [])]
        )


_SHOWN: Final = 6
"""Arrivals of an order that its text shows."""

JointAnswer: TypeAlias = Literal["always", "depends-on-order", "never", "not-decided"]


_HEADS: Final[dict[JointAnswer, str]] = {
    "always": "fit in every order of arrival",
    "depends-on-order": "fit or not, depending on the order of arrival",
    "never": "never fit at once",
    "not-decided": "not decided whether they fit at once",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class JointVerdict:
    """How sure it is that all pods run at once (ADR 12).

    Args:
        verdict: `always`: every order of arrival ends with all pods placed. `depends-on-order`: with `works` it does, with
            `fails` it does not. `never`: no assignment to nodes exists. `not-decided`: none of these was shown.
        reasons: The proof, or what was tried, in words and numbers.
        works: An order with which all pods find a node; also known of some platforms that are not decided.
        fails: An order that leaves pods pending.
    """

    verdict: JointAnswer
    reasons: tuple[str, ...] = ()
    works: Order | None = None
    fails: Order | None = None

    def __str__(self) -> str:
        head = _HEADS[self.verdict]
        return f"{head}: {self.reasons[0]}" if self.reasons and self.verdict != "always" else head


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """The placement of all pods with claims of one program on one fleet.

    Args:
        fleet: Where they were placed.
        workloads: Sorted by namespace, kind and name.
        joint: The verdict on all workloads at once.
        joint_at_most: The same with every workload that is autoscaled at its most pods; None where none is.
        notes: What else the reader must know, in the user's words.
        headroom: What is left per device class and MIG profile that some device is in; empty when it was not asked for.
    """

    fleet: Fleet = field(repr=False)
    workloads: tuple[WorkloadPlacement, ...] = ()
    joint: JointVerdict = JointVerdict(verdict="always")
    joint_at_most: JointVerdict | None = None
    notes: tuple[str, ...] = ()
    headroom: tuple[Headroom, ...] = ()

    @property
    def fits_count(self) -> int:
        """How many workloads fit, each on the otherwise free fleet."""
        return sum(workload.verdict == "fits" for workload in self.workloads)
