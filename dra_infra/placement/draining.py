"""Whether all workloads still fit while one node takes no pods, as in a drain: asked of one node of each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.scheduler import Taken
from dra_infra.output.wording import count_of
from dra_infra.placement.demand import PodPlan
from dra_infra.placement.fillings import find_interchangeable, group_pods
from dra_infra.placement.growth import find_growth
from dra_infra.placement.open_programs import open_program
from dra_infra.placement.placement import Growth, JointVerdict
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.scheduling import place
from dra_infra.placement.what_if import WhatIf, change_fleet


@dataclass(frozen=True, slots=True)
class Drained:
    """The verdict while one node is drained.

    Args:
        node: The node.
        alike: How many nodes there are that it can be exchanged for, itself included.
        joint: The verdict on all workloads at once.
        growth: By how much node pools have to grow then; None where the fleet has none.
        evicted: How many pods of others are evicted, and placed anew in it.
    """

    node: str
    alike: int
    joint: JointVerdict
    growth: Growth | None = None
    evicted: int = 0

    @property
    def fits(self) -> bool:
        """Whether all workloads fit at once, after growth where node pools can grow."""
        return self.growth.fits if self.growth is not None else self.joint.works is not None

    def __str__(self) -> str:
        others = f", or one of {self.alike - 1:,} other nodes like it" if self.alike > 1 else ""
        if self.alike == 2:
            others = ", or the other node like it"
        grown = self.growth is not None and self.growth.verdict != "fits-now"
        told = str(self.growth if grown else self.joint)
        moved = f", and {count_of(self.evicted, 'pod')} of others evicted" if self.evicted else ""
        return f"With {self.node} drained{others}{moved}: {told}"


def drain_one_of_each(
    question: PlacementQuestion, find_taken: Callable[[Fleet, str], Taken]
) -> tuple[Drained, ...]:
    """Return the verdict with one node drained, for each kind of nodes that the pods of the program can tell apart.

    Args:
        question: The program and the fleet while no node is drained.
        find_taken: Returns what is not free of a fleet while the node of a name is drained.
    """
    opened = open_program(question)
    plans = [(each, each.plan) for each in opened.arriving if isinstance(each.plan, PodPlan)]
    found: list[Drained] = []
    for nodes in find_interchangeable(opened.free, group_pods(opened.free, plans)):
        name = opened.free.cluster.nodes[nodes[0]].name
        without = change_fleet(question.fleet, WhatIf(drain=(name,)), question.release)
        drained = replace(question, fleet=without, taken=find_taken(without, name))
        placed = place(drained)
        growth = find_growth(drained, placed)
        found.append(Drained(name, len(nodes), placed.joint, growth, placed.evicted))
    return tuple(found)
