"""Changes of an object that a hint says exactly, each proved by a second check."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from dra_infra.advice.findings import clauses
from dra_infra.advice.objects import check_object
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import holds_placeholder
from dra_infra.migration.old_dra.conversion import migrate_old_dra
from dra_infra.review.property_paths import parse_path
from dra_infra.target import ClusterTarget

Manifest = dict[str, Any]

_READ: Final = "cel-unguarded-read"
_GUARDED: Final = re.compile(r"write (?P<clause>.*?(?P<guard>has\([^()]+\)) && .*)", re.DOTALL)
_MOST: Final = 64
"""Changes of one object; each takes a check."""


def remedy(
    manifest: Mapping[str, Any], target: ClusterTarget, codes: Collection[str]
) -> tuple[Manifest, Problem] | None:
    """Return an object without one of its problems, and that problem; None where no hint says exactly what to write.

    A field that the change is about has no marker: what is secret or not known yet is left as it is.

    Args:
        manifest: The object.
        target: The cluster.
        codes: Problems that may be remedied.
    """
    before = check_object(manifest, target)
    for problem in before:
        if problem.code not in codes:
            continue
        changed = (_guard if problem.code == _READ else _migrate)(manifest, problem)
        if changed is not None and _is_better(check_object(changed, target), before, problem):
            return changed, problem
    return None


def remedies(
    manifest: Mapping[str, Any], target: ClusterTarget, codes: Collection[str]
) -> tuple[Manifest, list[Problem]]:
    """Return an object after all remedies, and the problems that it no longer has."""
    remedied: list[Problem] = []
    changed = dict(manifest)
    while len(remedied) < _MOST and (found := remedy(changed, target, codes)) is not None:
        changed, problem = found
        remedied.append(problem)
    return changed, remedied


def _is_better(after: Collection[Problem], before: Collection[Problem], problem: Problem) -> bool:
    """Return whether a problem is gone and no error is new."""
    errors = {(each.path, each.code) for each in after if each.severity == "error"}
    known = {(each.path, each.code) for each in before}
    return problem not in after and errors <= known


def _guard(manifest: Mapping[str, Any], problem: Problem) -> Manifest | None:
    """Put the test of the hint in front of the read."""
    hint = _GUARDED.fullmatch(problem.hint)
    if hint is None:
        return None
    bare = hint["clause"].replace(f"{hint['guard']} && ", "")

    def put(text: object) -> str | None:
        if not isinstance(text, str) or holds_placeholder(text):
            return None
        parts = clauses(text)
        place = next((index for index, each in enumerate(parts) if bare == _bare(each, hint["guard"])), None)
        if place is None:
            return None
        return " && ".join((*parts[:place], hint["clause"], *parts[place + 1 :]))

    return _changed(manifest, problem.path, put)


def _bare(clause: str, guard: str) -> str:
    """Return a clause on one line without a guard, as the hint has it."""
    return " ".join(clause.split()).replace(f"{guard} && ", "")


def _migrate(manifest: Mapping[str, Any], _problem: Problem) -> Manifest | None:
    """Write the spec of an older version as later ones have it, where nothing is lost and nothing is to be decided.

    The version of the object stays. The API server refuses another one than that of the resource's type.
    """
    if holds_placeholder(manifest.get("spec")):
        return None
    migrated = migrate_old_dra([manifest]).get(0)
    if migrated is None or migrated.manifest is None or migrated.added:
        return None
    if any(each.outcome != "changed" for each in migrated.remarks):
        return None
    return {**manifest, "spec": migrated.manifest["spec"]}


def _changed(manifest: Mapping[str, Any], path: str, change: Callable[[object], object]) -> Manifest | None:
    """Return a copy with another value at a path; None where the path leads to nothing or the change is not possible."""
    copied: Manifest = copy.deepcopy(dict(manifest))
    *above, last = parse_path(path) or ("",)
    holder: Any = copied
    try:
        for step in above:
            holder = holder[step]
        value = change(holder[last])
    except (KeyError, IndexError, TypeError):
        return None
    if value is None:
        return None
    holder[last] = value
    return copied
