"""What the API server says about one field, in its own kinds and words.

Upstream: k8s.io/apimachinery/pkg/util/validation/field/errors.go. `FieldError.message` is the text of one cause in the
server's answer (`status.details.causes[].message`), `FieldError.kind` its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from dra_infra.model.go_json import go_json


class ErrorKind(StrEnum):
    """The server's kinds of field errors; the value is the machine-readable reason of the cause."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    DUPLICATE = "FieldValueDuplicate"
    NOT_SUPPORTED = "FieldValueNotSupported"
    NOT_FOUND = "FieldValueNotFound"
    INTERNAL = "InternalError"


_TITLES: Final = {
    ErrorKind.REQUIRED: "Required value",
    ErrorKind.INVALID: "Invalid value",
    ErrorKind.FORBIDDEN: "Forbidden",
    ErrorKind.TOO_LONG: "Too long",
    ErrorKind.TOO_MANY: "Too many",
    ErrorKind.DUPLICATE: "Duplicate value",
    ErrorKind.NOT_SUPPORTED: "Unsupported value",
    ErrorKind.NOT_FOUND: "Not found",
    ErrorKind.INTERNAL: "Internal error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One reason why the server refuses an object.

    Args:
        rule: Key of the rule in `rules.RULES`.
        path: Field path as the server writes it.
        kind: The server's kind.
        value: The bad value as the server prints it; empty for kinds that print none.
        detail: The server's text behind it; may be empty.
        origin: What the server's two engines (hand-written and generated rules) know the rule by, when both have it.
        covered: Whether the generated engine's finding of the same kind, path and origin replaces this one.
    """

    rule: str
    path: str
    kind: ErrorKind
    value: str = ""
    detail: str = ""
    origin: str = field(default="", compare=False)
    covered: bool = field(default=False, compare=False)

    @property
    def message(self) -> str:
        """The text of the cause in the server's answer."""
        return ": ".join(part for part in (_TITLES[self.kind], self.value, self.detail) if part)


def required(rule: str, path: str, detail: str = "", **engine: Any) -> FieldError:
    """A value is missing or empty."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.REQUIRED, detail=detail, **engine)


def invalid(rule: str, path: str, value: object, detail: str, **engine: Any) -> FieldError:
    """A value breaks a rule."""
    return FieldError(
        rule=rule, path=path, kind=ErrorKind.INVALID, value=printed(value), detail=detail, **engine
    )


def forbidden(rule: str, path: str, detail: str) -> FieldError:
    """A value may not be set here."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.FORBIDDEN, detail=detail)


def internal(rule: str, path: str, detail: str) -> FieldError:
    """The server fails over a value."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.INTERNAL, detail=detail)


def not_found(rule: str, path: str, value: object) -> FieldError:
    """A value names what is not there."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.NOT_FOUND, value=printed(value))


def too_long(rule: str, path: str, limit: int, *, unit: str = "bytes", **engine: Any) -> FieldError:
    """A text has more than *limit* bytes (or characters)."""
    detail = f"may not be more than {limit} {unit}"
    return FieldError(rule=rule, path=path, kind=ErrorKind.TOO_LONG, detail=detail, **engine)


def too_many(rule: str, path: str, count: int, limit: int, **engine: Any) -> FieldError:
    """A list has *count* items, more than *limit*."""
    return FieldError(
        rule=rule,
        path=path,
        kind=ErrorKind.TOO_MANY,
        value=str(count),
        detail=f"must have at most {limit} items",
        **engine,
    )


def duplicate(rule: str, path: str, value: object, **engine: Any) -> FieldError:
    """An item is there twice; reported at the later one."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.DUPLICATE, value=printed(value), **engine)


def not_supported(rule: str, path: str, value: str, supported: Sequence[str], **engine: Any) -> FieldError:
    """A text is not one of *supported*, in the order in which the server lists them; it is printed as JSON."""
    detail = "supported values: " + ", ".join(map(quoted, supported))
    return FieldError(
        rule=rule, path=path, kind=ErrorKind.NOT_SUPPORTED, value=go_json(value), detail=detail, **engine
    )


class Printed(NamedTuple):
    """A bad value that is already in the server's spelling."""

    text: str


def printed(value: object) -> str:
    """A bad value as the server prints it: texts quoted as Go does, numbers and booleans bare, the rest as JSON."""
    if isinstance(value, Printed):
        return value.text
    return quoted(value) if isinstance(value, str) else go_json(value)


_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


def quoted(text: str) -> str:
    """*text* as Go's strconv.Quote writes it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
