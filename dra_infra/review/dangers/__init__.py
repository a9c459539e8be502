"""Dangers: changes by `pulumi up` to things that run, allowed, but to be known before merge.

`docs/review.md` shows each danger with an example.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.placement.placement import Placement
from dra_infra.program_objects import Program
from dra_infra.review.changes import Change
from dra_infra.review.dangers.claims import find_claim_dangers
from dra_infra.review.dangers.quotas import find_passed_quotas, find_uncounted
from dra_infra.review.dangers.releases import find_release_dangers
from dra_infra.review.dangers.removals import (
    find_dropped_fields,
    find_package_changes,
    find_removals,
    is_told_as_danger,
)
from dra_infra.review.dangers.rights import find_widened_rights
from dra_infra.review.dangers.sides import Danger, Sides
from dra_infra.review.dangers.workloads import find_crowded_out, find_workload_dangers

__all__ = ["Danger", "find_dangers", "find_uncounted", "is_told_as_danger"]


def find_dangers(
    changes: Iterable[Change],
    base: Program,
    head: Program,
    *,
    before: Placement | None = None,
    after: Placement | None = None,
    snapshot: Snapshot | None = None,
) -> tuple[Danger, ...]:
    """Every danger of the changes, sorted by object, each once.

    Args:
        changes: What differs between the two.
        base: The program before.
        head: The program after, with its problems.
        before: Placement of the base.
        after: Placement of the head.
        snapshot: The cluster as it was read.
    """
    sides = Sides.of(changes, base, head, before=before, after=after, snapshot=snapshot)
    found = [
        *find_claim_dangers(sides),
        *find_workload_dangers(sides),
        *find_crowded_out(sides),
        *find_removals(sides),
        *find_widened_rights(sides),
        *find_passed_quotas(sides),
        *find_dropped_fields(head),
        *find_release_dangers(sides),
        *find_package_changes(sides),
    ]
    return tuple(sorted(_with_place(each, sides) for each in dict.fromkeys(found)))


def _with_place(danger: Danger, sides: Sides) -> Danger:
    item = sides.object(danger.who) if danger.place is None else None
    return replace(danger, place=item.place) if item is not None else danger
