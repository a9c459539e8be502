"""The text of a placement: what does not fit, what fits, all at once, and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dra_infra.advice.queues import HELD
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.fragments import describe_fragments
from dra_infra.placement.placement import FITS_BY_BUG, Headroom, Placement, WorkloadPlacement
from dra_infra.placement.texts import (
    AT_MOST,
    DeviceNames,
    describe_growth,
    describe_joint,
    describe_placement,
)
from dra_infra.review.folding import fold, tell, tell_other_reasons

_MARKS: Final = {"fits": "✓", "does-not-fit": "✗", "not-decided": "?"}
MAX_LISTED: Final = 20
"""Workloads that fit which are listed; where more do, a line for each namespace counts them."""


def describe(placement: Placement, *, brief: bool = False) -> Iterator[str]:
    """Yields the lines of text: what does not fit or is not decided, what fits, all at once, and what is left.

    Args:
        placement: What is told.
        brief: Whether to tell only what does not fit, how many workloads fit, and the verdict on all at once.
    """
    if not placement.workloads:
        placed = " that is placed here" if placement.unplaced else ""
        yield f"no workload{placed} needs devices of {placement.fleet.name}"
    names = DeviceNames.of(placement.fleet)
    fitting = [each for each in placement.workloads if _mark(each) == "✓"]
    folded = fold(each.owner for each in fitting) if len(fitting) > MAX_LISTED else ()
    listed = [each for each in placement.workloads if _mark(each) != "✓"]
    if not brief and not folded:
        listed += fitting
    width = max((len(str(each.owner)) for each in listed), default=0)
    for each in listed:
        yield f"{_mark(each)} {each.owner!s:{width}}  {describe_placement(each, names)}"
        yield from (f"    {line}" for line in ([] if brief else _details(each)))
    if placement.workloads or placement.evicted or placement.joint.verdict != "always":
        number = count_of(len(placement.workloads), "workload")
        fit = "fits" if len(placement.workloads) == 1 else "fit"
        counted = f"{placement.fits_count:,} of {number} {fit} on {placement.fleet.name}"
        yield from [counted] if brief and placement.workloads else (f"✓ {line}" for line in tell(folded))
        yield from describe_joint(placement.joint)
        if placement.joint_at_most:
            yield from describe_joint(placement.joint_at_most, AT_MOST)
        if placement.growth is not None:
            yield describe_growth(placement.growth)
    if placement.unplaced:
        yield f"! not placed here, and so in no verdict: {join_words(placement.unplaced)}"
    if not brief:
        yield from placement.notes
        yield from _describe_headroom(placement.headroom)
        yield from describe_fragments(placement.fragments)


def _mark(workload: WorkloadPlacement) -> str:
    # What fits and is never admitted by Kueue, or fits by a bug, has no plain sign.
    has_catch = any(reason.code in {*HELD, FITS_BY_BUG} for reason in workload.reasons)
    return "!" if has_catch and workload.verdict == "fits" else _MARKS[workload.verdict]


def _describe_headroom(headroom: Sequence[Headroom]) -> Iterator[str]:
    """A table: claims of one device that still fit, before and after, and where what is left lies."""
    if not headroom:
        return
    width = max(len("Room for one more claim of"), *(len(each.name) for each in headroom))
    yield ""
    yield f"{'Room for one more claim of':{width}}  before   after   largest claim, and claims per node"
    for each in headroom:
        spread = ", ".join(
            f"{claims} on {count_of(nodes, 'node')}" for claims, nodes in each.after.per_node.items()
        )
        left = f"{count_of(each.after.largest, 'device')}; {spread}" if spread else "-"
        yield f"{each.name:{width}}  {each.before.claims:6}  {each.after.claims:6}   {left}"


def _details(workload: WorkloadPlacement) -> Iterator[str]:
    # Where pods fit, nobody asks why not on other nodes; where they do not, the first reason is in the line above.
    if workload.verdict == "fits":
        yield from (str(reason) for reason in workload.reasons if not reason.nodes)
    elif others := tell_other_reasons(workload.reasons):
        yield f"also: {others}"
    if workload.unmodelled:
        yield f"not taken into account: {', '.join(workload.unmodelled)}"
