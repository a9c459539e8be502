"""Objects from files, each with the place where it and its fields are written.

A file that cannot be read, or a part of it, is a problem; the rest is read all the same. Places are looked up only
when a problem needs one, by going through the document's events once more.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final

from dra_infra.errors import Place, Problem
from dra_infra.model.positions import find_positions
from dra_infra.model.yaml import MAX_BYTES, objects_in
from dra_infra.model.yaml_events import MAX_DEPTH, MAX_NODES, RefusedYamlError, read_documents

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
"""Files of a folder that are read."""

_NEXT_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True)
class _Text:
    """A document, or a part of a file: what places are found in."""

    file: str
    text: str = field(repr=False)
    first_line: int

    @cached_property
    def positions(self) -> Mapping[str, tuple[int, int]]:
        """Field path to line and column, both from 1 on in the file."""
        return find_positions(self.text, first_line=self.first_line)


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
        return self.place() if self.path else Place(file=self.file, line=self._text.first_line + 1, column=1)

    def place(self, path: str = "") -> Place:
        """Where the field at *path* is written, or the nearest thing around it that is."""
        positions = self._text.positions
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
            yield from _read_bytes("-", stdin.read(MAX_BYTES + 1))
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
        yield _problem(str(path), "file-unreadable", error.strerror or str(error), "check the path")
        return
    yield from _read_bytes(str(path), data)


def _open_at_once(path: str, flags: int) -> int:
    # A pipe without a writer would let open() wait for ever.
    return os.open(path, flags | os.O_NONBLOCK)


def _read_bytes(file: str, data: bytes) -> Iterator[SourceObject | Problem]:
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
    if file.endswith((".jsonl", ".ndjson")):
        yield from _read_json_lines(file, text)
    elif file.endswith(".json") or (file == "-" and text.lstrip()[:1] == "{"):
        yield from _read_json(file, text)
    else:
        yield from _read_yaml(file, text)


def _read_yaml(file: str, text: str, first_line: int = 0) -> Iterator[SourceObject | Problem]:
    lines: list[str] | None = None
    budget = [MAX_NODES]
    while text:
        behind = 0
        try:
            for document in read_documents(text, budget=budget):
                behind = document.last_line
                lines = lines if lines is not None else text.splitlines(keepends=True)
                part = "".join(lines[document.first_line : document.last_line])
                source = _Text(file, part, first_line + document.first_line)
                yield from _opened(document.data, source)
        except RefusedYamlError as error:
            yield _refused(file, error, first_line)
            # libyaml does not go on behind an error: the next document gets a parser of its own.
            lines = lines if lines is not None else text.splitlines(keepends=True)
            # The error may be told at the line of the next document; the first line is the one that is behind us.
            skipped = _next_document(lines, max(behind, error.line - 1, 1))
            if budget[0] < 0:
                return
            text, first_line, lines = "".join(lines[skipped:]), first_line + skipped, None
        else:
            return


def _next_document(lines: list[str], line: int) -> int:
    for number in range(line, len(lines)):
        if _NEXT_DOCUMENT.match(lines[number]):
            return number
    return len(lines)


def _read_json(file: str, text: str) -> Iterator[SourceObject | Problem]:
    try:
        data = _from_json(text)
    except RefusedYamlError as error:
        # Several objects one after the other, as `kubectl get -o json -w` prints them, are lines or nothing.
        if "Extra data" in error.message and text.count("\n") > 0:
            yield from _read_json_lines(file, text)
        else:
            yield _refused(file, error, 0)
        return
    yield from _opened(data, _Text(file, text, 0))


def _read_json_lines(file: str, text: str) -> Iterator[SourceObject | Problem]:
    for number, line in enumerate(text.split("\n")):
        if line.strip():
            try:
                yield from _opened(_from_json(line), _Text(file, line, number))
            except RefusedYamlError as error:
                yield _refused(file, error, number)


def _from_json(text: str) -> Any:
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise RefusedYamlError(
            "yaml-syntax", f"not JSON: {error.msg}", line=error.lineno, column=error.colno
        ) from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        # A whole number of more digits than Python turns into one.
        raise RefusedYamlError("yaml-syntax", f"not JSON: {str(error)[:80]}", line=1) from error
    if _is_deeper(data, MAX_DEPTH):
        raise _too_deep()
    return data


def _too_deep() -> RefusedYamlError:
    return RefusedYamlError(
        "yaml-too-large", f"values are nested more than {MAX_DEPTH} deep", "no Kubernetes object is", line=1
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RefusedYamlError(
            "yaml-duplicate-key",
            f"key {twice[:80]!r} is written twice in one object",
            "keep one of the two",
            line=1,
        )
    return mapping


def _no_constant(name: str) -> Any:
    raise RefusedYamlError("yaml-syntax", f"not JSON: {name}", line=1)


def _is_deeper(data: Any, limit: int) -> bool:
    level = [data]
    for _ in range(limit + 1):
        level = [item for value in level for item in _inside(value)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    """The collections directly in *value*."""
    if isinstance(value, dict):
        return [item for item in value.values() if isinstance(item, (dict, list))]
    return [item for item in value if isinstance(item, (dict, list))] if isinstance(value, list) else []


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
