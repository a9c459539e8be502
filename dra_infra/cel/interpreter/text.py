"""The functions of texts (cel-go's ext/strings.go, version 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dra_infra.cel.interpreter.formatting import format_text
from dra_infra.cel.interpreter.maps import print_value
from dra_infra.cel.interpreter.numbers import ESCAPES
from dra_infra.cel.interpreter.signatures import Overloads
from dra_infra.cel.interpreter.values import LISTS, Err, UndecidedError, Value, items_of
from dra_infra.cel.interpreter.work import MAX_WORK

_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTES: Final = str.maketrans(ESCAPES)


def _out_of_range(index: int) -> Err:
    return Err(f"index out of range: {index}")


def _char_at(text: str, index: int) -> Value:
    return text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index)


def _index_of(text: str, sought: str, offset: int = 0) -> Value:
    if offset < 0:
        return _out_of_range(offset)
    if not sought:
        return min(offset, len(text))
    return text.find(sought, offset) if offset < len(text) else -1


def _last_index_of(text: str, sought: str) -> Value:
    return text.rfind(sought) if sought else len(text)


def _last_index_from(text: str, sought: str, offset: int) -> Value:
    if offset < 0:
        return _out_of_range(offset)
    if not sought:
        return min(offset, len(text))
    return text.rfind(sought, 0, offset + len(sought)) if offset < len(text) else -1


def _replace(text: str, old: str, new: str, count: int = -1) -> Value:
    if text.count(old) * len(new) > MAX_WORK:
        raise UndecidedError("a text that grows too long")
    return text.replace(old, new, count)


def _split(text: str, separator: str, count: int = -1) -> Value:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if count < 0 or count >= len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def _substring(text: str, start: int) -> Value:
    return text[start:] if 0 <= start <= len(text) else _out_of_range(start)


def _substring_to(text: str, start: int, end: int) -> Value:
    if start > end:
        return Err(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            return _out_of_range(index)
    return text[start:end]


def _join(texts: Any, separator: str = "") -> Value:
    items = items_of(texts)
    for item in items:
        if type(item) is not str:
            return Err(f"join: invalid input: {_print(item)}")
    if sum(map(len, items)) + len(separator) * len(items) > MAX_WORK:
        raise UndecidedError("a text that grows too long")
    return separator.join(items)


def _print(value: Value) -> str:
    return f"[{', '.join(map(_print, items_of(value)))}]" if type(value) in LISTS else print_value(value)


TEXT: Final[dict[str, Overloads]] = {
    "charAt": ((("string", "int"), _char_at),),
    "lowerAscii": ((("string",), lambda text: text.translate(_LOWER)),),
    "upperAscii": ((("string",), lambda text: text.translate(_UPPER)),),
    "replace": (
        (("string", "string", "string"), _replace),
        (("string", "string", "string", "int"), _replace),
    ),
    "split": ((("string", "string"), _split), (("string", "string", "int"), _split)),
    "substring": ((("string", "int"), _substring), (("string", "int", "int"), _substring_to)),
    "trim": ((("string",), lambda text: text.strip(_SPACE)),),
    "join": ((("list<string>",), _join), (("list<string>", "string"), _join)),
    "strings.quote": ((("string",), lambda text: f'"{text.translate(_QUOTES)}"'),),
    "format": ((("string", "list<any>"), format_text),),
}
"""Functions of texts; `indexOf` and `lastIndexOf` are those of lists as well."""

PARTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "contains": lambda text, part: part in text,
    "startsWith": lambda text, part: text.startswith(part),
    "endsWith": lambda text, part: text.endswith(part),
}
"""Functions whose errors name no types."""

INDEX_OF: Final[Overloads] = ((("string", "string"), _index_of), (("string", "string", "int"), _index_of))
LAST_INDEX_OF: Final[Overloads] = (
    (("string", "string"), _last_index_of),
    (("string", "string", "int"), _last_index_from),
)

INDEX_OF_BEFORE_37: Final[Overloads] = (
    (("string", "string"), _index_of),
    (
        ("string", "string", "int"),
        lambda text, sought, offset: _index_of(text, sought, offset) if sought else offset,
    ),
)
LAST_INDEX_OF_BEFORE_37: Final[Overloads] = (
    (("string", "string"), _last_index_of),
    (
        ("string", "string", "int"),
        lambda text, sought, offset: _last_index_from(text, sought, offset) if sought else offset,
    ),
)
"""The empty text was found at any offset."""
