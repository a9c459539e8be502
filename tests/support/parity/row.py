"""What a row of the reference is: an object, and what the servers say to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dra_infra.kubernetes.api import GATES
from tests.support.parity.cases import PLAIN, Case, Object

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
DUPLICATE = "FieldValueDuplicate"
NOT_SUPPORTED = "FieldValueNotSupported"
FORBIDDEN = "FieldValueForbidden"
NOT_FOUND = "FieldValueNotFound"
NO_REPLY = "Disconnected"
"""The server fails and ends the connection."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: an object, and what all servers that know the row say to it.

    Args:
        section: Group of rules that it belongs to; the coverage table is sorted by it.
        text: The rule in a few words.
        object: What breaks the rule, and nothing else if that can be.
        path: Where the server reports it; empty when the object is accepted.
        reason: The kind of error as in the causes of the answer; empty when the object is accepted.
        namespace: Where the object is created.
        gate: Gate without which the row does not exist; minors without it do not have the row.
        without: Gate that has to be off for the row.
        since: First minor with the row.
        until: Last minor with the row.
        after: For updates: what is stored before, with the same name.
        unlike: Path and reason in the minors that say otherwise.
    """

    section: str
    text: str
    object: Object
    path: str = ""
    reason: str = ""
    namespace: str = PLAIN
    gate: str = ""
    without: str = ""
    since: str = "1.34"
    until: str = "1.37"
    after: Object | None = None
    unlike: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Name of the row, unique."""
        return f"{self.section} {self.text}"

    def exists_in(self, minor: str) -> bool:
        """Whether the servers of *minor* have the row."""
        if not self.since <= minor <= self.until:
            return False
        if self.without and (minor not in GATES[self.without] or GATES[self.without][minor].locked):
            return False
        return not self.gate or minor in GATES[self.gate]

    def expected(self, minor: str) -> tuple[str, str]:
        """Path and reason in the answer of *minor*; both empty where it accepts the object."""
        return self.unlike.get(minor, (self.path, self.reason))

    @property
    def gate_set(self) -> str:
        """Gates of the server that is to be asked."""
        if self.without:
            return "none"
        return "all" if self.gate else "default"

    def case(self, old: Object | None = None) -> Case:
        """The row as a question."""
        return Case(id=f"row {self.id}", object=self.object, namespace=self.namespace, old=old)
