"""Where the fields of a YAML or JSON document are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from dra_infra.model.yaml_events import MAX_DEPTH


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
    except yaml.YAMLError:
        # JSON that is no YAML, such as a text with a tab in front of a key: what was found until there counts.
        pass
    finally:
        loader.dispose()
    return positions


def _walk(loader: yaml.CSafeLoader) -> Iterator[tuple[str, Any]]:
    # One entry per open collection: its path, and the number of the next item, or None inside a mapping.
    stack: list[tuple[str, int | None]] = []
    key: str | None = None
    while True:
        event: Any = loader.get_event()
        kind = type(event)
        if kind is yaml.StreamEndEvent:
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
        path = ""
        if stack:
            above, number = stack[-1]
            path = _joined(above, key) if number is None else f"{above}[{number}]"
            if number is not None:
                stack[-1] = (above, number + 1)
        key = None
        yield path, event.start_mark
        if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if len(stack) > MAX_DEPTH:
                return
            stack.append((path, None if kind is yaml.MappingStartEvent else 0))


_VALUES = (yaml.ScalarEvent, yaml.AliasEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent)


def _joined(path: str, key: str | None) -> str:
    return f"{path}.{key}" if path else str(key)
