"""Capacities and versions: values that CEL compares by a method, against a literal that has to be well-formed."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from dra_infra.cel.attributes import OPPOSITES, Attribute, empty_range, show
from dra_infra.cel.clauses import quote
from dra_infra.cel.reference import parse_reference
from dra_infra.cel.selector import Selector
from dra_infra.errors import SelectorError
from dra_infra.model.quantity import Quantity
from dra_infra.model.semver import Semver


class OrderedAttribute(Attribute):
    """Something that is compared with `compareTo`."""

    __slots__ = ()
    constructor: ClassVar[str]
    """The CEL function that makes a value from text."""

    @abstractmethod
    def parse(self, text: str) -> Any:
        """The value of *text*, which has an order; ValueError when it is malformed."""

    @abstractmethod
    def correct(self, text: str) -> str:
        """What to write instead of a malformed *text*."""

    def between(self, low: str, high: str) -> Selector:
        """True from *low* to *high*, both included."""
        label = f".between({show(low)}, {show(high)})"
        if self._read(label, low) > self._read(label, high):
            raise empty_range(self, label)
        return self.range_test(
            label,
            (self._ordered(">=", low), self._ordered("<", low)),
            (self._ordered("<=", high), self._ordered(">", high)),
        )

    def compare(self, operator: str, other: object) -> Selector:
        """All comparisons with the text of a value."""
        self._read(f" {operator} {show(other)}", other)
        text = str(other)
        return self.test(
            f" {operator} {quote(text)}",
            self._ordered(operator, text),
            self._ordered(OPPOSITES[operator], text),
        )

    def _ordered(self, operator: str, text: str) -> str:
        return f"{self.value}.compareTo({self.constructor}({quote(text)})) {operator} 0"

    def _read(self, written: str, text: object) -> Any:
        if not isinstance(text, str):
            raise self.mistyped(f"{self!r}{written}", text)
        try:
            return self.parse(text)
        except ValueError as error:
            raise self.malformed(f"{self!r}{written}", str(error), self.correct(text)) from error


class CapacityAmount(OrderedAttribute):
    """A capacity, such as memory."""

    __slots__ = ()
    noun = "an amount"
    example = ' >= "40Gi"'
    constructor = "quantity"

    def mistyped(self, written: str, other: object) -> SelectorError:
        """A bare number lacks the unit."""
        if isinstance(other, int | float) and not isinstance(other, bool):
            return SelectorError(
                f"{written}: {self!r} is an amount with a unit, compared with the number {other}",
                code="selector-type",
                hint=f'write "{other}Gi" if gibibytes are meant',
            )
        return super().mistyped(written, other)

    def parse(self, text: str) -> Quantity:
        """A quantity; the text that was given goes into the expression as it is."""
        return Quantity.parse(text)

    def correct(self, text: str) -> str:
        """The form of amounts."""
        return f'write a number and a unit, "40Gi" for 40 gibibytes, instead of {show(text)}'


class VersionAttribute(OrderedAttribute):
    """An attribute that holds a version."""

    __slots__ = ()
    noun = "a version"
    example = ' >= "1.2.3"'
    constructor = "semver"

    def parse(self, text: str) -> Semver:
        """A version of three parts, for on a device only such are compared."""
        return Semver.parse(text)

    def correct(self, text: str) -> str:
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
