"""Tokens of CEL's grammar, each with its offset, and the values of its literals.

Upstream: the lexer rules of `parser/gen/CEL.g4` and `parser/unescape.go` of cel-go. Of the rules that fit, the longest
wins; whitespace and comments stand between tokens and mean nothing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.constants import read_double
from dra_infra.kubernetes.cel.tree import Scalar

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = (
    r"[rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
    rf'|"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
)
_TOKENS: Final = re.compile(
    rf"(?P<hidden>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<bytes>[bB](?:{_STRING}))"
    rf"|(?P<string>{_STRING})"
    r"|(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])"
    r"|(?P<int>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<escaped>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])"
)
_WORDS: Final = frozenset({"in", "true", "false", "null"})
END: Final = "end"


class Token(NamedTuple):
    """A token.

    Args:
        kind: Its rule, `name` for example; of signs and of the words `in`, `true`, `false` and `null` the text.
        text: As it is written.
        start: Its offset in code points.
    """

    kind: str
    text: str
    start: int


class SyntaxRefusedError(Exception):
    """The text is no expression of the grammar; what the server says of it is the business of another parser."""


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, and behind them one of the kind `end`.

    Raises:
        SyntaxRefusedError: When a character begins no token.
    """
    found: list[Token] = []
    place = 0
    for match in _TOKENS.finditer(text):
        start, end = match.span()
        if start != place:
            raise SyntaxRefusedError
        place = end
        kind = match.lastgroup or ""
        if kind == "hidden":
            continue
        word = match[0]
        found.append(Token(word if kind == "sign" or word in _WORDS else kind, word, start))
    if place != len(text):
        raise SyntaxRefusedError
    found.append(Token(END, "", place))
    return found


class LiteralError(Exception):
    """A mistake in a literal, in the server's words."""


_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPES: Final = re.compile(_ESCAPE)
_DIGITS: Final = 20


def read_literal(token: Token, sign: str = "") -> tuple[str, Scalar]:
    """The field of cel.expr.Constant that a literal is, and its value.

    Args:
        token: The literal.
        sign: The sign in front of a number.

    Raises:
        LiteralError: When it stands for no value.
        SyntaxRefusedError: When the token is no literal.
    """
    match token.kind:
        case "int":
            value = _read_int(token.text) * (-1 if sign else 1)
            return "int64_value", _within(value, -(2**63), 2**63, "int")
        case "uint":
            return "uint64_value", _within(_read_int(token.text[:-1]), 0, 2**64, "uint")
        case "float":
            number = read_double(sign + token.text)
            if number is None:
                raise LiteralError("invalid double literal")
            return "double_value", number
        case "string":
            return "string_value", _read_string(token.text)
        case "bytes":
            return "bytes_value", _read_bytes(token.text[1:])
        case "true" | "false":
            return "bool_value", token.kind == "true"
        case "null":
            return "null_value", None
    raise SyntaxRefusedError


def _read_int(text: str) -> int:
    digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
    digits = digits.lstrip("0") or "0"
    # Python refuses numbers of thousands of digits, none of which fits.
    return int(digits, base) if len(digits) <= _DIGITS else 2**64


def _within(value: int, first: int, behind: int, kind: str) -> int:
    if not first <= value < behind:
        raise LiteralError(f"invalid {kind} literal")
    return value


def _read_string(literal: str) -> str:
    body, is_raw = _body(literal)
    return body if is_raw else _ESCAPES.sub(_character, body)


def _read_bytes(literal: str) -> bytes:
    body, is_raw = _body(literal)
    if is_raw:
        return body.encode()
    parts: list[bytes] = []
    place = 0
    for match in _ESCAPES.finditer(body):
        parts += [body[place : match.start()].encode(), _byte(match[0])]
        place = match.end()
    return b"".join([*parts, body[place:].encode()])


def _body(literal: str) -> tuple[str, bool]:
    """Returns the text between the quotes, and whether escapes mean nothing in it."""
    literal = literal.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = literal[0] in "rR"
    quoted = literal[1:] if is_raw else literal
    width = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    return quoted[width:-width], is_raw


def _code(escape: str) -> int | None:
    """The number in an escape; None where it has none."""
    letter = escape[1]
    if letter not in "xXuU0123":
        return None
    digits, base = (escape[1:], 8) if letter in "0123" else (escape[2:], 16)
    return int(digits, base)


def _character(match: re.Match[str]) -> str:
    code = _code(match[0])
    if code is None:
        return _SIMPLE.get(match[0][1], match[0][1])
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _byte(escape: str) -> bytes:
    if escape[1] in "uU":
        raise LiteralError("unable to unescape string")
    code = _code(escape)
    return _SIMPLE.get(escape[1], escape[1]).encode() if code is None else bytes([code])


def find_escaped(text: str) -> list[int]:
    """Offsets of fields in backticks, in a text that need not follow the grammar."""
    found: list[int] = []
    before = ""
    for match in _TOKENS.finditer(text):
        if match.lastgroup == "escaped" and before in (".", "?"):
            found.append(match.start())
        if match.lastgroup != "hidden":
            before = match[0]
    return found
