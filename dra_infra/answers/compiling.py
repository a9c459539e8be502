"""The answer of `dra-infra compile`: one side of a review as data, for a job that runs nothing of it."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dra_infra.answers.settings import load_checked
from dra_infra.documents.yaml import MAX_BYTES
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.output.wording import count_of
from dra_infra.program.confinement import describe, read_allowance
from dra_infra.program.program_json import Compiled, pack
from dra_infra.program.project import FLEET_SETTING
from dra_infra.program.project_files import is_outside
from dra_infra.program.python_start import check_start
from dra_infra.sources.files import files_in, read_sources
from dra_infra.sources.repository import (
    Repository,
    find_repository,
    is_tree_changed,
    may_be_in_repository,
)
from dra_infra.sources.sides import SideOptions, complete, label_of, render, start
from dra_infra.sources.subject import RENDERED, Source, find_source

COMPILED: Final = 0
NO_OBJECTS: Final = 2
"""Exit codes: the file has the side, or only why it has no objects."""

_OWN: Final = b'{"format": "dra-infra/compiled/'


@dataclass(frozen=True, kw_only=True, slots=True)
class CompiledSide:
    """One side of a review, compiled.

    Args:
        source: What was compiled.
        compiled: Its objects or files, or why there are none.
        confinement: What the program was kept from, in words; empty where none ran to its end.
    """

    source: Source
    compiled: Compiled
    confinement: str = ""

    @property
    def summary(self) -> str:
        """One line: how much was compiled, and of what."""
        program = self.compiled.program
        made = (
            count_of(len(program.objects), "object")
            if program
            else count_of(len(self.compiled.files), "file")
        )
        return f"compiled {made} of {self.source.shown}"

    @property
    def exit_code(self) -> int:
        """The exit code: `COMPILED` or `NO_OBJECTS`."""
        return NO_OBJECTS if self.compiled.failed else COMPILED


def compile_side(
    path: Path,
    *,
    source: str | None = None,
    values: Sequence[Path] = (),
    stack: str | None = None,
    config: Mapping[str, str],
    timeout: float,
    charts: bool = False,
    allow: Sequence[str] = (),
    output: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
    warn: Callable[[Sequence[Problem]], None] = lambda _: None,
) -> CompiledSide:
    """Compile one side of a review. A program runs confined, as far as the kernel can hold that.

    Args:
        path: A Pulumi project, a folder or file of manifests, or the folder of a chart or kustomization.
        source: `program`, `manifests`, `chart` or `kustomization`; None reads it off the path.
        values: Files with values of a chart; the last wins.
        stack: Stack whose configuration is read.
        config: Settings over those of the stack file.
        timeout: Seconds that a program may run.
        charts: Whether charts that a program installs are rendered by helm.
        allow: What a program may use besides its repository.
        output: The file that the caller writes the side to; it is no change of the tree.
        tell: Called with what is being done, for a progress line.
        warn: Called with warnings about the settings before the program runs.

    Raises:
        ProblemsError: When nothing lies at *path*, or it leads out of its repository; with code `started-from-repository` where
            files of the repository could run in this process.
    """
    side_options = SideOptions(
        base=None,
        stack=stack,
        config=config,
        timeout=timeout,
        charts=charts,
        values=values,
        allowance=read_allowance(allow),
    )
    subject = find_source(path, source, stack=stack, config=config)
    repository = _repository(path, subject)
    if not side_options.allowance.everything:
        check_start(repository.top if repository else subject.root)
    tell(f"compiling {subject.shown}")
    return _compile(subject, side_options, repository, output, warn)


def _compile(
    source: Source,
    side_options: SideOptions,
    repository: Repository | None,
    output: Path | None,
    warn: Callable[[Sequence[Problem]], None],
) -> CompiledSide:
    commit = (repository.git("rev-parse", "--verify", "HEAD^{commit}") or "").strip() if repository else ""
    # Before a program runs: what it writes is not what was compiled.
    is_changed = bool(commit and repository and is_tree_changed(repository, without=output))
    compiled = Compiled(
        kind=source.kind, commit=commit, is_changed=is_changed, path=label_of(source, repository)
    )
    inside = repository.top if repository else source.root
    try:
        if source.kind == "program":
            project, warnings = load_checked(source.root, side_options.stack, side_options.config)
            warn(warnings)
            compiled = replace(compiled, fleet=project.config.get(FLEET_SETTING, ""))
            running = start(source.root, inside, side_options)
            side = complete(running.result(), source.root, side_options, inside=inside)
            confinement = describe(
                running.in_force, side_options.allowance, ["helm"] if side_options.charts else []
            )
            compiled = replace(compiled, program=side.program)
            return CompiledSide(source=source, compiled=compiled, confinement=confinement)
        if source.kind in RENDERED:
            side = render(
                source.root, side_options.values, source, side_options, source.root.name, inside=inside
            )
            return CompiledSide(source=source, compiled=replace(compiled, program=side.program))
        files, left_out = _files(source, inside)
        compiled = replace(compiled, files=files, is_file=source.root.is_file(), left_out=left_out)
        return CompiledSide(source=source, compiled=compiled)
    except ProblemsError as error:
        return CompiledSide(source=source, compiled=replace(compiled, failed=error.problems))


def _files(source: Source, inside: Path) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The manifests as they lie there, and the paths of those that are links out of the repository.

    Raises:
        ProgramError: `file-unreadable`, for what could not be named or read in the other job: a file that is missing there looks
            as if it was never there.
    """
    found: dict[str, str] = {}
    left_out: list[str] = []
    for file in files_in(source.root):
        if isinstance(file, Problem):
            if file.place and file.place.file != str(source.root):
                raise ProgramError([file])
            continue
        name = source.root.name if source.root.is_file() else file.relative_to(source.root).as_posix()
        if any("\udc80" <= each <= "\udcff" for each in name):
            raise _unreadable(name, "its name is not UTF-8", "rename it")
        if is_outside(file, inside):
            left_out.append(name)
            continue
        if not file.is_file():
            raise _unreadable(name, "is no regular file, or a link that leads nowhere", "remove it")
        try:
            with file.open("rb") as stream:
                # One byte more than is read, so that the reader says that it is too large.
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise _unreadable(name, error.strerror or str(error), "check its rights") from None
        # What an earlier run left in the folder is no manifest.
        if not data.startswith(_OWN) or any(read_sources([str(file)], io.BytesIO())):
            found[name] = pack(data)
    return found, tuple(left_out)


def _unreadable(name: str, why: str, hint: str) -> ProgramError:
    # A part of a name that is not UTF-8 is shown by its bytes.
    path = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return ProgramError.of(path=path, code="file-unreadable", message=why, hint=hint)


def _repository(path: Path, source: Source) -> Repository | None:
    """The repository of what is compiled; None where there is none.

    Raises:
        ProgramError: `no-repository` where there is one and *path* leads out of it, or git does not read it: nothing would hold
            links back then.
    """
    if may_be_in_repository(path):
        find_repository(path)
        return find_repository(source.root)
    return None
