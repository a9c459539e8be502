"""Attributes and capacities as Python objects whose comparisons are selectors.

Each kind has the operators that make sense for it, and refuses the others at the line where they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NoReturn

from dra_infra.errors import SelectorError
from dra_infra.selectors.reference import Absence, Presence, Reference, Test
from dra_infra.selectors.selector import Atom, Every, Selector, Some, describe, quote

OPPOSITES: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_INT64: Final = range(-(2**63), 2**63)


class Attribute:
    """Something that a device may have. Immutable; it stands for itself in every selector."""

    __slots__ = ("_reference",)
    __hash__ = None  # type: ignore[assignment]
    __iter__ = None
    """Python would else try to go over it, by calling it with 0, 1 and so on, for `in` on a tuple for example."""

    _noun: ClassVar[str] = "an attribute"
    _example: ClassVar[str] = ""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    @property
    def qualified_name(self) -> str:
        """`domain/identifier`, as constraints name it."""
        return self._reference.qualified_name

    def exists(self) -> Selector:
        """True for devices that have it."""
        return Presence(self._reference)

    def missing(self) -> Selector:
        """True for devices that lack it."""
        return Absence(self._reference)

    def __repr__(self) -> str:
        return self._reference.label

    def __eq__(self, other: object) -> Selector:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: object) -> Selector:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Selector:
        return self._compare("<", other)

    def __le__(self, other: object) -> Selector:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Selector:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Selector:
        return self._compare(">=", other)

    def __bool__(self) -> NoReturn:
        raise SelectorError(
            f"{self!r} is used as a truth value, by and, or, not or if",
            code="selector-used-as-bool",
            hint=f"write a test, such as {self!r}{self._example or '.exists()'}, and join tests by & and |",
        )

    def __contains__(self, item: object) -> NoReturn:
        raise SelectorError(
            f"{item!r} in {self!r}: Python would turn the answer into True or False",
            code="selector-used-with-in",
            hint=f"write {self!r}.contains({show(item)})",
        )

    def __and__(self, other: object) -> NoReturn:
        self._refuse_combination("&", other)

    def __or__(self, other: object) -> NoReturn:
        self._refuse_combination("|", other)

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> NoReturn:
        raise SelectorError(
            f"~{self!r} negates {self._noun}, which is not a test",
            code="selector-type",
            hint=f"write {self!r}.missing(), or ~({self!r}{self._example or ' == ...'})",
        )

    def _compare(self, operator: str, other: object) -> Selector:
        """The test `self operator other`.

        Raises:
            SelectorError: `selector-type` or `selector-invalid-value`, saying how to write it.
        """
        raise self._mistyped(f"{self!r} {operator} {show(other)}", other)

    def _test(self, label: str, passed: str, refused: str) -> Selector:
        """A test with one CEL expression for each outcome."""
        return Test(self._reference, Atom(passed), Atom(refused), f"{self!r}{label}")

    def _range_test(self, label: str, low: tuple[str, str], high: tuple[str, str]) -> Selector:
        """A test with two bounds, each an expression and its opposite."""
        passed = Every((Atom(low[0]), Atom(high[0])))
        refused = Some((Atom(low[1]), Atom(high[1])))
        return Test(self._reference, passed, refused, f"{self!r}{label}")

    @property
    def _value(self) -> str:
        """The CEL that reads it."""
        return self._reference.value

    def _mistyped(self, written: str, other: object) -> SelectorError:
        """The error for a comparison with *other*, whose type does not fit."""
        if isinstance(other, Attribute):
            message = f"{written} compares {self!r} with {other!r}: a test compares with a value"
            hint = "compare each with a value, or write the comparison in CEL with cel(...)"
        elif other is None:
            message = f"{written} compares with None"
            hint = f"write {self!r}.missing() or {self!r}.exists()"
        elif isinstance(other, list | tuple | set | frozenset):
            message = f"{written} compares with several values at once"
            hint = f"write {self!r}.one_of(...), or join several tests by |"
        else:
            message = f"{written}: {self!r} is {self._noun}, compared with {describe(other)}"
            hint = f"write {self!r}{self._example}" if self._example else ""
        return SelectorError(message, code="selector-type", hint=hint)

    def _malformed(self, written: str, reason: str, hint: str) -> SelectorError:
        """The error for a value of the right type that cannot be right."""
        return SelectorError(f"{written}: {reason}", code="selector-invalid-value", hint=hint)

    def _any_of(self, values: tuple[object, ...], kind: type, write: Callable[[Any], str]) -> Selector:
        """True when the value is one of *values*, all of which must be of that kind."""
        if not values:
            raise self._malformed(f"{self!r}.one_of()", "no value is given", "name at least one value")
        for value in values:
            if not isinstance(value, kind):
                raise self._mistyped(f"{self!r}.one_of({show(value)})", value)
        texts = ", ".join(map(write, values))
        passed = f"{self._value} in [{texts}]"
        return self._test(f".one_of({texts})", passed, f"!({passed})")

    def _refuse_combination(self, operator: str, other: object) -> NoReturn:
        raise SelectorError(
            f"{operator} joins {self!r} and {show(other)}, of which at least one is not a test",
            code="selector-type",
            hint=f"{operator} binds tighter than == and >=: put each test in parentheses",
        )


COMPARISONS: Final[Mapping[str, Callable[[Attribute, object], Selector]]] = {
    "==": Attribute.__eq__,
    "!=": Attribute.__ne__,
    "<": Attribute.__lt__,
    "<=": Attribute.__le__,
    ">": Attribute.__gt__,
    ">=": Attribute.__ge__,
}
"""What compares an attribute with a value, by its sign."""


class TextAttribute(Attribute):
    """An attribute that holds a text."""

    __slots__ = ()
    _noun = "a text"
    _example = ' == "..."'

    def _compare(self, operator: str, other: object) -> Selector:
        """`==` and `!=` with a text."""
        if not isinstance(other, str):
            return super()._compare(operator, other)
        if operator not in ("==", "!="):
            raise SelectorError(
                f"{self!r} {operator} {show(other)}: texts are compared letter by letter, which orders nothing",
                code="selector-type",
                hint=f'for versions write version("{self.qualified_name}") {operator} "1.2.3", '
                f'for amounts capacity("{self.qualified_name}") {operator} "40Gi"',
            )
        text = self._quote(f"{operator} {show(other)}", other)
        return self._test(
            f" {operator} {text}",
            f"{self._value} {operator} {text}",
            f"{self._value} {OPPOSITES[operator]} {text}",
        )

    def contains(self, text: str) -> Selector:
        """True when *text* is somewhere in the value."""
        return self._method("contains", text)

    def startswith(self, text: str) -> Selector:
        """True when the value begins with *text*."""
        return self._method("startsWith", text)

    def endswith(self, text: str) -> Selector:
        """True when the value ends in *text*."""
        return self._method("endsWith", text)

    def matches(self, pattern: str) -> Selector:
        r"""True when the regular expression (RE2) matches anywhere in the value; anchor it with `^` and `$`."""
        selector = self._method("matches", pattern)
        problems = [problem for problem in selector.problems() if problem.severity == "error"]
        if problems:
            raise self._malformed(
                f"{self!r}.matches({show(pattern)})",
                "not a regular expression of RE2",
                "RE2 has no look-around and no back-references; see github.com/google/re2/wiki/Syntax",
            )
        return selector

    def one_of(self, *values: str) -> Selector:
        """True when the value is one of these."""
        return self._any_of(values, str, lambda value: self._quote(f".one_of({show(value)})", str(value)))

    def _method(self, function: str, text: str) -> Selector:
        name = f".{function.lower() if function != 'startsWith' else 'startswith'}"
        if not isinstance(text, str):
            raise self._mistyped(f"{self!r}{name}({show(text)})", text)
        quoted = self._quote(f"{name}({show(text)})", text)
        passed = f"{self._value}.{function}({quoted})"
        return self._test(f"{name}({quoted})", passed, f"!{passed}")

    def _quote(self, written: str, text: str) -> str:
        try:
            return quote(text)
        except ValueError as error:
            raise self._malformed(f"{self!r}{written}", str(error), "leave that character out") from error


class IntAttribute(Attribute):
    """An attribute that holds a whole number of 64 bits."""

    __slots__ = ()
    _noun = "a whole number"
    _example = " >= 1"

    def _compare(self, operator: str, other: object) -> Selector:
        """All comparisons with a whole number."""
        number = self._number(f" {operator} {show(other)}", other)
        return self._test(
            f" {operator} {number}",
            f"{self._value} {operator} {number}",
            f"{self._value} {OPPOSITES[operator]} {number}",
        )

    def between(self, low: int, high: int) -> Selector:
        """True from *low* to *high*, both included."""
        label = f".between({show(low)}, {show(high)})"
        first, last = self._number(label, low), self._number(label, high)
        if first > last:
            raise empty_range(self, label)
        return self._range_test(
            label,
            (f"{self._value} >= {first}", f"{self._value} < {first}"),
            (f"{self._value} <= {last}", f"{self._value} > {last}"),
        )

    def one_of(self, *values: int) -> Selector:
        """True when the value is one of these."""
        return self._any_of(values, int, lambda value: str(self._number(f".one_of({show(value)})", value)))

    def _number(self, written: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._mistyped(f"{self!r}{written}", value)
        if value not in _INT64:
            raise self._malformed(
                f"{self!r}{written}", f"{value} does not fit into 64 bits", "write a smaller one"
            )
        return value


class BoolAttribute(Attribute):
    """An attribute that is true or false."""

    __slots__ = ()
    _noun = "true or false"
    _example = " == True"

    def is_true(self) -> Selector:
        """True when the value is; the same as `== True`."""
        return self == True  # noqa: E712  (a test, not a truth value)

    def is_false(self) -> Selector:
        """True when the value is there and false; the same as `== False`."""
        return self == False  # noqa: E712

    def _compare(self, operator: str, other: object) -> Selector:
        """`==` and `!=` with True or False."""
        if not isinstance(other, bool) or operator not in ("==", "!="):
            return super()._compare(operator, other)
        literal = "true" if other else "false"
        return self._test(
            f" {operator} {other}",
            f"{self._value} {operator} {literal}",
            f"{self._value} {OPPOSITES[operator]} {literal}",
        )


def empty_range(attribute: Attribute, label: str) -> SelectorError:
    """The error for `.between` with the larger bound first."""
    return SelectorError(
        f"{attribute!r}{label}: nothing is between, the first is larger than the second",
        code="selector-invalid-value",
        hint="write the smaller one first",
    )


def show(value: object) -> str:
    """*value* as it may have been written, in bounded length."""
    try:
        text = quote(value) if isinstance(value, str) else repr(value)
    except ValueError:
        text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
