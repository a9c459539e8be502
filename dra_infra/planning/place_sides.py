"""Both sides of a review on one fleet, beside what runs there."""

from __future__ import annotations

from dra_infra.model.fleet import Fleet
from dra_infra.model.program import Program
from dra_infra.model.snapshot import Snapshot
from dra_infra.planning.running import find_taken
from dra_infra.simulation.placement import Placement
from dra_infra.simulation.scheduling import place
from dra_infra.simulation.taken import NOTHING


def place_sides(
    base: Program, head: Program, fleet: Fleet, snapshot: Snapshot | None = None
) -> tuple[Placement, Placement]:
    """Where the pods of both go, with nothing of the one in the way of the other.

    Args:
        base: The program before.
        head: The program after.
        fleet: Where to; that of the snapshot, when it is one.
        snapshot: What runs there: what is not the programs' own is not free.
    """
    taken = find_taken(snapshot, base, head)[0] if snapshot else NOTHING
    before, after = (
        place(
            [each.manifest for each in side.objects],
            fleet,
            taken=taken,
            release=side.release,
            with_headroom=True,
        )
        for side in (base, head)
    )
    return before, after
