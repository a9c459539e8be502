"""Objects from files, each with the place where it and its fields are written.

A file that cannot be read, or a part of it, is a problem; the rest is read all the same. Places are looked up only
when a problem needs one, by going through the document's events once more.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final

from dra_infra.errors import Place, Problem
from dra_infra.model.json_texts import read_json
from dra_infra.model.positions import find_json_positions, find_positions
from dra_infra.model.yaml import MAX_BYTES, objects_in
from dra_infra.model.yaml_events import MAX_NODES, RefusedYamlError, read_documents

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
"""Files of a folder that are read."""

NOTHING_CHECKED: Final = "nothing-checked"
"""The code of an input without any object: there is no answer then."""

MAX_REFUSED: Final = 100
"""Parts of one file that are refused before the rest is left unread: it holds no manifests then."""

_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
"""First bytes of what stands in the repository for a large file (docs/spec.md of git-lfs)."""
_MARKER: Final = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_DIRECTIVES: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*%")
_LIKE_JSON: Final = re.compile(r'\s*\{\s*["}]')


@dataclass(frozen=True, eq=False, slots=True)
class _Text:
    """A document, or a part of a file: what places are found in."""

    file: str
    text: str = field(repr=False)
    first_line: int
    is_json: bool = False


@lru_cache(maxsize=1)
def _positions(source: _Text) -> Mapping[str, tuple[int, int]]:
    """Field path to line and column, both from 1 on in the file."""
    # Those of one document at a time: they take many times the memory of its text.
    find = find_json_positions if source.is_json else find_positions
    return find(source.text, first_line=source.first_line)


@dataclass(frozen=True, slots=True)
class SourceObject:
    """An object with the text that it comes from.

    Args:
        manifest: Plain JSON data.
        path: Where it is inside its document, for items of a list.
    """

    manifest: Mapping[str, Any]
    path: str
    _text: _Text

    @property
    def file(self) -> str:
        """The file's name as it was given."""
        return self._text.file

    @property
    def start(self) -> Place:
        """The line where its document begins, or where it is in a list; needs no look-up for the first."""
        if self.path or self._text.first_line < 0:
            return self.place()
        return Place(file=self.file, line=self._text.first_line + 1, column=1)

    @classmethod
    def of(cls, file: str, manifest: Mapping[str, Any]) -> SourceObject:
        """An object that *file* makes, at none of its lines."""
        return cls(manifest, "", _Text(file, "", -1))

    def place(self, path: str = "") -> Place:
        """Where the field at *path* is written, or the nearest thing around it that is."""
        if self._text.first_line < 0:
            return Place(file=self.file)
        positions = _positions(self._text)
        path = ".".join(part for part in (self.path, path) if part)
        while path and path not in positions:
            path = _shortened(path)
        line, column = positions.get(path, (self._text.first_line + 1, 1))
        return Place(file=self.file, line=line, column=column)


def read_sources(paths: Sequence[str], stdin: BinaryIO) -> Iterator[SourceObject | Problem]:
    """Every object in *paths*, in order, with a problem for each thing that cannot be read.

    Args:
        paths: Files, folders (their YAML and JSON files, sorted, hidden ones passed over), or `-` for *stdin*.
        stdin: Standard input.
    """
    for path in paths:
        if path == "-":
            data = stdin.read(MAX_BYTES + 1)
            if not data.strip():
                # A command before the pipe that failed leaves nothing; nothing must not look like no problem.
                hint = "look at what the command before the pipe printed on standard error"
                yield _problem("-", NOTHING_CHECKED, "standard input is empty", hint)
                continue
            yield from _read_bytes("-", data)
        else:
            for file in _files(Path(path)):
                yield from _read_file(file) if isinstance(file, Path) else (file,)


def _files(path: Path) -> Iterator[Path | Problem]:
    if not path.is_dir():
        yield path
        return
    found = False
    # Links to folders are not followed, so that a circle of them ends.
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                found = True
                yield Path(folder, name)
    if not found:
        yield _problem(str(path), "file-unreadable", "the folder holds no YAML or JSON file", "name a file")


def _read_file(path: Path) -> Iterator[SourceObject | Problem]:
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                yield _problem(str(path), "file-unreadable", "is no regular file", "use - for standard input")
                return
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        yield _problem(str(path), "file-unreadable", error.strerror or str(error), _meant(path))
        return
    yield from _read_bytes(str(path), data)


def _meant(path: Path) -> str:
    from dra_infra.engine.nearest_paths import nearest_path

    return (not path.exists() and nearest_path(path)) or "check the path"


def _open_at_once(path: str, flags: int) -> int:
    # A pipe without a writer would let open() wait for ever.
    return os.open(path, flags | os.O_NONBLOCK)


def _read_bytes(file: str, data: bytes) -> Iterator[SourceObject | Problem]:
    if data.startswith(_LFS_POINTER):
        hint = "run `git lfs pull`, or leave the file out of Git LFS"
        yield _problem(file, "lfs-pointer", "stands for a file that Git LFS did not fetch", hint, line=1)
        return
    if len(data) > MAX_BYTES:
        limit = MAX_BYTES // 1024 // 1024
        yield _problem(file, "yaml-too-large", f"is larger than {limit} MiB", "split the file")
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield _problem(file, "not-utf-8", f"byte {error.start} is not UTF-8", "save it as UTF-8", line=line)
        return
    is_json = file.endswith((".json", ".jsonl", ".ndjson")) or _LIKE_JSON.match(text)
    refused = 0
    for found in _read_json(file, text) if is_json else _read_yaml(file, text):
        yield found
        refused += isinstance(found, Problem)
        if refused == MAX_REFUSED:
            return


def _read_yaml(file: str, text: str) -> Iterator[SourceObject | Problem]:
    # libyaml does not go on behind an error, so every document gets a parser of its own.
    budget = [MAX_NODES]
    line, counted = 0, 0
    for start, end in _split(text):
        line += text.count("\n", counted, start)
        counted = start
        source = _Text(file, text[start:end], line)
        budget[0] -= 1
        if source.text.strip() in ("", "---") and budget[0] > 0:
            continue
        try:
            for document in read_documents(source.text, budget=budget):
                yield from _opened(document.data, source)
        except RefusedYamlError as error:
            yield _refused(file, error, line)
            if budget[0] < 0:
                return


def _split(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each document: three dashes or dots end one wherever they begin a line."""
    start = 0
    for marker in _MARKER.finditer(text):
        begin = marker.start()
        # Directives such as %YAML 1.1 belong to the document behind the marker.
        if begin > start and not _DIRECTIVES.match(text, start, begin):
            yield start, begin
            start = begin
        if marker[0] == "...":
            start = marker.end()
    yield start, len(text)


def _read_json(file: str, text: str) -> Iterator[SourceObject | Problem]:
    line, counted = 0, 0
    for start, end, value in read_json(text):
        line += text.count("\n", counted, start)
        counted = start
        if isinstance(value, RefusedYamlError):
            yield _refused(file, value, 0)
        else:
            # From the beginning of its line, so that columns are those of the file.
            begin = text.rfind("\n", 0, start) + 1
            yield from _opened(
                value, _Text(file, " " * (start - begin) + text[start:end], line, is_json=True)
            )


def _opened(data: Any, source: _Text) -> Iterator[SourceObject | Problem]:
    try:
        for path, manifest in objects_in(data, line=1):
            yield SourceObject(manifest, path, source)
    except RefusedYamlError as error:
        yield _refused(source.file, error, source.first_line)


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
