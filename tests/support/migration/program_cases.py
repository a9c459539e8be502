"""The rows of both tables of migration as objects that are there afterwards, and what a written program makes."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dra_infra.kubernetes.api import CLAIM_KINDS
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.program.synth import synth_function
from tests.support.migration import device_plugin_cases, old_dra_cases


def rows() -> dict[str, list[Mapping[str, Any]]]:
    """The objects after the migration, by the table and name of the row."""
    found = {f"device plugin: {each.id}": each.migrate() for each in device_plugin_cases.cases()}
    nothing_known = Settings(plugin=None, no_shares="")
    found |= {
        f"old DRA: {each.id}": migrate_objects(each.input, nothing_known) for each in old_dra_cases.cases()
    }
    return {name: objects_of(migrated) for name, migrated in found.items()}


def objects_of(migrated: Sequence[Migrated]) -> list[Mapping[str, Any]]:
    """What is there after a migration."""
    return [each for done in migrated for each in (*done.added, done.manifest) if each is not None]


def made_by(text: str) -> list[Any]:
    """The objects that the source of a program makes."""

    def program() -> None:
        exec(compile(text, "__main__.py", "exec"), {"__name__": "__main__"})  # noqa: S102

    return sorted_objects([each.manifest for each in synth_function(program).objects])


def sorted_objects(objects: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The objects in one order, claims with the count that the server fills in."""
    filled = [_counted(each) if each["kind"] in CLAIM_KINDS else each for each in objects]
    return sorted(filled, key=lambda each: json.dumps(each, sort_keys=True))


def _counted(value: Any) -> Any:
    """A copy in which every request has the defaults of the API: written here anew, and not as the product has them."""
    if isinstance(value, list):
        return [_counted(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    # An empty list is what a server stores for none.
    result = {key: _counted(each) for key, each in value.items() if each != []}
    if "deviceClassName" in result and result.setdefault("allocationMode", "ExactCount") == "ExactCount":
        result.setdefault("count", 1)
    return result


def names_read(text: str) -> set[str]:
    """Every name that a program reads and does not assign."""
    found = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Name)]
    assigned = {each.id for each in found if isinstance(each.ctx, ast.Store)}
    return {each.id for each in found} - assigned
