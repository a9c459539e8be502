"""A program as JSON, from the process that ran it, or from a file that a pull request's job left.

Whoever wrote the program decides what stands there. It is read as a stranger's input: every field has its type, every
name that the code behind it relies on is one that there is, and nothing else comes through. Markers travel beside the
texts that they are shown as: no text of a manifest can be read as one.

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
from dra_infra.kubernetes.api import SUPPORTED_MINORS, FieldPath, holds_placeholder
from dra_infra.markers import SHOWN, MarkerKind, find_markers, make_marker, marker_kind
from dra_infra.program_objects import Program, ProgramObject, ProgramRelease
from dra_infra.target import check_target

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_BYTES: Final = 256 * 2**20
"""Of a program as JSON: 100,000 objects of 2.5 KiB."""

MAX_OBJECTS: Final = 100_000

MAX_VALUES: Final = 10_000_000
"""Commas and brackets in JSON that is read: each may stand for an object of Python, which has many times its size."""

RecordT = TypeVar("RecordT")
_URN_PARTS: Final = 4


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class WrittenMarker:
    """A text of an object or release that stands for a value which is secret or not known yet.

    Args:
        path: Fields and positions from the record down: `("manifest", "data", "id")`.
        kind: Why the value is not there.
    """

    path: FieldPath
    kind: MarkerKind


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class WrittenObject(ProgramObject):
    """An object as JSON has it, with ordinary texts in the place of markers."""

    markers: tuple[WrittenMarker, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class WrittenRelease(ProgramRelease):
    """A Helm release as JSON has it, with ordinary texts in the place of markers."""

    markers: tuple[WrittenMarker, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class WrittenProgram(Program):
    """A program as JSON has it."""

    objects: tuple[WrittenObject, ...] = ()
    releases: tuple[WrittenRelease, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A run that gave no program."""

    failed: tuple[Problem, ...]


def program_to_json(program: Program) -> dict[str, Any]:
    """Return *program* as JSON data, which shares manifests and values with it.

    A marker is its text there, and the `markers` of its object or release tell it from an ordinary text: a list with the
    path of each, such as `["manifest", "data", "id"]`, and its kind, `secret` or `unknown`.
    """
    data = {each.name: getattr(program, each.name) for each in dataclasses.fields(program)}
    return {
        **data,
        "objects": [_described(each) for each in program.objects],
        "releases": [_described(each) for each in program.releases],
        "options": {urn: dataclasses.asdict(each) for urn, each in program.options.items()},
        "stand_in_classes": [each.to_manifest() for each in program.stand_in_classes],
        "not_seen": [dataclasses.asdict(each) for each in program.not_seen],
        "problems": problems_to_json(program.problems),
    }


def problems_to_json(problems: tuple[Problem, ...]) -> list[dict[str, Any]]:
    """*problems* as JSON data."""
    return [dataclasses.asdict(each) for each in problems]


def _described(each: ProgramObject | ProgramRelease) -> dict[str, Any]:
    data = {field.name: getattr(each, field.name) for field in dataclasses.fields(each)}
    # Few objects have any, and finding them takes longer.
    markers = [*find_markers(data)] if holds_placeholder([*data.values()]) else []
    if any(path and path[-1] is marker for path, marker in markers):
        raise ValueError(f"{each.urn}: a key of it is secret or not known")
    # The order of an object's fields differs from run to run.
    markers.sort(key=lambda found: [*map(str, found[0])])
    data["markers"] = [{"path": list(path), "kind": marker_kind(marker)} for path, marker in markers]
    if each.place is not None:
        data["place"] = dataclasses.asdict(each.place)
    if each.component is not None:
        data["component"] = dataclasses.asdict(each.component)
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
    found: WrittenProgram | Failed = read_record(_adapter(), data, path=path)
    if isinstance(found, Failed):
        if not found.failed or any(problem.code not in CODES for problem in found.failed):
            raise ProgramError([unreadable("it says that it failed, and not why", path)])
        raise ProgramError(found.failed)
    return read_program(found, path=path)


def read_program(written: WrittenProgram, *, path: str) -> Program:
    """Return the program that others wrote down, held to what the code behind it relies on.

    Raises:
        ProgramError: `compiled-unreadable`.
    """
    for wrong in _wrong(written):
        raise ProgramError([unreadable(wrong, path)])
    try:
        objects = tuple(map(_read_object, written.objects))
        releases = tuple(map(_read_release, written.releases))
    except _NoMarkerError as error:
        raise ProgramError([unreadable(str(error), path)]) from None
    fields = {each.name: getattr(written, each.name) for each in dataclasses.fields(Program)}
    return Program(**{**fields, "objects": objects, "releases": releases})


class _NoMarkerError(ValueError):
    """An entry of `markers` that leads to no text that may be one."""


def _read_object(written: WrittenObject) -> ProgramObject:
    return ProgramObject(**_marked_fields(written, ProgramObject))


def _read_release(written: WrittenRelease) -> ProgramRelease:
    return ProgramRelease(**_marked_fields(written, ProgramRelease))


def _marked_fields(
    written: WrittenObject | WrittenRelease, type_: type[ProgramObject | ProgramRelease]
) -> dict[str, Any]:
    """The fields of a record of *type_*, with markers where *written* says so: its own values are replaced in place."""
    fields: dict[str, Any] = {each.name: getattr(written, each.name) for each in dataclasses.fields(type_)}
    for number, each in enumerate(written.markers):
        # From the end, lists would have a second name for each of their items.
        is_backward = any(isinstance(step, int) and step < 0 for step in each.path)
        if is_backward or not each.path or each.path[0] not in _MAY_BE_MARKED:
            raise _NoMarkerError(f"markers.{number}: leads to no field that may hold one")
        holder: Any = fields
        try:
            for step in each.path[:-1]:
                holder = holder[step]
            last: Any = each.path[-1]
            text = holder[last]
        except (IndexError, KeyError, TypeError):
            raise _NoMarkerError(f"markers.{number}: leads to nothing") from None
        # Reports show the text: it says itself that the value is not there.
        if not isinstance(text, str) or not isinstance(holder, dict | list) or SHOWN[each.kind] not in text:
            raise _NoMarkerError(f"markers.{number}: leads to no text of this kind")
        holder[last] = make_marker(text, each.kind)
    return fields


_MAY_BE_MARKED: Final = frozenset(
    {"manifest", "name", "namespace", "chart", "repository", "version", "values"}
)
"""Fields of an object or a release that may be markers, or hold some."""


def read_record(adapter: TypeAdapter[RecordT], data: bytes, *, path: str) -> RecordT:
    """A record from JSON that a stranger may have written.

    Raises:
        ProgramError: `compiled-unreadable`, with the place in it; its values are not shown.
    """
    from pydantic import ValidationError

    if len(data) > MAX_BYTES:
        raise ProgramError([unreadable(f"it is larger than {MAX_BYTES // 2**20} MiB", path)])
    if sum(map(data.count, (b",", b"{", b"["))) > MAX_VALUES:
        raise ProgramError([unreadable(f"it has more than {MAX_VALUES:,} values", path)])
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
def _adapter() -> TypeAdapter[WrittenProgram | Failed]:
    from pydantic import TypeAdapter

    return TypeAdapter(WrittenProgram | Failed)


def _wrong(program: Program) -> Iterator[str]:
    if len(program.objects) > MAX_OBJECTS or len(program.releases) > MAX_OBJECTS:
        yield f"more than {MAX_OBJECTS:,} objects"
    yield from _wrong_settings(program)
    options = program.options
    urns = (*program.resources, *options, *(each.parent for each in options.values() if each.parent))
    if any(len(urn.split("::", _URN_PARTS - 1)) != _URN_PARTS for urn in urns):
        yield "resources: a URN that is none"
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


def _wrong_settings(program: Program) -> Iterator[str]:
    """Yield what is wrong with the settings of the program's stack."""
    if program.target.minor is not None and program.target.minor not in SUPPORTED_MINORS:
        yield "kubernetes: no minor that is supported"
    elif check_target(program.target):
        yield "gates: none that a cluster may have"
    try:
        read_pins(program.driver)
    except InvalidSpecError:
        yield "driver: no release that is known"


FORMAT: Final = "dra-infra/compiled/3"
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
        is_changed: Whether its tree has files that are not committed.
        path: What was compiled, from the top of its repository; the name of the folder where there is none.
        fleet: The stack's `dra-infra:fleet`; empty where there is none.
        program: Of a program or a chart.
        files: Of manifests: content in base64 by path below the folder; the path of a single file is its name.
        is_file: Whether the manifests are a single file.
        left_out: Paths of manifests that are links out of the repository.
        failed: Why there is nothing of these.
    """

    format: Literal["dra-infra/compiled/3"] = FORMAT
    kind: Literal["program", "manifests", "chart", "kustomization"]
    commit: str = ""
    is_changed: bool = False
    path: str = ""
    fleet: str = ""
    program: Program | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    is_file: bool = False
    left_out: tuple[str, ...] = ()
    failed: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenCompiled(Compiled):
    """The same as JSON has it."""

    program: WrittenProgram | None = None


def write_compiled(compiled: Compiled) -> bytes:
    """*compiled* as the bytes of a file."""
    return write_json(
        {
            "format": compiled.format,
            "kind": compiled.kind,
            "commit": compiled.commit,
            "is_changed": compiled.is_changed,
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
    written = read_record(_compiled_adapter(), data, path="--head")
    for wrong in _wrong_in_compiled(written):
        raise ProgramError([unreadable(wrong, "--head")])
    program = written.program and read_program(written.program, path="--head")
    fields = {each.name: getattr(written, each.name) for each in dataclasses.fields(Compiled)}
    return Compiled(**{**fields, "program": program})


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
def _compiled_adapter() -> TypeAdapter[WrittenCompiled]:
    from pydantic import TypeAdapter

    return TypeAdapter(WrittenCompiled)


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
