"""The verdict on all workloads at once: in every order of arrival, in some, in none (ADR 12).

Pods arrive in any order, each on any node that takes it, with the devices that the allocator gives it there; nothing leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from dra_infra.output.wording import count_of
from dra_infra.placement.bounds import find_bounds
from dra_infra.placement.counting import Need, is_open, prove_never, prove_too_little
from dra_infra.placement.demand import PodPlan, Workload
from dra_infra.placement.fillings import (
    FILLINGS_LIMIT,
    EqualPods,
    Halted,
    NodeKind,
    States,
    are_nodes_apart,
    find_states,
    group_pods,
)
from dra_infra.placement.free_fleet import FreeFleet
from dra_infra.placement.integer_programs import NO_SOLVER, SECONDS, Assignment, close_nodes, has_solver, pack
from dra_infra.placement.orders import Player, find_full, find_short, walk
from dra_infra.placement.placement import JointVerdict, Order

_FEW: Final = 500
"""States of nodes that are looked at first: with few pods a node, no more are needed."""


def judge_jointly(
    free: FreeFleet,
    workloads: Sequence[tuple[Workload, PodPlan]],
    first: Order,
    is_late: Callable[[], bool] = lambda: False,
) -> JointVerdict:
    """The verdict on workloads that are decided each by itself, and that quotas let be.

    Args:
        free: The fleet.
        workloads: All of them, with their plans.
        first: An order of arrival of all their pods.
        is_late: Asked now and then; once true, what is not decided by then stays so.
    """
    pods = group_pods(free, workloads)
    if first.pending and not all(each.plan.shape.only_fills for each in pods):
        # Pods that want to be near others, or spread, may find a node once these are there.
        first = Player(free, pods).finish()
    waiting = {owner for owner, _ in first.pending}
    for each in pods:
        is_waiting = any(owner in waiting for owner, _, _ in each.members)
        answer = free.answer(each.plan)
        # A device that ends the attempt of a pod is not looked at where another pod has it.
        if is_waiting and each.plan.shape.only_fills and not answer.candidates and not answer.halted:
            return JointVerdict(verdict="never", reasons=(f"no node takes a pod of {each}",))
    if first.pending and (short := prove_too_little(free, pods)):
        return JointVerdict(verdict="never", reasons=(str(short),), fails=first, shortages=(short,))
    verdict: JointVerdict | None = None
    # A node of partitioned devices has too many states to know them all. Those with few pods are enough where there are
    # many nodes for the pods; that all find room or never do, they cannot show.
    for limit in (_FEW, FILLINGS_LIMIT):
        found = _judge_states(free, workloads, first, is_late, limit)
        if isinstance(found, Halted):
            # Orders by first fit end at the first node, where the scheduler looks at all of them and may find an error.
            return _walk(free, pods, None, is_late)
        if found is not None and found.verdict != "not-decided":
            return found
        verdict = found
        if limit == _FEW and (tried := _try_orders(free, pods, first)):
            return tried
    return verdict or _walk(free, pods, None if first.pending else first, is_late)


def _judge_states(
    free: FreeFleet,
    workloads: Sequence[tuple[Workload, PodPlan]],
    first: Order,
    is_late: Callable[[], bool],
    limit: int,
) -> JointVerdict | Halted | None:
    """The verdict by the states of nodes, or so many of them.

    None where they do not decide it, for nodes hang together; what halts where an error on one node ends the attempt of a
    pod, for then they do in another way.
    """
    is_apart = are_nodes_apart(free, workloads)
    if not is_apart or not all(plan.uses_devices for _, plan in workloads):
        found = _bound(free, workloads, first, is_late, limit)
        if found is not None or not is_apart:
            return found
    states = find_states(free, workloads, is_late, limit, may_cut=not first.pending)
    if isinstance(states, Halted):
        return states if states.is_aborted else _undecided(first, states.why)
    if first.pending:
        return _pack(free, states, first, states.pods)
    return _judge_orders(free, states, first, states.pods)


def _try_orders(free: FreeFleet, pods: Sequence[EqualPods], first: Order) -> JointVerdict | None:
    """The verdict where an order that is likely to end otherwise than the first one does."""
    works, fails = (find_full(free, pods, first), first) if first.pending else (first, find_short(free, pods))
    if works is None or fails is None:
        return None
    return JointVerdict(verdict="depends-on-order", reasons=_tell_waiting(fails), works=works, fails=fails)


def _bound(
    free: FreeFleet,
    workloads: Sequence[tuple[Workload, PodPlan]],
    first: Order,
    is_late: Callable[[], bool],
    limit: int,
) -> JointVerdict | Halted | None:
    """The verdict where bounds show it, without all states of the platform; or what halts, as above."""
    bounds = find_bounds(free, workloads, is_late, limit, may_cut=not first.pending)
    if isinstance(bounds, Halted):
        return bounds if bounds.is_aborted else None
    if first.pending:
        found = _pack(free, bounds.states, first, bounds.pods)
        if found.verdict != "not-decided":
            return found
        works = bounds.find_order()
        if works is None:
            return None
        return JointVerdict(
            verdict="depends-on-order", reasons=_tell_waiting(first), works=works, fails=first
        )
    shown = bounds.decide()
    if isinstance(shown, Order):
        return JointVerdict(
            verdict="depends-on-order", reasons=_tell_waiting(shown), works=first, fails=shown
        )
    return None if shown is None else JointVerdict(verdict="always", reasons=shown, works=first)


def _pack(free: FreeFleet, states: States, first: Order, arriving: Sequence[EqualPods]) -> JointVerdict:
    """The verdict where one order leaves pods pending: whether another one places all of them.

    Args:
        free: The fleet.
        states: The states of nodes.
        first: The order.
        arriving: All pods, numbered as in the states, and then those that the states leave out.
    """
    pods, kinds = states.pods, states.kinds
    short = prove_never(free, kinds, pods)
    if short:
        return JointVerdict(verdict="never", reasons=(str(short[0]),), fails=first, shortages=short)
    if not has_solver():
        return _undecided(first, NO_SOLVER)
    packed = pack(kinds, pods, seconds=SECONDS)
    if packed is None:
        return _undecided(first, f"packing all pods took longer than {SECONDS:g} s")
    if packed.most < sum(each.count for each in pods):
        return JointVerdict(verdict="never", reasons=_tell_never(kinds, pods, packed), fails=first)
    works = _play(free, states, packed, arriving)
    if works is None or works.pending:
        return _undecided(
            first, f"an assignment of all pods was not confirmed by the allocator{_why(states)}"
        )
    return JointVerdict(verdict="depends-on-order", reasons=_tell_waiting(first), works=works, fails=first)


def _judge_orders(free: FreeFleet, states: States, works: Order, pods: Sequence[EqualPods]) -> JointVerdict:
    """The verdict where one order places all pods: whether others can close all nodes to one of them."""
    kinds = states.kinds
    proofs: list[str] = []
    open_questions: list[str] = []
    for which, each in enumerate(pods):
        nodes = sum(len(kind.nodes) for kind in kinds if is_open(kind, which))
        closed = close_nodes(kinds, pods, which, 1 if each.on_each else nodes)
        if isinstance(closed, str):
            open_questions.append(closed)
            continue
        if not closed.chosen and nodes:
            proofs.append(f"others can close at most {closed.most:,} of {count_of(nodes, 'node')} to {each}")
            continue
        fails = _play(free, states, closed, pods) if closed.chosen else None
        if fails is not None and fails.pending:
            return JointVerdict(
                verdict="depends-on-order", reasons=_tell_waiting(fails), works=works, fails=fails
            )
        why = f"an order that leaves {each} pending was not confirmed by the allocator{_why(states)}"
        open_questions.append(why)
    if open_questions:
        return _undecided(works, open_questions[0])
    return JointVerdict(verdict="always", reasons=tuple(proofs), works=works)


def _why(states: States) -> str:
    return (
        ""
        if states.is_exact
        else ": its pods differ too much in what they request of nodes to know all states"
    )


def _walk(
    free: FreeFleet, pods: Sequence[EqualPods], works: Order | None, is_late: Callable[[], bool]
) -> JointVerdict:
    """The verdict where nodes hang together, by walking through the states of the platform."""
    ends = walk(free, pods, is_late)
    works = works or ends.full
    told = f"{count_of(ends.states, 'state')} of the platform {'was' if ends.states == 1 else 'were'} walked through"
    more = f"{told}, and there are more: what its pods need is not on one node alone"
    if works and ends.short:
        return JointVerdict(
            verdict="depends-on-order", reasons=_tell_waiting(ends.short), works=works, fails=ends.short
        )
    if not ends.is_complete:
        return JointVerdict(
            verdict="not-decided", reasons=(ends.halted or more,), works=works, fails=ends.short
        )
    if works:
        return JointVerdict(
            verdict="always",
            reasons=(f"{told}: {'it ends' if ends.states == 1 else 'all end'} with every pod placed",),
            works=works,
        )
    return JointVerdict(
        verdict="never", reasons=(f"{told}: none ends with every pod placed",), fails=ends.short
    )


def _play(
    free: FreeFleet, states: States, assignment: Assignment, arriving: Sequence[EqualPods]
) -> Order | None:
    """Play an assignment through: its fillings node by node, then all other pods."""
    player = Player(free, arriving)
    is_exact = states.is_exact and arriving is states.pods
    for kind, chosen in zip(states.kinds, assignment.chosen, strict=True):
        nodes = iter(kind.nodes)
        for filling, number in chosen:
            for _ in range(number):
                node = next(nodes)
                # Where pods that differ count as equal, a node may not take all of them.
                if not all([player.arrive(which, node) for which in filling.arrivals]) and is_exact:  # noqa: C419
                    return None
    return player.finish()


def _tell_never(kinds: Sequence[NodeKind], pods: Sequence[EqualPods], packed: Assignment) -> tuple[str, ...]:
    asked = sum(each.count for each in pods)
    head = f"at most {packed.most:,} of {count_of(asked, 'pod')} find room at once"
    weights = [1 - each for each in packed.weights]
    scale = math.lcm(*(weight.denominator for weight in weights))
    weighed = Need("pods", tuple(int(weight * scale) for weight in weights))
    if weights and weighed.asked(pods) > weighed.most(kinds):
        parts = ", ".join(
            f"{weight} for a pod of {each}"
            for weight, each in zip(weighed.amounts, pods, strict=True)
            if weight
        )
        there = weighed.most(kinds)
        return head, f"counting {parts}: {weighed.asked(pods):,} are asked, and nodes hold {there:,} at once"
    states = sum(len(kind.fillings) for kind in kinds)
    return (
        head,
        f"{count_of(states, 'state')} of {count_of(len(kinds), 'kind')} of nodes were combined in every way",
    )


def _tell_waiting(order: Order) -> tuple[str, ...]:
    owner, number = order.pending[0]
    more = (
        f" and pods of {count_of(len(order.pending) - 1, 'more workload')}" if len(order.pending) > 1 else ""
    )
    return (f"{count_of(number, 'pod')} of {owner}{more} can be left pending",)


def _undecided(first: Order, why: str) -> JointVerdict:
    if first.pending:
        return JointVerdict(verdict="not-decided", reasons=(why,), fails=first)
    return JointVerdict(verdict="not-decided", reasons=(why,), works=first)
