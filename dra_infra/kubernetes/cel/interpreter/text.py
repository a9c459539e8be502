"""String functions (cel-go's ext/strings.go, version 2), formatting, and functions of regular expressions.

`"%s".format([...])` is that of cel-go's ext/formatting.go, the version before 4, in the language en-US.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dra_infra.kubernetes.api.go_text import ESCAPES, quoted
from dra_infra.kubernetes.api.limits import MAX_COST
from dra_infra.kubernetes.cel.formatting import CLAUSES, DEFAULT_PRECISION, FormatError, read_clause
from dra_infra.kubernetes.cel.interpreter.conversions import TO_TEXT
from dra_infra.kubernetes.cel.interpreter.maps import MAPS, print_value
from dra_infra.kubernetes.cel.interpreter.tracker import EXCEEDED
from dra_infra.kubernetes.cel.interpreter.values import (
    LISTS,
    NO_SUCH_OVERLOAD,
    Err,
    Overloads,
    PanicError,
    TypeValue,
    Uint,
    UndecidedError,
    Value,
    items_of,
    type_name,
)
from dra_infra.kubernetes.cel.patterns import PatternError, find_matches, is_match, refuse_pattern

_MAX_PRECISION: Final = 1000
_MAX_TEXT: Final = 20_000_000
"""Characters; going over half as many costs more than the server allows."""
_EXCEPTIONS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def format_text(text: str, arguments: Any) -> Value:
    """The text with its clauses filled in, or an error."""
    try:
        return _format(text, items_of(arguments))
    except FormatError as error:
        return Err(str(error))


def _format(text: str, arguments: list[Value]) -> str:
    parts: list[str] = []
    place, used = 0, 0
    while True:
        sign = text.find("%", place)
        if sign < 0:
            return "".join([*parts, text[place:]])
        parts.append(text[place:sign])
        if text[sign + 1 : sign + 2] == "%":
            parts.append("%")
            place = sign + 2
            continue
        if used >= len(arguments):
            raise FormatError(f"index {used} out of range")
        if sign + 1 >= len(text):
            raise FormatError("unexpected end of string")
        clause, precision, place = read_clause(text, sign + 1)
        if precision > _MAX_PRECISION:
            raise UndecidedError(f"a precision of more than {_MAX_PRECISION} digits")
        try:
            parts.append(_WRITERS[clause.lower()](arguments[used], clause, precision))
        except FormatError as error:
            raise FormatError(f"error during formatting: {error}") from error
        used += 1


def _refuse(clause: str, value: Value) -> FormatError:
    return FormatError(f"{CLAUSES[clause.lower()]}, was given {type_name(value)}")


def _write_text(value: Value, _clause: str = "s", _precision: int = 0) -> str:
    if type(value) in LISTS:
        return f"[{', '.join(map(_write_inside, items_of(value)))}]"
    if type(value) in MAPS:
        pairs = sorted((_write_key(key), _write_inside(each)) for key, each in value.entries.values())
        return "{" + ", ".join(f"{key}:{each}" for key, each in pairs) + "}"
    if value is None:
        return "null"
    if type(value) is TypeValue:
        return value.name
    name = type_name(value)
    if name not in TO_TEXT or name.startswith("net."):
        raise _refuse("s", value)
    text = TO_TEXT[name](value)
    if type(text) is Err:
        raise FormatError(f"could not convert argument {quoted(text.text)} to string")
    return str(text)


def _write_key(key: Value) -> str:
    name = type_name(key)
    if name not in ("string", "bool", "int", "uint"):
        raise FormatError(f"no formatting function for map key of type {name}")
    return quoted(key) if name == "string" else _write_text(key)


def _write_inside(value: Value) -> str:
    """A value inside a list or map, written as a literal of CEL."""
    name = type_name(value)
    if name in ("list", "map", "bool", "null_type", "type", "int", "uint"):
        return _write_text(value)
    if name == "string":
        return quoted(value)
    if name == "bytes":
        return f"b{quoted(_write_text(value))}"
    if name == "double":
        text = _print_fixed(value, DEFAULT_PRECISION)
        return text if math.isfinite(value) else quoted(text)
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        return f"{name.rpartition('.')[2].lower()}({quoted(_write_text(value))})"
    raise FormatError(f"no formatting function for {name}")


def _write_decimal(value: Value, clause: str, _precision: int) -> str:
    if type(value) not in (int, Uint):
        raise _refuse(clause, value)
    return str(int(value))


def _double(value: Value, clause: str) -> float:
    if type(value) is str and value in _EXCEPTIONS:
        return _EXCEPTIONS[value]
    if type(value) is not float:
        raise _refuse(clause, value)
    return value or 0.0  # The zero with a sign is printed without one.


def _print_fixed(value: float, precision: int) -> str:
    if math.isfinite(value):
        return f"{value:.{precision}f}"
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def _localized_special(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _write_fixed(value: Value, clause: str, precision: int) -> str:
    """Rounded to the precision, of which upstream keeps a byte to fill up with zeros."""
    number = _double(value, clause)
    if not math.isfinite(number):
        return _localized_special(number)
    whole, _, digits = f"{number:,.{precision}f}".partition(".")
    digits = digits.rstrip("0").ljust(precision & 0xFF, "0")
    return f"{whole}.{digits}" if digits else whole


def _write_scientific(value: Value, clause: str, precision: int) -> str:
    """Always with six digits; upstream takes the precision for a width."""
    number = _double(value, clause)
    if not math.isfinite(number):
        return _localized_special(number).rjust(precision)
    mantissa, _, power = f"{number:.{DEFAULT_PRECISION}e}".partition("e")
    exponent = int(power)
    sign = "⁻" if exponent < 0 else ""
    return f"{mantissa}\u00d710{sign}{_raised(abs(exponent))}".rjust(precision)


def _raised(exponent: int) -> str:
    return f"{exponent:02}".translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _write_binary(value: Value, clause: str, _precision: int) -> str:
    if type(value) not in (int, Uint, bool):
        raise _refuse(clause, value)
    return f"{int(value):b}"


def _write_hex(value: Value, clause: str, _precision: int) -> str:
    if type(value) in (int, Uint):
        text = f"{int(value):x}"
    elif type(value) in (str, bytes):
        text = (value.encode() if type(value) is str else value).hex()
    else:
        raise _refuse(clause, value)
    return text.upper() if clause == "X" else text


def _write_octal(value: Value, clause: str, _precision: int) -> str:
    if type(value) not in (int, Uint):
        raise _refuse(clause, value)
    return f"{int(value):o}"


_WRITERS: Final[dict[str, Callable[[Value, str, int], str]]] = {
    "s": _write_text,
    "d": _write_decimal,
    "f": _write_fixed,
    "e": _write_scientific,
    "b": _write_binary,
    "x": _write_hex,
    "o": _write_octal,
}


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
    if text.count(old) * len(new) > _MAX_TEXT:
        raise UndecidedError(f"a text of more than {_MAX_TEXT:,} characters")
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
    if sum(map(len, items)) + len(separator) * (len(items) - 1) > 10 * MAX_COST:
        raise PanicError(EXCEEDED)
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


def _refusal(text: str, pattern: str) -> str:
    if "\0" in text or "\0" in pattern:
        raise UndecidedError("a text with NUL")
    try:
        return refuse_pattern(pattern)
    except PatternError as error:
        raise UndecidedError(str(error)) from error


def matches(text: Value, pattern: Value) -> Value:
    """Looks for the pattern in the text."""
    if type(text) is not str or type(pattern) is not str:
        return Err(NO_SUCH_OVERLOAD)
    refusal = _refusal(text, pattern)
    if refusal:
        return Err(refusal)
    try:
        return is_match(text, pattern)
    except PatternError as error:
        raise UndecidedError(f"a regular expression: {error}") from error


def find(text: str, pattern: str) -> Value:
    """The leftmost match, empty without one."""
    found = find_all(text, pattern)
    if type(found) is Err:
        return found
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> Value:
    """The matches from left to right, all of them when the limit is negative."""
    refusal = _refusal(text, pattern)
    if refusal:
        return Err(f"Illegal regex: {refusal}")
    try:
        parts = find_matches(text, pattern)
    except PatternError as error:
        raise UndecidedError(f"a regular expression: {error}") from error
    return parts if limit < 0 else parts[:limit]


REGEX: Final[dict[str, Overloads]] = {
    "find": ((("string", "string"), find),),
    "findAll": ((("string", "string"), find_all), (("string", "string", "int"), find_all)),
}
"""Functions of regular expressions but `matches`, which takes anything."""
