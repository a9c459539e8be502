"""Attributes that releases of a driver publish under different names: a selector reads each, behind its own guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dra_infra.cel.attributes import TextAttribute
from dra_infra.cel.clauses import Clause, Every, Some
from dra_infra.cel.reference import Presence, Reference
from dra_infra.cel.selector import Selector


@dataclass(frozen=True, slots=True, repr=False)
class UnderAnyName(Selector):
    """One test under each name, of which a device has at most one.

    A device under the other name fails a test and its negation alike, so both are true where one of the names passes.
    Only for absence every name must be missing.
    """

    tests: tuple[Selector, ...]
    absence: bool = False

    def clause(self, *, negated: bool) -> Clause:
        """The tests, or their negations."""
        parts = tuple(test.clause(negated=negated) for test in self.tests)
        return Every(parts) if self.absence != (negated and self._is_presence) else Some(parts)

    @property
    def is_comparison(self) -> bool:
        """Whether it is written with an operator."""
        return self.tests[0].is_comparison

    @property
    def _is_presence(self) -> bool:
        return isinstance(self.tests[0], Presence)

    def __repr__(self) -> str:
        return repr(self.tests[0])


class RenamedText(TextAttribute):
    """A text that has one name in newer releases and another in older ones; constraints use the newest name."""

    __slots__ = ("_names",)

    def __init__(self, newest: Reference, *older: Reference) -> None:
        super().__init__(newest)
        self._names = tuple(map(TextAttribute, (newest, *older)))

    def exists(self) -> Selector:
        """True for devices that have it under one of the names."""
        return UnderAnyName(tuple(name.exists() for name in self._names))

    def missing(self) -> Selector:
        """True for devices that have it under none of the names."""
        return UnderAnyName(tuple(name.missing() for name in self._names), absence=True)

    def compare(self, operator: str, other: object) -> Selector:
        """`==` and `!=` with a text."""
        return self._each(lambda name: name.compare(operator, other))

    def contains(self, text: str) -> Selector:
        """True when *text* is somewhere in the value."""
        return self._each(lambda name: name.contains(text))

    def startswith(self, text: str) -> Selector:
        """True when the value begins with *text*."""
        return self._each(lambda name: name.startswith(text))

    def endswith(self, text: str) -> Selector:
        """True when the value ends in *text*."""
        return self._each(lambda name: name.endswith(text))

    def matches(self, pattern: str) -> Selector:
        """True when the regular expression (RE2) matches anywhere in the value."""
        return self._each(lambda name: name.matches(pattern))

    def one_of(self, *values: str) -> Selector:
        """True when the value is one of these."""
        return self._each(lambda name: name.one_of(*values))

    def _each(self, test: Callable[[TextAttribute], Selector]) -> Selector:
        return UnderAnyName(tuple(map(test, self._names)))
