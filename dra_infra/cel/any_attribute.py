"""Attributes of any driver, by their full name."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Final, Literal, overload

from dra_infra.cel.attributes import Attribute, BoolAttribute, IntAttribute, TextAttribute, show
from dra_infra.cel.reference import parse_reference
from dra_infra.cel.selector import Selector
from dra_infra.errors import SelectorError

if TYPE_CHECKING:
    from dra_infra.cel.amount import VersionAttribute


class AnyAttribute(Attribute):
    """An attribute of a driver that is not described here; the type comes from what it is compared with."""

    __slots__ = ()
    noun = "an attribute: a text, a whole number, true or false"
    example = ' == "..."'

    def compare(self, operator: str, other: object) -> Selector:
        """The comparisons of the type that *other* has."""
        return self._typed(other).compare(operator, other)

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
        raise self.mistyped(f"{self!r} and {show(value)}", value)


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
        from dra_infra.cel.amount import VersionAttribute

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
