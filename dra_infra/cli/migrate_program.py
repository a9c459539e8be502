"""The part of `dra-infra migrate` that writes a program: `--to components`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from dra_infra.advice.objects import reference_to
from dra_infra.cli.init import nearest_name
from dra_infra.cli.init_project import files_of_program, write_whole
from dra_infra.cli.printing import say, write_output
from dra_infra.errors import Problem, ScaffoldError
from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.migration.outcomes import Migrated
from dra_infra.output.wording import count_of
from dra_infra.program_writing.checking import check_objects, check_program_text, is_same_object
from dra_infra.program_writing.program import write_program
from dra_infra.sources.cluster_objects import READ, without_written

_DESCRIPTION = "Objects of a cluster, as components where they can be"

_TAKEN_OVER: Final = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")
"""Kinds that components make."""

_APPLY: Final = "apply what migrate writes without --to components, and migrate what the cluster has then"


class MigratedProgram(NamedTuple):
    """A program that makes what a migration made.

    Args:
        text: Source of `__main__.py`.
        migrated: What became of each object, with remarks on those that are no components.
        notes: How many objects are components, and which of them are in the cluster.
        problems: Objects that no program makes as they are; with any, nothing is written.
    """

    text: str
    migrated: list[Migrated]
    notes: list[str]
    problems: list[Problem]

    def write(self, output: Path | None, *, is_printed: bool) -> None:
        """Write the project to a folder, or its program to standard output where none is named.

        Raises:
            ScaffoldError: `files-differ`, `folder-not-usable`; then nothing is changed.
        """
        if output is None:
            if is_printed:
                write_output(self.text)
            return
        root = Path(os.path.abspath(output))  # noqa: PTH100  (resolve() would follow links that the user named)
        name = nearest_name(root.name)
        files = files_of_program(root, name=name, description=_DESCRIPTION, program=self.text)
        try:
            written = write_whole(files, force=False)
        except ScaffoldError as error:
            hint = "name another folder"
            raise ScaffoldError([replace(each, hint=hint) for each in error.problems]) from error
        for path in written.new:
            say(f"wrote {os.path.relpath(path)}")
        if not written.new:
            say("all of it is there already; nothing was written")


def program_of(
    migrated: Sequence[Migrated],
    running: Iterable[Mapping[str, Any]] = (),
    *,
    unchanged: Collection[int] = (),
) -> MigratedProgram:
    """The program of what a migration made; objects that were taken out are not in it.

    Args:
        migrated: What became of each object.
        running: Objects of the cluster. Components take over those that are the same there.
        unchanged: Positions of objects that are as they were: those that were read from a cluster are taken over too.
    """
    rows = [
        (index, each)
        for index, done in enumerate(migrated)
        for each in (*done.added, done.manifest)
        if each is not None
    ]
    objects = [without_written(each) for _, each in rows]
    if problems := check_objects(objects):
        return MigratedProgram("", list(migrated), [], problems)
    there = {_key(each): each for each in running if each.get("kind") in _TAKEN_OVER}
    found = {index: there[_key(each)] for index, each in enumerate(objects) if _key(each) in there}
    imported = {index for index, each in found.items() if is_same_object(objects[index], each)}
    imported |= {
        number
        for number, (index, each) in enumerate(rows)
        if index in unchanged and each is migrated[index].manifest and each is not objects[number]
    }
    program = write_program(objects, imported=imported)
    result = list(migrated)
    for (index, _), remarks in zip(rows, program.remarks, strict=True):
        if remarks:
            result[index] = replace(result[index], remarks=(*result[index].remarks, *remarks))
    rest = len(objects) - program.components
    as_they_are = f"{count_of(rest, 'object')} as {'it is' if rest == 1 else 'they are'}"
    notes = [f"the program makes {count_of(program.components, 'component')}, and {as_they_are}"]
    changed = {
        number
        for number, (index, each) in enumerate(rows)
        if each is migrated[index].manifest and any(told.code == READ for told in migrated[index].remarks)
    }
    notes += [
        f"{reference_to(each)} is in the cluster with another spec, which no import takes over:"
        f" {'leave object_name= out' if each['kind'] in _TAKEN_OVER else _APPLY}, or delete it there before"
        for each in (objects[index] for index in sorted((found.keys() | changed) - imported))
    ]
    return MigratedProgram(program.text, result, notes, check_program_text(program.text, objects))


def _key(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Kind, namespace and name; an object whose namespace is left open is none of the cluster."""
    metadata = mapping(manifest.get("metadata"))
    return tuple(
        str(each) for each in (manifest.get("kind"), metadata.get("namespace"), metadata.get("name"))
    )
