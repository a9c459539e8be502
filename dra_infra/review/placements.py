"""Placement before and after: per workload what was, what will be, and whether that is worse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dra_infra.errors import Problem
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.output.wording import compress_names, count_of, join_words
from dra_infra.placement.placement import NodePlacement, Placement, WorkloadPlacement
from dra_infra.review.capacity import DeviceNames

MAX_LOOKED_AT: Final = 64
"""Nodes of one workload whose models are all named; above that only the example's are."""

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
    """

    owner: ObjectRef
    trend: Trend
    summary: str
    previous: str = ""
    reasons: tuple[str, ...] = ()
    before: WorkloadPlacement | None = None
    after: WorkloadPlacement | None = None

    @property
    def fits(self) -> bool:
        """True when all pods of the head's workload have a place."""
        return self.after is not None and self.after.verdict == "fits"


def compare_placements(before: Placement | None, after: Placement | None) -> tuple[WorkloadReview, ...]:
    """One entry per workload of either side: what fits worse first, then by namespace, kind and name."""
    old = {workload.owner: workload for workload in before.workloads} if before else {}
    new = {workload.owner: workload for workload in after.workloads} if after else {}
    old_names = DeviceNames.of(before.fleet) if before else None
    new_names = DeviceNames.of(after.fleet) if after else None
    reviews = (_review(owner, old.get(owner), new.get(owner), old_names, new_names) for owner in {*old, *new})
    return tuple(sorted(reviews, key=_rank))


def find_unplaced(workloads: Iterable[WorkloadReview], fleet: str) -> Iterator[Problem]:
    """A problem for each workload that fitted and no longer does, and for each new one that does not fit."""
    for workload in workloads:
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


def describe_placement(workload: WorkloadPlacement, names: DeviceNames, *, room: bool = True) -> str:
    """`4 x H100 on any of 53 nodes, e.g. gpu-node-07 (gpu-0..3); 212 more pods would fit`.

    Args:
        workload: The answer for one workload.
        names: What the devices of its fleet are called.
        room: Whether to say how many more pods would fit.
    """
    if workload.verdict == "not-decided":
        return f"not decided: {_first_reason(workload)}"
    if workload.verdict == "does-not-fit":
        return f"does not fit: {_first_reason(workload)}"
    if not workload.nodes:
        return "fits"
    pods = f"{workload.replicas:,} pods, each " if workload.replicas > 1 else ""
    more = f"; {count_of(workload.more_pods, 'more pod')} would fit" if room else ""
    return f"{pods}{_what_and_where(workload.nodes, names)}{more}"


def _what_and_where(nodes: Sequence[NodePlacement], names: DeviceNames) -> str:
    example = nodes[0]
    devices = compress_names(list(dict.fromkeys(choice.device for choice in example.devices)))
    shown = f"{example.node} ({devices})" if devices else example.node
    what = names.describe(example.devices)
    if len(nodes) == 1:
        return f"{what} only on {shown}"
    where = f"on any of {len(nodes):,} nodes, e.g."
    if len(names.kinds) > 1:
        if len(nodes) > MAX_LOOKED_AT:
            return f"{count_of(len(example.devices), 'device')} {where} {what} on {shown}"
        what = " or ".join(dict.fromkeys(names.describe(node.devices) for node in nodes))
    return f"{what} {where} {shown}"


def _rank(workload: WorkloadReview) -> tuple[bool, int, str, str, str]:
    owner = workload.owner
    # What fits stays in the order of names, however it got there.
    worse = TRENDS.index(workload.trend) if workload.trend in TRENDS[:3] else len(TRENDS)
    return workload.trend == "gone", worse, owner.namespace, owner.kind, owner.name


def _first_reason(workload: WorkloadPlacement) -> str:
    if workload.reasons:
        return str(workload.reasons[0])
    return join_words(workload.unmodelled) or "no reason known"


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
    return WorkloadReview(
        owner=owner,
        trend=_find_trend(old, new, moved=was != now),
        summary=now or was_brief,
        previous=(was_brief if was_brief != now_brief else was) if now and was != now else "",
        reasons=tuple(str(reason) for reason in latest.reasons) if latest else (),
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
