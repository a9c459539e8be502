"""An expression read once: what it mentions and tests, and what is left of it per type of device."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from dra_infra.catalog.drivers import DeviceType
from dra_infra.cel.check import check_derived, check_expression
from dra_infra.cel.release import Environment
from dra_infra.cel.tree import CheckedTree, Node, children
from dra_infra.errors import Problem
from dra_infra.model.markers import SECRET, UNKNOWN
from dra_infra.validation.advice.clause import Clause, Part, read_clause
from dra_infra.validation.advice.comparisons import Test, conjuncts
from dra_infra.validation.advice.places import Place

MAX_DEPTH: Final = 100
"""Deepest tree that is read; every level of it takes a few of Python's."""


class Residual(NamedTuple):
    """What is left of an expression on one type of device.

    Args:
        decided: The result, where it does not depend on anything else; None where it does.
        parts: What must all be true.
        tests: The parts that are tests of one place.
        present: What a device has for certain on which all parts are true.
        unguarded: What is read without a test that it exists, and not every such device has; sorted.
    """

    decided: bool | None
    parts: tuple[Part, ...] = ()
    tests: tuple[Test, ...] = ()
    present: frozenset[Place] = frozenset()
    unguarded: tuple[Place, ...] = ()


@dataclass(eq=False, slots=True)
class Study:
    """One expression that compiles.

    Args:
        text: The expression.
        clauses: What must all be true.
        mentions: What it reads or tests under a literal name.
        tests: Every test of one place against literals, wherever it stands.
        unguarded: What it reads without a test that it exists, on whatever device.
    """

    text: str
    clauses: tuple[Clause, ...]
    mentions: frozenset[Place]
    tests: tuple[Test, ...]
    unguarded: frozenset[Place]
    _residuals: dict[DeviceType | None, Residual] = field(default_factory=dict, repr=False)

    def on(self, device: DeviceType | None) -> Residual:
        """What is left on *device*; None stands for every device of an unknown driver."""
        found = self._residuals.get(device)
        if found is None:
            found = self._residuals[device] = self._leave(device)
        return found

    def _leave(self, device: DeviceType | None) -> Residual:
        parts: list[Part] = []
        for clause in self.clauses:
            left = clause.on(device)
            if left is False:
                # `&&` absorbs an error of another clause.
                return _FALSE
            if left is not True:
                parts += left
        if not parts:
            return _TRUE
        return Residual(
            None,
            tuple(parts),
            tuple([part.test for part in parts if part.test is not None]),
            frozenset().union(*[part.present for part in parts]),
            _unguarded(parts),
        )


_FALSE: Final = Residual(decided=False)
_TRUE: Final = Residual(decided=True)


@lru_cache(maxsize=512)
def study(text: str, environment: Environment, *, derived: bool = False) -> Study | None:
    """Read *text*, None when it does not compile, is not known yet, or is too deep to be read."""
    if text in (UNKNOWN, SECRET):
        return None
    checked = (check_derived if derived else check_expression)(text, environment=environment)
    read = [_read(tree) for _, tree in checked.trees]
    if not read or None in read:
        return None
    clauses = tuple([clause for each in read for clause in each or ()])
    return Study(
        text,
        clauses,
        frozenset().union(*[clause.mentions for clause in clauses]),
        tuple([test for clause in clauses for test in clause.tests]),
        frozenset(
            Place(read.kind, read.domain, read.identifier) for read in checked.reads if not read.guarded
        ),
    )


@lru_cache(maxsize=4096)
def _read(tree: CheckedTree) -> tuple[Clause, ...] | None:
    """The clauses of a tree, None when it is too deep; a tree that several expressions have is one object."""
    if tree.size > MAX_DEPTH and _is_deep(tree.root):
        return None
    return tuple([read_clause(node) for node in conjuncts(tree.root)])


def find_warnings(text: str, environment: Environment) -> tuple[Problem, ...]:
    """What the compiler warns of; reads without a guard are judged here, with the device in mind."""
    if text in (UNKNOWN, SECRET):
        return ()
    problems = check_expression(text, environment=environment).problems
    return tuple(
        [each for each in problems if each.severity == "warning" and each.code != "cel-unguarded-read"]
    )


def _unguarded(parts: list[Part]) -> tuple[Place, ...]:
    """What some part reads, and neither it nor another makes sure of: `&&` absorbs the error of either side."""
    found: set[Place] = set()
    for part in parts:
        if part.unguarded:
            found |= part.unguarded.difference(*[other.ensured for other in parts if other is not part])
    return tuple(sorted(found))


def _is_deep(root: Node) -> bool:
    level: tuple[Node, ...] = (root,)
    for _ in range(MAX_DEPTH):
        level = tuple([child for node in level for child in children(node)])
        if not level:
            return False
    return True
