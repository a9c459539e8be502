"""Rollouts of the workloads that move in one phase: whether their new pods find room beside the old ones, on nodes as they are then.

A verdict on all pods at once is about the end of a phase. Where a class serves the plugin's resource, old pods take nodes of the driver, and
a rollout that starts a new pod first may wait for ever on a full cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.cutover.estate import Unit
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.scheduler.fleet import Fleet
from dra_infra.kubernetes.scheduler.placed_pods import Taken
from dra_infra.placement.demand import PodPlan
from dra_infra.placement.joint import ObjectMakers, open_program
from dra_infra.placement.rolling import Rollover, step_rollovers
from dra_infra.review.comparison import NEW
from dra_infra.review.rollout import Outlook, Rollout, foresee_rollout

_ROLLING: Final = ("Deployment", "StatefulSet")


def foresee_rollouts(
    units: Sequence[Unit],
    before: Sequence[Mapping[str, Any]],
    fleet: Fleet,
    *,
    release: Release,
    taken: Taken,
) -> dict[ObjectRef, Outlook]:
    """How the rollout of each Deployment and StatefulSet goes, when all of the phase roll over at once.

    Args:
        units: The workloads that move.
        before: All objects before they do.
        fleet: The nodes of the phase, which have left the plugin.
        release: Whose scheduler.
        taken: What is not free of the nodes.
    """
    rolling = [(each, pods) for each in units if (pods := _count(each)) is not None]
    if not rolling:
        return {}
    manifests = [*before]
    for unit, _ in rolling:
        *others, workload = unit.after
        metadata = {**mapping(workload.get("metadata")), "name": f"{unit.ref.name}{NEW}"}
        manifests += [*others, {**workload, "metadata": metadata}]
    rollovers = [_rollover(unit, pods) for unit, pods in rolling]
    progress = step_rollovers(manifests, fleet, rollovers, release=release, taken=taken)
    opened = open_program(manifests, fleet, taken, release)
    makers, new = ObjectMakers(opened, taken.made), {each.new for each in rollovers}
    plans = {each.owner: each.plan for each in opened.workloads}
    old = [each for each in opened.arriving if each.owner.whole not in new]
    found: dict[ObjectRef, Outlook] = {}
    for (unit, pods), rollover in zip(rolling, rollovers, strict=True):
        how_far, plan, refusal = progress.get(rollover.new), plans.get(rollover.new), ""
        if rollover.surge and not rollover.unavailable and isinstance(plan, PodPlan):
            # No old pod stops before a new one runs, and old pods count in quotas.
            refusal = makers.refusal_beside(old, rollover.new, plan)
        # Where not even the first new pod finds a place, it is known that there is no room.
        room = 0 if how_far is not None and how_far.wanted and not how_far.started else None
        found[unit.ref] = foresee_rollout(
            unit.after[-1],
            pods,
            each=None,
            room=None if refusal else room,
            fleet=fleet.name,
            progress=None if refusal else how_far,
            in_yaml=True,
            refusal=refusal,
        )
    return found


def _count(unit: Unit) -> int | None:
    """The pods of a workload that rolls over; None for what has no pods yet, or is exchanged in another way."""
    if unit.before is None or unit.ref.kind not in _ROLLING:
        return None
    return next((each.replicas for each in find_pod_templates(unit.after[-1])), None)


def _rollover(unit: Unit, pods: int) -> Rollover:
    is_set = unit.ref.kind == "StatefulSet"
    rollout = Rollout(surge=0, unavailable=1) if is_set else Rollout.of(unit.after[-1], pods)
    return Rollover(
        old=unit.ref,
        new=replace(unit.ref, name=f"{unit.ref.name}{NEW}"),
        replicas=pods,
        running=pods,
        surge=rollout.surge,
        unavailable=rollout.unavailable,
    )
