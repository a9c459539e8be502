"""Attributes of any driver by their full name, with capacities and versions.

Capacities and versions are values that CEL compares by a method, against a literal that has to be well-formed.
"""

from __future__ import annotations

import builtins
from abc import abstractmethod
from typing import Any, ClassVar, Final, Literal, overload

from dra_infra.errors import SelectorError
from dra_infra.kubernetes.api import Quantity, Semver
from dra_infra.selectors.attributes import (
    COMPARISONS,
    OPPOSITES,
    Attribute,
    BoolAttribute,
    IntAttribute,
    TextAttribute,
    empty_range,
    show,
)
from dra_infra.selectors.reference import parse_reference
from dra_infra.selectors.selector import Selector, quote


class AnyAttribute(Attribute):
    """An attribute of a driver that is not described here; the type comes from what it is compared with."""

    __slots__ = ()
    _noun = "an attribute: a text, a whole number, true or false"
    _example = ' == "..."'

    def _compare(self, operator: str, other: object) -> Selector:
        """The comparisons of the type that *other* has."""
        return COMPARISONS[operator](self._typed(other), other)

    def between(self, low: int, high: int) -> Selector:
        """True from *low* to *high*, both included; for whole numbers."""
        return IntAttribute(self._reference).between(low, high)

    def one_of(self, *values: str | int) -> Selector:
        """True when the value is one of these, all texts or all whole numbers."""
        kind = TextAttribute if values and isinstance(values[0], str) else IntAttribute
        return kind(self._reference).one_of(*values)  # type: ignore[arg-type]

    def contains(self, text: str) -> Selector:
        """True when *text* is somewhere in the value."""
        return TextAttribute(self._reference).contains(text)

    def startswith(self, text: str) -> Selector:
        """True when the value begins with *text*."""
        return TextAttribute(self._reference).startswith(text)

    def endswith(self, text: str) -> Selector:
        """True when the value ends in *text*."""
        return TextAttribute(self._reference).endswith(text)

    def matches(self, pattern: str) -> Selector:
        """True when the regular expression (RE2) matches anywhere in the value."""
        return TextAttribute(self._reference).matches(pattern)

    def is_true(self) -> Selector:
        """True when the value is."""
        return BoolAttribute(self._reference).is_true()

    def is_false(self) -> Selector:
        """True when the value is there and false."""
        return BoolAttribute(self._reference).is_false()

    def _typed(self, value: object) -> Attribute:
        if isinstance(value, bool):
            return BoolAttribute(self._reference)
        if isinstance(value, int):
            return IntAttribute(self._reference)
        if isinstance(value, str):
            return TextAttribute(self._reference)
        raise self._mistyped(f"{self!r} and {show(value)}", value)


@overload
def attribute(name: str) -> AnyAttribute: ...
@overload
def attribute(name: str, type: Literal["string"]) -> TextAttribute: ...
@overload
def attribute(name: str, type: Literal["int"]) -> IntAttribute: ...
@overload
def attribute(name: str, type: Literal["bool"]) -> BoolAttribute: ...
@overload
def attribute(name: str, type: Literal["version"]) -> VersionAttribute: ...
def attribute(name: str, type: str = "") -> Attribute:  # noqa: A002  (Kubernetes' word, as in a ResourceSlice)
    """An attribute of any driver by its full name, `gpu.example.com/index`.

    Args:
        name: Domain and name, as a constraint writes them.
        type: `string`, `int`, `bool` or `version`, as the driver publishes it: a comparison with another type is then
            refused here. Without it, the attribute is taken for a text, a whole number or true/false by what it is
            compared with; for amounts there is `capacity`.

    Raises:
        SelectorError: `selector-invalid-value`, when the name is malformed or has no domain, or there is no such type.
    """
    reference = parse_reference(name, "attributes", "attribute")
    if type == "version":
        return VersionAttribute(reference)
    given: object = type
    kind = _TYPES.get(given) if isinstance(given, str) else None
    if kind is None:
        raise SelectorError(
            f"attribute({show(name)}, {show(type)}): attributes have no such type",
            code="selector-invalid-value",
            hint="write one of string, int, bool, version; amounts are capacity(...)",
        )
    return kind(reference)


_TYPES: Final[dict[str, builtins.type[Attribute]]] = {
    "": AnyAttribute,
    "string": TextAttribute,
    "int": IntAttribute,
    "bool": BoolAttribute,
}


class OrderedAttribute(Attribute):
    """Something that is compared with `compareTo`."""

    __slots__ = ()
    _constructor: ClassVar[str]
    """The CEL function that makes a value from text."""

    @abstractmethod
    def _parse(self, text: str) -> Any:
        """The value of *text*, which has an order; ValueError when it is malformed."""

    @abstractmethod
    def _correct(self, text: str) -> str:
        """A hint for a malformed *text*."""

    def between(self, low: str, high: str) -> Selector:
        """True from *low* to *high*, both included."""
        label = f".between({show(low)}, {show(high)})"
        if self._read(label, low) > self._read(label, high):
            raise empty_range(self, label)
        return self._range_test(
            label,
            (self._ordered(">=", low), self._ordered("<", low)),
            (self._ordered("<=", high), self._ordered(">", high)),
        )

    def _compare(self, operator: str, other: object) -> Selector:
        """All comparisons with the text of a value."""
        self._read(f" {operator} {show(other)}", other)
        text = str(other)
        return self._test(
            f" {operator} {quote(text)}",
            self._ordered(operator, text),
            self._ordered(OPPOSITES[operator], text),
        )

    def _ordered(self, operator: str, text: str) -> str:
        return f"{self._value}.compareTo({self._constructor}({quote(text)})) {operator} 0"

    def _read(self, written: str, text: object) -> Any:
        if not isinstance(text, str):
            raise self._mistyped(f"{self!r}{written}", text)
        try:
            return self._parse(text)
        except ValueError as error:
            raise self._malformed(f"{self!r}{written}", str(error), self._correct(text)) from error


class CapacityAmount(OrderedAttribute):
    """A capacity, such as memory."""

    __slots__ = ()
    _noun = "an amount"
    _example = ' >= "40Gi"'
    _constructor = "quantity"

    def _mistyped(self, written: str, other: object) -> SelectorError:
        """A bare number lacks the unit."""
        if isinstance(other, int | float) and not isinstance(other, bool):
            return SelectorError(
                f"{written}: {self!r} is an amount with a unit, compared with the number {other}",
                code="selector-type",
                hint=f'write "{other}Gi" if gibibytes are meant',
            )
        return super()._mistyped(written, other)

    def _parse(self, text: str) -> Quantity:
        """A quantity; the text that was given goes into the expression as it is."""
        return Quantity.parse(text)

    def _correct(self, text: str) -> str:
        """The form of amounts."""
        return f'write a number and a unit, "40Gi" for 40 gibibytes, instead of {show(text)}'


class VersionAttribute(OrderedAttribute):
    """An attribute that holds a version."""

    __slots__ = ()
    _noun = "a version"
    _example = ' >= "1.2.3"'
    _constructor = "semver"

    def _parse(self, text: str) -> Semver:
        """A version of three parts, for on a device only such are compared."""
        return Semver.parse(text)

    def _correct(self, text: str) -> str:
        """The same version in three parts, where that is what was meant."""
        try:
            normalized = Semver.parse_normalized(text.strip().removeprefix("V"))
        except ValueError:
            return 'write three numbers without leading zeros, "9.0.0"'
        return f'write "{normalized}"'


def capacity(name: str) -> CapacityAmount:
    """A capacity of any driver by its full name, `gpu.example.com/memory`.

    Raises:
        SelectorError: `selector-invalid-value`, when the name is malformed or has no domain.
    """
    return CapacityAmount(parse_reference(name, "capacity", "capacity"))


def version(name: str) -> VersionAttribute:
    """An attribute of any driver that holds a version, `gpu.example.com/driverVersion`.

    Raises:
        SelectorError: `selector-invalid-value`, when the name is malformed or has no domain.
    """
    return VersionAttribute(parse_reference(name, "attributes", "version"))
