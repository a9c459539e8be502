"""References to one attribute or one capacity of a device, as tests read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dra_infra.errors import SelectorError
from dra_infra.kubernetes.api.names import split_qualified_name
from dra_infra.selectors.selector import RESERVED, Atom, Condition, Every, Selector, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An attribute or capacity by its full name.

    Args:
        section: The field of `device` in which it is.
        domain: The part before the slash.
        identifier: The part behind it.
        label: How the user wrote it in Python.
    """

    section: Literal["attributes", "capacity"]
    domain: str
    identifier: str
    label: str

    @property
    def qualified_name(self) -> str:
        """`domain/identifier`."""
        return f"{self.domain}/{self.identifier}"

    @property
    def value(self) -> str:
        """The CEL that reads it."""
        group = f"device.{self.section}[{quote(self.domain)}]"
        if self.identifier in RESERVED:
            return f"{group}[{quote(self.identifier)}]"
        return f"{group}.{self.identifier}"

    @property
    def presence(self) -> str:
        """The CEL that tells whether it is there."""
        if self.identifier in RESERVED:
            return f"{quote(self.identifier)} in device.{self.section}[{quote(self.domain)}]"
        return f"has({self.value})"


@dataclass(frozen=True, slots=True, repr=False)
class Presence(Selector):
    """The attribute is there."""

    _reference: Reference

    def _clause(self, *, negated: bool) -> Condition:
        """`has(...)` or `!has(...)`."""
        return _has(self._reference, present=not negated)

    def __repr__(self) -> str:
        return f"{self._reference.label}.exists()"


@dataclass(frozen=True, slots=True, repr=False)
class Absence(Selector):
    """The attribute is not there."""

    _reference: Reference

    def _clause(self, *, negated: bool) -> Condition:
        """`!has(...)` or `has(...)`."""
        return _has(self._reference, present=negated)

    def __repr__(self) -> str:
        return f"{self._reference.label}.missing()"


@dataclass(frozen=True, slots=True, repr=False)
class Test(Selector):
    """A test on one value, false where there is none.

    Args:
        _reference: What it reads.
        _passed: True of the values that pass.
        _refused: True of the values that do not.
        _label: How the user wrote it in Python.
    """

    _reference: Reference
    _passed: Condition
    _refused: Condition
    _label: str

    def _clause(self, *, negated: bool) -> Condition:
        """The test or its opposite, behind the guard."""
        return Every((Atom(self._reference.presence), self._refused if negated else self._passed))

    @property
    def _is_comparison(self) -> bool:
        """It is written with an operator."""
        return self._label.startswith(f"{self._reference.label} ")

    def __repr__(self) -> str:
        return self._label


def _has(reference: Reference, *, present: bool) -> Condition:
    text = reference.presence
    if present:
        return Atom(text)
    return Atom(f"!{text}" if text.startswith("has(") else f"!({text})")


def parse_reference(name: object, section: Literal["attributes", "capacity"], function: str) -> Reference:
    """Read `domain/identifier` as the argument of the authoring function *function*.

    Raises:
        SelectorError: `selector-invalid-value`, when it is malformed or has no domain.
    """
    parts = split_qualified_name(name) if isinstance(name, str) else None
    if parts is None or not parts[0]:
        shown = name if isinstance(name, str) and parts is not None else "index"
        raise SelectorError(
            f"{function}({name!r}): not a domain and a name joined by a slash",
            code="selector-invalid-value",
            hint=f'write {function}("gpu.nvidia.com/{shown}"), with the domain that the driver publishes under',
        )
    domain, identifier = parts
    return Reference(
        section=section,
        domain=domain,
        identifier=identifier,
        label=f"{function}({quote(f'{domain}/{identifier}')})",
    )
