"""Changes to JSON texts that leave all else as it is written: lines, blanks and the order of keys.

Like `yaml_patch`, but for JSON whose lines somebody arranged. What comes out is read again: it is the data that was asked for, or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.documents.yaml_patch import NotPatchedError

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s"\[\]{}:,]+', re.DOTALL)
_INDENT: Final = re.compile("[ \t]*")


@dataclass(slots=True)
class _Node:
    """A value as it is written.

    Args:
        start: Its first character.
        end: Behind its last one.
        keys: Of an object: where each key begins, with its value.
        items: Of a list.
    """

    start: int
    end: int = 0
    keys: dict[str, tuple[int, _Node]] = field(default_factory=dict)
    items: list[_Node] = field(default_factory=list)


def patch_json(text: str, old: Any, new: Any) -> str:
    """The text of one JSON value, changed so that it is *new*.

    Args:
        text: The JSON.
        old: The data that it says.
        new: Plain JSON data.

    Raises:
        NotPatchedError: The text cannot be changed in place.
    """
    tokens = _TOKEN.finditer(text)
    try:
        first = next(tokens)
        node = _read(tokens, first)
        edits = sorted(_edits(text, node, old, new))
    except (StopIteration, KeyError, RecursionError, ValueError) as error:
        raise NotPatchedError("the text is no single JSON value") from error
    parts: list[str] = []
    position = 0
    for start, end, put in edits:
        if start < position:
            raise NotPatchedError("two changes meet")
        parts += (text[position:start], put)
        position = end
    patched = "".join((*parts, text[position:]))
    if json.dumps(json.loads(patched), sort_keys=True) != json.dumps(new, sort_keys=True):
        raise NotPatchedError("a key stands twice")
    return patched


def _read(tokens: Iterator[re.Match[str]], token: re.Match[str]) -> _Node:
    """Read the value that begins with *token*."""
    node = _Node(token.start(), token.end())
    if token[0] == "{":
        while (token := next(tokens))[0] != "}":
            if token[0] == ",":
                continue
            key, start = json.loads(token[0]), token.start()
            # The colon.
            next(tokens)
            node.keys[key] = start, _read(tokens, next(tokens))
        node.end = token.end()
    elif token[0] == "[":
        while (token := next(tokens))[0] != "]":
            if token[0] != ",":
                node.items.append(_read(tokens, token))
        node.end = token.end()
    return node


def _edits(text: str, node: _Node, old: Any, new: Any) -> Iterator[tuple[int, int, str]]:
    """Yield the changes after which *old*, which the text says there, is *new*."""
    if json.dumps(old) == json.dumps(new):
        return
    if isinstance(old, dict) and isinstance(new, Mapping) and any(key in new for key in old):
        yield from _in_object(text, node, old, new)
    elif isinstance(old, list) and isinstance(new, list) and 0 < len(old) <= len(new):
        for below, was, value in zip(node.items, old, new, strict=False):
            yield from _edits(text, below, was, value)
        more = "".join(f", {_write(each)}" for each in new[len(old) :])
        end = node.items[-1].end
        yield from [(end, end, more)] if more else []
    else:
        yield node.start, node.end, _write(new)


def _in_object(
    text: str, node: _Node, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[int, int, str]]:
    order = list(node.keys)
    stays = [key for key in order if key in new]
    for number, key in enumerate(order):
        start, below = node.keys[key]
        if key in new:
            yield from _edits(text, below, old[key], new[key])
        elif key in order[: order.index(stays[0])]:
            # Up to the key behind it.
            yield start, node.keys[order[number + 1]][0], ""
        else:
            yield node.keys[order[number - 1]][1].end, below.end, ""
    more = "".join(
        _separate(text, node) + f"{json.dumps(key, ensure_ascii=False)}: {_write(value)}"
        for key, value in new.items()
        if key not in old
    )
    # Behind the last key, also where that goes.
    end = node.keys[order[-1]][1].end
    yield from [(end, end, more)] if more else []


def _separate(text: str, node: _Node) -> str:
    """What stands between two keys of an object: a comma, and a line of its own where the last keys have one."""
    start, _ = list(node.keys.values())[-1]
    line = text.rfind("\n", 0, start) + 1
    indent = _INDENT.match(text, line)
    return f",\n{indent[0]}" if indent and indent.end() == start and line > 0 else ", "


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
