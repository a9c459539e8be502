"""Proofs that no moves of running pods make room: counts that hold wherever the pods go, and that a reader can add up."""

from __future__ import annotations

from collections.abc import Sequence, Set

from dra_infra.kubernetes.scheduler import show_amount
from dra_infra.kubernetes.scheduler.allocator import DeviceID
from dra_infra.output.wording import count_of
from dra_infra.placement.counting import prove_too_little
from dra_infra.placement.demand import PodPlan, Workload
from dra_infra.placement.fillings import group_pods
from dra_infra.placement.freed_nodes import Landed, Layout

_EVEN: str = "even without every pod that may be moved"


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
        or _prove_too_little(layout, wanted)
    )


def _explain(layout: Layout, plan: PodPlan) -> tuple[str, ...]:
    """Why nodes without the pods that may be moved do not take a pod, the reason of most nodes first."""
    answer = layout.free.answer(plan)
    found = [(tally.count, text) for text, tally in (*answer.refused.items(), *answer.apart.items())]
    for (resource, amount), tally in answer.short.items():
        requests = plan.at(layout.free.cluster.offered[tally.first]).requests
        text = f"the pod requests {show_amount(resource, requests[resource])} {resource}, and {show_amount(resource, amount)} is left by pods that stay"
        found.append((tally.count, text))
    found += [
        (tally.count, layout.free.explain(plan, tally.first).text.format(best=""))
        for tally in (*answer.failed.values(), *answer.busy.values())
    ]
    found.sort(key=lambda each: (-each[0], each[1]))
    return tuple(f"{count_of(number, 'node')}: {text}" for number, text in found[:5])


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
    there = sum(not in_use.is_allocated(device) for device in usable)
    asked = sum(map(_count_least, plans))
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
    if asked + others <= there:
        return ()
    text = (
        f"{asked + others:,} devices are needed, {asked:,} by the wanted pods and {others:,} by {count_of(pods, 'pod')} that may be moved and need "
        f"them too; the nodes have {count_of(there, 'device')} beside those of pods that stay"
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
