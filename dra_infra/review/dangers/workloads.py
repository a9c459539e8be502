"""Dangers of workloads: pods that are killed, stopped, rolled over or crowded out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.placement import WorkloadPlacement
from dra_infra.review.changes import Change
from dra_infra.review.dangers.sides import ROLLING_KINDS, Danger, Sides
from dra_infra.review.rollout import foresee_rollout

_WORKLOAD_KINDS: Final = (
    *ROLLING_KINDS,
    "CronJob",
    "Job",
    "Pod",
    "ReplicaSet",
    "ReplicationController",
)


def find_workload_dangers(sides: Sides) -> Iterator[Danger]:
    """Dangers of the objects that make pods: `job-replaced` and the like, `workload-deleted`, `workload-rolls`."""
    namespaces = {
        change.ref.name
        for change in sides.changes
        if change.ref.kind == "Namespace" and change.action == "deleted" and not sides.is_moved(change)
    }
    for change in sides.changes:
        if change.action == "replaced":
            yield from _find_replaced(change, sides)
        elif change.action == "deleted" and change.ref.namespace not in namespaces:
            yield from _find_deleted(change, sides)
        elif sides.rolls(change):
            yield from _find_rollover(change, sides)


def find_crowded_out(sides: Sides) -> Iterator[Danger]:
    """Workloads that fit alone, but not in the joint placement, and that were not left over before: `crowded-out`."""
    before, after = sides.placements
    left_over = {each.owner for each in before.workloads if _lacks_room(each)} if before else set()
    for workload in after.workloads if after else ():
        if _lacks_room(workload) and workload.owner not in left_over:
            placed = f"{len(workload.pods):,} of {count_of(workload.replicas, 'pod')}"
            yield Danger(
                who=workload.owner,
                code="crowded-out",
                message=f"fits alone, but beside the other workloads only {placed} found room",
                hint="pods were placed first fit: another order may do, more nodes will",
            )


def _find_replaced(change: Change, sides: Sides) -> Iterator[Danger]:
    fields, cause = join_words(change.replacing), sides.cause_of(change)
    old = change.before.ref if change.before else change.ref
    if change.ref.kind == "Job":
        done = sides.running.is_done(old)
        yield Danger(
            who=change.ref,
            code="job-replaced",
            message=f"is replaced ({fields}) and runs again: the old one is done"
            if done
            else f"is replaced ({fields}), {_pods_of(old, sides)} killed",
            cause=cause,
            hint="give the new Job a name of its own"
            if done
            else "Jobs do not roll over: wait until it is done, or give the new Job a name of its own",
        )
    elif change.ref.kind == "Pod":
        yield Danger(
            who=change.ref,
            code="pod-replaced",
            message=f"is replaced ({fields}): it is killed and scheduled anew",
            cause=cause,
            hint="nothing restarts a bare pod smoothly: a Deployment or a Job would",
        )
    elif change.ref.kind in ROLLING_KINDS:
        yield Danger(
            who=change.ref,
            code="workload-replaced",
            message=f"is replaced ({fields}): all its pods are stopped"
            + (" before new ones start" if change.order == "delete-first" else ""),
            cause=cause,
            hint="keep the field as it was to have the pods rolled over",
        )


def _find_deleted(change: Change, sides: Sides) -> Iterator[Danger]:
    if change.ref.kind not in _WORKLOAD_KINDS or sides.is_moved(change) or sides.running.is_done(change.ref):
        return
    pods = sides.before.pods.get(change.ref)
    if sides.running.count_pods(change.ref) or (pods is not None and pods.claims):
        killed = "it is killed" if change.ref.kind == "Pod" else f"{_pods_of(change.ref, sides)} killed"
        yield Danger(
            who=change.ref,
            code="workload-deleted",
            message=f"is deleted, {killed}",
            hint="under another name or URN it is another object: a Pulumi alias keeps it",
        )


def _pods_of(ref: ObjectRef, sides: Sides) -> str:
    """`its running pods are`, with their number where a snapshot has them."""
    number = sides.running.count_pods(ref)
    if not number:
        return "its running pods are"
    return "its running pod is" if number == 1 else f"its {number:,} running pods are"


def _find_rollover(change: Change, sides: Sides) -> Iterator[Danger]:
    """Pods that change with the names of their claims, or that change with too little room for a surge."""
    cause, placed = sides.cause_of(change), sides.placed.get(change.ref)
    alone = placed.more_pods if placed is not None and placed.verdict == "fits" else None
    outlook = foresee_rollout(
        change.object.manifest,
        sides.after.pods[change.ref].replicas,
        each=_count_devices(change.ref, sides),
        # Without an answer for both generations together, that of the new one alone.
        room=sides.room.get(change.ref, alone),
        fleet=sides.fleet,
        # What does not fit is a problem already.
        through=sides.through.get(change.ref) if placed is not None and placed.verdict == "fits" else None,
        in_yaml=change.object.replacement == "in-place",
    )
    if cause or outlook.lacks_room:
        yield Danger(
            who=change.ref, code="workload-rolls", message=outlook.message, cause=cause, hint=outlook.hint
        )


def _count_devices(owner: ObjectRef, sides: Sides) -> int | None:
    count = sides.after.count_devices(sides.after.pods[owner])
    placed = sides.placed.get(owner)
    if count is None and placed is not None and placed.nodes:
        return len(placed.nodes[0].devices)
    return count


def _lacks_room(workload: WorkloadPlacement) -> bool:
    return workload.verdict == "fits" and len(workload.pods) < workload.replicas
