"""Reads protobuf's text format without knowing the messages: names to lists of texts, words and messages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

Message: TypeAlias = dict[str, list[Any]]

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*|[,;])|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<word>[\w.+-]+|\[[\w./-]+\])|(?P<sign>[{}<>:\[\]])""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u(\w{4})|U(\w{8})|(.))", re.DOTALL)
_LETTERS: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_CLOSING: Final = {"{": "}", "<": ">"}


def read(text: str) -> Message:
    """The message that a text spells; what is in quotes is bytes, all else a word.

    Raises:
        ValueError: When it is not of that format.
    """
    tokens = list(_tokens(text))
    message, end = _message(tokens, 0, "")
    if end != len(tokens):
        raise ValueError(f"what is {tokens[end]!r} for")
    return message


def _tokens(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"no token at {text[place : place + 20]!r}")
        if match.lastgroup != "skip":
            yield match[0]
        place = match.end()


def _message(tokens: list[str], place: int, closing: str) -> tuple[Message, int]:
    found: Message = defaultdict(list)
    while place < len(tokens) and tokens[place] != closing:
        name = tokens[place]
        place += 1
        if tokens[place] == ":":
            place += 1
        if tokens[place] == "[":
            place += 1
            while tokens[place] != "]":
                value, place = _value(tokens, place)
                found[name].append(value)
            place += 1
        else:
            value, place = _value(tokens, place)
            found[name].append(value)
    return found, place + (1 if closing else 0)


def _value(tokens: list[str], place: int) -> tuple[Any, int]:
    first = tokens[place]
    if first in _CLOSING:
        return _message(tokens, place + 1, _CLOSING[first])
    if first[0] not in "\"'":
        return first, place + 1
    parts = []
    while place < len(tokens) and tokens[place][0] in "\"'":
        parts.append(_ESCAPE.sub(_unescape, tokens[place][1:-1].encode()))
        place += 1
    return b"".join(parts), place


def _unescape(match: re.Match[bytes]) -> bytes:
    octal, digits, short, long, letter = match.groups()
    if octal or digits:
        return bytes([int(octal, 8) if octal else int(digits, 16)])
    if short or long:
        return chr(int(short or long, 16)).encode()
    return _LETTERS.get(letter, letter)
