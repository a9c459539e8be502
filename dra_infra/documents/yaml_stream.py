"""Documents of a large or partly broken YAML text: one that cannot be read does not take the others along.

libyaml does not go on behind an error. So the text is cut where documents end, many documents are read by one parser,
and only where that refuses one are they read one by one.

Positions say where the fields of a YAML or JSON document are written.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from dra_infra.documents.yaml_events import MAX_DEPTH, MAX_NODES, RefusedYamlError, read_documents

_MARKER: Final = re.compile(r"(?:---|\.\.\.)(?=[ \t\n\r\x85\u2028\u2029]|\Z)(?<![^\n\r\x85\u2028\u2029]...)")
"""Separator of documents at the beginning of a line: U+0085, U+2028 and U+2029 end lines in YAML 1.1 too."""
_DIRECTIVES: Final = re.compile(r"(?:[ \t]*+(?:#[^\n]*+)?\r?\n)*+%")
_BATCH: Final = 1 << 18
"""Characters that one parser is given at least: making one takes as long as reading a small document."""


class Part(NamedTuple):
    """One document as it is written.

    Args:
        start: Where it begins in the text.
        end: Where the next one does.
        line: The line of its beginning, from 0 on.
        data: Plain JSON data, or why it is refused, with a line that counts from 1 in the part.
    """

    start: int
    end: int
    line: int
    data: Any | RefusedYamlError


def has_markers(text: str) -> bool:
    """True when *text* holds `---` or `...` where they part documents, which no JSON text does."""
    return _MARKER.search(text) is not None


def split_documents(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each document: three dashes or dots part them wherever they begin a line."""
    start, has_marker = 0, False
    for marker in _MARKER.finditer(text):
        begin = marker.start()
        is_end = marker[0] == "..."
        # Directives such as %YAML 1.1 belong to the document behind the marker.
        if not is_end and not has_marker and _DIRECTIVES.match(text, start, begin):
            has_marker = True
            continue
        if begin > start:
            yield start, begin
        start, has_marker = (marker.end(), False) if is_end else (begin, True)
    yield start, len(text)


def read_parts(text: str, budget: list[int] | None = None) -> Iterator[Part]:
    """Every document of *text* that is not empty; reading ends behind one that is too much for the text as a whole.

    Args:
        text: YAML.
        budget: How many values may still be read, of which those of *text* are taken away; `MAX_NODES` when None.
    """
    budget = [MAX_NODES] if budget is None else budget
    line, counted = 0, 0
    for batch in _batches(text):
        for (start, end), data in _read_batch(text, batch, budget):
            line += text.count("\n", counted, start)
            counted = start
            yield Part(start, end, line, data)
            if budget[0] < 0:
                return


def _batches(text: str) -> Iterator[list[tuple[int, int]]]:
    batch: list[tuple[int, int]] = []
    for start, end in split_documents(text):
        batch.append((start, end))
        if end - batch[0][0] >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


_Given = tuple[tuple[int, int], Any | RefusedYamlError]


def _read_batch(text: str, batch: list[tuple[int, int]], budget: list[int]) -> Iterator[_Given]:
    # How many documents of the part at *position* were given.
    position = 0
    given = 0
    left = budget[0]
    try:
        for found, data in _read_together(text, batch, budget):
            position, given = found, given + 1 if found == position else 1
            left = budget[0]
            yield batch[position], data
    except RefusedYamlError:
        budget[0] = left
    else:
        return
    for part in batch[position:]:
        try:
            for number, document in enumerate(read_documents(text[slice(*part)], budget=budget)):
                if number >= given:
                    yield part, document.data
        except RefusedYamlError as error:
            yield part, error
            if budget[0] < 0:
                return
        given = 0


def _read_together(text: str, batch: list[tuple[int, int]], budget: list[int]) -> Iterator[tuple[int, Any]]:
    """The documents of *batch* by one parser, each with the position of its part.

    Raises:
        RefusedYamlError: For the first that is refused, as it is told where it is read alone.
    """
    first = batch[0][0]
    position = 0
    for document in read_documents(text[first : batch[-1][1]], budget=budget):
        while position < len(batch) - 1 and batch[position][1] <= first + document.offset:
            position += 1
        if first + document.begin < batch[position][0]:
            raise RefusedYamlError("yaml-syntax", "directives that stand in the part before")
        yield position, document.data


def find_positions(text: str, *, first_line: int = 0) -> dict[str, tuple[int, int]]:
    """Field path to (line, column), both counted from 1; a field stands where its key does.

    Args:
        text: One document, which was read before.
        first_line: Lines of the file in front of it.
    """
    positions: dict[str, tuple[int, int]] = {}
    loader = yaml.CSafeLoader(text)
    try:
        for path, mark in _walk(loader):
            positions.setdefault(path, (mark.line + 1 + first_line, mark.column + 1))
    finally:
        loader.dispose()
    return positions


def find_json_positions(
    text: str, *, first_line: int = 0, first_column: int = 0
) -> dict[str, tuple[int, int]]:
    """Field path to (line, column) of one JSON value, which need not be YAML, such as with a tab; five times as fast.

    Args:
        text: The value.
        first_line: Lines of the file in front of it.
        first_column: Characters in front of it on its first line.
    """
    positions: dict[str, tuple[int, int]] = {}
    ends = [match.start() for match in re.finditer("\n", text)]
    # As below, one entry per open collection.
    stack: list[tuple[str, int | None]] = []
    key: str | None = None
    for token in _TOKENS.finditer(text):
        sign = token[0]
        if sign == "}" or sign == "]":
            stack.pop()
            continue
        offset = token.start()
        line = bisect_left(ends, offset) if ends else 0
        before = -ends[line - 1] if line else first_column + 1
        place = line + 1 + first_line, offset + before
        if stack and stack[-1][1] is None and key is None:
            key = sign[1:-1] if "\\" not in sign else json.loads(sign)
            positions.setdefault(_joined(stack[-1][0], key), place)
            continue
        path = _path_of_value(stack, key)
        key = None
        positions.setdefault(path, place)
        if sign == "{" or sign == "[":
            stack.append((path, None if sign == "{" else 0))
    return positions


_TOKENS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]|[^\s"\[\]{}:,]+', re.DOTALL)


def _walk(loader: yaml.CSafeLoader) -> Iterator[tuple[str, Any]]:
    # One entry per open collection: its path, and the number of the next item, or None inside a mapping.
    stack: list[tuple[str, int | None]] = []
    key: str | None = None
    while True:
        event: Any = loader.get_event()
        kind = type(event)
        # What stands behind the document need not be YAML: nobody asked for it.
        if kind is yaml.DocumentEndEvent or kind is yaml.StreamEndEvent:
            return
        if kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
            stack.pop()
            continue
        if kind not in _VALUES:
            continue
        if stack and stack[-1][1] is None and key is None:
            key = str(getattr(event, "value", ""))
            yield _joined(stack[-1][0], key), event.start_mark
            continue
        path = _path_of_value(stack, key)
        key = None
        yield path, event.start_mark
        if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if len(stack) > MAX_DEPTH:
                return
            stack.append((path, None if kind is yaml.MappingStartEvent else 0))


_VALUES = (yaml.ScalarEvent, yaml.AliasEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent)


def _path_of_value(stack: list[tuple[str, int | None]], key: str | None) -> str:
    """The path of the next value in the innermost open collection, whose items are counted on."""
    if not stack:
        return ""
    above, number = stack[-1]
    if number is None:
        return _joined(above, key)
    stack[-1] = (above, number + 1)
    return f"{above}[{number}]"


def _joined(path: str, key: str | None) -> str:
    return f"{path}.{key}" if path else str(key)
