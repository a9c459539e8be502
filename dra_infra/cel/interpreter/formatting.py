"""`"%s".format([...])` (cel-go's ext/formatting.go, the version before 4, in the language en-US)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from dra_infra.cel.interpreter.maps import MAPS
from dra_infra.cel.interpreter.numbers import quote
from dra_infra.cel.interpreter.values import (
    LISTS,
    Err,
    TypeValue,
    Uint,
    UndecidedError,
    Value,
    items_of,
    type_name,
)

_DEFAULT_PRECISION: Final = 6
_MAX_PRECISION: Final = 1000
_PRECISION = re.compile(r"\.([0-9]*)", re.ASCII)
_EXCEPTIONS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_CLAUSES: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}


class _FormatError(Exception):
    pass


def format_text(text: str, arguments: Any) -> Value:
    """The text with its clauses filled in, or an error."""
    try:
        return _format(text, items_of(arguments))
    except _FormatError as error:
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
            raise _FormatError(f"index {used} out of range")
        if sign + 1 >= len(text):
            raise _FormatError("unexpected end of string")
        clause, precision, place = _read_clause(text, sign + 1)
        try:
            parts.append(_WRITERS[clause.lower()](arguments[used], clause, precision))
        except _FormatError as error:
            raise _FormatError(f"error during formatting: {error}") from error
        used += 1


def _read_clause(text: str, place: int) -> tuple[str, int, int]:
    told = "could not parse formatting clause: "
    precision = _DEFAULT_PRECISION
    match = _PRECISION.match(text, place)
    if match:
        place = match.end()
        told_precision = f"{told}error while parsing precision: "
        if place >= len(text):
            raise _FormatError(f"{told_precision}could not find end of precision specifier")
        digits = match[1]
        if not digits or int(digits) >= 2**63:
            problem = "value out of range" if digits else "invalid syntax"
            raise _FormatError(
                f"{told_precision}error while converting precision to integer: "
                f"strconv.Atoi: parsing {quote(digits)}: {problem}"
            )
        precision = int(digits)
        if precision > _MAX_PRECISION:
            raise UndecidedError(f"a precision of more than {_MAX_PRECISION} digits")
    letter = text[place]
    if letter not in "sdfebxXo":
        shown = chr(letter.encode()[0])
        raise _FormatError(f'{told}unrecognized formatting clause "{shown}"')
    return letter, precision, place + 1


def _refuse(clause: str, value: Value) -> _FormatError:
    return _FormatError(f"{_CLAUSES[clause.lower()]}, was given {type_name(value)}")


def _write_text(value: Value, _clause: str = "s", _precision: int = 0) -> str:
    from dra_infra.cel.interpreter.conversions import TO_TEXT

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
        raise _FormatError(f"could not convert argument {quote(text.text)} to string")
    return str(text)


def _write_key(key: Value) -> str:
    name = type_name(key)
    if name not in ("string", "bool", "int", "uint"):
        raise _FormatError(f"no formatting function for map key of type {name}")
    return quote(key) if name == "string" else _write_text(key)


def _write_inside(value: Value) -> str:
    """A value inside a list or map, written as a literal of CEL."""
    name = type_name(value)
    if name in ("list", "map", "bool", "null_type", "type", "int", "uint"):
        return _write_text(value)
    if name == "string":
        return quote(value)
    if name == "bytes":
        return f"b{quote(_write_text(value))}"
    if name == "double":
        text = _print_fixed(value, _DEFAULT_PRECISION)
        return text if math.isfinite(value) else quote(text)
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        return f"{name.rpartition('.')[2].lower()}({quote(_write_text(value))})"
    raise _FormatError(f"no formatting function for {name}")


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
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _localized_special(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


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
    mantissa, _, power = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
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
