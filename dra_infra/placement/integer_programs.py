"""Integer programs over the states of nodes: how many pods find room at once, and how many nodes others can close.

HiGHS solves them (the extra `solver`). What it says is a proposal: assignments are replayed by the allocator, and weights
that prove a bound are checked in whole numbers by who asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, Final

from dra_infra.placement.counting import (
    bound_closed,
    find_closings,
    find_possible_closings,
    is_open,
    try_closing,
)
from dra_infra.placement.fillings import TOO_MANY_STATES, EqualPods, Filling, NodeKind

SECONDS: Final = 10.0
"""Seconds for one integer program."""
NO_SOLVER: Final = "counting and the orders that were tried do not decide it; the solver HiGHS does: pip install 'highspy>=1.11,<1.16'"
_EPSILON: Final = 1e-6
_DENOMINATOR: Final = 1_000
"""Weights of proofs are rounded to fractions of at most this."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The best that was found.

    Args:
        most: Upper bound of what was asked for; reached by `chosen` where it is exact.
        chosen: Fillings by kind, with the number of nodes that get each; empty where the bound alone was asked for.
        weights: Per equal pods, in the program's dual: what proves `most`; empty where only integrality does.
    """

    most: int
    chosen: tuple[tuple[tuple[Filling, int], ...], ...] = ()
    weights: tuple[Fraction, ...] = ()


def has_solver() -> bool:
    """True where the extra `solver` is installed."""
    return find_spec("highspy") is not None


def close_nodes(
    kinds: Sequence[NodeKind], pods: Sequence[EqualPods], which: int, nodes: int
) -> Assignment | str:
    """Fillings that close so many nodes to one of the equal pods, or the most that can be closed; or why neither is known."""
    most = bound_closed(kinds, pods, which)
    if most < nodes:
        return Assignment(most)
    tried = try_closing(kinds, pods, which)
    if tried is not None:
        return Assignment(most, tuple(tried))
    if not has_solver():
        return NO_SOLVER
    late = f"closing nodes to {pods[which]} took longer than {SECONDS:g} s"
    closed = close(kinds, pods, which, find_closings, seconds=SECONDS)
    if closed is None:
        return late
    if closed.most >= nodes:
        return closed
    if not any(filling.is_last for kind in kinds for filling in kind.fillings):
        return Assignment(closed.most)
    closed = close(kinds, pods, which, find_possible_closings, seconds=SECONDS)
    if closed is None:
        return late
    return Assignment(closed.most) if closed.most < nodes else TOO_MANY_STATES


def pack(kinds: Sequence[NodeKind], pods: Sequence[EqualPods], *, seconds: float) -> Assignment | None:
    """The most pods that find room at once, with fillings that hold them; None when the time is up."""
    fillings = [kind.fillings for kind in kinds]
    counts = [each.count for each in pods]
    model = _Model(len(pods) + len(kinds), seconds)
    for number, kind in enumerate(kinds):
        for filling in kind.fillings:
            model.add(
                {len(pods) + number: 1, **{which: each for which, each in enumerate(filling.counts) if each}},
                worth=sum(filling.counts),
                most=len(kind.nodes),
            )
    limits = [*counts, *(len(kind.nodes) for kind in kinds)]
    return model.maximize(limits, fillings, prices=len(pods))


def close(
    kinds: Sequence[NodeKind],
    pods: Sequence[EqualPods],
    which: int,
    find: Callable[[NodeKind, Sequence[EqualPods], int], tuple[Filling, ...]] = find_closings,
    *,
    seconds: float,
) -> Assignment | None:
    """The most nodes that other pods can close to one more of the equal pods *which*; None when the time is up."""
    open_kinds = [kind for kind in kinds if is_open(kind, which)]
    closing = [find(kind, pods, which) for kind in open_kinds]
    model = _Model(len(pods) + len(open_kinds), seconds)
    for number, (kind, fillings) in enumerate(zip(open_kinds, closing, strict=True)):
        for filling in fillings:
            model.add(
                {
                    len(pods) + number: 1,
                    **{each: count for each, count in enumerate(filling.counts) if count},
                },
                worth=1,
                most=len(kind.nodes),
            )
    counts = [each.count - (number == which) for number, each in enumerate(pods)]
    limits = [*counts, *(len(kind.nodes) for kind in open_kinds)]
    found = model.maximize(limits, closing, prices=0)
    if found is None or not found.chosen:
        return found
    chosen = dict(zip((kind.nodes for kind in open_kinds), found.chosen, strict=True))
    return Assignment(found.most, tuple(chosen.get(kind.nodes, ()) for kind in kinds))


@dataclass(frozen=True, slots=True)
class Growing:
    """Nodes that may be added, in equal steps.

    Args:
        cost: Of one step, as a whole number.
        most: Most steps.
        nodes: How many nodes a step adds to each kind, by its number.
    """

    cost: int
    most: int
    nodes: Mapping[int, int]


def grow(
    kinds: Sequence[NodeKind],
    pods: Sequence[EqualPods],
    there: Sequence[int],
    pools: Sequence[Growing],
    shared: Sequence[tuple[int, Sequence[int]]],
    *,
    seconds: float,
) -> tuple[int, ...] | None:
    """The steps of each pool with which all pods find room at the lowest cost; empty where there are none, None without time.

    Args:
        kinds: The nodes, those that may be added among them; of each only states that hold a pod of each DaemonSet there.
        pods: The pods; those of DaemonSets are in the states.
        there: How many nodes of each kind there are without steps.
        pools: The nodes that may be added.
        shared: Limits of them together: how much there may be, and what a step of each pool takes.
        seconds: Time to solve it.
    """
    first = len(pods) + len(kinds)
    model = _Model(first + len(shared), seconds)
    for number, kind in enumerate(kinds):
        for filling in kind.fillings:
            column = {
                which: each for which, each in enumerate(filling.counts) if each and not pods[which].on_each
            }
            model.add({len(pods) + number: 1, **column}, worth=0, most=len(kind.nodes))
    # Sums are equal to their limits, so what a limit leaves is a column of its own.
    for row, (left, _) in enumerate(shared):
        model.add({first + row: 1}, worth=0, most=left)
    for which, pool in enumerate(pools):
        added = {len(pods) + number: -each for number, each in pool.nodes.items()}
        added |= {first + row: takes[which] for row, (_, takes) in enumerate(shared) if takes[which]}
        model.add(added, worth=-pool.cost, most=pool.most)
    limits = [*(0 if each.on_each else each.count for each in pods), *there, *(left for left, _ in shared)]
    return model.fill(limits, last=len(pools))


class _Model:
    """A program of the form: most worth, with sums of whole numbers of columns below limits, or equal to them.

    Args:
        rows: Number of sums.
        seconds: Time to solve it.
    """

    def __init__(self, rows: int, seconds: float) -> None:
        self._rows = rows
        self._seconds = seconds
        self._has_none = False
        self._columns: list[dict[int, int]] = []
        self._worth: list[int] = []
        self._most: list[int] = []

    def add(self, column: dict[int, int], *, worth: int, most: int) -> None:
        """Add a column: what it counts for in each sum."""
        self._columns.append(column)
        self._worth.append(worth)
        self._most.append(most)

    def maximize(
        self, limits: Sequence[int], fillings: Sequence[Sequence[Filling]], *, prices: int
    ) -> Assignment | None:
        """The most worth; first without whole numbers, whose bound may do."""
        if not self._columns:
            return Assignment(0, tuple(() for _ in fillings))
        relaxed = self._solve(limits, whole=False)
        if relaxed is None:
            return None
        bound = math.floor(relaxed[0] + _EPSILON)
        weights = tuple(Fraction(each).limit_denominator(_DENOMINATOR) for each in relaxed[2][:prices])
        exact = self._solve(limits, whole=True)
        if exact is None:
            return None
        most = round(exact[0])
        values = iter(round(each) for each in exact[1])
        chosen = tuple(
            tuple((filling, number) for filling in group if (number := next(values)) > 0)
            for group in fillings
        )
        return Assignment(most, chosen, weights if bound == most else ())

    def fill(self, limits: Sequence[int], *, last: int) -> tuple[int, ...] | None:
        """The *last* columns where all sums are equal to their limits, and the worth is the most; empty where they never are."""
        solved = self._solve(limits, whole=True, equal=True) if self._columns else None
        if solved is None:
            return () if self._has_none else None
        return tuple(round(each) for each in solved[1][-last:])

    def _solve(
        self, limits: Sequence[int], *, whole: bool, equal: bool = False
    ) -> tuple[float, Sequence[float], Sequence[float]] | None:
        import highspy  # an extra: most programs are decided without it

        lp = highspy.HighsLp()
        lp.num_col_ = len(self._columns)
        lp.num_row_ = self._rows
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = [float(each) for each in self._worth]
        lp.col_lower_, lp.col_upper_ = [0.0] * len(self._columns), [float(each) for each in self._most]
        lp.row_upper_ = [float(each) for each in limits]
        lp.row_lower_ = lp.row_upper_ if equal else [-highspy.kHighsInf] * self._rows
        starts = [0]
        rows: list[int] = []
        values: list[float] = []
        for column in self._columns:
            rows += column
            values += [float(each) for each in column.values()]
            starts.append(len(rows))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = starts
        lp.a_matrix_.index_ = rows
        lp.a_matrix_.value_ = values
        if whole:
            lp.integrality_ = [highspy.HighsVarType.kInteger] * len(self._columns)
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.silent()
        solver.setOptionValue("time_limit", self._seconds)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.passModel(lp)
        solver.run()
        self._has_none = solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = solver.getSolution()
        return solver.getInfo().objective_function_value, solution.col_value, solution.row_dual
