"""The syntax tree of an expression that does not check, to say where in it an error lies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from dra_infra.cel.declare import check_environment
from dra_infra.cel.release import Environment
from dra_infra.cel.spelling import respell, restore_bytes
from dra_infra.cel.tree import CheckedTree
from dra_infra.cel.wire import decode_checked

_RENUMBERED = {2: 4, 3: 5}
"""Fields of cel.expr.ParsedExpr, and the same ones in cel.expr.CheckedExpr: the tree and the positions."""


@lru_cache(maxsize=16)
def parse_expression(text: str, environment: Environment) -> CheckedTree | None:
    """The tree without types; None when the text does not even parse."""
    try:
        parsed = check_environment(environment).compile(respell(text, environment), disable_check=True)
    except RuntimeError:
        return None
    message = dict(_fields(restore_bytes(parsed.serialize())))[2]
    checked = b"".join(
        _field(_RENUMBERED[number], payload) for number, payload in _fields(message) if number in _RENUMBERED
    )
    return decode_checked(_field(1, b"type.googleapis.com/cel.expr.CheckedExpr") + _field(2, checked))


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of the fields of a message that has nothing but strings and messages."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        length, place = _varint(message, place)
        yield tag >> 3, message[place : place + length]
        place += length


def _field(number: int, payload: bytes) -> bytes:
    length, head = len(payload), bytearray([number << 3 | 2])
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + payload


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place
