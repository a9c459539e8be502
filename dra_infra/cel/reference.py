"""What a test reads: one attribute or one capacity of a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dra_infra.cel.clauses import RESERVED, Atom, Clause, Every, quote
from dra_infra.cel.selector import Selector
from dra_infra.errors import SelectorError
from dra_infra.model.names import split_qualified_name


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
    """The attribute is there, or is not."""

    reference: Reference
    present: bool

    def clause(self, *, negated: bool) -> Clause:
        """`has(...)` or `!has(...)`."""
        text = self.reference.presence
        if self.present != negated:
            return Atom(text)
        return Atom(f"!{text}" if text.startswith("has(") else f"!({text})")

    def __repr__(self) -> str:
        return f"{self.reference.label}.{'exists' if self.present else 'missing'}()"


@dataclass(frozen=True, slots=True, repr=False)
class Test(Selector):
    """A test on one value, false where there is none.

    Args:
        reference: What it reads.
        passed: True of the values that pass.
        refused: True of the values that do not.
        label: How the user wrote it in Python.
    """

    reference: Reference
    passed: Clause
    refused: Clause
    label: str

    def clause(self, *, negated: bool) -> Clause:
        """The test or its opposite, behind the guard."""
        return Every((Atom(self.reference.presence), self.refused if negated else self.passed))

    @property
    def is_comparison(self) -> bool:
        """Whether it is written with an operator."""
        return self.label.startswith(f"{self.reference.label} ")

    def __repr__(self) -> str:
        return self.label


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
