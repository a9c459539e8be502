"""Declarations of Go source files: the text of each function, type, constant and variable at the top level.

gofmt puts every declaration at the start of a line and its end into a line of its own, so no parser of Go is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final

_FUNCTION: Final = re.compile(
    r"func (?:\((?:\w+ )?\*?(?P<type>\w+)(?:\[[^\]]*\])?\) )?(?P<name>\w+)(?:\[[^\]]*\])?\("
)
_ALONE: Final = re.compile(r"(?:type|var|const) (?P<name>\w+)")
_GROUP: Final = re.compile(r"(?:type|var|const) \($")
_MEMBER: Final = re.compile(r"\t(?P<name>\w+)\b")
_ENDS: Final = ("}", ")")


def find_declarations(source: str) -> Mapping[str, str]:
    """Return the text of each declaration by its name; a method is called `Type.Method`.

    A name in a group (`const (...)`) has the text of its own entry.
    """
    found: dict[str, str] = {}
    lines = source.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if _GROUP.match(line):
            group = list(takewhile(lambda each: each != ")", lines[number:]))
            found.update(_members(group))
            number += len(group)
        elif match := _FUNCTION.match(line) or _ALONE.match(line):
            body = _body(lines, number - 1)
            number += len(body) - 1
            type_name = match.groupdict().get("type")
            found[f"{type_name}.{match['name']}" if type_name else match["name"]] = "\n".join(body)
    return found


def without_comments(text: str) -> str:
    """Return a declaration without its comment lines and without the columns that gofmt aligns."""
    kept = (line for line in text.splitlines() if not line.lstrip().startswith("//"))
    return "\n".join(" ".join(line.split()) for line in kept if line.strip())


def _body(lines: list[str], start: int) -> list[str]:
    """The lines of the declaration that begins at *start*; a signature of several lines ends with `) {`."""
    body = [lines[start]]
    while body[-1].endswith(("{", "(")) or (len(body) == 1 and body[0].count("`") % 2):
        number = start + len(body)
        more = list(takewhile(lambda each: not each.startswith(_ENDS), lines[number:]))
        end = lines[number + len(more) : number + len(more) + 1]
        body += [*more, *end]
        if not end:
            break
    return body


def _members(group: list[str]) -> Iterator[tuple[str, str]]:
    name, body = "", list[str]()
    for line in group:
        match = _MEMBER.match(line)
        if match:
            if name:
                yield name, "\n".join(body)
            name, body = match["name"], [line]
        elif name and line.strip() and not line.startswith("\t//"):
            body.append(line)
    if name:
        yield name, "\n".join(body)
