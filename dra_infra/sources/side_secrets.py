"""Both sides of a review without their secrets.

A secret that changes is marked, for what is hidden cannot be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dra_infra.output.secrets import SecretMask
from dra_infra.program_objects import Program, ProgramObject, ProgramRelease

_Sides = tuple[Mapping[str, Any], Mapping[str, Any]]
"""An object as it was, with and without its secrets."""


def without_secrets(before: Program, after: Program, mask: SecretMask) -> tuple[Program, Program]:
    """The programs with a marker in place of each secret; what holds none is not copied."""
    first = _without(before, {}, {}, mask)
    objects = {
        _key(each): (each.manifest, masked.manifest)
        for each, masked in zip(before.objects, first.objects, strict=True)
    }
    return first, _without(after, objects, {each.urn: each for each in before.releases}, mask)


def _key(each: ProgramObject) -> tuple[str, str, str]:
    """What an object is found by on the other side, whatever the version of its API."""
    _, _, types, name = each.urn.split("::", 3)
    return types.rpartition("$")[0], each.ref.kind, name


def _without(
    program: Program,
    objects: Mapping[tuple[str, str, str], _Sides],
    releases: Mapping[str, ProgramRelease],
    mask: SecretMask,
) -> Program:
    return replace(
        program,
        objects=tuple(_object(each, objects.get(_key(each)), mask) for each in program.objects),
        releases=tuple(_release(each, releases.get(each.urn), mask) for each in program.releases),
        problems=tuple(map(mask.problem, program.problems)),
        not_seen=tuple(
            replace(each, name=mask.text(each.name), reason=mask.text(each.reason))
            for each in program.not_seen
        ),
    )


def _object(each: ProgramObject, former: _Sides | None, mask: SecretMask) -> ProgramObject:
    # Most objects of a change are as they were.
    same = former is not None and former[0] == each.manifest
    manifest = former[1] if former and same else mask.manifest(each.manifest, former[0] if former else None)
    # Part by part, for `Secret::name` is written like a secret and would be no URN without its parts.
    urn, component = "::".join(map(mask.text, each.urn.split("::"))), mask.text(each.component)
    if manifest is each.manifest and (urn, component) == (each.urn, each.component):
        return each
    return replace(each, manifest=manifest, urn=urn, component=component)


def _release(release: ProgramRelease, former: ProgramRelease | None, mask: SecretMask) -> ProgramRelease:
    old = former.values if former else None
    return replace(
        release,
        values=mask.values(release.values, old, by_name=True),
        chart=mask.text(release.chart),
        repository=mask.text(release.repository),
    )
