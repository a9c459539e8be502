"""JSON as plain data: objects one after the other, on lines of their own or not, as kubectl reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from dra_infra.model.yaml_events import MAX_DEPTH, MAX_NODES, RefusedYamlError
from dra_infra.model.yaml_scalars import number_as_sent

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NEXT_OBJECT: Final = re.compile(r"\n(?=\{)")
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)
_HALF_PAIR: Final = re.compile(r"\\u[dD][89a-fA-F]")
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s"\[\]{}:,]+', re.DOTALL)


class _NotJsonDataError(ValueError):
    """A value that Python's reader takes and Go's does not."""


class _DuplicateKeyError(ValueError):
    """A key that one object has twice."""


def read_json(text: str) -> Iterator[tuple[int, int, Any | RefusedYamlError]]:
    """Start, end and value of every JSON value in *text*, or why it cannot be read.

    After an error the reading goes on at the next line that begins with `{`.
    """
    if _is_large(text):
        yield (
            0,
            len(text),
            RefusedYamlError("yaml-too-large", f"more than {MAX_NODES:,} values", "split the file"),
        )
        return
    start = 0
    while (start := _end_of_space(text, start)) < len(text):
        try:
            value, end = _DECODER.raw_decode(text, start)
            _check_depth(text, start, end)
            if _HALF_PAIR.search(text, start, end):
                value = _without_half_pairs(value)
            yield start, end, value
        except (ValueError, RecursionError, RefusedYamlError) as error:
            following = _NEXT_OBJECT.search(text, start)
            end = following.end() if following else len(text)
            yield start, end, _refusal(text, start, end, error)
        start = end


def _end_of_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _is_large(text: str) -> bool:
    return text.count(",") + text.count("{") + text.count("[") > MAX_NODES


def _check_depth(text: str, start: int, end: int) -> None:
    if text.count("{", start, end) + text.count("[", start, end) <= MAX_DEPTH:
        return
    depth = 0
    for token in _BRACKETS.finditer(text, start, end):
        if token[1]:
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(text, token.start())
        elif token[2]:
            depth -= 1


def _refusal(text: str, start: int, end: int, error: Exception) -> RefusedYamlError:
    if isinstance(error, RefusedYamlError):
        return error
    if isinstance(error, RecursionError):
        return _too_deep(text, start)
    if isinstance(error, _DuplicateKeyError):
        key = str(error)
        return _refused(
            text,
            _second_key(text, start, end),
            "yaml-duplicate-key",
            f"key {key[:80]!r} is written twice in one object",
            "keep one of the two",
        )
    if isinstance(error, json.JSONDecodeError):
        # At the end of what was written rather than in the empty lines behind it.
        offset = min(error.pos, start + len(text[start:end].rstrip()))
        return _refused(text, offset, "yaml-syntax", f"not JSON: {error.msg[0].lower()}{error.msg[1:]}")
    return _refused(text, start, "yaml-syntax", f"not JSON: {str(error)[:80]}")


def _too_deep(text: str, offset: int) -> RefusedYamlError:
    message = f"values are nested more than {MAX_DEPTH} deep"
    return _refused(text, offset, "yaml-too-large", message, "no Kubernetes object is")


def _refused(text: str, offset: int, code: str, message: str, hint: str = "") -> RefusedYamlError:
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    return RefusedYamlError(code, message, hint, line=line, column=column)


def _second_key(text: str, start: int, end: int) -> int:
    """Where the second of two equal keys is; the first such pair need not be the one that was met first."""
    keys_of: list[set[str] | None] = []
    last: re.Match[str] | None = None
    for token in _TOKENS.finditer(text, start, end):
        sign = token[0]
        if sign in "{[":
            keys_of.append(set() if sign == "{" else None)
        elif sign in "}]" and keys_of:
            keys_of.pop()
        elif sign == ":" and last and keys_of and (keys := keys_of[-1]) is not None:
            key = json.loads(last[0])
            if key in keys:
                return last.start()
            keys.add(key)
        last = token
    return start


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(key)
            seen.add(key)
    return fields


def _constant(name: str) -> Any:
    raise _NotJsonDataError(f"the number {name} is not JSON data")


def _integer(digits: str) -> int | float:
    return number_as_sent(int(digits)) if len(digits) < 20 else _float(digits)


def _float(digits: str) -> int | float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise _NotJsonDataError(f"the number {digits[:40]} is too large")
    return number_as_sent(value)


def _without_half_pairs(value: Any) -> Any:
    # Go puts U+FFFD in the place of half a surrogate pair.
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_without_half_pairs(item) for item in value]
    if isinstance(value, dict):
        return {_without_half_pairs(key): _without_half_pairs(item) for key, item in value.items()}
    return value


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_float
)
