"""Format 1 of the checkpoint's files.

A release that changes it counts on, and reads every format that was released.

    {"format": 1, "checksum": "sha256:...", "record": {...}}

The checksum is that of `record` as JSON with sorted keys and no spaces, so that a person may lay the file out anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from pydantic.alias_generators import to_camel

from dra_infra.plugin.claims import ClaimDevice, Record, State
from dra_infra.plugin.disk import LARGEST, MOST_PARTS, may_be_parsed

FORMAT: Final = 1

_Kind = TypeVar("_Kind")


class DamagedError(ValueError):
    """A file is not as this plugin writes it; the text says what is wrong."""


class NewerError(ValueError):
    """A file has a format of a later release."""


def encode(record: Record) -> bytes:
    """The file of a record."""
    plain = _plain(record)
    document = {"format": FORMAT, "checksum": _checksum(plain), "record": plain}
    # In one line: Python lays JSON out several times as slowly, and a claim is waited for.
    return json.dumps(document).encode()


def decode(content: bytes, *, uid: str) -> Record:
    """The record of a file.

    Args:
        content: The file's bytes.
        uid: The claim that it has to be of.

    Raises:
        DamagedError: It is cut, was changed, or is another claim's.
        NewerError: A later release wrote it.
    """
    if not may_be_parsed(content):
        raise DamagedError(f"it has more than {LARGEST} bytes, or {MOST_PARTS} objects and lists")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        said = "it is no JSON" if content else "it is empty, or no file that can be read"
        raise DamagedError(said) from error
    number = document.get("format") if isinstance(document, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise DamagedError("it has no format")
    if number > FORMAT:
        raise NewerError(f"it has format {str(number)[:20]}, and this release reads up to {FORMAT}")
    plain = document.get("record")
    try:
        record = _record(plain) if document.get("checksum") == _checksum(plain) else None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DamagedError("it lacks something, or has a value of another type") from error
    if record is None:
        raise DamagedError("the checksum is of something else")
    if record.claim.uid != uid:
        raise DamagedError("it is the file of another claim")
    return record


def _checksum(plain: object) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """A record, or a part of one, as JSON data: the fields in their order."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    plain = {key: _plain(getattr(value, name)) for name, key, _ in _fields(value.__class__)}
    if isinstance(value, ClaimDevice):
        plain["capacity"] = dict(value.capacity)
        if not value.named:
            del plain["named"]
    return plain


def _record(plain: Any) -> Record:
    # One text in memory for all devices that have the same config.
    record: Record = _reader(Record)(plain, {})
    if len(record.edits) != (len(record.claim.devices) if record.state == "completed" else 0):
        raise ValueError(record.state)
    return record


_Reader = Callable[[Any, dict[str, str]], Any]
"""Makes a value of JSON data, and of the texts that were met before; raises where the data are of another form."""


@cache
def _reader(of: Any) -> _Reader:
    """Returns what reads a value of the type of a field."""
    if of is str:
        return lambda plain, texts: texts.setdefault(_typed(plain, str), plain)
    if of in (int, bool):
        return lambda plain, _: _typed(plain, of)
    if of == int | None:
        return lambda plain, _: None if plain is None else _typed(plain, int)
    if get_origin(of) is tuple:
        item = _reader(get_args(of)[0])
        return lambda plain, texts: tuple([item(each, texts) for each in _typed(plain, list)])
    if of is State:
        return lambda plain, _: get_args(State)[get_args(State).index(plain)]
    parts = [(name, key, _reader(type_)) for name, key, type_ in _fields(of)]

    def read(plain: Any, texts: dict[str, str]) -> Any:
        if of is ClaimDevice:
            amounts = sorted(map(list, _typed(plain["capacity"], dict).items()))
            plain = {**plain, "named": plain.get("named", []), "capacity": amounts}
        return of(**{name: reader(plain[key], texts) for name, key, reader in parts})

    return read


@cache
def _fields(of: type) -> tuple[tuple[str, str, Any], ...]:
    """Name, key in a file, and type of each field of a record."""
    hints = get_type_hints(of)
    return tuple((each.name, to_camel(each.name), hints[each.name]) for each in fields(of))


def _typed(value: Any, of: type[_Kind]) -> _Kind:
    if type(value) is not of:
        raise TypeError(value)
    return value
