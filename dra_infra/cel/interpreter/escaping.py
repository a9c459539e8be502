"""Escapes in URLs as Go's net/url writes and reads them."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from dra_infra.cel.interpreter.numbers import quote

Mode: TypeAlias = Literal["path", "host", "zone", "user", "query", "fragment"]

_ALWAYS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
_HOST: Final = "!$&'()*+,;=:[]<>\""
_KEPT: Final[dict[Mode, frozenset[int]]] = {
    "path": frozenset(f"{_ALWAYS}$&+,/:;=@".encode()),
    "host": frozenset(f"{_ALWAYS}{_HOST}".encode()),
    "zone": frozenset(f"{_ALWAYS}{_HOST}".encode()),
    "user": frozenset(f"{_ALWAYS}$&+,;=".encode()),
    "query": frozenset(_ALWAYS.encode()),
    "fragment": frozenset(f"{_ALWAYS}$&+,/:;=?@!()*".encode()),
}
"""What is not escaped."""
_ENCODED: Final = frozenset(b"!$&'()*+,;=:@[]%")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})", re.ASCII)


def unescape(text: str, mode: Mode) -> str:
    """The text without escapes; bytes that are no UTF-8 become lone surrogates.

    Raises:
        ValueError: With Go's text.
    """
    place = 0
    while place < len(text):
        character = text[place]
        if character == "%":
            match = _ESCAPE.match(text, place)
            if match is None or not _may_escape(match[1], mode):
                raise ValueError(f"invalid URL escape {quote(text[place : place + 3])}")
            place += 3
            continue
        if mode in ("host", "zone") and ord(character) < 0x80 and ord(character) not in _KEPT[mode]:
            raise ValueError(f"invalid character {quote(character)} in host name")
        place += 1
    if mode == "query":
        text = text.replace("+", " ")
    if "%" not in text:
        return text
    octets = _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)), text.encode("utf-8", "surrogateescape").decode("latin-1")
    )
    return octets.encode("latin-1").decode("utf-8", "surrogateescape")


def _may_escape(digits: str, mode: Mode) -> bool:
    code = int(digits, 16)
    if digits == "25":
        return True
    if mode == "host":
        return code >= 0x80
    return mode != "zone" or code == 0x20 or code in _KEPT["host"]


def escape(text: str, mode: Mode) -> str:
    """The text with escapes where the part of the URL needs them."""
    return "".join(
        chr(octet) if octet in _KEPT[mode] else f"%{octet:02X}"
        for octet in text.encode("utf-8", "surrogateescape")
    )


def is_encoded(text: str, mode: Mode) -> bool:
    """Whether the text needs no escapes but those that it has."""
    return all(octet in _ENCODED or octet in _KEPT[mode] for octet in text.encode("utf-8", "surrogateescape"))
