"""Outcomes of a migration: what became of each object, and each loss in writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

Outcome = Literal["kept", "changed", "lost", "decide"]
"""The outcome for a field: it means what it meant, it is written in another way with the same meaning, its meaning has no
equivalent, or somebody has to decide."""

OUTCOMES: Final[tuple[Outcome, ...]] = ("decide", "lost", "changed", "kept")
"""The outcomes, the one that asks most of a reader first."""


class Remark(NamedTuple):
    """A line of the loss report.

    Args:
        path: Field path in the object as it was; empty where the whole object is meant.
        outcome: What became of the field.
        code: Stable code of the rule, such as `plugin-not-known`.
        message: What was there, and what became of it.
        hint: What to do where something is lost or to decide; empty elsewhere.
    """

    path: str
    outcome: Outcome
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """An object after the migration.

    Args:
        manifest: The object; None where nothing takes its place, and the very object that was given where nothing changed.
        remarks: What became of its fields. An object without remarks has nothing to migrate.
        added: New objects that belong beside it, in the order in which they are written, behind it.
    """

    manifest: Mapping[str, Any] | None
    remarks: tuple[Remark, ...] = ()
    added: tuple[Mapping[str, Any], ...] = field(default=())
