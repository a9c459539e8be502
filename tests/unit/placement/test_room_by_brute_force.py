"""Plans for room against brute force: every sequence of moves of small clusters, played with the allocator."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from dra_infra.placement.freed_nodes import NOTHING, Cost, Landed, Layout, add_costs
from dra_infra.placement.making_room import RoomQuestion, open_layout
from dra_infra.placement.movable_pods import find_running_pods
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.running import Running
from tests.support.draws import seeds
from tests.support.running_clusters import Drawn, a_snapshot, ask_for_room, draw_cluster

pytestmark = pytest.mark.draws
_CASES = 60
_MOST_MOVES = 3
"""Longer sequences are not tried: there are too many."""


def layout_of(drawn: Drawn) -> tuple[Layout, list]:
    snapshot = a_snapshot(drawn.fleet, *drawn.objects)
    running = Running.of(snapshot)
    wanted = next(each for each in ask_for_room(snapshot, "job/wanted", *drawn.wanted).scene.program.objects)
    question = PlacementQuestion(manifests=[wanted.manifest], fleet=snapshot.fleet)
    asked = RoomQuestion(question=question, running=running, wanted=wanted.ref)
    pods, _ = find_running_pods(running, wanted.ref, 0, asked.rules)
    opened, movers, _ = open_layout(asked, pods)
    plans = [
        each.plan
        for each in opened.workloads
        if each.owner.name == "wanted"
        for _ in range(each.replicas or 0)
    ]
    return Layout(opened.free, movers), plans


def takes_all(layout: Layout, plans: list) -> bool:
    """Whether all wanted pods fit, each on any node."""
    if not plans:
        return True
    for node in range(len(layout.free.cluster.nodes)):
        landed = layout.place(plans[0], node)
        if landed is not None:
            fits = takes_all(layout, plans[1:])
            layout.unplace(landed)
            if fits:
                return True
    return False


def moves_of(layout: Layout, moved: set[int]) -> Iterator[tuple[int, Landed]]:
    """Every move of a pod that has not moved: away, and to any node that takes it then. Yields while it is done."""
    for number, mover in enumerate(layout.movers):
        if number in moved or mover.plan is None:
            continue
        layout.take_away([number])
        for node in range(len(layout.free.cluster.nodes)):
            landed = layout.place(mover.plan, node)
            if landed is not None:
                yield number, landed
                layout.unplace(landed)
        layout.put_back([number])


def find_cheapest(layout: Layout, plans: list, below: Cost | None) -> Cost | None:
    """The cost of the cheapest sequence of few moves, below a cost."""
    best: list[Cost] = [] if below is None else [below]
    seen: set[object] = set()

    def search(cost: Cost, moved: set[int]) -> None:
        key = (
            frozenset(moved),
            frozenset(
                (node, each.plan, tuple(device for device, _, _ in each.devices))
                for node, there in layout.placed.items()
                for each in there
            ),
        )
        if key in seen or (best and cost >= best[0]):
            return
        seen.add(key)
        if takes_all(layout, plans):
            best[:] = [cost]
            return
        if len(moved) < _MOST_MOVES:
            for number, _ in moves_of(layout, moved):
                search(add_costs(cost, layout.movers[number].cost), moved | {number})

    search(NOTHING, set())
    return best[0] if best else None


@pytest.mark.parametrize("seed", seeds(_CASES))
def test_no_sequence_of_moves_is_cheaper_and_none_contradicts_never(seed):
    drawn = draw_cluster(random.Random(seed))  # noqa: S311
    answer = ask_for_room(a_snapshot(drawn.fleet, *drawn.objects), "job/wanted", *drawn.wanted)
    made = answer.made
    assert made.verdict in ("fits-now", "moves", "never", "not-found"), made.reasons
    layout, plans = layout_of(drawn)
    found = find_cheapest(layout, plans, None)
    if made.verdict in ("never", "not-found"):
        assert found is None, (made.verdict, made.reasons, found)
        return
    assert found is None or made.plan.cost <= found
    assert made.plan.is_cheapest
    if made.plan.cost[1] <= _MOST_MOVES:
        assert found == made.plan.cost


def test_the_cases_have_every_verdict():
    verdicts = set()
    for seed in itertools.count():
        drawn = draw_cluster(random.Random(seed))  # noqa: S311
        answer = ask_for_room(a_snapshot(drawn.fleet, *drawn.objects), "job/wanted", *drawn.wanted)
        verdicts.add(answer.made.verdict)
        if verdicts >= {"fits-now", "moves", "never"} or seed > _CASES:
            break
    assert verdicts >= {"fits-now", "moves", "never"}
