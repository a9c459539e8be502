"""Selectors: tests on devices that Python combines with `&`, `|` and `~` and that compile to CEL.

A test on an attribute that a device lacks is false, **and so is its negation**: `~` goes down to the single tests,
each of which keeps its own `has(...)`. Hence no selector written here can fail for want of an attribute.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from dra_infra.cel.check import check_expression
from dra_infra.cel.clauses import Atom, Clause, Every, Some, quote, write
from dra_infra.errors import Problem, SelectorError
from dra_infra.model.names import is_dns_subdomain

DRIVER_LENGTH: Final = 63
_COMBINE: Final = (
    "write & for and, | for or, ~ for not, with each test in parentheses; "
    ".between(a, b) for a <= x <= b; .one_of(a, b) for x in [a, b]"
)


class Selector(ABC):
    """A test on one device. Immutable; two selectors are equal when they are written alike."""

    __slots__ = ()

    @abstractmethod
    def clause(self, *, negated: bool) -> Clause:
        """The test, or what is true of the devices that fail it although they have what it reads."""

    @abstractmethod
    def __repr__(self) -> str:
        """As it is written in Python."""

    @property
    def is_comparison(self) -> bool:
        """Whether Python wants parentheses around it beside `&` and `|`."""
        return False

    def expression(self) -> str:
        """The CEL expression. Its bytes are part of the contract: names of objects depend on them."""
        return write(self.clause(negated=False))

    def problems(self, path: str = "selector") -> tuple[Problem, ...]:
        """What is wrong with the expression, sorted, at *path*."""
        found = set(check_expression(self.expression(), path=path).problems)
        for text in self.raw_texts():
            # A text such as `true) || (true` compiles inside of parentheses only.
            found.update(check_expression(text, path=path).errors)
        return tuple(sorted(found))

    def raw_texts(self) -> Iterator[str]:
        """The texts that the user wrote in CEL, anywhere inside."""
        return iter(())

    def __and__(self, other: object) -> Selector:
        return AllOf(self, _operand(self, "&", other))

    def __or__(self, other: object) -> Selector:
        return AnyOf(self, _operand(self, "|", other))

    def __rand__(self, other: object) -> Selector:
        return AllOf(_operand(self, "&", other), self)

    def __ror__(self, other: object) -> Selector:
        return AnyOf(_operand(self, "|", other), self)

    def __invert__(self) -> Selector:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise SelectorError(
            f"{self!r} is used as a truth value, by and, or, not, if, in or a chained comparison: "
            "Python would drop a part of it",
            code="selector-used-as-bool",
            hint=_COMBINE,
        )


@dataclass(frozen=True, slots=True, repr=False)
class AllOf(Selector):
    """Both are true."""

    left: Selector
    right: Selector

    def clause(self, *, negated: bool) -> Clause:
        """Both, or when negated either negation."""
        parts = (self.left.clause(negated=negated), self.right.clause(negated=negated))
        return Some(parts) if negated else Every(parts)

    def raw_texts(self) -> Iterator[str]:
        """Those of both sides."""
        yield from self.left.raw_texts()
        yield from self.right.raw_texts()

    def __repr__(self) -> str:
        return f"{_grouped(self.left, AnyOf)} & {_grouped(self.right, AnyOf)}"


@dataclass(frozen=True, slots=True, repr=False)
class AnyOf(Selector):
    """At least one is true."""

    left: Selector
    right: Selector

    def clause(self, *, negated: bool) -> Clause:
        """Either, or when negated both negations."""
        parts = (self.left.clause(negated=negated), self.right.clause(negated=negated))
        return Every(parts) if negated else Some(parts)

    def raw_texts(self) -> Iterator[str]:
        """Those of both sides."""
        yield from self.left.raw_texts()
        yield from self.right.raw_texts()

    def __repr__(self) -> str:
        return f"{_grouped(self.left, AllOf)} | {_grouped(self.right, AllOf)}"


@dataclass(frozen=True, slots=True, repr=False)
class Not(Selector):
    """The device has what the test reads, and fails it."""

    operand: Selector

    def clause(self, *, negated: bool) -> Clause:
        """The negation, which ends at the single tests."""
        return self.operand.clause(negated=not negated)

    def raw_texts(self) -> Iterator[str]:
        """Those of the operand."""
        return self.operand.raw_texts()

    def __repr__(self) -> str:
        return f"~{_grouped(self.operand, AllOf, AnyOf)}"


@dataclass(frozen=True, slots=True, repr=False)
class DriverTest(Selector):
    """The device is of this driver; every device has one, so no guard is needed."""

    name: str

    def clause(self, *, negated: bool) -> Clause:
        """`device.driver == "name"`."""
        return Atom(f"device.driver {'!=' if negated else '=='} {quote(self.name)}")

    def __repr__(self) -> str:
        return f"driver({quote(self.name)})"


@dataclass(frozen=True, slots=True, repr=False)
class Cel(Selector):
    """An expression as the user wrote it.

    Nothing is known of what it reads, so it gets no guards, and `~` is a plain `!(...)`: on a device that lacks what it
    reads, both it and its negation fail the scheduling of the whole pod.
    """

    text: str

    def expression(self) -> str:
        """The text, untouched as long as it stands alone."""
        return self.text

    def clause(self, *, negated: bool) -> Clause:
        """The text in parentheses, on whose last line a comment may be."""
        inside = f"({self.text}\n)" if "//" in self.text else f"({self.text})"
        return Atom(f"!{inside}" if negated else inside)

    def raw_texts(self) -> Iterator[str]:
        """The text."""
        yield self.text

    def __repr__(self) -> str:
        return f"cel({self.text!r})"


def cel(text: str) -> Selector:
    """A selector from CEL, for what the attributes cannot express.

    Guard every read yourself, `has(device.attributes["d"].x) && ...`; `problems` warns where a guard is missing.

    Raises:
        SelectorError: `selector-type`, when *text* is not a text.
    """
    given: object = text
    if not isinstance(given, str):
        raise SelectorError(
            f"cel() takes the text of an expression, not {describe(given)}",
            code="selector-type",
            hint="write cel('device.driver == \"gpu.nvidia.com\"')",
        )
    return Cel(text)


def driver(name: str) -> Selector:
    """True for the devices of one driver.

    Raises:
        SelectorError: `selector-invalid-value`, when *name* cannot be a driver.
    """
    checked: object = name
    if not isinstance(checked, str) or len(checked) > DRIVER_LENGTH or not is_dns_subdomain(checked.lower()):
        raise SelectorError(
            f"{checked!r} cannot be the name of a driver",
            code="selector-invalid-value",
            hint='write driver("gpu.nvidia.com")',
        )
    return DriverTest(name)


def describe(value: object) -> str:
    """*value* for a message, with its type and in bounded length."""
    text = repr(value)
    return f"{text if len(text) <= 60 else f'{text[:57]}...'} ({type(value).__name__})"


def _operand(selector: Selector, operator: str, other: object) -> Selector:
    if isinstance(other, Selector):
        return other
    raise SelectorError(
        f"{selector!r} is combined by {operator} with {describe(other)}, which is not a test",
        code="selector-type",
        hint=f"{operator} binds tighter than == and >=: put each test in parentheses",
    )


def _grouped(selector: Selector, *kinds: type[Selector]) -> str:
    loose = isinstance(selector, kinds) or selector.is_comparison
    return f"({selector!r})" if loose else repr(selector)
