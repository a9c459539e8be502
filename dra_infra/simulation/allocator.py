"""The structured allocator on one node: the first full choice of devices, in the scheduler's order of search.

Source: Allocate and allocateOne in k8s.io/dynamic-resource-allocation/structured/internal/incubating, which 1.36 and
1.37 run by default. The order decides the answer, so nothing here changes it: what makes the search short only cuts
branches that hold no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dra_infra.simulation.branches import Branch, holds_no_answer
from dra_infra.simulation.constraints import ConstraintState
from dra_infra.simulation.demand import Demand
from dra_infra.simulation.node_view import NodeView
from dra_infra.simulation.outcomes import Aborted, Allocated, Halt, Impossible, NotDecided, Outcome

RESULTS_LIMIT = 32
"""Most devices of one claim: AllocationResultsMaxSize."""

STEPS_LIMIT = 200_000
"""Devices tried before the search is given up; the scheduler has a limit of 10 s per node instead."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """One device to pick; `only` is its position where the request is for all devices, -1 when there is none."""

    request: int
    claim: int
    continues: bool
    only: int | None


class NodeAllocator:
    """Allocates the claims of one pod on one node, from any state of its devices.

    Args:
        view: The node's devices as the claims see them.
        demands: The claims that are not allocated yet, in the order of the pod.
    """

    def __init__(self, view: NodeView, demands: Sequence[Demand]) -> None:
        self._view = view
        self._demands = tuple(demands)
        self._names = [request.name for demand in demands for request in demand.requests]
        self._claims = [claim for claim, demand in enumerate(demands) for _ in demand.requests]
        self._slots: list[_Slot] = []
        self._refusal = self._prepare()
        # Counting arguments would skip devices at which the real search stops with an error.
        self._prunes = not view.halts and not any(
            demand.constraints and any(request.count is None for request in demand.requests)
            for demand in demands
        )
        self._known: dict[int, Outcome] = {}

    def allocate(self, used: int) -> Outcome:
        """The outcome when the devices of the bit mask *used* are in use."""
        if self._refusal is not None:
            return self._refusal
        outcome = self._known.get(used)
        if outcome is None:
            outcome = self._known[used] = self._search(used)
        return outcome

    def _prepare(self) -> Outcome | None:
        """Check every request before the search, as upstream does, and lay out the devices to pick."""
        number = 0
        for claim, demand in enumerate(self._demands):
            slots: list[_Slot] = []
            wanted = 0
            for request in demand.requests:
                if request.count is None:
                    positions = self._list_all(number, claim, request.name)
                    if not isinstance(positions, list):
                        return positions
                    count = len(positions)
                    slots.extend(
                        _Slot(number, claim, continues=False, only=only) for only in positions or [-1]
                    )
                else:
                    count = request.count
                    picks = range(min(count, RESULTS_LIMIT))
                    slots.extend(_Slot(number, claim, continues=pick > 0, only=None) for pick in picks)
                if count > RESULTS_LIMIT - wanted:
                    return _refuse_count(request.name, count, wanted, claim)
                wanted += count
                number += 1
            self._slots.extend(slots)
        return None

    def _list_all(self, number: int, claim: int, name: str) -> list[int] | Halt:
        positions: list[int] = []
        for pool in self._view.pools:
            if pool.state != "usable":
                state = "being updated" if pool.state == "incomplete" else "invalid"
                return Aborted(
                    f", request {name}: asks for all devices, but resource pool {pool.name} is currently {state}",
                    claim,
                )
            for position in range(pool.start, pool.stop):
                halt = self._view.halts.get((number, position))
                if halt is not None:
                    return halt
                if self._view.matches[number] >> position & 1:
                    positions.append(position)
        return positions

    def _search(self, used: int) -> Outcome:
        state = ConstraintState(self._view, self._demands)
        picked: list[int] = []
        cursors = [0] * (len(self._slots) + 1)
        taken, steps, backtracked = used, 0, False
        if self._prunes and self._is_hopeless(0, 0, taken, state):
            return Impossible()
        while len(picked) < len(self._slots):
            level = len(picked)
            found = self._pick(self._slots[level], cursors[level], taken, state)
            if not isinstance(found, int):
                return found
            if found >= 0:
                steps += 1
                if steps > STEPS_LIMIT:
                    return NotDecided("search-stopped", f"after {STEPS_LIMIT:,} devices tried")
                cursors[level] = found + 1
                following = self._slots[level + 1] if level + 1 < len(self._slots) else None
                cursors[level + 1] = found + 1 if following and following.continues else 0
                picked.append(found)
                taken |= 1 << found
                # Most nodes answer at the first descent; counting pays only once that has failed.
                if not (backtracked and self._prunes) or not self._is_hopeless(
                    level + 1, cursors[level + 1], taken, state
                ):
                    continue
            elif not picked:
                return Impossible()
            backtracked = True
            position = picked.pop()
            taken &= ~(1 << position)
            state.remove(self._slots[len(picked)].request, position)
        return self._assemble(picked)

    def _pick(self, slot: _Slot, cursor: int, taken: int, state: ConstraintState) -> int | Halt:
        """The next position that can be taken, which is then counted by the constraints; -1 when there is none."""
        view, number = self._view, slot.request
        if slot.only is not None:
            return self._pick_only(slot, slot.only, cursor, taken, state)
        candidates = (view.matches[number] | view.halting[number]) & ~taken & -(1 << cursor)
        while candidates:
            bit = candidates & -candidates
            candidates ^= bit
            position = bit.bit_length() - 1
            halt = view.halts.get((number, position))
            if halt is not None:
                return halt
            if view.tolerated[number] & bit and state.add(number, position):
                return position
        return -1

    def _pick_only(
        self, slot: _Slot, position: int, cursor: int, taken: int, state: ConstraintState
    ) -> int | Halt:
        if (
            position < 0
            or cursor > position
            or not self._view.tolerated[slot.request] & ~taken & 1 << position
        ):
            return -1
        if state.add(slot.request, position):
            return position
        device = self._view.paths[position]
        name = self._names[slot.request]
        return Aborted(
            f", request {name}: cannot add device {device} because a claim constraint would not be satisfied",
            slot.claim,
        )

    def _is_hopeless(self, level: int, cursor: int, taken: int, state: ConstraintState) -> bool:
        branches: list[Branch] = []
        for index in range(level, len(self._slots)):
            slot = self._slots[index]
            if index > level and slot.continues:
                branches[-1].wanted += 1
                continue
            allowed = self._view.matches[slot.request] & self._view.tolerated[slot.request] & ~taken
            if slot.only is not None:
                allowed &= 1 << slot.only if slot.only >= 0 else 0
            elif slot.continues:
                allowed &= -(1 << cursor)
            branches.append(Branch(slot.request, 1, state.allowed(slot.request, allowed)))
        return holds_no_answer(branches) or state.lacks_values(branches)

    def _assemble(self, picked: Sequence[int]) -> Allocated:
        picks: list[list[int]] = [[] for _ in self._claims]
        for slot, position in zip(self._slots, picked, strict=True):
            picks[slot.request].append(position)
        return Allocated(tuple(map(tuple, picks)))


def _refuse_count(request: str, count: int, before: int, claim: int) -> Aborted:
    """The text of 1.37; 1.36 gives the total of the claim instead."""
    text = (
        f", request {request}: adding {count} devices exceeds the claim limit of {RESULTS_LIMIT}, "
        f"with {before} already accounted for"
    )
    return Aborted(text, claim)
