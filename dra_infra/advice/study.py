"""CEL expressions analysed once: what they mention and test, and what is left of them per device type.

A clause is one part of an expression, of those that must all be true. It means the same wherever it stands, hence it
is read once, however many expressions have it: those of a program differ in an amount or a name, and share the rest.

Specialising an expression gives what is left of it when the type of the device is known. What every device of the
type has is a constant or stands for itself, tests on it are true, tests on what none has are false, and `&&`, `||`,
`!` and `?:` are decided where that decides them. `&&` and `||` absorb an error of one side when the other decides,
hence dropping a side that does not decide, or keeping one that does, is right whatever the other is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

from dra_infra.advice.comparisons import TESTING, Test, conjuncts, find_test
from dra_infra.advice.findings import Names, Place, bound, find_accessed, hidden
from dra_infra.catalog.drivers import DeviceType, drivers
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import is_placeholder
from dra_infra.kubernetes.cel import Environment, check_derived, check_expression, find_facts
from dra_infra.kubernetes.cel.tree import (
    Call,
    CheckedTree,
    Comprehension,
    Const,
    Ident,
    ListLiteral,
    Node,
    Select,
    children,
    is_bind,
)

TRUE: Final = Const("bool_value", value=True)
FALSE: Final = Const("bool_value", value=False)
DRIVER: Final = "device.driver"
PARSING: Final = frozenset({"quantity", "semver"})
"""Functions that read a text."""

_KINDS: Final = {bool: "bool_value", int: "int64_value", str: "string_value"}


def specialise(root: Node, device: DeviceType | None) -> Node:
    """Simplify *root* for a device of this type; None stands for every device of an unknown driver."""
    return _Specialiser(device).visit(root, {})


def present(place: Place) -> Ident:
    """Stands for a value that every device of the type has."""
    return Ident(f"{place.section} {place.name}")


class _Specialiser:
    def __init__(self, device: DeviceType | None) -> None:
        self._device = device

    def visit(self, node: Node, names: Names) -> Node:
        """*node* with what is known put in."""
        if isinstance(node, Const):
            return node
        if isinstance(node, Ident):
            known = node.name == DRIVER and self._device is not None
            return Const("string_value", self._device.driver) if known and self._device else node
        place = find_accessed(node, names)
        if place is not None:
            return self._accessed(node, place)
        if isinstance(node, Call):
            target = None if node.target is None else self.visit(node.target, names)
            args = tuple([self.visit(argument, names) for argument in node.args])
            return _fold(Call(node.function, args, target, node.id))
        if isinstance(node, Comprehension):
            return self._loop(node, names)
        if isinstance(node, Select):
            return Select(self.visit(node.operand, names), node.field, node.test_only, node.id)
        if isinstance(node, ListLiteral):
            return replace(node, elements=tuple([self.visit(element, names) for element in node.elements]))
        return node

    def _accessed(self, node: Node, place: Place) -> Node:
        if isinstance(node, Select):
            return self._tested(node, place) if node.test_only else self._read(node, place)
        if isinstance(node, Call) and node.function in ("_[_]", "@in"):
            return self._read(node, place) if node.function == "_[_]" else self._tested(node, place)
        return node

    def _read(self, node: Node, place: Place) -> Node:
        if self._device is None or not place.identifier:
            return node
        entry = self._device.published(place.section, place.name)
        if entry is None or entry.absent:
            return node
        if entry.value is not None and entry.type in ("string", "int", "bool"):
            return Const(_KINDS[type(entry.value)], entry.value)
        return present(place)

    def _tested(self, node: Node, place: Place) -> Node:
        if self._device is None:
            return node
        if not place.identifier:
            # An unknown domain passes has() as well, and fails `in`: only what is certain for both is said.
            return node
        presence = self._device.presence(place.section, place.name)
        if presence == "never":
            # Below an unsafe name the test may fail with an error instead.
            return node if place.unsafe else FALSE
        return TRUE if presence == "always" else node

    def _loop(self, node: Comprehension, names: Names) -> Node:
        if is_bind(node):
            result = self.visit(node.result, bound(node, names))
            if isinstance(result, Const):
                return result
            return replace(node, accu_init=self.visit(node.accu_init, names), result=result)
        inner = hidden(node, names)
        return replace(
            node,
            iter_range=self.visit(node.iter_range, names),
            condition=self.visit(node.condition, inner),
            step=self.visit(node.step, inner),
            result=self.visit(node.result, inner),
        )


def _fold(node: Call) -> Node:
    match node.function:
        case "_&&_":
            return _joined(node, decisive=FALSE, neutral=TRUE)
        case "_||_":
            return _joined(node, decisive=TRUE, neutral=FALSE)
        case "!_":
            return node if (value := _decided(node.args[0])) is None else _truth(not value)
        case "_?_:_":
            value = _decided(node.args[0])
            return node if value is None else node.args[1 if value else 2]
        case "_==_" | "_!=_":
            equal = _equal(*node.args)
            return node if equal is None else _truth(equal == (node.function == "_==_"))
        case "@in" if isinstance(node.args[1], ListLiteral):
            found = [_equal(node.args[0], element) for element in node.args[1].elements]
            return node if None in found else _truth(any(found))
        case "contains" | "startsWith" | "endsWith":
            return _texts(node)
    return node


def _decided(node: Node) -> bool | None:
    return node.value if isinstance(node, Const) and isinstance(node.value, bool) else None


def _joined(node: Call, *, decisive: Const, neutral: Const) -> Node:
    left, right = node.args
    if decisive in (left, right):
        return decisive
    if left == neutral:
        return right
    return left if right == neutral else node


def _equal(left: Node, right: Node) -> bool | None:
    if isinstance(left, Const) and isinstance(right, Const):
        return left.value == right.value if left.kind == right.kind else None
    if isinstance(left, Const):
        left, right = right, left
    if (
        isinstance(left, Ident)
        and left.name == DRIVER
        and isinstance(right, Const)
        and right.value in drivers()
    ):
        # What is left of device.driver belongs to a driver that is not known.
        return False
    return None


def _texts(node: Call) -> Node:
    if not (isinstance(node.target, Const) and isinstance(node.target.value, str) and len(node.args) == 1):
        return node
    text = node.target.value
    argument = node.args[0]
    if not (isinstance(argument, Const) and isinstance(argument.value, str)):
        return node
    part = argument.value
    match node.function:
        case "contains":
            return _truth(part in text)
        case "startsWith":
            return _truth(text.startswith(part))
    return _truth(text.endswith(part))


def _truth(value: bool) -> Const:  # noqa: FBT001  (the value itself)
    return TRUE if value else FALSE


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
        parsed: The texts that it has CEL read while it runs, with the function of `PARSING` that reads each.
    """

    node: Node
    mentions: frozenset[Place]
    tests: tuple[Test, ...]
    parsed: tuple[tuple[str, str], ...]
    _left: dict[DeviceType | None, tuple[Part, ...] | bool] = field(default_factory=dict, repr=False)

    def on(self, device: DeviceType | None) -> tuple[Part, ...] | bool:
        """The parts that are left to test on *device*, or the result where it is decided; None stands for unknown drivers."""
        found = self._left.get(device)
        if found is None:
            found = self._left[device] = _leave(self.node, device)
        return found


@lru_cache(maxsize=4096)
def read_clause(node: Node) -> Clause:
    """Read the clause that *node* is."""
    survey = _Survey()
    survey.visit(node, {})
    return Clause(node, frozenset(survey.mentions), tuple(survey.tests), tuple(survey.parsed))


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
        self.parsed: list[tuple[str, str]] = []

    def visit(self, node: Node, names: Names) -> None:
        place = find_accessed(node, names)
        if place is not None and place.identifier:
            self.mentions.add(Place(place.section, place.domain, place.identifier))
            return
        if isinstance(node, Call) and node.function in TESTING:
            test = find_test(node, names)
            if test is not None:
                self.tests.append(test)
        elif isinstance(node, Call) and node.function in PARSING:
            self._note_parsed(node)
        if isinstance(node, Comprehension):
            inner = bound(node, names) if is_bind(node) else hidden(node, names)
            self.visit(node.iter_range, names)
            self.visit(node.accu_init, names)
            for part in (node.condition, node.step, node.result):
                self.visit(part, inner)
            return
        for child in children(node):
            self.visit(child, names)

    def _note_parsed(self, node: Call) -> None:
        """Note the text of `quantity("40Gi")`; with `semver(x, true)` other forms are read."""
        if node.target is None and len(node.args) == 1:
            text = node.args[0]
            if isinstance(text, Const) and isinstance(text.value, str):
                self.parsed.append((node.function, text.value))


MAX_DEPTH: Final = 100
"""Deepest tree that is read; every level of it takes a few of Python's."""


class Residual(NamedTuple):
    """An expression, simplified for one type of device.

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
        """The expression on *device*; None stands for every device of an unknown driver."""
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
    if is_placeholder(text):
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
    """Warnings of the compiler; reads without a guard are judged here, with the device in mind."""
    if is_placeholder(text):
        return ()
    problems = check_expression(text, environment=environment).problems
    return tuple(
        [each for each in problems if each.severity == "warning" and each.code != "cel-unguarded-read"]
    )


def _unguarded(parts: list[Part]) -> tuple[Place, ...]:
    """Places that some part reads and none makes sure of: `&&` absorbs the error of either side."""
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
