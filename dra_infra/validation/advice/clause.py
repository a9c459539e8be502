"""One clause of an expression, of those that must all be true: what it mentions, and what is left of it per device.

A clause means the same wherever it stands, hence it is read once, however many expressions have it: those of a program
differ in an amount or a name, and share the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from dra_infra.catalog.drivers import DeviceType
from dra_infra.cel.reads import find_facts
from dra_infra.cel.tree import Call, Comprehension, Const, Node, Select, children, is_bind
from dra_infra.validation.advice.comparisons import TESTING, Test, conjuncts, find_test
from dra_infra.validation.advice.places import Names, Place, bound, find_accessed, hidden
from dra_infra.validation.advice.specialise import specialise


class Part(NamedTuple):
    """A part of what is left of a clause, which must be true.

    Args:
        node: The part.
        test: The test of one place that it is, None where it is none.
        present: What a device has for certain on which it is true.
        ensured: What it makes sure of for the reads of other parts.
        unguarded: What it reads without having made sure itself.
    """

    node: Node
    test: Test | None
    present: frozenset[Place]
    ensured: frozenset[Place]
    unguarded: frozenset[Place]


@dataclass(eq=False, slots=True)
class Clause:
    """A clause whose tree is *node*.

    Args:
        node: Its tree.
        mentions: What it reads or tests under a literal name.
        tests: Every test of one place against literals, wherever it stands.
    """

    node: Node
    mentions: frozenset[Place]
    tests: tuple[Test, ...]
    _left: dict[DeviceType | None, tuple[Part, ...] | bool] = field(default_factory=dict, repr=False)

    def on(self, device: DeviceType | None) -> tuple[Part, ...] | bool:
        """What is left on *device*, or the result where that decides it; None stands for unknown drivers."""
        found = self._left.get(device)
        if found is None:
            found = self._left[device] = _leave(self.node, device)
        return found


@lru_cache(maxsize=4096)
def read_clause(node: Node) -> Clause:
    """Read the clause that *node* is."""
    survey = _Survey()
    survey.visit(node, {})
    return Clause(node, frozenset(survey.mentions), tuple(survey.tests))


def _leave(node: Node, device: DeviceType | None) -> tuple[Part, ...] | bool:
    left = specialise(node, device)
    if isinstance(left, Const) and isinstance(left.value, bool):
        return left.value
    return tuple(map(_part, conjuncts(left)))


@lru_cache(maxsize=4096)
def _part(node: Node) -> Part:
    test = find_test(node, {})
    facts = find_facts(node)
    return Part(
        node,
        test,
        frozenset(_present(node, test)),
        frozenset(Place(*key) for key in facts.when_true),
        frozenset(Place(*key) for key in facts.unguarded),
    )


def _present(part: Node, test: Test | None) -> Iterator[Place]:
    if test is not None:
        yield test.place
    elif isinstance(part, Select) or (isinstance(part, Call) and part.function in ("@in", "_[_]")):
        # has(...), "..." in ..., or a truth value that is read as it is.
        place = find_accessed(part, {})
        if place is not None and place.identifier:
            yield place


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
