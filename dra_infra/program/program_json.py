"""A program as JSON, from the process that ran it, or from a file that a pull request's job left.

Whoever wrote the program decides what stands there. It is read as a stranger's input: every field has its type, every
name that the code behind it relies on is one that there is, and nothing else comes through.

The head of a pull request is data too: what `dra-infra compile` writes, and `dra-infra review --head` reads. The job
that runs the program of a pull request has no token, and leaves this file. The job with the token reads it and runs
nothing. A file of manifests holds their bytes, so that what is judged is read where it is judged.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from dra_infra.catalog.drivers import read_pins
from dra_infra.codes import CODES
from dra_infra.errors import InvalidSpecError, Problem, ProgramError
from dra_infra.kubernetes.api.gates import SUPPORTED_MINORS
from dra_infra.program_objects import Program, ProgramObject, ProgramRelease
from dra_infra.target import check_target

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_BYTES: Final = 256 * 2**20
"""Of a program as JSON: 100,000 objects of 2.5 KiB."""

MAX_OBJECTS: Final = 100_000
RecordT = TypeVar("RecordT")
_URN_PARTS: Final = 4


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A run that gave no program."""

    failed: tuple[Problem, ...]


def program_to_json(program: Program) -> dict[str, Any]:
    """*program* as JSON data, which shares manifests and values with it."""
    data = {each.name: getattr(program, each.name) for each in dataclasses.fields(program)}
    return {
        **data,
        "objects": [_described(each) for each in program.objects],
        "releases": [_described(each) for each in program.releases],
        "stand_in_classes": [each.to_manifest() for each in program.stand_in_classes],
        "not_seen": [dataclasses.asdict(each) for each in program.not_seen],
        "problems": problems_to_json(program.problems),
    }


def problems_to_json(problems: tuple[Problem, ...]) -> list[dict[str, Any]]:
    """*problems* as JSON data."""
    return [dataclasses.asdict(each) for each in problems]


def _described(each: ProgramObject | ProgramRelease) -> dict[str, Any]:
    data = {field.name: getattr(each, field.name) for field in dataclasses.fields(each)}
    if each.place is not None:
        data["place"] = dataclasses.asdict(each.place)
    if each.target is not None:
        target = dataclasses.asdict(each.target)
        data["target"] = {**target, "serves": sorted(target["serves"])}
    return data


def write_json(data: Mapping[str, Any]) -> bytes:
    """*data* as bytes that `program_from_json` reads; half of a surrogate pair, which no server takes, is a question mark."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def program_from_json(data: bytes, *, path: str = "--head") -> Program:
    """The program in *data*.

    Raises:
        ProgramError: With the problems of a run that failed; `compiled-unreadable` when *data* is no program.
    """
    found: Program | Failed = read_record(_adapter(), data, path=path)
    if isinstance(found, Failed):
        if not found.failed or any(problem.code not in CODES for problem in found.failed):
            raise ProgramError([unreadable("it says that it failed, and not why", path)])
        raise ProgramError(found.failed)
    check_program(found, path=path)
    return found


def check_program(program: Program, *, path: str) -> None:
    """Hold a program that others wrote down to what the code behind it relies on.

    Raises:
        ProgramError: `compiled-unreadable`.
    """
    for wrong in _wrong(program):
        raise ProgramError([unreadable(wrong, path)])


def read_record(adapter: TypeAdapter[RecordT], data: bytes, *, path: str) -> RecordT:
    """A record from JSON that a stranger may have written.

    Raises:
        ProgramError: `compiled-unreadable`, with the place in it; its values are not shown.
    """
    from pydantic import ValidationError

    if len(data) > MAX_BYTES:
        raise ProgramError([unreadable(f"it is larger than {MAX_BYTES // 2**20} MiB", path)])
    try:
        return adapter.validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part)[:40] for part in first["loc"][:8])
        said = first["msg"][:200]
        raise ProgramError([unreadable(f"{place}: {said}" if place else said, path)]) from None


def unreadable(why: str, path: str) -> Problem:
    """The problem of something compiled that cannot be read."""
    return Problem(
        path=path,
        code="compiled-unreadable",
        message=f"this is not what `dra-infra compile` of this version writes: {why}",
        hint="compile it anew, with the same version of dra-infra that reviews it",
    )


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Program | Failed]:
    from pydantic import TypeAdapter

    return TypeAdapter(Program | Failed)


def _wrong(program: Program) -> Iterator[str]:
    if len(program.objects) > MAX_OBJECTS or len(program.releases) > MAX_OBJECTS:
        yield f"more than {MAX_OBJECTS:,} objects"
    if program.kubernetes is not None and program.kubernetes not in SUPPORTED_MINORS:
        yield "kubernetes: no minor that is supported"
    try:
        read_pins(program.driver)
    except InvalidSpecError:
        yield "driver: no release that is known"
    resources: tuple[ProgramObject | ProgramRelease, ...] = (*program.objects, *program.releases)
    for number, each in enumerate(resources):
        if len(each.urn.split("::", _URN_PARTS - 1)) != _URN_PARTS:
            yield f"objects.{number}.urn: is none"
        if each.target is not None and check_target(each.target):
            yield f"objects.{number}.target: no cluster that there may be"
        if each.place is not None and (each.place.line < 0 or each.place.column < 0):
            yield f"objects.{number}.place: is none"
    for problem in program.problems:
        if problem.code not in CODES:
            yield "problems: a code that there is not"


FORMAT: Final = "dra-infra/compiled/1"
MAX_FILES: Final = 100_000
MAX_NAME: Final = 1024
"""Characters of the path of a file."""

_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """One side of a review, compiled elsewhere.

    Args:
        format: `FORMAT`.
        kind: How it became objects.
        commit: Full hash of what was compiled; empty where there is no repository.
        path: What was compiled, from the top of its repository; the name of the folder where there is none.
        fleet: The stack's `dra-infra:fleet`; empty where there is none.
        program: Of a program or a chart.
        files: Of manifests: content in base64 by path below the folder; the path of a single file is its name.
        is_file: Whether the manifests are a single file.
        left_out: Paths of manifests that are links out of the repository.
        failed: Why there is nothing of these.
    """

    format: Literal["dra-infra/compiled/1"] = FORMAT
    kind: Literal["program", "manifests", "chart", "kustomization"]
    commit: str = ""
    path: str = ""
    fleet: str = ""
    program: Program | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    is_file: bool = False
    left_out: tuple[str, ...] = ()
    failed: tuple[Problem, ...] = ()


def write_compiled(compiled: Compiled) -> bytes:
    """*compiled* as the bytes of a file."""
    return write_json(
        {
            "format": compiled.format,
            "kind": compiled.kind,
            "commit": compiled.commit,
            "path": compiled.path,
            "fleet": compiled.fleet,
            "program": program_to_json(compiled.program) if compiled.program else None,
            "files": dict(compiled.files),
            "is_file": compiled.is_file,
            "left_out": list(compiled.left_out),
            "failed": problems_to_json(compiled.failed),
        }
    )


def read_compiled(file: Path) -> Compiled:
    """The head in *file*, whoever wrote it.

    Raises:
        ProgramError: `file-unreadable`; `compiled-unreadable` when it is not what `write_compiled` writes.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ProgramError.of(
            path="--head",
            code="file-unreadable",
            message=f"{file} cannot be read: {error.strerror}",
            hint="name the file that `dra-infra compile` wrote",
        ) from None
    compiled = read_record(_compiled_adapter(), data, path="--head")
    for wrong in _wrong_in_compiled(compiled):
        raise ProgramError([unreadable(wrong, "--head")])
    if compiled.program is not None:
        check_program(compiled.program, path="--head")
    return compiled


def load_head(file: Path, commit: str | None = None) -> Compiled:
    """The head in *file*, of a commit that others vouch for.

    Raises:
        ProgramError: What `read_compiled` raises; `compiled-of-another-commit`.
    """
    compiled = read_compiled(file)
    if commit is not None and compiled.commit != commit:
        raise ProgramError.of(
            path="--head",
            code="compiled-of-another-commit",
            message=f"it says {compiled.commit[:12] or 'no commit'}, and {commit[:12] or 'no commit'} is reviewed",
            hint="the pull request was pushed to since, or its target branch has moved: push again, or update the branch",
        )
    return compiled


def unpack(compiled: Compiled, folder: Path) -> Path:
    """Write the files of manifests into an empty folder; the folder, or the single file.

    Raises:
        ProgramError: `compiled-unreadable`, for paths that exclude each other, and content that is not base64.
    """
    root = folder
    for name, content in sorted(compiled.files.items()):
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(base64.b64decode(content, validate=True))
        except (OSError, ValueError, binascii.Error):
            raise ProgramError([unreadable("files: one that cannot be written", "--head")]) from None
        if compiled.is_file:
            root = target
    return root


def pack(content: bytes) -> str:
    """The content of a file as `Compiled.files` has it."""
    return base64.b64encode(content).decode()


@lru_cache(maxsize=1)
def _compiled_adapter() -> TypeAdapter[Compiled]:
    from pydantic import TypeAdapter

    return TypeAdapter(Compiled)


def _wrong_in_compiled(compiled: Compiled) -> Iterator[str]:
    if not _COMMIT.fullmatch(compiled.commit):
        yield "commit: is none"
    if (compiled.program is None) == (compiled.kind != "manifests") and not compiled.failed:
        yield "program: is there for programs and charts, and for nothing else"
    if any(problem.code not in CODES for problem in compiled.failed):
        yield "failed: a code that there is not"
    if compiled.files and compiled.kind != "manifests":
        yield "files: are there for manifests alone"
    if max(len(compiled.files), len(compiled.left_out)) > MAX_FILES or (
        compiled.is_file and len(compiled.files) > 1
    ):
        yield "files: are too many"
    if not all(map(_is_relative, compiled.files)):
        yield "files: a path that is none below a folder"


def _is_relative(name: str) -> bool:
    """True where *name* names a file below a folder, in one way only."""
    path = PurePosixPath(name)
    return (
        0 < len(name) <= MAX_NAME
        and "\0" not in name
        and not path.is_absolute()
        and ".." not in path.parts
        and str(path) == name != "."
    )


def of_another_path(head: Compiled, label: str) -> Problem:
    """Return the problem `compiled-of-another-path` of a head."""
    return Problem(
        path="--head",
        code="compiled-of-another-path",
        message=f"it was compiled of {head.path[:200]!r}, and {label!r} is reviewed",
        hint="name the same path in the job that compiles and in the one that reviews",
    )


def of_another_stack(compiled: str, stack: str) -> Problem:
    """Return the problem `compiled-of-another-stack` of a head."""
    return Problem(
        path="--head",
        code="compiled-of-another-stack",
        message=f"it was compiled of the stack {compiled[:200]!r}, and {stack!r} is reviewed",
        hint="name the same stack in the job that compiles and in the one that reviews: --stack NAME",
    )
