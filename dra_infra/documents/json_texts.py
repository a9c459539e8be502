"""JSON as plain data, objects one after the other as kubectl reads them, on lines of their own or not.

JSON that a server sent is read as data that the rest can be sure of: no deeper than objects are, and texts that can
be written. Python's reader alone takes more than Go's writes: half of a character pair, which no file can hold, and
lists in lists until whatever goes through them has no stack left.

Large files are written as lines: YAML in which every document is JSON on one line, so that it is read fast. Any YAML
reader takes such a file; ours reads a line at a time with the JSON reader, 40 times as fast as YAML.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Never

from dra_infra.documents.yaml_events import MAX_DEPTH, MAX_NODES, RefusedYamlError, number_as_sent
from dra_infra.output.escaping import escape_json

HALF_PAIR: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be half of a surrogate pair."""


class ForeignJsonError(ValueError):
    """A text that is not JSON, or is more than any object of Kubernetes or a forge."""


def read_foreign_json(data: bytes | str) -> Any:
    """Return the value that *data* holds as JSON.

    Raises:
        ForeignJsonError: For anything else than one JSON value of at most `MAX_DEPTH` levels.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ForeignJsonError(str(error)[:200]) from error
    if _is_deep(value):
        raise ForeignJsonError(f"values are nested more than {MAX_DEPTH} deep")
    return without_half_pairs(value) if HALF_PAIR.search(text) else value


def without_half_pairs(value: Any) -> Any:
    """*value* with U+FFFD in the place of each half of a surrogate pair, as Go reads it."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [without_half_pairs(item) for item in value]
    if isinstance(value, dict):
        return {without_half_pairs(key): without_half_pairs(item) for key, item in value.items()}
    return value


def _refuse(name: str) -> Never:
    raise ValueError(f"the number {name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    return _refuse(digits[:40]) if value in (float("inf"), float("-inf")) else value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for each in level
            if type(each) is dict or type(each) is list
            for item in (each.values() if type(each) is dict else each)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return False
    return True


_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NEXT_OBJECT: Final = re.compile(r"\n(?=\{)")
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s"\[\]{}:,]+', re.DOTALL)


class _DuplicateKeyError(ValueError):
    """A key that one object has twice."""


def read_json(
    text: str, budget: list[int] | None = None
) -> Iterator[tuple[int, int, Any | RefusedYamlError]]:
    """Start, end and value of every JSON value in *text*, or why it cannot be read.

    After an error the reading goes on at the next line that begins with `{`.

    Args:
        text: JSON.
        budget: How many values may still be read, of which those of *text* are taken away; `MAX_NODES` when None.
    """
    budget = [MAX_NODES] if budget is None else budget
    budget[0] -= text.count(",") + text.count("{") + text.count("[")
    if budget[0] < 0:
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
            if HALF_PAIR.search(text, start, end):
                value = without_half_pairs(value)
            yield start, end, value
        except (ValueError, RecursionError, RefusedYamlError) as error:
            following = _NEXT_OBJECT.search(text, start)
            end = following.end() if following else len(text)
            yield start, end, _refusal(text, start, end, error)
        start = end


def _end_of_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


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
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
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
    raise ValueError(f"the number {name} is not JSON data")


def _integer(digits: str) -> int | float:
    return number_as_sent(int(digits)) if len(digits) < 20 else _float(digits)


def _float(digits: str) -> int | float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number_as_sent(value)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_float
)


MAX_BYTES: Final = 512 * 1024 * 1024
"""Longest text of lines that is read: 40,000 GPUs take a tenth of it."""

_SEPARATOR: Final = "---"


def write_lines(manifests: Iterable[Mapping[str, Any]], *, header: str = "") -> str:
    """Objects as such a text, keys in order.

    Args:
        manifests: The objects.
        header: Lines of comments in front, each with its end.
    """
    return header + "".join(f"{_SEPARATOR}\n{_line(each)}\n" for each in manifests)


def _line(manifest: Mapping[str, Any]) -> str:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return escape_json(text, also_yaml=True)


def are_lines(text: str) -> bool:
    """True for a text that is written so: nothing but comments, separators and lines that begin with a brace."""
    start = text.find("{")
    head = text[: max(start, 0)]
    if start < 0 or not all(_is_between(line) for line in head.splitlines()):
        return False
    # The rest is looked at line by line when it is read.
    end = text.find("\n", start)
    following = text[end + 1 : end + 5] if end >= 0 else ""
    return text[start:end].rstrip().endswith("}") and following in ("", f"{_SEPARATOR}\n")


def read_lines(text: str) -> Iterator[tuple[int, Any]]:
    """Number of the line, from 1, and value of every object.

    Raises:
        RefusedYamlError: `yaml-syntax`, `yaml-duplicate-key`, `yaml-too-large`, with the line.
    """
    if len(text) > MAX_BYTES:
        raise RefusedYamlError(
            "yaml-too-large", f"more than {MAX_BYTES >> 20} MiB of objects", "read fewer namespaces"
        )
    for number, line in enumerate(io.StringIO(text), 1):
        if _is_between(line):
            continue
        values = [value for _, _, value in read_json(line)]
        if len(values) != 1 or not line.startswith("{"):
            raise RefusedYamlError(
                "yaml-syntax", "the other documents are objects on one line, and this is not", line=number
            )
        if isinstance(values[0], RefusedYamlError):
            refused = values[0]
            hint = refused.hint or "where this is the last line, the file was cut: write it again"
            raise RefusedYamlError(refused.code, refused.message, hint, line=number)
        yield number, values[0]


def _is_between(line: str) -> bool:
    return not line or line.isspace() or line.startswith("#") or line.rstrip() == _SEPARATOR
