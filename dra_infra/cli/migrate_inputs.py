"""Reads what `dra-infra migrate` works on, and tells what it cannot work on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import click

from dra_infra.cli.printing import print_not_seen
from dra_infra.cli.settings import check_settings, read_program
from dra_infra.errors import Place, Problem
from dra_infra.migration.chart_values import is_values
from dra_infra.program.kustomizations import is_kustomization
from dra_infra.sources.files import NOTHING_CHECKED, SourceObject, files_in, find_program, read_sources
from dra_infra.sources.patches import Patches, find_patches, read_parts

_HINT: Final = "name its folder as a path of its own: dra-infra migrate {folder}"

_PROJECTS: Final = ("Pulumi.yaml", "Pulumi.yml")


class Inputs(NamedTuple):
    """The input of a migration."""

    sources: list[SourceObject]
    problems: list[Problem]
    patches: Patches


class Making(NamedTuple):
    """How programs and kustomizations among the input become objects.

    Args:
        kind: What the user says that folders are; None reads it off each.
        stack: Stack of a program.
        config: Settings over those of the stack file.
        timeout: Seconds for each.
    """

    kind: str | None
    stack: str | None
    config: Mapping[str, str]
    timeout: float

    def makes(self, path: str) -> bool:
        """True where the objects of *path* are made by a program, a chart or a kustomization."""
        folder = Path(path)
        if path == "-" or self.kind == "manifests" or not folder.is_dir():
            return False
        marks = (*_PROJECTS, "Chart.yaml")
        return (
            self.kind is not None
            or is_kustomization(folder)
            or any(os.path.isfile(folder / name) for name in marks)  # noqa: PTH113  (as of kustomizations)
        )

    def check_write(self, paths: Sequence[str]) -> None:
        """Refuse to change files where objects stand in none.

        Raises:
            click.BadParameter: For these.
        """
        for path in filter(self.makes, paths):
            refusal = f"what {path} makes stands in no file that could be changed; take --output FOLDER"
            if is_kustomization(Path(path)):
                refusal += ", or --source manifests to change the files of the kustomization"
            raise click.BadParameter(refusal, param_hint="--write")

    def make(self, path: str) -> tuple[list[SourceObject], Sequence[Problem]]:
        """Make the objects of *path*, and tell what is not seen.

        Raises:
            ProgramError: The codes of `read_program` and `check_settings`.
        """
        folder = Path(path)
        project, program = read_program(
            folder, stack=self.stack, config=self.config, timeout=self.timeout, kind=self.kind
        )
        if project is not None:
            check_settings(project, self.stack, self.config)
        print_not_seen(program.not_seen)
        # Places in a program are named from its folder on.
        above = folder if project is not None and project.root == folder.resolve() else Path()
        file = (folder / "objects.yaml").as_posix()
        made = [
            SourceObject.of(
                file, each.manifest, _below(above, each.place) if each.place else Place(file=path)
            )
            for each in program.objects
        ]
        problems = [each.at(_below(above, each.place)) if each.place else each for each in program.problems]
        return made, problems


def _below(folder: Path, place: Place) -> Place:
    return replace(place, file=(folder / place.file).as_posix())


def read_inputs(paths: Sequence[str], stdin: BinaryIO, making: Making) -> Inputs:
    """Read the objects in *paths*, as `read_sources` does, and those that programs and kustomizations make.

    What is named twice, or lies in a folder that is named too, is read once. An input without any object is a problem.

    Raises:
        ProgramError: The codes of `Making.make`.
    """
    sources: list[SourceObject] = []
    problems: list[Problem] = []
    for path in _without_repeats(paths, making):
        if making.makes(path):
            made, found = making.make(path)
            sources += made
            problems += found
            continue
        for each in read_sources([path], stdin):
            if isinstance(each, Problem):
                problems.append(each)
            else:
                sources.append(each)
                problems.extend(find_program(each, _HINT) if making.kind is None else ())
    files = [each.file for each in sources if not each.is_made]
    files += [each.place.file for each in problems if each.place]
    patches = find_patches(list(dict.fromkeys(files)))
    parts, problems = read_parts(problems, patches)
    sources += parts
    if not problems and not any(each.manifest.get("kind") or is_values(each.manifest) for each in sources):
        problems.append(_nothing(paths[0]))
    return Inputs(sources, problems, patches)


def _without_repeats(paths: Sequence[str], making: Making) -> list[str]:
    """The inputs, folders of manifests as their files, each once by whatever names it goes."""
    real: dict[str, str] = {}
    for path in paths:
        is_folder = path != "-" and not making.makes(path) and Path(path).is_dir()
        found = files_in(Path(path)) if is_folder else ()
        # A folder that may not be read is told where it is read.
        files = [each.place.file if isinstance(each, Problem) and each.place else str(each) for each in found]
        real |= {each: each if each == "-" else os.path.realpath(each) for each in files or [path]}
    chosen: dict[str, str] = {}
    # Of a link and its file the file is what is changed.
    for each in sorted(real, key=os.path.islink):
        chosen.setdefault(real[each], each)
    return [each for each in real if chosen[real[each]] == each]


def _nothing(path: str) -> Problem:
    message, hint = "there is no object in the input", "name a file or folder that holds one"
    return Problem(path="document", code=NOTHING_CHECKED, message=message, hint=hint, place=Place(file=path))
