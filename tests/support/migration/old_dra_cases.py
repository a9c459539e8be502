"""The cases of cases/old_dra.yaml, which the docs show, and what is made of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dra_infra.migration.old_dra.conversion import migrate_old_dra
from dra_infra.migration.outcomes import Migrated
from tests.support.pages.problem_pages import area_of

FOLDER = Path(__file__).parents[2] / "unit/migration/cases"
INPUTS = FOLDER / "old_dra.yaml"
OUTPUTS = FOLDER / "old_dra_outputs.yaml"

GONE = "gone"
UNTOUCHED = "untouched"


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Args:
        id: Its name.
        was: What the input is, in words.
        becomes: What is there then, in words.
        input: The objects.
        remarks: Code and outcome by path, by the position of the object.
    """

    id: str
    was: str
    becomes: str
    input: Sequence[Mapping[str, Any]]
    remarks: Mapping[int, Mapping[str, str]]


@functools.cache
def cases() -> tuple[Case, ...]:
    """All rows, in their order."""
    return tuple(Case(**each) for each in yaml.safe_load(INPUTS.read_text()))


def case(name: str) -> Case:
    """The row of that name."""
    return next(each for each in cases() if each.id == name)


def objects_after(
    objects: Sequence[Mapping[str, Any]], found: Mapping[int, Migrated]
) -> list[Mapping[str, Any]]:
    """The objects that are there after a migration."""
    after: list[Mapping[str, Any]] = []
    for index, each in enumerate(objects):
        migrated = found.get(index)
        after += migrated.added if migrated else ()
        manifest = migrated.manifest if migrated else each
        after += [manifest] if manifest is not None else []
    return after


def shown(case: Case) -> list[Any]:
    """What is in the place of each object, as old_dra_outputs.yaml has it."""
    found = migrate_old_dra(case.input)
    rows: list[Any] = []
    for index, each in enumerate(case.input):
        migrated = found.get(index, Migrated(manifest=each))
        rows += migrated.added
        if migrated.manifest is None:
            rows.append(GONE)
        else:
            rows.append(UNTOUCHED if migrated.manifest is each else migrated.manifest)
    return rows


def made(case: Case) -> list[Mapping[str, Any]]:
    """The objects that the migration wrote."""
    return [each for each in shown(case) if each not in (GONE, UNTOUCHED)]


def table() -> str:
    """The rows as a table in Markdown."""
    lines = ["| What was | What becomes of it | To decide | Lost |", "| --- | --- | --- | --- |"]
    for each in cases():
        texts = [text for remarks in each.remarks.values() for text in remarks.values()]
        found = [one.split(" ") for text in texts for one in text.split(", ")]
        cells = [
            ", ".join(sorted({_link(code) for code, said in found if said == outcome}))
            for outcome in ("decide", "lost")
        ]
        lines.append(f"| {each.was} | {each.becomes} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _link(code: str) -> str:
    return f"[`{code}`](errors/{area_of(code)}.md#{code})"
