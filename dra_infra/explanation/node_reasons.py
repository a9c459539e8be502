"""Reasons that one node cannot give a pod its devices: the first thing that no device, or too few, pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dra_infra.explanation.clauses import describe_values, join_values, shorten
from dra_infra.explanation.device_checks import (
    CheckResult,
    DeviceChecks,
    OwnedSelector,
    Stage,
    find_unusable_pools,
    list_selectors,
)
from dra_infra.explanation.question import Leaf, name_claims, read_requests
from dra_infra.explanation.shortages import Choice, Counting, Shortage, literal
from dra_infra.kubernetes.api import Node, ResourceClaim
from dra_infra.kubernetes.scheduler.allocator import (
    Allocated,
    AllocatedState,
    AllocationError,
    Allocator,
    Published,
)

_STEPS: Final = 20_000
"""Steps of the search that finds out whether free devices would do; the rest is not known then."""

_HELD: Final = {
    "device": "too many of them are in use",
    "capacity": "too much of their capacity is in use",
    "counters": "too much of the counters that they share is in use",
    "compatibility groups": "devices of other compatibility groups are in use",
}


@dataclass(frozen=True, slots=True)
class NodeReason:
    """Why one node does not do; findings with equal code and text are told together.

    Args:
        code: Stable slug.
        text: The message, with `{best}` where the number of the best node goes.
        best: That number on this node.
        here: The same about this node alone, where it is another text.
    """

    code: str
    text: str
    best: int = 0
    here: str = field(default="", compare=False)


def explain_node(
    cluster: Allocator,
    node: Node,
    claims: Sequence[ResourceClaim],
    *,
    names: Sequence[str] = (),
    declared: frozenset[str] = frozenset(),
) -> NodeReason:
    """The first reason, in the order in which a person would look for it, why `allocate` answers `Cannot`.

    Args:
        cluster: What is known, with what is in use.
        node: The node.
        claims: Those of the pod, as `allocate` got them.
        names: What to call them, as `ResourceClaimTemplate ml/trainer`; their own names where there is none.
        declared: `status.declaredFeatures` of the node.
    """
    try:
        requests = read_requests(cluster, claims, names)
    except AllocationError as error:
        return NodeReason("allocation-aborted", literal(error.failed.text))
    checks = DeviceChecks(cluster, node, declared)
    if not checks.devices:
        trouble = next(find_unusable_pools(cluster, node), None)
        text = "no devices are published for the node" if trouble is None else str(trouble)
        return NodeReason("no-device-matches", literal(text))
    for entries in requests:
        found = [_explain_leaf(checks, leaf) for leaf in entries]
        told = [(_progress(checks, leaf), each) for leaf, each in zip(entries, found, strict=True) if each]
        if told and len(told) == len(entries):
            return max(told, key=lambda each: each[0])[1]
    shortage = next(iter(find_shortages(cluster, checks, claims, requests, names)), None)
    if shortage is not None:
        here = f"{shortage.asked} are asked for, and {shortage.there}"
        return NodeReason(shortage.code, shortage.text, shortage.best, here)
    if _would_do(cluster, node, claims, declared):
        return NodeReason("devices-in-use", f"enough devices match, but {_held(checks, requests)}")
    return NodeReason("constraint-not-met", "no choice of devices meets all requests and constraints at once")


def find_shortages(
    cluster: Allocator,
    checks: DeviceChecks,
    claims: Sequence[ResourceClaim],
    requests: Sequence[tuple[Leaf, ...]],
    names: Sequence[str] = (),
) -> list[Shortage]:
    """Count the devices of a node as if none were in use, and list what there is too little of."""
    choices = []
    for entries in requests:
        devices = {key: found for leaf in entries for key, found in checks.can_have(leaf, Stage.USED).items()}
        wanted = min(checks.wanted_count(leaf) for leaf in entries)
        choices.append(Choice(entries, wanted, devices))
    counting = Counting(cluster, checks, claims, choices)
    return list(counting.find(name_claims(claims, names)))


def _progress(checks: DeviceChecks, leaf: Leaf) -> tuple[int, int, int]:
    """How near an entry of a prioritized list comes."""
    best = max(checks.check_all(leaf), key=lambda result: (result.stage, result.rank))
    return best.stage, best.rank, -leaf.key.sub


def _explain_leaf(checks: DeviceChecks, leaf: Leaf) -> NodeReason | None:
    results = checks.check_all(leaf)
    for rank, selector in enumerate(list_selectors(leaf.wanted)):
        if all(result.stage is Stage.SELECTOR and result.rank <= rank for result in results):
            text = _describe_selector(checks, leaf, selector, _reaching(checks, results, rank))
            return NodeReason("no-device-matches", text)
    reached = max(result.stage for result in results)
    last = {result.detail for result in results if result.stage is reached}
    tainted = {taint for result in results for taint in result.taints}
    match reached:
        case Stage.PLACE | Stage.FEATURE:
            why = join_values(sorted(last))
            return NodeReason(
                "no-device-matches", literal(f"no device that {leaf.name} matches can be had: {why}")
            )
        case Stage.CAPACITY:
            asked = ", ".join(f"{amount} of {name}" for name, amount in sorted(leaf.wanted.capacity.items()))
            text = (
                f"{leaf.name} asks for {asked or 'a share'} of a device, and no device that matches has it: "
            )
            return NodeReason("capacity-too-small", literal(text + join_values(sorted(last))))
        case Stage.COUNTER:
            text = f"{leaf.name} matches devices that take more than all of counter set {join_values(sorted(last))}"
            return NodeReason("counters-exceeded", literal(text))
    if reached is Stage.TAINT or (leaf.is_all and tainted):
        code = "all-devices-blocked" if leaf.is_all else "device-tainted"
        text = f"{leaf.name} does not tolerate the taints of the devices: {', '.join(sorted(tainted))}"
        return NodeReason(code, literal(text))
    return None


def _describe_selector(
    checks: DeviceChecks, leaf: Leaf, selector: OwnedSelector, left: Sequence[Published]
) -> str:
    where = leaf.name if selector.owner == "request" else selector.owner
    count = f"{len(left)} devices" if len(left) > 1 else "1 device"
    before = "" if len(left) == len(checks.devices) else " that pass what comes before"
    text = f"selector #{selector.number} of {where} matches none of {count}{before}: {shorten(selector.expression)}"
    found = describe_values(selector.expression, left)
    return literal(f"{text} ({found})" if found else text)


def _reaching(checks: DeviceChecks, results: Sequence[CheckResult], rank: int) -> list[Published]:
    """The devices that pass the first *rank* selectors."""
    return [
        each
        for (_, each), result in zip(checks.devices, results, strict=True)
        if result.stage > Stage.SELECTOR or result.rank >= rank
    ]


def _would_do(
    cluster: Allocator, node: Node, claims: Sequence[ResourceClaim], declared: frozenset[str]
) -> bool:
    """Search the node as if nothing were in use."""
    steps = 0

    def is_cancelled() -> bool:
        nonlocal steps
        steps += 1
        return steps > _STEPS

    free = cluster.with_state(AllocatedState())
    return isinstance(free.allocate(node, claims, declared=declared, is_cancelled=is_cancelled), Allocated)


def _held(checks: DeviceChecks, requests: Sequence[tuple[Leaf, ...]]) -> str:
    """How matching devices are in use: they themselves, if that is enough to explain it."""
    others: list[str] = []
    for entries in requests:
        for leaf in entries:
            details = [result.detail for result in checks.check_all(leaf) if result.stage is Stage.USED]
            passed = len(checks.can_have(leaf, Stage.PASSED))
            held = details.count("device")
            if held and passed + len(details) - held < checks.wanted_count(leaf):
                return _HELD["device"]
            others += [detail for detail in details if detail != "device"]
    return _HELD[max(_HELD, key=others.count)]
