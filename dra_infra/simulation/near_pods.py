"""Required affinity to pods of other workloads: who has to be there first, and what cannot be known.

A pod that wants to be near pods which are nowhere yet waits for them. So the joint placement puts the workloads that it
names first; alone, on the otherwise free fleet, it is not held to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dra_infra.model.metadata import ObjectRef
from dra_infra.simulation.demand import Undecided
from dra_infra.simulation.namespaces import Namespaces
from dra_infra.simulation.placed_pods import PlacedPods
from dra_infra.simulation.pod_plans import PodPlan, Workload
from dra_infra.simulation.pod_shapes import PodShape


def settle_affinity(
    workloads: Sequence[Workload],
    bystanders: Iterable[tuple[ObjectRef, PodShape]],
    running: PlacedPods | None,
    namespaces: Namespaces,
) -> list[Workload]:
    """The workloads with the pods that they need beside them, or with what of their affinity is left out.

    Args:
        workloads: Those that are placed.
        bystanders: Pods of the program that are not placed.
        running: Pods that run; None when it is not known which do.
        namespaces: For namespace selectors.
    """
    shapes = {each.owner: each.plan.shape for each in workloads if isinstance(each.plan, PodPlan)}
    others = list(bystanders)
    return [_settle(each, shapes, others, running, namespaces) for each in workloads]


def in_order(workloads: Sequence[Workload]) -> list[int]:
    """The numbers of the workloads so that each comes behind those that it needs beside it, else as they are."""
    numbers = {each.owner: number for number, each in enumerate(workloads)}
    placed: dict[int, None] = {}

    def visit(number: int, path: frozenset[int]) -> None:
        for owner in workloads[number].beside:
            if owner in numbers and numbers[owner] not in path:
                visit(numbers[owner], path | {number})
        placed.setdefault(number)

    for number in range(len(workloads)):
        visit(number, frozenset((number,)))
    return list(placed)


def alone(workload: Workload, plan: PodPlan) -> PodPlan:
    """The plan on the otherwise free fleet, where pods that it wants to be near to are not there yet."""
    return without_affinity(plan) if workload.beside else plan


def without_affinity(plan: PodPlan) -> PodPlan:
    """The plan of pods that go anywhere as far as required affinity is concerned."""
    shape = plan.shape
    return replace(plan, shape=replace(shape, near=(), key=json.dumps(["not near", shape.key])))


def _settle(
    workload: Workload,
    shapes: Mapping[ObjectRef, PodShape],
    others: Sequence[tuple[ObjectRef, PodShape]],
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
    beside = tuple(owner for owner, shape in shapes.items() if names(shape))
    if beside:
        return replace(workload, beside=beside)
    aside = [str(owner) for owner, shape in others if names(shape)]
    if aside:
        return _leave_out(workload, plan, f"near pods of {aside[0]}, which are not placed")
    if running is None:
        return _leave_out(workload, plan, "near pods that are not in this input")
    return workload


def _leave_out(workload: Workload, plan: PodPlan, why: str) -> Workload:
    found = {*workload.unmodelled, f"affinity.podAffinity ({why})"}
    return replace(workload, plan=without_affinity(plan), unmodelled=tuple(sorted(found)))
