"""Whether devices can be handed out to requests at all: a flow from requests over devices to what devices draw on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dra_infra.simulation.allocation.demands import positions

_MOST: Final = 160
"""Devices that are wanted, beyond which nobody looks; each may be one call deep."""


class Flow:
    """Hands out devices, each once.

    Args:
        needs: For each request how many devices it needs, and those that it can have, as bits.
        groups: By device the group that it draws on, if any.
        room: How many devices each group has room for.
    """

    def __init__(
        self, needs: Sequence[tuple[int, int]], groups: Mapping[int, int], room: Mapping[int, int]
    ) -> None:
        self._needs = needs
        self._groups = groups
        self._room = dict(room)
        self._owners: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}
        self._seen = 0
        self._seen_groups: set[int] = set()

    def is_possible(self) -> bool:
        """Whether all requests get all that they need; true as well where that is too much to find out."""
        if sum(need for need, _ in self._needs) > _MOST:
            return True
        for request, (need, _) in enumerate(self._needs):
            for _ in range(need):
                self._seen = 0
                self._seen_groups = set()
                if not self._serve(request):
                    return False
        return True

    def _serve(self, request: int) -> bool:
        """Give one more device to a request, for which others may get another one than they have."""
        for device in positions(self._needs[request][1] & ~self._seen):
            if self._seen >> device & 1:
                continue
            self._seen |= 1 << device
            owner = self._owners.get(device)
            group = self._groups.get(device)
            if owner is None:
                if group is None or self._room[group] > 0 or self._make_room(group):
                    self._give(device, request, group)
                    return True
            elif self._serve(owner):
                self._owners[device] = request
                return True
        return False

    def _make_room(self, group: int) -> bool:
        """Let one device of a full group go, whose request gets one elsewhere."""
        if group in self._seen_groups:
            return False
        self._seen_groups.add(group)
        for device in list(self._members.get(group, ())):
            if self._seen >> device & 1:
                continue
            self._seen |= 1 << device
            if self._serve(self._owners[device]):
                del self._owners[device]
                self._members[group].remove(device)
                self._room[group] += 1
                return True
        return False

    def _give(self, device: int, request: int, group: int | None) -> None:
        self._owners[device] = request
        if group is not None:
            self._room[group] -= 1
            self._members.setdefault(group, []).append(device)
