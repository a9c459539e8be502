"""What base and head leave of a fleet, per device class and MIG profile."""

from __future__ import annotations

from dataclasses import dataclass

from dra_infra.planning.wording import count_of
from dra_infra.simulation.placement import Placement, Room

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
