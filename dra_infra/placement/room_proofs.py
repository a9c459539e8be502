"""Proofs that no moves of running pods make room: counts that hold wherever the pods go, and that a reader can add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, TypeAlias

from dra_infra.kubernetes.api import nanos
from dra_infra.kubernetes.scheduler import show_amount
from dra_infra.kubernetes.scheduler.allocator import AllocatedState, DeviceID, Pool, Published
from dra_infra.output.wording import count_of
from dra_infra.placement.counting import prove_too_little
from dra_infra.placement.demand import PodPlan, Workload
from dra_infra.placement.fillings import group_pods
from dra_infra.placement.freed_nodes import Landed, Layout, Mover

_EVEN: Final = "even without every pod that may be moved"


def prove_no_room(
    layout: Layout,
    wanted: Sequence[tuple[Workload, PodPlan]],
    plans: Sequence[PodPlan],
    domains: Sequence[Sequence[int]],
) -> tuple[str, ...]:
    """Return why pods never find room, whatever is moved; empty where that is not proven.

    Args:
        layout: The fleet.
        wanted: The workloads of the wanted pods.
        plans: The plan of each wanted pod, inside a domain.
        domains: Sets of nodes of which the pods use one.
    """
    emptied = layout.fresh()
    emptied.take_away(range(len(layout.movers)))
    for plan in dict.fromkeys(plans):
        if not any(emptied.attempt(plan, node) for nodes in domains for node in nodes):
            # A search that was given up proves nothing.
            return (
                ()
                if emptied.is_open
                else (f"no node takes one of its pods, {_EVEN}", *_explain(layout, plan))
            )
    too_few = _prove_too_few(emptied, plans, domains)
    return (
        (too_few if not emptied.is_open else ())
        or _prove_too_few_devices(emptied, plans, domains)
        or _prove_too_few_parts(emptied, plans)
        or _prove_too_little(layout, wanted)
    )


def _explain(layout: Layout, plan: PodPlan) -> tuple[str, ...]:
    """Why nodes without the pods that may be moved do not take a pod, the reason of most nodes first."""
    answer = layout.free.answer(plan)
    reasons = [(tally.count, text) for text, tally in (*answer.refused.items(), *answer.apart.items())]
    for (resource, amount), tally in answer.short.items():
        requests = plan.at(layout.free.cluster.offered[tally.first]).requests
        text = f"the pod requests {show_amount(resource, requests[resource])} {resource}, and {show_amount(resource, amount)} is left by pods that stay"
        reasons.append((tally.count, text))
    reasons += [
        (tally.count, layout.free.explain(plan, tally.first).text.format(best=""))
        for tally in (*answer.failed.values(), *answer.busy.values())
    ]
    reasons.sort(key=lambda each: (-each[0], each[1]))
    return tuple(f"{count_of(number, 'node')}: {text}" for number, text in reasons[:5])


def _prove_too_few(
    emptied: Layout, plans: Sequence[PodPlan], domains: Sequence[Sequence[int]]
) -> tuple[str, ...]:
    """Proves that the nodes of every domain hold too few of equal pods with whole devices, if nothing else runs there."""
    leaves = [leaf for entry in plans[0].at({}).entries for leaf in entry.demand.leaves]
    is_tied = any(entry.demand.devices.constraints for entry in plans[0].at({}).entries)
    # Of one kind of devices that nothing ties together, the allocator's choice leaves room for as many as any other.
    if not emptied.is_apart or len(set(plans)) > 1 or len(leaves) > 1 or is_tied:
        return ()
    most = 0
    for nodes in domains:
        if not all(map(emptied.is_plain, nodes)):
            return ()
        number = sum(_fill(emptied, plans[0], node, len(plans)) for node in nodes)
        most = max(most, number)
    if most >= len(plans):
        return ()
    where = (
        f"nodes hold at most {most:,}"
        if len(domains) == 1
        else f"the largest of {len(domains):,} domains holds {most:,}"
    )
    return (f"{count_of(len(plans), 'pod')} are wanted, and {where}, {_EVEN}",)


def _fill(layout: Layout, plan: PodPlan, node: int, most: int) -> int:
    landed: list[Landed] = []
    while len(landed) < most and (each := layout.place(plan, node)) is not None:
        landed.append(each)
    for each in reversed(landed):
        layout.unplace(each)
    return len(landed)


def _prove_too_few_devices(
    emptied: Layout, plans: Sequence[PodPlan], domains: Sequence[Sequence[int]]
) -> tuple[str, ...]:
    """Proves that whole devices which the wanted pods may use are too few for these and for pods that can use no others.

    A pod that moves has to get devices again, and a pod that does not move keeps its own.
    """
    cluster = emptied.free.cluster
    reachable = {
        plan: _find_usable(emptied, plan, {node for nodes in domains for node in nodes})
        for plan in dict.fromkeys(plans)
    }
    usable = frozenset[DeviceID]().union(*reachable.values())
    nodes = {
        node
        for node in range(len(cluster.nodes))
        if any(each.id in usable for pool in cluster.pools(node) for each in pool.devices)
    }
    if not usable or not all(map(emptied.is_plain, nodes)):
        return ()
    in_use = emptied.free.in_use.state
    available = sum(not in_use.is_allocated(device) for device in usable)
    needed = sum(map(_count_least, plans))
    everywhere = set(range(len(cluster.nodes)))
    known: dict[PodPlan, bool] = {}
    others = pods = 0
    for each in emptied.movers:
        if each.plan is None or not (number := _count_least(each.plan)):
            continue
        if each.plan not in known:
            known[each.plan] = _find_usable(emptied, each.plan, everywhere) <= usable
        if known[each.plan] and all(device in usable for device, _, _ in each.devices):
            others += number
            pods += 1
    if needed + others <= available:
        return ()
    text = (
        f"{needed + others:,} devices are needed, {needed:,} by the wanted pods and {others:,} by {count_of(pods, 'pod')} that may be moved and need "
        f"them too; the nodes have {count_of(available, 'device')} beside those of pods that stay"
    )
    return (text,)


def _find_usable(layout: Layout, plan: PodPlan, nodes: Set[int]) -> frozenset[DeviceID]:
    """The devices that a request of a pod may get on nodes that let it in."""
    refusals = layout.free.refusals(plan)
    cluster = layout.free.cluster
    return frozenset(
        device
        for node in nodes
        if not refusals[node]
        for entry in plan.at(cluster.offered[node]).entries
        for device in cluster.find_matching(node, entry.demand)
    )


def _count_least(plan: PodPlan) -> int:
    """The fewest devices that a pod needs to itself; 0 where that is not known."""
    number = 0
    for entry in plan.at({}).entries:
        for request in entry.demand.devices.requests or ():
            leaf = request.exactly
            if leaf is None or leaf.admin_access or leaf.allocation_mode == "All":
                continue
            number += leaf.count
    return number


Part: TypeAlias = tuple[str, str]
"""A driver, and the name of a counter that its devices draw on, or of a capacity that claims share."""

_MOST_LOOKED_AT: Final = 200_000
"""Devices that are looked at for all kinds of pods; with more, parts of devices are not counted."""


def _prove_too_few_parts(emptied: Layout, plans: Sequence[PodPlan]) -> tuple[str, ...]:
    """Proves that devices in partitions, or shared ones, have too little of something for the wanted pods and all that may be moved.

    Each pod counts with the least that any device which it may get takes, or with what it has now where that is less.
    """
    cluster = emptied.free.cluster
    pools = {pool.id: pool for node in range(len(cluster.nodes)) for pool in cluster.pools(node)}
    devices = [device for pool in pools.values() for device in (*pool.devices, *pool.elsewhere)]
    kinds = {*plans, *(each.plan for each in emptied.movers if each.plan is not None)}
    if len(devices) * len(kinds) > _MOST_LOOKED_AT:
        return ()
    available = _count_there(pools.values(), emptied.free.in_use.state)
    least = {plan: _find_least_parts(emptied, plan) for plan in kinds}
    needed: Counter[Part] = Counter()
    for plan in plans:
        needed.update(least[plan])
    others: Counter[Part] = Counter()
    by_id = {device.id: device for device in devices}
    for each in emptied.movers:
        if each.plan is not None:
            own = _count_own(each, by_id)
            others.update({part: min(amount, own[part]) for part, amount in least[each.plan].items()})
    # Memory says more to a reader than the copy engines that come with it.
    for part in sorted(needed, key=lambda each: (each[1] != "memory", each)):
        if needed[part] and needed[part] + others[part] > available[part]:
            return (_tell_parts(part, needed[part], others[part], available[part]),)
    return ()


def _count_there(pools: Iterable[Pool], state: AllocatedState) -> Counter[Part]:
    """What all devices have of each thing, without what pods that stay take."""
    there: Counter[Part] = Counter()
    for pool in pools:
        for counters in pool.counters.values():
            there.update({(pool.id.driver, name): amount for name, amount in counters.items()})
        for device in (*pool.devices, *pool.elsewhere):
            if device.device.allow_multiple_allocations:
                taken = state.consumed(device.id)
                for name, capacity in (device.device.capacity or {}).items():
                    there[device.id.driver, name] += nanos(capacity.value) - taken.get(name, 0)
            if state.is_allocated(device.id):
                there.subtract(_count_parts(device))
    return there


def _count_own(mover: Mover, devices: Mapping[DeviceID, Published]) -> Counter[Part]:
    """What a running pod takes of each thing with the devices that it has."""
    own: Counter[Part] = Counter()
    for device, consumed, is_share in mover.devices:
        if device in devices:
            own.update(_count_parts(devices[device]))
        if is_share:
            own.update({(device.driver, name): nanos(text) for name, text in (consumed or {}).items()})
    return own


def _tell_parts(part: Part, asked: int, others: int, there: int) -> str:
    driver, name = part
    shown = [show_amount(name, amount // 10**9) for amount in (asked + others, asked, others, max(there, 0))]
    return (
        f"{shown[0]} {name} of devices of {driver} are needed, {shown[1]} by the wanted pods and {shown[2]} by pods that may be moved; "
        f"the nodes have {shown[3]} beside those of pods that stay"
    )


def _find_least_parts(layout: Layout, plan: PodPlan) -> Counter[Part]:
    """The least that a pod takes of each thing, whatever devices it gets."""
    cluster = layout.free.cluster
    refusals = layout.free.refusals(plan)
    found: Counter[Part] = Counter()
    for entry in plan.at({}).entries:
        for request in entry.demand.devices.requests or ():
            leaf = request.exactly
            if leaf is None or leaf.admin_access or leaf.allocation_mode == "All":
                continue
            requested = leaf.capacity.requests if leaf.capacity else None
            least: dict[Part, int] | None = None
            for node in range(len(cluster.nodes)):
                for device in () if refusals[node] else cluster.find_for_request(node, entry.demand, leaf):
                    own = _count_parts(device)
                    if device.device.allow_multiple_allocations:
                        own.update(
                            {
                                (device.id.driver, name): nanos(str(text))
                                for name, text in (requested or {}).items()
                            }
                        )
                    least = (
                        own
                        if least is None
                        else {part: min(amount, own.get(part, 0)) for part, amount in least.items()}
                    )
            found.update({part: amount * leaf.count for part, amount in (least or {}).items()})
    return found


def _count_parts(device: Published) -> Counter[Part]:
    """What a device draws on counters when it is allocated."""
    found: Counter[Part] = Counter()
    for consumption in device.device.consumes_counters or ():
        for name, counter in (consumption.counters or {}).items():
            found[device.id.driver, name] += nanos(counter.value)
    return found


def _prove_too_little(layout: Layout, wanted: Sequence[tuple[Workload, PodPlan]]) -> tuple[str, ...]:
    """Proves that nodes have too little of a resource for the wanted pods and all that may be moved."""
    remade = [
        (Workload(owner=each.pod.owner, replicas=1, plan=each.plan), each.plan)
        for each in layout.movers
        # A pod that does not move may stay on a node that takes no new ones.
        if each.plan is not None and not layout.free.refusals(each.plan)[each.node]
    ]
    short = prove_too_little(layout.free, group_pods(layout.free, [*wanted, *remade]))
    return (f"{short}, by all pods that may be moved among them",) if short else ()
