"""The answer of a placement, as records: per workload the nodes that can take a pod, the devices, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import Final, Literal, TypeAlias

from dra_infra.explanation.records import FitVerdict
from dra_infra.fleet import Billing, Fleet, NodePool
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.kubernetes.scheduler import show_amount
from dra_infra.output.report_data import to_data
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.fragments import Fragment
from dra_infra.placement.outlooks import PoolOutlook


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
        admin: Whether it is for admin access, which leaves the device to others.
        share: Whether others can have shares of it beside this one.
        consumed: What a share takes, capacity and amount, by name.
        device_class: The class that the request names.
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
    device_class: str = ""


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class NodePlacement:
    """A node for one pod, with the devices that the pod gets there, in the order of allocation."""

    node: str
    devices: tuple[DeviceChoice, ...] = ()

    def to_data(self) -> dict[str, object]:
        """Return the node as JSON has it."""
        return {
            "node": self.node,
            "devices": [{**to_data(each), "consumed": dict(each.consumed)} for each in self.devices],
        }


REFUSED: Final = "needs-refused-object"
"""Code of the reason why pods are not placed that need an object with an error."""

FITS_BY_BUG: Final = "fits-by-bug"
"""Code of the reason of a workload that fits only because of a bug of the minor."""


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


def by_owner(placed: WorkloadPlacement) -> tuple[str, str, str, str]:
    """Return the key by which workloads are sorted: namespace, kind, name and part."""
    owner = placed.owner
    return owner.namespace, owner.kind, owner.name, owner.part


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

    def to_data(self) -> dict[str, object]:
        """Return the room as JSON has it."""
        per_node = [{"claims": claims, "nodes": nodes} for claims, nodes in self.per_node.items()]
        return {"claims": self.claims, "largest": self.largest, "perNode": per_node}


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

    def to_data(self) -> dict[str, object]:
        """Return the room as JSON has it."""
        return {"name": self.name, "before": self.before.to_data(), "after": self.after.to_data()}


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

    @classmethod
    def of(cls, arrived: Iterable[tuple[ObjectRef, str]], pending: Iterable[tuple[ObjectRef, int]]) -> Order:
        """The order of pods, each with the owner and the node that it went to."""
        arrivals = tuple(
            Arrivals(owner=owner, node=node, pods=len(list(group)))
            for (owner, node), group in groupby(arrived)
        )
        return cls(arrivals=arrivals, pending=tuple(each for each in pending if each[1]))

    def to_data(self) -> dict[str, object]:
        """The order as JSON has it."""
        return {
            "arrivals": [
                {"object": to_data(each.owner), "node": each.node, "pods": each.pods}
                for each in self.arrivals
            ],
            "pending": [{"object": to_data(owner), "pods": number} for owner, number in self.pending],
        }

    def __str__(self) -> str:
        runs = [tuple(run) for _, run in groupby(self.arrivals, lambda arrival: arrival.owner)]
        lines = [line for run in runs for line in _describe_run(run)]
        shown = lines[:_SHOWN]
        if len(lines) > _SHOWN:
            shown.append(count_of(len(lines) - _SHOWN, "more arrival"))
        waiting = [f"{number:,} x {owner}" for owner, number in self.pending[:_SHOWN]]
        if len(self.pending) > _SHOWN:
            waiting.append(count_of(len(self.pending) - _SHOWN, "more workload"))
        return "; ".join(
            [", ".join(shown) or "nothing", *([f"pending: {', '.join(waiting)}"] if waiting else [])]
        )


_FOLDED_FROM: Final = 3
"""Nodes in a row that get pods of one workload, from which a text counts them instead of naming them."""


def _describe_run(run: Sequence[Arrivals]) -> list[str]:
    """Describe arrivals of one workload that follow each other: `700 x Deployment ml/inference, one on each of 700 nodes`."""
    if len(run) < _FOLDED_FROM:
        return [str(arrival) for arrival in run]
    pods_by_node: Counter[str] = Counter()
    for arrival in run:
        pods_by_node[arrival.node] += arrival.pods
    least, most = min(pods_by_node.values()), max(pods_by_node.values())
    number = f"{most:,}" if most > 1 else "one"
    if least < most:
        number = f"{least:,} to {number}"
    return [f"{pods_by_node.total():,} x {run[0].owner}, {number} on each of {len(pods_by_node):,} nodes"]


_SHOWN: Final = 6
"""Arrivals of an order, and those who ask for what is short, that a text shows."""

JointAnswer: TypeAlias = Literal["always", "depends-on-order", "never", "not-decided"]


_HEADS: Final[dict[JointAnswer, str]] = {
    "always": "fit in every order of arrival",
    "depends-on-order": "fit or not, depending on the order of arrival",
    "never": "never fit at once",
    "not-decided": "not decided whether they fit at once",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortage:
    """One thing of which pods ask for more than nodes can give them at once: a proof of `never`, in numbers.

    Args:
        what: `devices`, `pods`, or a resource of nodes, such as `memory`.
        asked: What all pods that compete for it need, in `what`'s unit: devices, pods, millicores of `cpu`, bytes of `memory`.
        there: The most that nodes can give at once, in the same unit.
        nodes: How many nodes can give any of it.
        where: The names of these, some of them where they are many: `hgx-h100-0..1`.
        by: Who asks, with the amount.
        beside: Who else asks for it on these nodes, and is not needed for the proof.
    """

    what: str
    asked: int
    there: int
    nodes: int
    where: str = ""
    by: tuple[tuple[str, int], ...] = ()
    beside: tuple[str, ...] = ()

    def show(self, amount: int) -> str:
        """An amount as people write it: `16 devices`, `1500m cpu`."""
        if self.what in ("devices", "pods"):
            return count_of(amount, self.what[:-1])
        return f"{show_amount(self.what, amount)} {self.what}"

    def to_data(self) -> dict[str, object]:
        """The shortage as JSON has it."""
        by = [{"who": who, "amount": amount} for who, amount in self.by]
        return {
            "what": self.what,
            "asked": self.asked,
            "there": self.there,
            "nodes": self.nodes,
            "where": self.where,
            "by": by,
            "beside": list(self.beside),
        }

    def __str__(self) -> str:
        # The largest, where there are too many to read; else all, in the order of the pods.
        shown = self.by if len(self.by) <= _SHOWN else sorted(self.by, key=lambda each: -each[1])[:_SHOWN]
        parts = [f"{self.show(amount)} by {who}" for who, amount in shown]
        if len(self.by) > _SHOWN:
            rest = sum(amount for _, amount in self.by) - sum(amount for _, amount in shown)
            parts.append(f"{self.show(rest)} by others")
        who = f" ({', '.join(parts)})" if parts else ""
        nodes = count_of(self.nodes, "node") + (f" ({self.where})" if self.where else "")
        return f"{self.show(self.asked)} asked{who}; {nodes} can serve pods that ask for {self.show(self.there)} at once"


@dataclass(frozen=True, kw_only=True, slots=True)
class JointVerdict:
    """How sure it is that all pods run at once (ADR 12).

    Args:
        verdict: `always`: every order of arrival ends with all pods placed. `depends-on-order`: with `works` it does, with
            `fails` it does not. `never`: no assignment to nodes exists. `not-decided`: none of these was shown.
        reasons: The proof, or what was tried, in words and numbers.
        works: An order with which all pods find a node; also known of some platforms that are not decided.
        fails: An order that leaves pods pending.
        shortages: What is short, where counting alone proves `never`.
    """

    verdict: JointAnswer
    reasons: tuple[str, ...] = ()
    works: Order | None = None
    fails: Order | None = None
    shortages: tuple[Shortage, ...] = ()

    def to_data(self) -> dict[str, object]:
        """The verdict as JSON has it."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "shortages": [each.to_data() for each in self.shortages],
            "works": self.works.to_data() if self.works else None,
            "fails": self.fails.to_data() if self.fails else None,
        }

    def __str__(self) -> str:
        head = _HEADS[self.verdict]
        return f"{head}: {self.reasons[0]}" if self.reasons and self.verdict != "always" else head


GrowthAnswer: TypeAlias = Literal[
    "fits-now", "fits-grown", "grows-if", "does-not-grow", "never-within-limits", "not-decided"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """By how much node pools have to grow so that all pods fit.

    Args:
        verdict: `fits-now`: on the nodes that there are. `fits-grown`: with the nodes that are added. `grows-if`: with more
            nodes, which autoscalers add when lines are written. `does-not-grow`: with more nodes, which autoscalers do not add.
            `never-within-limits`: not even with every pool at its limit. `not-decided`: none of these was shown.
        pools: The pools, with the size that they had.
        added: How many nodes, or racks, each of them gets.
        billing: What prices are in.
        is_cheapest: No growth that costs less was left untried: less money where every pool has a price, else fewer nodes.
        joint: The verdict on the fleet with these nodes; on the one at its limits where it never fits.
        reasons: Why it never fits, or is not decided.
        devices: How many devices each node has, by pool and node, with these nodes; a GPU in partitions is one.
        held: How many of them the pods of each workload have on each node when all are placed; one that several workloads
            share is divided between them.
        outlooks: What the autoscalers of the pools do that get nodes, or would have to.
    """

    verdict: GrowthAnswer
    pools: tuple[NodePool, ...]
    added: tuple[int, ...]
    billing: Billing
    is_cheapest: bool = True
    joint: JointVerdict
    reasons: tuple[str, ...] = ()
    devices: Mapping[str, Mapping[str, int]] = field(default_factory=dict, hash=False, repr=False)
    held: Mapping[ObjectRef, Mapping[str, Fraction]] = field(default_factory=dict, hash=False, repr=False)
    outlooks: tuple[PoolOutlook, ...] = ()

    @property
    def fits(self) -> bool:
        """True when all pods fit, now or with the nodes that are added."""
        return self.verdict in ("fits-now", "fits-grown")

    @property
    def is_unmade(self) -> bool:
        """True when more nodes would do, and autoscalers are not known to add them: pools stay as they are."""
        return bool(self.outlooks) and not self.fits

    @property
    def cost(self) -> Decimal | None:
        """What all nodes of all pools cost then; None where a pool with nodes has no price."""
        return price_of(
            self.pools, [pool.now + more for pool, more in zip(self.pools, self.added, strict=True)]
        )

    @property
    def added_cost(self) -> Decimal | None:
        """What the added nodes cost; None where one of their pools has no price."""
        return price_of(self.pools, self.added)

    @property
    def idle(self) -> int:
        """How many devices of nodes of pools nobody has when all pods are placed."""
        held = sum(sum(nodes.values()) for nodes in self.held.values())
        return self.device_count - int(held)

    @property
    def device_count(self) -> int:
        """How many devices the nodes of pools have."""
        return sum(sum(nodes.values()) for nodes in self.devices.values())

    def __str__(self) -> str:
        if not self.fits:
            if self.is_unmade:
                return "; ".join(map(str, self.outlooks))
            head = "never within the limits" if self.verdict == "never-within-limits" else "not decided"
            return f"{head}: {self.reasons[0]}"
        idle = f"{self.idle:,} of {self.device_count:,} devices of pools idle"
        if self.verdict == "fits-now":
            cost = f", {self.billing.show(self.cost)}" if self.cost is not None else ""
            return f"fits now{cost}; {idle}"
        parts = [
            f"{'node pool ' if number == 0 else ''}{pool.name} grows by {count_of(more, pool.unit)} "
            f"({pool.now:,} -> {pool.now + more:,} of at most {pool.most:,})"
            for number, (pool, more) in enumerate(
                (pool, more) for pool, more in zip(self.pools, self.added, strict=True) if more
            )
        ]
        cost = f", +{self.billing.show(self.added_cost)}" if self.added_cost is not None else ""
        unpriced = [pool.name for pool in self.pools if pool.price is None]
        if 0 < len(unpriced) < len(self.pools):
            cost += f" (counted in nodes, for there is no price for {join_words(unpriced)})"
        unsure = "" if self.is_cheapest else "; a cheaper growth was not ruled out"
        order = (
            "" if self.joint.verdict == "always" else "; whether all fit then depends on the order of arrival"
        )
        return f"fits when {' and '.join(parts)}{cost}; {idle}{order}{unsure}"

    def to_data(self) -> dict[str, object]:
        """The growth as JSON has it; amounts of money are texts, so that no reader rounds them."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "pools": [
                {
                    "name": pool.name,
                    "machine": pool.machine,
                    "now": pool.now,
                    "needed": pool.now + added,
                    "max": pool.most,
                    "unit": pool.unit,
                    "price": None if pool.price is None else str(pool.price),
                }
                for pool, added in zip(self.pools, self.added, strict=True)
            ],
            "cost": None if self.cost is None else str(self.cost),
            "addedCost": None if self.added_cost is None else str(self.added_cost),
            "currency": self.billing.currency,
            "per": self.billing.per,
            "cheapest": self.is_cheapest,
            "devices": self.device_count,
            "idleDevices": self.idle,
            "joint": self.joint.to_data(),
            "outlooks": [each.to_data() for each in self.outlooks],
        }


def price_of(pools: Sequence[NodePool], numbers: Sequence[int]) -> Decimal | None:
    """What so many nodes of each pool cost; None where one of which there is any has no price, or none has."""
    if all(pool.price is None for pool in pools):
        return None
    costs = [
        None if pool.price is None else pool.price * number
        for pool, number in zip(pools, numbers, strict=True)
        if number or pool.price is not None
    ]
    known = [each for each in costs if each is not None]
    return sum(known, Decimal()) if len(known) == len(costs) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """The placement of all pods with claims of one program on one fleet.

    Args:
        fleet: Where they were placed.
        workloads: Sorted by namespace, kind and name.
        left_out: Workloads without devices that may be for nodes which a partial fleet does not name. No verdict of `place` counts
            them; `dra_infra.answers` adds them to the workloads.
        joint: The verdict on all workloads at once.
        joint_at_most: The same with every workload that is autoscaled at its most pods; None where none is.
        notes: What else the reader must know, in the user's words.
        unplaced: Objects whose pods use claims, as far as is known, and are not placed here; the notes say why.
        headroom: What is left per device class and MIG profile that some device is in; empty when it was not asked for.
        fragments: How large a claim of each class and MIG profile still fits when the pods are placed; empty as for *headroom*.
        growth: By how much the fleet's node pools have to grow; None where it has none, or it was not asked for.
        evicted: How many pods of others are evicted and in the joint verdict.
    """

    fleet: Fleet = field(repr=False)
    workloads: tuple[WorkloadPlacement, ...] = ()
    left_out: tuple[WorkloadPlacement, ...] = ()
    joint: JointVerdict = JointVerdict(verdict="always")
    joint_at_most: JointVerdict | None = None
    notes: tuple[str, ...] = ()
    unplaced: tuple[str, ...] = ()
    headroom: tuple[Headroom, ...] = ()
    fragments: tuple[Fragment, ...] = ()
    growth: Growth | None = None
    evicted: int = 0

    @property
    def fits_count(self) -> int:
        """How many workloads fit, each on the otherwise free fleet."""
        return sum(workload.verdict == "fits" for workload in self.workloads)
