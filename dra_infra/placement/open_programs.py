"""A program that is read, and the fleet that is opened for it, in the same way for all that place one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dra_infra.kubernetes.api import Namespaces, ObjectRef, by_namespace, value_at
from dra_infra.kubernetes.apiserver import is_extended_resource
from dra_infra.kubernetes.scheduler import PlacedPods, PodShape
from dra_infra.placement.cluster import Cluster
from dra_infra.placement.demand import PodPlan, Undecided, Workload
from dra_infra.placement.free_fleet import FreeFleet
from dra_infra.placement.objects import ProgramObjects
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.workloads import find_bystanders, find_workloads, plan_claim, read_evicted


@dataclass(frozen=True, slots=True)
class OpenProgram:
    """A program on a fleet, of which nothing is placed yet.

    Args:
        objects: Of the program.
        workloads: What is placed, with the pods that each needs beside it, or with what of its affinity is left out.
        bystanders: Workloads without claims that are placed too, and pods of others that are evicted.
        left_out: Workloads without claims that may be for nodes which a partial fleet does not have: no node of it lets them in,
            and no further node of its pools. None that request an extended resource which a node of the fleet offers.
        free: The fleet without what is taken of it.
        notes: What of the program is not placed, and what else is to be known.
        unplaced: The objects that use claims, as far as is known, and make pods that are not placed here.
    """

    objects: ProgramObjects
    workloads: Sequence[Workload]
    bystanders: Sequence[Workload]
    left_out: Sequence[Workload]
    free: FreeFleet
    notes: Sequence[str]
    unplaced: Sequence[str]

    @property
    def arriving(self) -> tuple[Workload, ...]:
        """All workloads whose pods go to nodes of the fleet."""
        return *self.workloads, *self.bystanders


def open_program(question: PlacementQuestion, *, claim: ObjectRef | None = None) -> OpenProgram:
    """Read what a program asks for, and open the fleet for it.

    Args:
        question: The program and the fleet.
        claim: Place a pod with this claim or claim template alone; None takes all workloads.
    """
    fleet, taken = question.fleet, question.taken
    objects = ProgramObjects(question)
    workloads, notes, unplaced = (
        find_workloads(objects) if claim is None else ([plan_claim(objects, claim)], [], [])
    )
    cluster = Cluster(fleet, question.release, question.is_late, objects=objects.policies)
    evicted = read_evicted(objects, taken) if claim is None else []
    others = [*evicted, *(find_bystanders(objects) if claim is None else ())]
    shapes, aside = (
        {each.owner: each.plan.shape for each in found if isinstance(each.plan, PodPlan)}
        for found in (workloads, others)
    )
    keeps_off = any(shape.apart for shape in (*shapes.values(), *aside.values()))
    free = FreeFleet(cluster, taken, objects.namespaces, keeps_off=keeps_off)
    running = None if taken.pods is None else free.running
    beside: list[Workload] = []
    left_out: list[Workload] = []
    notes += taken.notes if claim is None else ()
    notes += [
        f"{claim} is allocated, so pods that use it go where it can be used"
        for claim in sorted(objects.joined, key=by_namespace)
        if value_at(objects.held[claim], "status", "allocation")
    ]
    given_out = {name for each in fleet.nodes for name in each.allocatable if is_extended_resource(name)}
    for number, each in enumerate(others):
        is_new = number >= len(evicted) and isinstance(each.plan, PodPlan)
        if (
            fleet.is_partial
            and is_new
            and not given_out & each.plan.requests.keys()
            and not _is_let_in(free, each.plan)
        ):
            left_out.append(each)
            if each.replicas is None:
                notes.append(f"{each.owner} is left out: no node of {fleet.name} lets its pods in")
        else:
            beside.append(_settle(each, {**shapes, **aside}, {}, running, objects.namespaces))
    # Pods of bystanders are there for those that want to be near them; of what is left out there are none.
    absent = {each.owner: aside.pop(each.owner) for each in left_out if each.owner in aside}
    there = {**shapes, **aside}
    settled = [_settle(each, there, absent, running, objects.namespaces) for each in workloads]
    return OpenProgram(objects, settled, beside, left_out, free, notes, unplaced)


def _is_let_in(free: FreeFleet, plan: PodPlan) -> bool:
    """Return whether a node lets the pods in, would if it were not cordoned, or is one that a node pool may get."""
    added = (node for pool in free.cluster.fleet.pools for more in pool.spare[:1] for node in more.nodes)
    return any(
        not refusal or (node.unschedulable and not plan.filter.refusal(replace(node, unschedulable=False)))
        for refusal, node in zip(free.refusals(plan), free.cluster.nodes, strict=True)
    ) or any(not plan.filter.refusal(node) for node in added)


def _settle(
    workload: Workload,
    shapes: Mapping[ObjectRef, PodShape],
    others: Mapping[ObjectRef, PodShape],
    running: PlacedPods | None,
    namespaces: Namespaces,
) -> Workload:
    plan = workload.plan
    if isinstance(plan, Undecided) or not plan.shape.near:
        return workload

    def names(shape: PodShape) -> bool:
        return all(term.matches(shape, namespaces) for term in plan.shape.near)

    if names(plan.shape) or (running is not None and running.has_near(plan.shape)):
        return workload
    affinity_to = tuple(owner for owner, shape in shapes.items() if names(shape))
    if affinity_to:
        return replace(workload, affinity_to=affinity_to)
    aside = [str(owner) for owner, shape in others.items() if names(shape)]
    if aside:
        return _leave_out(workload, plan, f"near pods of {aside[0]}, which are not placed")
    if running is None:
        return _leave_out(workload, plan, "near pods that are not in this input")
    return workload


def _leave_out(workload: Workload, plan: PodPlan, why: str) -> Workload:
    found = {*workload.unmodelled, f"affinity.podAffinity ({why})"}
    return replace(workload, plan=without_affinity(plan), unmodelled=tuple(sorted(found)))


def without_affinity(plan: PodPlan) -> PodPlan:
    """The plan of pods that go anywhere as far as required affinity is concerned."""
    shape = plan.shape
    return replace(plan, shape=replace(shape, near=(), key=json.dumps(["not near", shape.key])))
