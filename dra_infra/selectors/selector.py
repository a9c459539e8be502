"""Selectors: tests on devices that Python combines with `&`, `|` and `~` and that compile to CEL.

A test on an attribute that a device lacks is false, **and so is its negation**: `~` goes down to the single tests,
each of which keeps its own `has(...)`. Hence no selector written here can fail for want of an attribute.

The text of selectors is made of literals, and tests joined by `&&` and `||`. Every byte of it goes into object names
by way of a hash, so what is written is frozen by the golden files of `tests/unit/selectors/golden`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from dra_infra.errors import Problem, SelectorError
from dra_infra.kubernetes.api.names import is_driver_name
from dra_infra.kubernetes.cel import check_expression

RESERVED: Final = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    }
)
"""Words that cannot stand behind a dot (RESERVED and the keyword literals in the CEL specification)."""

_ESCAPES: Final = {
    "\\": r"\\",
    '"': r"\"",
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
}


@dataclass(frozen=True, slots=True)
class Atom:
    """One test that binds tighter than `&&`."""

    text: str


@dataclass(frozen=True, slots=True)
class Every:
    """All parts must be true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part must be true."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Atom | Every | Some


def quote(text: str) -> str:
    """*text* as a CEL string literal.

    Raises:
        ValueError: When it holds NUL, at which the engine stops, or half of a surrogate pair.
    """
    if "\0" in text:
        raise ValueError("a text cannot hold NUL")
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    parts = []
    for character in text:
        code = ord(character)
        if 0xD800 <= code <= 0xDFFF:
            raise ValueError(f"a text cannot hold half of a surrogate pair, U+{code:04X}")
        # Separators of lines and what terminals act on would hide in a manifest, hence everything unprintable goes
        # by number.
        if character in _ESCAPES:
            parts.append(_ESCAPES[character])
        elif character.isprintable():
            parts.append(character)
        else:
            parts.append(f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
    return f'"{"".join(parts)}"'


def write(condition: Condition) -> str:
    """The expression. An `&&` inside `||` gets parentheses, which readers need and CEL does not."""
    simple = _simplify(condition)
    match simple:
        case Atom(text=text):
            return text
        case Every(parts=parts):
            return " && ".join(map(_write_part, parts))
        case Some(parts=parts):
            return " || ".join(map(_write_part, parts))


def _write_part(part: Condition) -> str:
    return part.text if isinstance(part, Atom) else f"({write(part)})"


def _simplify(condition: Condition) -> Condition:
    """Joined with what is of the same kind, and without repetition: the `has` of two tests on one attribute mostly."""
    if isinstance(condition, Atom):
        return condition
    kind = type(condition)
    parts: dict[Condition, None] = {}
    for part in map(_simplify, condition.parts):
        parts.update(dict.fromkeys(part.parts if isinstance(part, kind) else (part,)))
    return next(iter(parts)) if len(parts) == 1 else kind(tuple(parts))


_COMBINE: Final = (
    "write & for and, | for or, ~ for not, with each test in parentheses; "
    ".between(a, b) for a <= x <= b; .one_of(a, b) for x in [a, b]"
)


class Selector(ABC):
    """A test on one device. Immutable; two selectors are equal when they are written alike."""

    __slots__ = ()

    @abstractmethod
    def _clause(self, *, negated: bool) -> Condition:
        """The test, or what is true of the devices that fail it although they have what it reads."""

    @abstractmethod
    def __repr__(self) -> str:
        """The selector as it is written in Python."""

    @property
    def _is_comparison(self) -> bool:
        """Python wants parentheses around it beside `&` and `|`."""
        return False

    def expression(self) -> str:
        """The CEL expression. Its bytes are part of the contract: names of objects depend on them."""
        return write(self._clause(negated=False))

    def problems(self, path: str = "selector") -> tuple[Problem, ...]:
        """Check the expression; problems are sorted, at *path*."""
        found = set(check_expression(self.expression(), path=path).problems)
        for text in self._raw_texts():
            # A text such as `true) || (true` compiles inside of parentheses only.
            found.update(check_expression(text, path=path).errors)
        return tuple(sorted(found))

    def _raw_texts(self) -> Iterator[str]:
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


# What a selector hides from users, other selectors ask for by these.


def condition_of(selector: Selector, *, negated: bool) -> Condition:
    """The test, or what is true of the devices that fail it although they have what it reads."""
    return selector._clause(negated=negated)  # noqa: SLF001


def is_comparison(selector: Selector) -> bool:
    """Python wants parentheses around it beside `&` and `|`."""
    return selector._is_comparison  # noqa: SLF001


def _raw_texts_of(selector: Selector) -> Iterator[str]:
    """The texts that the user wrote in CEL, anywhere inside."""
    return selector._raw_texts()  # noqa: SLF001


@dataclass(frozen=True, slots=True, repr=False)
class AllOf(Selector):
    """Both are true."""

    _left: Selector
    _right: Selector

    def _clause(self, *, negated: bool) -> Condition:
        """Both, or when negated either negation."""
        parts = (condition_of(self._left, negated=negated), condition_of(self._right, negated=negated))
        return Some(parts) if negated else Every(parts)

    def _raw_texts(self) -> Iterator[str]:
        """CEL texts that were written by hand on both sides."""
        yield from _raw_texts_of(self._left)
        yield from _raw_texts_of(self._right)

    def __repr__(self) -> str:
        return f"{_grouped(self._left, AnyOf)} & {_grouped(self._right, AnyOf)}"


@dataclass(frozen=True, slots=True, repr=False)
class AnyOf(Selector):
    """At least one is true."""

    _left: Selector
    _right: Selector

    def _clause(self, *, negated: bool) -> Condition:
        """Either, or when negated both negations."""
        parts = (condition_of(self._left, negated=negated), condition_of(self._right, negated=negated))
        return Every(parts) if negated else Some(parts)

    def _raw_texts(self) -> Iterator[str]:
        """CEL texts that were written by hand on both sides."""
        yield from _raw_texts_of(self._left)
        yield from _raw_texts_of(self._right)

    def __repr__(self) -> str:
        return f"{_grouped(self._left, AllOf)} | {_grouped(self._right, AllOf)}"


@dataclass(frozen=True, slots=True, repr=False)
class Not(Selector):
    """The device has what the test reads, and fails it."""

    _operand: Selector

    def _clause(self, *, negated: bool) -> Condition:
        """The negation, which ends at the single tests."""
        return condition_of(self._operand, negated=not negated)

    def _raw_texts(self) -> Iterator[str]:
        """CEL texts that were written by hand in the operand."""
        return _raw_texts_of(self._operand)

    def __repr__(self) -> str:
        return f"~{_grouped(self._operand, AllOf, AnyOf)}"


@dataclass(frozen=True, slots=True, repr=False)
class DriverTest(Selector):
    """The device is of this driver; every device has one, so no guard is needed."""

    _name: str

    def _clause(self, *, negated: bool) -> Condition:
        """`device.driver == "name"`."""
        return Atom(f"device.driver {'!=' if negated else '=='} {quote(self._name)}")

    def __repr__(self) -> str:
        return f"driver({quote(self._name)})"


@dataclass(frozen=True, slots=True, repr=False)
class Cel(Selector):
    """An expression as the user wrote it.

    Nothing is known of what it reads, so it gets no guards, and `~` is a plain `!(...)`: on a device that lacks what it
    reads, both it and its negation fail the scheduling of the whole pod.
    """

    _text: str

    def expression(self) -> str:
        """The text, untouched as long as it stands alone."""
        return self._text

    def _clause(self, *, negated: bool) -> Condition:
        """The text in parentheses, on whose last line a comment may be."""
        inside = f"({self._text}\n)" if "//" in self._text else f"({self._text})"
        return Atom(f"!{inside}" if negated else inside)

    def _raw_texts(self) -> Iterator[str]:
        """The text."""
        yield self._text

    def __repr__(self) -> str:
        return f"cel({self._text!r})"


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
    if not isinstance(checked, str) or not is_driver_name(checked.lower()):
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
    loose = isinstance(selector, kinds) or is_comparison(selector)
    return f"({selector!r})" if loose else repr(selector)
