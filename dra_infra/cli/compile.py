"""The `dra-infra compile` command: compiles one side of a review to a file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from dra_infra.cli.printing import EXIT_NO_ANSWER, print_problems, progress, say, write_file
from dra_infra.cli.settings import load_checked
from dra_infra.documents.yaml import MAX_BYTES
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.output.wording import count_of
from dra_infra.program.confinement import describe, read_allowance
from dra_infra.program.program_json import Compiled, pack, write_compiled
from dra_infra.program.project import FLEET_SETTING, is_outside
from dra_infra.sources.files import files_in, read_sources
from dra_infra.sources.repository import Repository, find_repository, may_be_in_repository
from dra_infra.sources.sides import Asked, complete, label_of, render, start
from dra_infra.sources.subject import RENDERED, Source, find_source

_OWN: Final = b'{"format": "dra-infra/compiled/'


def run(
    path: Path,
    *,
    output: Path,
    source: str | None,
    values: Sequence[Path],
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    charts: bool,
    allow: Sequence[str],
) -> int:
    """Write the compiled head; 2 when it holds nothing but why there are no objects.

    Raises:
        ProblemsError: When nothing lies at *path*, it leads out of its repository, or the file cannot be written.
    """
    asked = Asked(
        base=None,
        stack=stack,
        config=config,
        timeout=timeout,
        charts=charts,
        values=values,
        allowance=read_allowance(allow),
    )
    found = find_source(path, source, stack=stack, config=config)
    repository = _repository(path, found)
    with progress() as tell:
        tell(f"compiling {found.shown}")
        compiled = _compile(found, asked, repository)
    write_file("output", output, write_compiled(compiled))
    if compiled.failed:
        print_problems(compiled.failed)
        return EXIT_NO_ANSWER
    made = (
        count_of(len(compiled.program.objects), "object")
        if compiled.program
        else count_of(len(compiled.files), "file")
    )
    say(f"compiled {made} of {found.shown}")
    return 0


def _compile(source: Source, asked: Asked, repository: Repository | None) -> Compiled:
    commit = (repository.git("rev-parse", "--verify", "HEAD^{commit}") or "").strip() if repository else ""
    path = label_of(source, repository)
    fleet, inside = "", repository.top if repository else source.root
    try:
        if source.kind == "program":
            project = load_checked(source.root, asked.stack, asked.config)
            fleet = project.config.get(FLEET_SETTING, "")
            running = start(source.root, inside, asked)
            side = complete(running.result(), source.root, asked, inside=inside)
            say(describe(running.in_force, asked.allowance))
            return Compiled(kind="program", commit=commit, path=path, fleet=fleet, program=side.program)
        if source.kind in RENDERED:
            side = render(source.root, asked.values, source, asked, source.root.name, inside=inside)
            return Compiled(kind=source.kind, commit=commit, path=path, program=side.program)
        files, left_out = _files(source, inside)
        is_file = source.root.is_file()
        return Compiled(
            kind="manifests", commit=commit, path=path, files=files, is_file=is_file, left_out=left_out
        )
    except ProblemsError as error:
        return Compiled(kind=source.kind, commit=commit, path=path, fleet=fleet, failed=error.problems)


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
