"""Objects from files, each with the place where it and its fields are written.

A file that cannot be read, or a part of it, is a problem; the rest is read all the same. Places are looked up only
when a problem needs one, by going through the document's events once more.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from dra_infra.documents.json_texts import read_json
from dra_infra.documents.yaml import MAX_BYTES, objects_in
from dra_infra.documents.yaml_events import MAX_NODES, RefusedYamlError, read_documents
from dra_infra.documents.yaml_stream import (
    find_json_positions,
    find_positions,
    has_markers,
    read_parts,
    split_documents,
)
from dra_infra.errors import Place, Problem
from dra_infra.sources.chart_templates import describe_charts, find_chart

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
"""Files of a folder that are read."""

NOTHING_CHECKED: Final = "nothing-checked"
"""The code of an input without any object: there is no answer then."""

NO_VERSION: Final = "api-version-missing"
"""The code of an object that names a kind and no version, so that nobody can know its rules."""

NOT_READ: Final = "program-not-read"
"""The code of a program among manifests: nobody knows what it makes."""

REPEATED: Final = "yaml-duplicate-key"
"""The code of a key that one mapping has twice."""

TWICE: Final = "duplicate-object"
"""The code of an object of which there is a copy."""

NOT_RENDERED: Final = "source-not-rendered"
"""The code of something that a GitOps controller deploys and that was not read, so that nobody knows what it asks for."""

UNANSWERED: Final = frozenset(
    {NOTHING_CHECKED, NO_VERSION, NOT_READ, NOT_RENDERED, "file-unreadable", "cluster-forbidden"}
)
"""Codes of problems after which there is no answer about all that was asked."""

MAX_REFUSED: Final = 100
"""Parts of one file that are refused before the rest is left unread: it holds no manifests then."""

_LANGUAGES: Final[Mapping[str, str]] = {
    ".py": "a Python program",
    ".ts": "a TypeScript program",
    ".js": "a JavaScript program",
    ".go": "a Go program",
    ".cs": "a C# program",
    ".java": "a Java program",
    ".tf": "Terraform",
    ".hcl": "HCL",
    ".cue": "CUE",
    ".jsonnet": "Jsonnet",
    ".libsonnet": "Jsonnet",
    ".k": "KCL",
    ".pkl": "Pkl",
    ".tpl": "a template",
}
"""Languages that are not read, by the end of a file's name."""

_AS_PROGRAM: Final = "run it: dra-infra synth {folder} | dra-infra validate -"
_RENDERED: Final = "pipe in the manifests that its own tool prints: ... | dra-infra validate -"

_LOCKED: Final = "check who may read it, and enter its folders"
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
"""First bytes of what stands in the repository for a large file (docs/spec.md of git-lfs)."""
_LIKE_JSON: Final = re.compile(r'(?:---)?\s*\{\s*["}]')


@dataclass(frozen=True, eq=False, slots=True)
class SourceText:
    """A document, or a part of a file: what places are found in.

    Args:
        file: Name of the file, as it was given.
        text: The document as it is written, with its separator and the comments before it.
        first_line: Lines of the file before it; -1 for an object that stands in no file.
        first_column: Characters before it on its first line.
        is_json: Whether it is JSON.
        whole: The file that it is in, with its byte order mark.
    """

    file: str
    text: str = field(repr=False)
    first_line: int
    first_column: int = 0
    is_json: bool = False
    whole: str = field(default="", repr=False)


@lru_cache(maxsize=1)
def _positions(source: SourceText) -> Mapping[str, tuple[int, int]]:
    """Field path to line and column, both from 1 on in the file."""
    # Those of one document at a time: they take many times the memory of its text.
    if source.is_json:
        return find_json_positions(
            source.text, first_line=source.first_line, first_column=source.first_column
        )
    return find_positions(source.text, first_line=source.first_line)


@dataclass(frozen=True, slots=True)
class SourceObject:
    """An object with the text that it comes from.

    Args:
        manifest: Plain JSON data.
        path: Where it is inside its document, for items of a list.
        document: The document; objects of one list have the same.
        made_at: Where it is made, for an object that stands in no file.
        urn: The resource that makes it, for an object of a Pulumi program.
        cluster: The cluster that a GitOps controller sends it to; empty for its own.
    """

    manifest: Mapping[str, Any]
    path: str
    document: SourceText
    made_at: Place | None = None
    urn: str = ""
    cluster: str = ""

    @property
    def file(self) -> str:
        """The file's name as it was given."""
        return self.document.file

    @property
    def start(self) -> Place:
        """The line where its document begins, or where it is in a list; needs no look-up for the first."""
        if self.path or self.is_made:
            return self.place()
        return Place(file=self.file, line=self.document.first_line + 1, column=1)

    @classmethod
    def of(
        cls, file: str, manifest: Mapping[str, Any], made_at: Place | None = None, urn: str = ""
    ) -> SourceObject:
        """An object that *file* makes, at none of its lines, or at a place that is known."""
        return cls(manifest, "", SourceText(file, "", -1), made_at, urn)

    @property
    def is_made(self) -> bool:
        """True for an object that stands in no file."""
        return self.document.first_line < 0

    def place(self, path: str = "") -> Place:
        """Where the field at *path* is written, or the nearest thing around it that is."""
        if self.is_made:
            return self.made_at or Place(file=self.file)
        positions = _positions(self.document)
        path = ".".join(part for part in (self.path, path) if part)
        while path and path not in positions:
            path = _shortened(path)
        line, column = positions.get(path, (self.document.first_line + 1, 1))
        return Place(file=self.file, line=line, column=column)


def read_sources(
    paths: Sequence[str], stdin: BinaryIO, *, keeps_last: bool = False
) -> Iterator[SourceObject | Problem]:
    """Every object in *paths*, in order, with a problem for each thing that cannot be read.

    Args:
        paths: Files, folders (their YAML and JSON files, sorted, hidden ones passed over), or `-` for *stdin*.
        stdin: Standard input.
        keeps_last: Whether the last of two equal keys of YAML counts, with a warning, as kubectl takes it; else the
            document is refused.
    """
    for path in paths:
        if path == "-":
            try:
                data = stdin.read(MAX_BYTES + 1)
            except OSError as error:
                hint = "open standard input for reading, as a pipe does"
                yield _problem("-", "file-unreadable", error.strerror or str(error), hint)
                continue
            if not data.strip():
                # A command before the pipe that failed leaves nothing; nothing must not look like no problem.
                hint = "look at what the command before the pipe printed on standard error"
                yield _problem("-", NOTHING_CHECKED, "standard input is empty", hint)
                continue
            yield from _read_bytes("-", data, keeps_last=keeps_last)
        else:
            yield from _read_path(Path(path), keeps_last=keeps_last)


def _read_path(path: Path, *, keeps_last: bool) -> Iterator[SourceObject | Problem]:
    """Yield what a file holds, or the files of a folder; of each chart in a folder one problem for all of its templates."""
    charts: Counter[Path] = Counter()
    for file in files_in(path):
        if isinstance(file, Problem):
            yield file
        elif file != path and (chart := find_chart(file)) is not None:
            charts[chart] += 1
        else:
            yield from _read_file(file, keeps_last=keeps_last)
    yield from describe_charts(charts)


def find_program(source: SourceObject, hint: str) -> Iterator[Problem]:
    """`program-not-read` where *source* is the `Pulumi.yaml` of a program; *hint* has its folder for `{folder}`."""
    if Path(source.file).name in ("Pulumi.yaml", "Pulumi.yml") and source.manifest.get("runtime"):
        message = "this is a program, and what it makes is not in its files"
        hint = hint.format(folder=Path(source.file).parent.as_posix())
        place = source.place("runtime")
        yield Problem(path="runtime", code=NOT_READ, message=message, hint=hint, place=place)


def written_twice(name: str, first: Place | None, place: Place) -> Problem:
    """A warning on the second of two copies of an object."""
    return Problem(
        path=name,
        code=TWICE,
        message=f"is written twice, first at {first}; what is applied last counts",
        hint="name one folder or file that is applied as a whole, such as one overlay",
        severity="warning",
        place=place,
    )


def files_in(path: Path, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[Path | Problem]:
    """The file at *path*, or the YAML and JSON files of that folder, sorted, hidden ones passed over; or that there is none."""
    # Who may not look at the path is told so where it is read.
    if not os.path.isdir(path):  # noqa: PTH112
        yield path
        return
    found = False
    refused = list[OSError]()
    # Links to folders are not followed, so that a circle of them ends.
    for folder, folders, names in os.walk(path, onerror=refused.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(suffixes) and not name.startswith("."):
                found = True
                yield Path(folder, name)
    for error in refused:
        yield _problem(str(error.filename), "file-unreadable", error.strerror or str(error), _LOCKED)
    if not found and not refused:
        yield _problem(str(path), "file-unreadable", "the folder holds no YAML or JSON file", "name a file")


def _read_file(path: Path, *, keeps_last: bool = False) -> Iterator[SourceObject | Problem]:
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                yield _problem(str(path), "file-unreadable", "is no regular file", "use - for standard input")
                return
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        hint = _LOCKED if isinstance(error, PermissionError) else _meant(path)
        yield _problem(str(path), "file-unreadable", error.strerror or str(error), hint)
        return
    yield from _read_bytes(str(path), data, keeps_last=keeps_last)


def _meant(path: Path) -> str:
    # Without projects and their records, `validate` of one file starts faster.
    from dra_infra.program.project_files import nearest_path

    if _is_address(path):
        address = path.as_posix().replace(":/", "://", 1)
        return (
            f"nothing is fetched: curl -fsSL {shlex.quote(address)} | dra-infra validate -, or save it first"
        )
    otherwise = "check what the link leads to" if os.path.islink(path) else "check the path"  # noqa: PTH114
    return nearest_path(path) or otherwise


def _is_address(path: Path) -> bool:
    # A path has no two slashes in a row.
    return path.parts[:1] in (("http:",), ("https:",))


def _open_at_once(path: str, flags: int) -> int:
    # A pipe without a writer would let open() wait for ever.
    return os.open(path, flags | os.O_NONBLOCK)


def _read_bytes(file: str, data: bytes, *, keeps_last: bool = False) -> Iterator[SourceObject | Problem]:
    if language := _LANGUAGES.get(Path(file).suffix):
        hint = _AS_PROGRAM.format(folder=Path(file).parent.as_posix()) if file.endswith(".py") else _RENDERED
        yield _problem(file, NOT_READ, f"is {language}, and what it makes is not in its text", hint)
        return
    if data.startswith(_LFS_POINTER):
        hint = "run `git lfs pull`, or leave the file out of Git LFS"
        yield _problem(file, "lfs-pointer", "stands for a file that Git LFS did not fetch", hint, line=1)
        return
    if len(data) > MAX_BYTES:
        limit = MAX_BYTES // 1024 // 1024
        yield _problem(file, "yaml-too-large", f"is larger than {limit} MiB", "split the file")
        return
    try:
        whole = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield _problem(file, "not-utf-8", f"byte {error.start} is not UTF-8", "save it as UTF-8", line=line)
        return
    text = whole.removeprefix("\ufeff")
    is_json = file.endswith((".json", ".jsonl", ".ndjson")) or _LIKE_JSON.match(text)
    refused = 0
    of_yaml = partial(_read_yaml, keeps_last=keeps_last)
    for found in _read_json_documents(file, text, whole) if is_json else of_yaml(file, text, whole):
        yield found
        refused += isinstance(found, Problem)
        if refused == MAX_REFUSED:
            return


def _read_yaml(
    file: str,
    text: str,
    whole: str,
    first_line: int = 0,
    budget: list[int] | None = None,
    *,
    keeps_last: bool = False,
) -> Iterator[SourceObject | Problem]:
    for part in read_parts(text, budget):
        line = first_line + part.line
        source = SourceText(file, text[part.start : part.end], line, whole=whole)
        if isinstance(part.data, RefusedYamlError):
            is_repeated = keeps_last and part.data.code == REPEATED
            yield from _read_repeated(source) if is_repeated else (_refused(file, part.data, line),)
        else:
            yield from _opened(part.data, source)


def _read_repeated(source: SourceText) -> Iterator[SourceObject | Problem]:
    """A document of YAML in which keys stand twice, with a warning for each."""
    repeated: list[RefusedYamlError] = []
    try:
        documents = [each.data for each in read_documents(source.text, repeated=repeated)]
    except RefusedYamlError as error:
        yield _refused(source.file, error, source.first_line)
        return
    for each in repeated:
        problem = _refused(source.file, each, source.first_line)
        yield replace(
            problem, severity="warning", message=f"{problem.message}; the last one counts, as for kubectl"
        )
    for data in documents:
        yield from _opened(data, source)


def _read_json_documents(file: str, text: str, whole: str) -> Iterator[SourceObject | Problem]:
    """JSON, where the text is in one piece; else documents that are JSON, YAML that looks like it, or any other YAML."""
    if not has_markers(text):
        yield from _read_json(file, text, whole)
        return
    line = 0
    counted = 0
    budget = [MAX_NODES]
    for start, end in split_documents(text):
        line += text.count("\n", counted, start)
        counted = start
        part = text[start:end]
        # As many blanks as the marker has signs, so that columns are those of the file.
        plain = part.replace("---", "   ", 1) if part.startswith("---") else part
        left = budget[0]
        found = list(_read_json(file, plain, whole, line, budget))
        if any(isinstance(each, Problem) for each in found):
            budget[0] = left
            found = list(_read_yaml(file, part, whole, line, budget))
        yield from found
        if budget[0] < 0:
            return


def _read_json(
    file: str, text: str, whole: str, first_line: int = 0, budget: list[int] | None = None
) -> Iterator[SourceObject | Problem]:
    line = first_line
    counted = 0
    begin = 0
    for start, end, value in read_json(text, budget):
        line += text.count("\n", counted, start)
        begin = text.rfind("\n", counted, start) + 1 or begin
        counted = start
        if isinstance(value, RefusedYamlError):
            yield _refused(file, value, first_line)
        else:
            source = SourceText(
                file, text[start:end], line, first_column=start - begin, is_json=True, whole=whole
            )
            yield from _opened(value, source)


def _opened(data: Any, source: SourceText) -> Iterator[SourceObject | Problem]:
    if _is_compiled(data):
        return
    try:
        for path, manifest in objects_in(data, line=1):
            found = SourceObject(manifest, path, source)
            has_no_version = manifest.get("kind") and not manifest.get("apiVersion")
            yield _without_version(found) if has_no_version else found
    except RefusedYamlError as error:
        yield _refused(source.file, error, source.first_line)


def _is_compiled(data: Any) -> bool:
    """True for what `dra-infra compile` wrote. It has no apiVersion and no items, so no server takes anything of it."""
    own = isinstance(data, dict) and str(data.get("format")).startswith("dra-infra/compiled/")
    return own and not data.keys() & {"apiVersion", "items"}


def _without_version(found: SourceObject) -> Problem:
    kind = str(found.manifest["kind"])[:80]
    near = "v1" if kind in ("Pod", "Service", "Namespace", "ConfigMap", "Secret", "Node") else "GROUP/VERSION"
    message = f"the object of kind {kind} has no apiVersion, so no API server takes it and nothing of it was checked"
    hint = f"write apiVersion: {near}"
    return Problem(path="apiVersion", code=NO_VERSION, message=message, hint=hint, place=found.start)


def _refused(file: str, error: RefusedYamlError, first_line: int) -> Problem:
    line = error.line + first_line if error.line else 0
    return _problem(file, error.code, error.message, error.hint, line=line, column=error.column)


def _problem(file: str, code: str, message: str, hint: str, *, line: int = 0, column: int = 0) -> Problem:
    place = Place(file=file, line=line, column=column)
    return Problem(path="document", code=code, message=message, hint=hint, place=place)


def _shortened(path: str) -> str:
    """The path of what is around *path*."""
    if path.endswith("]"):
        return path[: path.rindex("[")]
    return path[: max(path.rfind("."), path.rfind("]") + 1, 0)]
