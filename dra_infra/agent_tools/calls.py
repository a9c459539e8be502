"""One call: copies its input to a folder of its own, runs the command there, and takes the answer.

The command reads nothing but that copy. So a name in the input, or a file that changes meanwhile, cannot make it open another file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dra_infra.agent_tools.confined_command import LONGEST, CommandResult, RunningCommand
from dra_infra.agent_tools.folder import SUFFIXES, CopiedFile, Folder
from dra_infra.agent_tools.tools import MANIFESTS, Catalog, Explain, Migrate, Placed, Review, Tool
from dra_infra.codes import CODES
from dra_infra.errors import ProgramError
from dra_infra.program import home_folder

_HEAD, _BASE, _ASIDE, _HOME, _WRITTEN = "objects", "base", "cluster", "home", "migrated"
_PROJECT: Final = ("Pulumi.yaml", "Pulumi.yml")
_MOST_WRITTEN: Final = 8 * 2**20
"""Bytes of changed files that a migration returns."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a call.

    Args:
        result: What the command answered.
        changed: Files that a migration changes, as they would be.
    """

    result: CommandResult
    changed: Sequence[CopiedFile] = ()


def answer_call(
    tool: Tool, arguments: dict[str, Any], root: Path, started: Callable[[RunningCommand], None]
) -> Answer:
    """Run the command of a call, and return its answer.

    Args:
        tool: The tool.
        arguments: What the agent gave.
        root: The folder that paths are in.
        started: Called with the command when it runs, so that it can be ended.

    Raises:
        ProgramError: For wrong arguments; `path-leads-out`, `file-unreadable`, `call-too-large`, `program-not-read`, `call-not-finished`.
    """
    call_arguments = tool.read_arguments(arguments)
    top = home_folder.make()
    try:
        # Where a search for the project or the repository around the input ends.
        (top / ".git").mkdir()
        (top / _HOME).mkdir()
        (top / _HEAD).mkdir()
        words = [*_words(tool, call_arguments, root, top)]
        seconds = getattr(call_arguments, "timeout", LONGEST)
        command = RunningCommand([*words, "--json"], folder=top / _HEAD, home=top / _HOME, seconds=seconds)
        started(command)
        result = command.wait()
        written = top / _HOME / _WRITTEN
        changed = (
            [*_read_written(written)] if isinstance(call_arguments, Migrate) and written.is_dir() else []
        )
        return Answer(result, changed)
    finally:
        home_folder.remove(top)


def _words(tool: Tool, asked: Any, root: Path, top: Path) -> Iterator[str]:
    """Yield the words of the command, and copy what they name."""
    yield tool.name
    if isinstance(asked, Catalog):
        yield from (each for each in (asked.section, asked.name) if each is not None)
        return
    has_objects = asked.manifests is not None or bool(asked.paths)
    is_of_snapshot = isinstance(asked, Explain) and asked.snapshot is not None
    if isinstance(asked, Explain) and asked.name in CODES and not (has_objects or is_of_snapshot):
        yield asked.name
        return
    if not (has_objects or is_of_snapshot or isinstance(asked, Review)):
        raise ProgramError.of(
            path="manifests",
            code="missing-argument",
            message="is not given",
            hint="give the objects as text, or name their files in paths",
        )
    yield from asked.words()
    yield from _files(asked, root, top)
    if isinstance(asked, Review):
        _copy(asked.base_manifests, asked.base_paths, Folder(root, "basePaths"), top / _BASE, tool)
        yield f"--base-path=../{_BASE}"
    if isinstance(asked, Explain):
        yield asked.name
    if has_objects or isinstance(asked, Review):
        _copy(asked.manifests, asked.paths, Folder(root, "paths"), top / _HEAD, tool)
        yield "."


def _files(asked: Any, root: Path, top: Path) -> Iterator[str]:
    """Yield the options that name one file each, and copy these files."""
    if isinstance(asked, Placed):
        for option, argument, file in (
            ("--fleet", "fleetFile", asked.fleet_file),
            ("--snapshot", "snapshot", asked.snapshot),
        ):
            if file is not None:
                yield f"{option}=../{_copy_one(file, argument, root, top)}"
    if isinstance(asked, Migrate):
        if asked.plugin_config is not None:
            yield f"--plugin-config=../{_copy_one(asked.plugin_config, 'pluginConfig', root, top)}"
        yield f"--output=../{_HOME}/{_WRITTEN}"


def _copy(text: str | None, paths: Sequence[str], folder: Folder, to: Path, tool: Tool) -> None:
    """Write the input of a call below a folder."""
    to.mkdir(exist_ok=True)
    if text is not None:
        _write(CopiedFile(MANIFESTS, text.encode("utf-8", "surrogatepass")), to)
    for path in paths:
        for file in folder.read(path):
            if file.name.rpartition("/")[2] in _PROJECT and tool.name != "validate":
                raise ProgramError.of(
                    path="paths",
                    code="program-not-read",
                    message=f"{file.name} is a program, and no tool runs one",
                    hint="run `dra-infra synth` in its folder, and give what it prints as manifests",
                )
            _write(file, to)


def _copy_one(path: str, argument: str, root: Path, top: Path) -> str:
    """Copy the one file of an argument; return its name below *top*."""
    copied = [*Folder(root, argument).read(path)]
    if len(copied) != 1:
        raise ProgramError.of(
            path=argument, code="file-unreadable", message="is a folder", hint="name one file"
        )
    suffix = Path(path).suffix
    name = f"{_ASIDE}/{argument}{suffix if suffix in SUFFIXES else ''}"
    (top / _ASIDE).mkdir(exist_ok=True)
    (top / name).write_bytes(copied[0].content)
    return name


def _write(file: CopiedFile, to: Path) -> None:
    place = to / (file.name or MANIFESTS)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(file.content)


def _read_written(written: Path) -> Iterator[CopiedFile]:
    """Yield the files of a migration, which are ours: the command wrote them."""
    room = _MOST_WRITTEN
    for file in Folder(written, "call").read("."):
        room -= len(file.content)
        if room >= 0:
            yield file
