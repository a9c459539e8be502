"""The search for phases that work: the fewest nodes at a time, and the workloads that move with each group of nodes.

Every phase is judged by the placement engine: all workloads at once, on a fleet of which some nodes have the plugin and the others the
driver. Groups are of nodes that are alike for the pods of the estate, or of all that are left; that steers what is tried, and decides
nothing. Which workloads move with them is tried in a few orders, and in every way where there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Final, NamedTuple

from dra_infra.cutover.admission import admit_all
from dra_infra.cutover.estate import Estate, Objects
from dra_infra.cutover.rollouts import foresee_rollouts
from dra_infra.cutover.sides import Sides
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import ObjectRef, Release
from dra_infra.kubernetes.scheduler import Taken
from dra_infra.output.wording import count_of
from dra_infra.placement.placement import JointVerdict
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.scheduling import place
from dra_infra.review.rollout import Outlook

MOST_PHASES: Final = 50
"""Groups of nodes that a plan has at most: more than that nobody carries out by hand."""

_EVERY_WAY: Final = 7
"""So many workloads that are left are combined in every way."""


class State(NamedTuple):
    """How far a cut-over is: nodes that have left the plugin, and units that have moved."""

    nodes: frozenset[str] = frozenset()
    units: frozenset[int] = frozenset()


class Judge:
    """Asks the placement engine whether all workloads fit, and remembers.

    Args:
        estate: The objects.
        sides: The nodes.
        release: Whose scheduler.
        taken: What is not free of the nodes.
        is_late: Asked during searches; once true, what is not known by then is not decided.
    """

    def __init__(
        self, estate: Estate, sides: Sides, release: Release, taken: Taken, is_late: Callable[[], bool]
    ) -> None:
        self.estate = estate
        self.sides = sides
        self.release = release
        self.taken = taken
        self.is_late = is_late
        self._known: dict[tuple[State, frozenset[str], bool], tuple[JointVerdict, JointVerdict | None]] = {}
        self._alone: dict[State, bool] = {}
        self._rollouts: dict[tuple[State, State], Mapping[ObjectRef, Outlook]] = {}

    def verdict(
        self, state: State, *, without: frozenset[str] = frozenset(), is_over: bool = False
    ) -> JointVerdict:
        """The verdict on all workloads at once."""
        return self.verdicts(state, without=without, is_over=is_over)[0]

    def verdicts(
        self, state: State, *, without: frozenset[str] = frozenset(), is_over: bool = False
    ) -> tuple[JointVerdict, JointVerdict | None]:
        """Returns the verdict, and that with autoscalers at their most; None without any."""
        key = (state, without, is_over)
        if key not in self._known:
            objects = self.estate.at(state.units, is_over=is_over)
            fleet = self.sides.at(state.nodes, without=without)
            placement = place(self.question_of(objects, fleet))
            self._known[key] = placement.joint, placement.joint_at_most
        return self._known[key]

    def works(self, state: State, *, always: bool = False) -> bool:
        """True where an order is known with which all pods find a node; or where every order is one."""
        verdict = self.verdict(state)
        return verdict.verdict == "always" if always else verdict.works is not None

    def holds(self, state: State) -> bool:
        """True where the nodes of the driver take the workloads that have moved, whatever becomes of the others."""
        if state not in self._alone:
            moved = (each for number in sorted(state.units) for each in self.estate.units[number].after)
            question = self.question_of([*self.estate.common, *moved], self.sides.at(state.nodes))
            placement = place(question)
            self._alone[state] = placement.joint.works is not None
        return self._alone[state]

    def rollouts(self, before: State, then: State) -> Mapping[ObjectRef, Outlook]:
        """How workloads that move between two states roll over."""
        if (before, then) not in self._rollouts:
            units = [self.estate.units[number] for number in sorted(then.units - before.units)]
            question = self.question_of(self.estate.at(before.units), self.sides.at(then.nodes))
            self._rollouts[before, then] = foresee_rollouts(units, question)
        return self._rollouts[before, then]

    def question_of(self, objects: Objects, fleet: Fleet) -> PlacementQuestion:
        """Return the question of where the pods of objects go, as they run (`cutover.admission`)."""
        return PlacementQuestion(
            manifests=admit_all(objects, self.estate.kinds),
            fleet=fleet,
            taken=self.taken,
            release=self.release,
            kinds=self.estate.kinds,
            is_late=self.is_late,
        )


class Search:
    """Finds the states that a cut-over goes through, those first between which every rollout comes to its end.

    Args:
        judge: Who says whether a phase works.
        is_late: Asked between phases; once true, no fewer nodes at a time are searched for.
    """

    def __init__(self, judge: Judge, is_late: Callable[[], bool]) -> None:
        self._judge = judge
        self._is_late = is_late
        estate = judge.estate
        whole = frozenset(range(len(judge.estate.units)))
        manifests = (*estate.at(frozenset()), *estate.of_units(whole))
        admitted = admit_all(manifests, estate.kinds)
        pods = [pods for each in admitted for pods in estate.kinds.find_pod_templates(each)]
        self._alike, self._is_exact = judge.sides.alike(pods)
        # Templates make no pods by themselves; they move with the last nodes.
        units = frozenset(number for number, each in enumerate(judge.estate.units) if each.makes_pods)
        self._all = State(frozenset(judge.sides.offered), units)
        self.refused: list[str] = []
        """Fewer nodes at a time, and what refuses the first phase that was tried; whether orders were passed over, or time was up."""
        self._smooth, self._first = True, ""

    def find(self) -> tuple[int, list[State]]:
        """The fewest nodes at a time that work, and the states after each phase; no states where the last one does not work."""
        number = len(self._all.nodes)
        if not self._judge.works(self._all):
            return number, []
        # First in a way in which no rollout waits for ever; where there is none, rollouts have to be helped along.
        for self._smooth in (True, False):
            self.refused = []
            if (found := self._find_size(number)) is not None:
                return found
        return number, [self._all]

    def _find_size(self, number: int) -> tuple[int, list[State]] | None:
        most = max(map(len, self._alike), default=0)
        last = number + bool(self._judge.sides.on_driver)
        for size in range(max(1, -(-number // MOST_PHASES)), min(last, most + 1)):
            for always in (True, False):
                self._first = ""
                # Nodes that are alike are not where something runs on some of them.
                taken = self._judge.taken.amounts or self._judge.taken.devices
                self._passed = bool(taken) or not self._is_exact
                self._dead: set[State] = set()
                if (found := self._go_on(State(), size, always=always)) is not None:
                    return size, found
            says = "was not found to work" if self._passed or self._is_late() else "does not work"
            self.refused.append(f"{count_of(size, 'node')} at a time {says}: {self._first}")
        return (number, [self._all]) if self._is_smooth(State(), self._all) else None

    def _is_smooth(self, before: State, then: State) -> bool:
        rollouts = self._judge.rollouts(before, then).items() if self._smooth else ()
        stuck = [f"{ref} {each.message}" for ref, each in rollouts if each.lacks_room]
        if stuck:
            self._first = self._first or stuck[0]
            self._passed = True  # workloads could move one by one, and be helped along
        return not stuck

    def _go_on(self, state: State, size: int, *, always: bool) -> list[State] | None:
        if state.nodes == self._all.nodes:
            return [] if state.units == self._all.units else None
        if state in self._dead or self._is_late():
            return None
        for nodes in self._groups(state, size):
            for units in self._moves(State(state.nodes | nodes, state.units)):
                then = State(state.nodes | nodes, units)
                if then == state:
                    continue
                if not self._judge.works(then, always=always):
                    refused = self._judge.verdict(then)
                    self._first = self._first or str(refused)
                    self._passed = self._passed or refused.verdict == "not-decided"
                    continue
                if not self._is_smooth(state, then):
                    continue
                if (rest := self._go_on(then, size, always=always)) is not None:
                    return [then, *rest]
        self._dead.add(state)
        return None

    def _groups(self, state: State, size: int) -> Iterator[frozenset[str]]:
        """The next nodes to leave the plugin: some of those that are alike, by name; none at first, where others have the driver."""
        if state == State() and self._judge.sides.on_driver:
            yield frozenset()
        if len(self._alike) > 1:
            self._passed = True  # groups of nodes that differ are not tried
        for alike in self._alike:
            left = [each for each in alike if each not in state.nodes]
            for number in range(min(size, len(left)), 0, -1):
                yield frozenset(left[:number])

    def _moves(self, state: State) -> Iterator[frozenset[int]]:
        """The units that may have moved then, those first with which the most move."""
        left = [each for each in sorted(self._all.units) if each not in state.units]
        orders = (left, sorted(left, key=self._pods, reverse=True), sorted(left, key=self._pods))
        numbers = range(len(left), -1, -1) if len(left) <= _EVERY_WAY else ()
        self._passed = self._passed or not numbers
        ways = (each for number in numbers for each in combinations(left, number))
        seen: set[frozenset[int]] = set()
        filled = (self._fill(state, order) for order in orders)
        for found in chain(filled, (state.units | frozenset(each) for each in ways)):
            if found not in seen:
                seen.add(found)
                yield found

    def _fill(self, state: State, order: Sequence[int]) -> frozenset[int]:
        """The units that the nodes of the driver take, one after the other."""
        for each in order:
            then = state._replace(units=state.units | {each})
            if self._judge.holds(then):
                state = then
        return state.units

    def _pods(self, unit: int) -> int:
        estate = self._judge.estate
        pods = estate.kinds.find_pod_templates(estate.units[unit].after[-1])
        return sum(1 if each.replicas is None else each.replicas for each in pods)
