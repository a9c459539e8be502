"""Both sides of a review without their secrets; one that changes is marked, for what is hidden cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dra_infra.model.program import Program, ProgramObject, ProgramRelease
from dra_infra.model.secrets import SecretMask


def without_secrets(before: Program, after: Program, mask: SecretMask) -> tuple[Program, Program]:
    """The programs with a marker in place of each secret; what holds none is not copied."""
    objects = {_key(each): each.manifest for each in before.objects}
    releases = {each.urn: each for each in before.releases}
    return _without(before, {}, {}, mask), _without(after, objects, releases, mask)


def _key(each: ProgramObject) -> tuple[str, str, str]:
    """What an object is found by on the other side, whatever the version of its API."""
    _, _, types, name = each.urn.split("::", 3)
    return types.rpartition("$")[0], each.ref.kind, name


def _without(
    program: Program,
    objects: Mapping[tuple[str, str, str], Mapping[str, Any]],
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


def _object(each: ProgramObject, former: Mapping[str, Any] | None, mask: SecretMask) -> ProgramObject:
    manifest = mask.manifest(each.manifest, former)
    urn, component = mask.text(each.urn), mask.text(each.component)
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
