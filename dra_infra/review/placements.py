"""Placement of both sides of a review: per workload what was, what will be, whether that is worse, and what room is left.

What base and head leave is compared per device class and MIG profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef, PodTemplate
from dra_infra.kubernetes.scheduler import CLASS_RESOURCE_PREFIX
from dra_infra.output.wording import count_of
from dra_infra.placement.placement import REFUSED, Placement, Reason, Room, WorkloadPlacement
from dra_infra.placement.texts import DeviceNames, describe_placement
from dra_infra.program_objects import get_field

Trend = Literal["no-longer-fits", "does-not-fit", "not-decided", "fits-now", "new", "moved", "same", "gone"]
"""What became of one workload between base and head, the worst first."""

TRENDS: Final[tuple[Trend, ...]] = (
    "no-longer-fits",
    "does-not-fit",
    "not-decided",
    "fits-now",
    "new",
    "moved",
    "same",
    "gone",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadReview:
    """One workload before and after.

    Args:
        owner: The object that makes the pods.
        trend: What became of it. `does-not-fit` is said of workloads that are new or did not fit before either.
        summary: Where it goes now, or why it goes nowhere; where it was, when it is gone.
        previous: Where it was before, when that differs.
        reasons: Why it does not fit, or why nothing can be said, and the rest of the reasons for nodes left out.
        before: The answer for the base, when the workload was there and a fleet was given.
        after: The answer for the head.
        team: What the label of teams says, of the workload or its pods; empty where neither has it.
    """

    owner: ObjectRef
    trend: Trend
    summary: str
    previous: str = ""
    reasons: tuple[Reason, ...] = ()
    before: WorkloadPlacement | None = None
    after: WorkloadPlacement | None = None
    team: str = ""

    @property
    def fits(self) -> bool:
        """True when all pods of the head's workload have a place."""
        return self.after is not None and self.after.verdict == "fits"


def compare_placements(before: Placement | None, after: Placement | None) -> tuple[WorkloadReview, ...]:
    """One entry per workload of either side: what fits worse first, then by namespace, kind, name and part."""
    old = {workload.owner: workload for workload in before.workloads} if before else {}
    new = {workload.owner: workload for workload in after.workloads} if after else {}
    old_names = DeviceNames.of(before.fleet) if before else None
    new_names = DeviceNames.of(after.fleet) if after else None
    reviews = (_review(owner, old.get(owner), new.get(owner), old_names, new_names) for owner in {*old, *new})
    return tuple(sorted(reviews, key=_rank))


def find_unplaced(workloads: Iterable[WorkloadReview], fleet: str) -> Iterator[Problem]:
    """A problem for each workload that fitted and no longer does, and for each new one that does not fit."""
    for workload in workloads:
        if workload.reasons and workload.reasons[0].code == REFUSED:
            # The error is a problem of the object itself.
            continue
        reason = workload.reasons[0] if workload.reasons else "no reason known"
        if workload.trend == "no-longer-fits":
            yield Problem(
                path=str(workload.owner),
                code="no-longer-fits",
                message=f"no longer fits {fleet}: {reason}",
                hint="before this change it fits: ask for fewer pods or devices, or add nodes",
            )
        elif workload.trend == "does-not-fit" and workload.before is None:
            yield Problem(
                path=str(workload.owner), code="does-not-fit", message=f"does not fit {fleet}: {reason}"
            )


def find_no_order(before: Placement | None, after: Placement | None) -> Iterator[Problem]:
    """A problem where each workload fits and no order is known that places all of them at once; not where that was so before.

    Never means that there is none. Not decided with an order that works is no problem: whether others work is open.
    """
    if after is None or after.joint.works is not None or after.fits_count < len(after.workloads):
        return
    beside = " with the pods of others that are evicted" if after.evicted else ""
    if after.joint.verdict == "never" and (before is None or before.joint.verdict != "never"):
        # No object of a workload has capital letters in its name.
        is_quota = not after.joint.shortages and "ResourceQuota " in after.joint.reasons[0]
        way = "raise the quota" if is_quota else "add nodes"
        yield Problem(
            path="all workloads",
            code="never-fit-at-once",
            message=f"each fits {after.fleet.name}, all at once{beside} never do: {after.joint.reasons[0]}",
            hint=f"ask for fewer pods or devices, or {way}: no order of arrival places all pods",
        )
    if after.joint.verdict == "not-decided" and (before is None or before.joint.works is not None):
        yield Problem(
            path="all workloads",
            code="not-decided-at-once",
            message=f"each fits {after.fleet.name}, whether all do at once{beside} is not decided: {after.joint.reasons[0]}",
            hint="give the fleet more room, so that a first order places all pods, or drop what the reason names",
        )


def _rank(workload: WorkloadReview) -> tuple[bool, int, str, str, str, str]:
    owner = workload.owner
    # What fits stays in the order of names, however it got there.
    worse = TRENDS.index(workload.trend) if workload.trend in TRENDS[:3] else len(TRENDS)
    return workload.trend == "gone", worse, owner.namespace, owner.kind, owner.name, owner.part


def _review(
    owner: ObjectRef,
    old: WorkloadPlacement | None,
    new: WorkloadPlacement | None,
    old_names: DeviceNames | None,
    new_names: DeviceNames | None,
) -> WorkloadReview:
    latest = new or old
    was, was_brief = _describe(old, old_names)
    now, now_brief = _describe(new, new_names)
    previous = ""
    if now and was != now:
        previous = was_brief if was_brief != now_brief else was
    return WorkloadReview(
        owner=owner,
        trend=_find_trend(old, new, moved=was != now),
        summary=now or was_brief,
        previous=previous,
        reasons=latest.reasons if latest else (),
        before=old,
        after=new,
    )


def _describe(workload: WorkloadPlacement | None, names: DeviceNames | None) -> tuple[str, str]:
    if workload is None or names is None:
        return "", ""
    return describe_placement(workload, names), describe_placement(workload, names, room=False)


def _find_trend(old: WorkloadPlacement | None, new: WorkloadPlacement | None, *, moved: bool) -> Trend:
    if new is None:
        return "gone"
    if new.verdict == "not-decided":
        return "not-decided"
    if new.verdict == "does-not-fit":
        return "no-longer-fits" if old is not None and old.verdict == "fits" else "does-not-fit"
    if old is None:
        return "new"
    if old.verdict != "fits":
        return "fits-now"
    return "moved" if moved else "same"


NO_ROOM = Room(claims=0, largest=0, per_node={})


@dataclass(frozen=True, kw_only=True, slots=True)
class RoomChange:
    """How many more claims of one kind fit beside the program.

    Args:
        name: The device class, or MIG profile.
        before: What the base leaves.
        after: What the head leaves.
    """

    name: str
    before: Room
    after: Room

    @property
    def spread(self) -> str:
        """Where what is left lies: `largest 8 devices; 8 on 3 nodes, 2 on 1 node`."""
        if not self.after.claims:
            return "none left"
        places = ", ".join(
            f"{claims:,} on {count_of(nodes, 'node')}" for claims, nodes in self.after.per_node.items()
        )
        return f"largest claim {count_of(self.after.largest, 'device')}; {places}"


def compare_rooms(before: Placement | None, after: Placement | None) -> tuple[RoomChange, ...]:
    """One entry per class and profile that has devices on either side, by name."""
    old = {each.name: each.after for each in before.headroom} if before else {}
    new = {each.name: each.after for each in after.headroom} if after else {}
    return tuple(
        RoomChange(name=name, before=old.get(name, NO_ROOM), after=new.get(name, NO_ROOM))
        for name in sorted({*old, *new})
    )


def needs_devices(template: PodTemplate) -> bool:
    """True for pods with claims, or with extended resources, which devices or a device plugin give."""
    return bool(template.claims) or bool(_find_names(template))


def _find_names(template: PodTemplate) -> set[str]:
    found: set[str] = set()
    for list_name in ("initContainers", "containers"):
        containers = template.spec.get(list_name)
        for container in containers if isinstance(containers, list) else ():
            for amounts in ("limits", "requests"):
                asked: Any = (
                    get_field(container, f"resources.{amounts}") if isinstance(container, Mapping) else None
                )
                found |= {str(name) for name in (asked if isinstance(asked, Mapping) else {})}
    return {name for name in found if _is_extended(name)}


def _is_extended(name: str) -> bool:
    """True for a resource whose domain is not Kubernetes' own; IsExtendedResourceName of the API helpers."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and (
        name.startswith(CLASS_RESOURCE_PREFIX) or not f".{domain}".endswith(".kubernetes.io")
    )
