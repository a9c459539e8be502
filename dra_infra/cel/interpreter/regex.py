"""Regular expressions in RE2's dialect: `matches`, `find` and `findAll`.

The engine has RE2, and its regex.extract() gives the first group of the leftmost match. A group around the pattern
whose own groups capture nothing makes that the match; a group around what is skipped tells where it starts.

Upstream: k8s.io/apiserver/pkg/cel/library/regex.go, and FindAll of Go's regexp.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from dra_infra.cel.constants import refuse_pattern
from dra_infra.cel.interpreter.signatures import Overloads
from dra_infra.cel.interpreter.values import NO_SUCH_OVERLOAD, Err, UndecidedError, Value

MAX_TEXT: Final = 2000
"""Characters of text that a pattern is looked for in; skipping takes memory that grows with them."""
_MAX_REPEAT: Final = 1000
_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\(\?P?<\w+>|\(\?|.", re.DOTALL
)
_CONFIGURATION: Final = (
    "name: regex\nextensions:\n  - {name: optional, version: 2}\n  - {name: regex, version: 0}\n"
)


@lru_cache(maxsize=1)
def _extractor() -> Any:
    from cel_expr_python import cel

    environment = cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_CONFIGURATION),
        variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING},
    )
    return environment.compile("regex.extract(text, pattern).optMap(found, [found]).orValue([])")


def _extract(text: str, pattern: str) -> str | None:
    """The first group of the leftmost match, None without one."""
    result = _extractor().eval(data={"text": text, "pattern": pattern})
    if result.type().name() == "ERROR":
        raise UndecidedError(f"a regular expression: {result.value()}")
    found = [each.value() if hasattr(each, "value") else each for each in result.value()]
    return str(found[0]) if found else None


@lru_cache(maxsize=256)
def without_groups(pattern: str) -> str:
    """The pattern with groups that capture nothing."""
    return "".join(map(_without_group, _TOKEN.findall(pattern)))


def _without_group(part: str) -> str:
    return "(?:" if part == "(" or part.startswith(("(?P<", "(?<")) else part


def _skip(count: int) -> str:
    repeats = [_MAX_REPEAT] * (count // _MAX_REPEAT) + [count % _MAX_REPEAT]
    return "".join(f"(?s:.{{{repeat}}})" for repeat in repeats)


def _find_from(text: str, pattern: str, start: int) -> tuple[int, int] | None:
    """Start and end of the leftmost match that starts at *start* or later."""
    before = _extract(text, rf"\A({_skip(start)}(?s:.*?))(?:{pattern})")
    if before is None:
        return None
    match = _extract(text, rf"\A{_skip(len(before))}({pattern})") or ""
    return len(before), len(before) + len(match)


def _refusal(text: str, pattern: str) -> str:
    if "\0" in text or "\0" in pattern:
        raise UndecidedError("a text with NUL")
    if len(text) > MAX_TEXT:
        raise UndecidedError(f"a regular expression over more than {MAX_TEXT} characters")
    return refuse_pattern(pattern)


def matches(text: Value, pattern: Value) -> Value:
    """Whether the pattern occurs in the text."""
    if type(text) is not str or type(pattern) is not str:
        return Err(NO_SUCH_OVERLOAD)
    refusal = _refusal(text, pattern)
    return Err(refusal) if refusal else _extract(text, f"({without_groups(pattern)})") is not None


def find(text: str, pattern: str) -> Value:
    """The leftmost match, empty without one."""
    refusal = _refusal(text, pattern)
    if refusal:
        return Err(f"Illegal regex: {refusal}")
    return _extract(text, f"({without_groups(pattern)})") or ""


def find_all(text: str, pattern: str, limit: int = -1) -> Value:
    """The matches from left to right, all of them when the limit is negative."""
    refusal = _refusal(text, pattern)
    if refusal:
        return Err(f"Illegal regex: {refusal}")
    plain = without_groups(pattern)
    found: list[Value] = []
    place, previous_end = 0, -1
    most = len(text) + 1 if limit < 0 else limit
    while len(found) < most and place <= len(text):
        match = _find_from(text, plain, place)
        if match is None:
            break
        start, end = match
        # An empty match right behind the one before does not count.
        accepted = end != place or start != previous_end
        place = end if end != place else place + 1
        previous_end = end
        if accepted:
            found.append(text[start:end])
    return found


REGEX: Final[dict[str, Overloads]] = {
    "find": ((("string", "string"), find),),
    "findAll": ((("string", "string"), find_all), (("string", "string", "int"), find_all)),
}
"""Functions of regular expressions but `matches`, which takes anything."""
