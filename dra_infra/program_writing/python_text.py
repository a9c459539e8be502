"""Python source from data: literals, names and calls, laid out as a formatter lays them out.

Every text of a manifest goes through `literal`, so it is a string in the program whatever it holds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.kubernetes.api import is_placeholder

WIDTH: Final = 100
"""Longest line, where a line can be broken."""

_INDENT: Final = "    "
_DEEPEST: Final = 60
"""Levels of brackets that are written as such: Python's parser takes 200 in a file, and a call around needs some."""


@dataclass(frozen=True, slots=True)
class Name:
    """An expression as it stands: a variable, or a selector."""

    text: str


@dataclass(frozen=True, slots=True)
class Joined:
    """Terms between operators, which may go on lines of their own: `a & b`."""

    operator: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A call."""

    function: str
    arguments: Sequence[Any] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)


def depth_of(value: Any) -> int:
    """Levels of lists and mappings in plain data."""
    depth = 0
    level = [value]
    while level := [
        item for each in level if isinstance(each, Mapping | list) for item in _items(each) or (None,)
    ]:
        depth += 1
    return depth


def plain(value: Any) -> Any:
    """Plain data as it can be written: what is nested too deeply for Python's parser becomes a call of `json.loads`."""
    return value if depth_of(value) <= _DEEPEST else Call("json.loads", [json.dumps(value)])


def write(code: Any, *, depth: int = 0, used: int = 0, behind: int = 0) -> str:
    """The source of an expression; its first line begins where the line before it ends.

    Args:
        code: Plain data with `Name`, `Joined` and `Call` in it.
        depth: Levels of indentation of the line that it is in.
        used: Characters in front of it in its line.
        behind: Characters that follow in its last line.
    """
    line = _on_one_line(code)
    if line is not None and used + len(line) + behind <= WIDTH:
        return line
    inner = _INDENT * (depth + 1)
    outer = _INDENT * depth

    def item(head: str, value: Any) -> str:
        return f"{inner}{head}{write(value, depth=depth + 1, used=len(inner) + len(head), behind=1)},\n"

    match code:
        case Mapping() if code:
            return (
                "{\n" + "".join(item(f"{literal(key)}: ", each) for key, each in code.items()) + outer + "}"
            )
        case list() if code:
            return "[\n" + "".join(item("", each) for each in code) + outer + "]"
        case Call(function=function, arguments=arguments, keywords=keywords):
            parts = [
                *(item("", each) for each in arguments),
                *(item(f"{key}=", each) for key, each in keywords.items()),
            ]
            return f"{function}(\n{''.join(parts)}{outer})"
        case Joined(operator=operator, terms=terms):
            lines = f"\n{inner}{operator} ".join(terms)
            return f"(\n{inner}{lines}\n{outer})"
        case str() if len(pieces := code.splitlines(keepends=True)) > 1:
            lines = "".join(f"{inner}{literal(each)}\n" for each in pieces)
            return f"(\n{lines}{outer})"
    return line if line is not None else literal(code)


def _on_one_line(code: Any) -> str | None:
    """The expression on one line; None where it would be longer than any line."""
    if isinstance(code, Mapping):
        return _between("{", "}", code, ((f"{literal(key)}: ", each) for key, each in code.items()))
    if isinstance(code, list):
        return _between("[", "]", code, (("", each) for each in code))
    match code:
        case Name(text=text):
            return text
        case Joined(operator=operator, terms=terms):
            return f" {operator} ".join(terms)
        case Call(function=function, arguments=arguments, keywords=keywords):
            items = [("", each) for each in arguments] + [(f"{key}=", each) for key, each in keywords.items()]
            return _between(f"{function}(", ")", items, iter(items))
    return literal(code)


def _between(opening: str, closing: str, held: Any, items: Iterator[tuple[str, Any]]) -> str | None:
    # What holds more than fits is not tried item by item: the work would grow with the square of the depth.
    if len(held) > WIDTH // 3:
        return None
    parts: list[str] = []
    length = len(opening) + len(closing)
    for head, each in items:
        text = _on_one_line(each)
        if text is None or (length := length + len(head) + len(text) + 2) > WIDTH + 2:
            return None
        parts.append(f"{head}{text}")
    return f"{opening}{', '.join(parts)}{closing}"


def literal(value: Any) -> str:
    """A value as a Python literal.

    Raises:
        TypeError: When it is of no type that a manifest has, or stands for a value that is secret or not known yet.
    """
    if isinstance(value, str) and not is_placeholder(value):
        return _quoted(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    raise TypeError(f"{type(value).__name__} is no type of a manifest")


def _quoted(text: str) -> str:
    """The text in the quotes that a formatter chooses: double ones, unless these ask for more marks inside."""
    plain_text = repr(text)
    if plain_text[0] == '"' or text.count('"') > text.count("'"):
        return plain_text
    if '"' not in text:
        return f'"{plain_text[1:-1]}"'
    spelled = {"'": "'", '"': r"\""}
    inside = (spelled.get(each) or repr(each)[1:-1] for each in text)
    return f'"{"".join(inside)}"'


def _items(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, Mapping) else list(value)
