"""An expression read once: what it mentions and tests, and what is left of it per type of device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

from dra_infra.catalog.drivers import DeviceType
from dra_infra.cel.check import Checked, check_derived, check_expression
from dra_infra.cel.reads import Read, find_reads
from dra_infra.cel.release import Environment
from dra_infra.cel.tree import Call, CheckedTree, Comprehension, Const, Node, Select, children, is_bind
from dra_infra.errors import Problem
from dra_infra.model.program import SECRET, UNKNOWN
from dra_infra.validation.advice.comparisons import TESTING, Test, conjuncts, find_test
from dra_infra.validation.advice.places import Names, Place, bound, find_accessed, hidden
from dra_infra.validation.advice.specialise import specialise

MAX_DEPTH: Final = 100
"""Deepest tree that is read; every level of it takes a few of Python's."""


class Residual(NamedTuple):
    """What is left of an expression on one type of device.

    Args:
        decided: The result, where it does not depend on anything else; None where it does.
        parts: What must all be true.
        part_tests: For each part the test of one place that it is, None where it is none.
        present: What a device has for certain on which all parts are true.
        unguarded: What is read without a test that it exists, and not every such device has.
    """

    decided: bool | None
    parts: tuple[Node, ...] = ()
    part_tests: tuple[Test | None, ...] = ()
    present: frozenset[Place] = frozenset()
    unguarded: tuple[Place, ...] = ()

    @property
    def tests(self) -> tuple[Test, ...]:
        """The parts that are tests of one place."""
        return tuple(test for test in self.part_tests if test is not None)


@dataclass(eq=False, slots=True)
class Study:
    """One expression that compiles.

    Args:
        text: The expression.
        tree: Its tree.
        checked: What the compiler knows.
        mentions: What it reads or tests under a literal name.
        tests: Every test of one place against literals, wherever it stands.
        unguarded: What it reads without a test that it exists, on whatever device.
    """

    text: str
    tree: CheckedTree
    checked: Checked
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
        left = specialise(self.tree.root, device)
        if isinstance(left, Const) and isinstance(left.value, bool):
            return Residual(decided=left.value)
        parts = conjuncts(left)
        unguarded: tuple[Place, ...] = ()
        if any(
            device is None or device.presence(each.section, each.name) != "always" for each in self.unguarded
        ):
            reads = find_reads(replace(self.tree, root=left))
            unguarded = tuple(_place(read) for read in reads if not read.guarded)
        tests = tuple(find_test(part, {}) for part in parts)
        return Residual(None, parts, tests, frozenset(_present(parts, tests)), unguarded)


@lru_cache(maxsize=512)
def study(text: str, environment: Environment, *, derived: bool = False) -> Study | None:
    """Read *text*, None when it does not compile, is not known yet, or is too deep to be read."""
    if text in (UNKNOWN, SECRET):
        return None
    checked = (check_derived if derived else check_expression)(text, environment=environment)
    if checked.tree is None or (len(text) > MAX_DEPTH and _is_deep(checked.tree.root)):
        return None
    survey = _Survey()
    survey.visit(checked.tree.root, {})
    return Study(
        text,
        checked.tree,
        checked,
        frozenset(survey.mentions),
        tuple(survey.tests),
        frozenset(_place(read) for read in checked.reads if not read.guarded),
    )


def find_warnings(text: str, environment: Environment) -> tuple[Problem, ...]:
    """What the compiler warns of; reads without a guard are judged here, with the device in mind."""
    if text in (UNKNOWN, SECRET):
        return ()
    problems = check_expression(text, environment=environment).problems
    return tuple(
        each for each in problems if each.severity == "warning" and each.code != "cel-unguarded-read"
    )


def _is_deep(root: Node) -> bool:
    level: tuple[Node, ...] = (root,)
    for _ in range(MAX_DEPTH):
        level = tuple(child for node in level for child in children(node))
        if not level:
            return False
    return True


class _Survey:
    """Goes through a tree once."""

    def __init__(self) -> None:
        self.mentions: set[Place] = set()
        self.tests: list[Test] = []

    def visit(self, node: Node, names: Names) -> None:
        place = find_accessed(node, names)
        if place is not None and place.identifier:
            self.mentions.add(Place(place.section, place.domain, place.identifier))
            return
        if isinstance(node, Call) and node.function in TESTING:
            test = find_test(node, names)
            if test is not None:
                self.tests.append(test)
        if isinstance(node, Comprehension):
            inner = bound(node, names) if is_bind(node) else hidden(node, names)
            self.visit(node.iter_range, names)
            self.visit(node.accu_init, names)
            for part in (node.condition, node.step, node.result):
                self.visit(part, inner)
            return
        for child in children(node):
            self.visit(child, names)


def _present(parts: tuple[Node, ...], tests: tuple[Test | None, ...]) -> Iterator[Place]:
    for part, test in zip(parts, tests, strict=True):
        if test is not None:
            yield test.place
        elif isinstance(part, Select) or (isinstance(part, Call) and part.function in ("@in", "_[_]")):
            # has(...), "..." in ..., or a truth value that is read as it is.
            place = find_accessed(part, {})
            if place is not None and place.identifier:
                yield place


def _place(read: Read) -> Place:
    return Place(read.kind, read.domain, read.identifier)
