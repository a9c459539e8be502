"""Times of RFC 3339 as Go reads and writes them (time.Parse, metav1.Time)."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_PLAIN: Final = re.compile(r"\d{4}-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?Z", re.ASCII)
_PARTS: Final = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_Step = tuple[bytes, str, Callable[[bytes], tuple[bytes | None, str]]]


def check_time(text: str) -> str:
    """The error of Go's decoder for *text* as a time; empty when it is one."""
    plain = _PLAIN.fullmatch(text)
    if plain and 1 <= int(plain[1]) <= 12 and 1 <= int(plain[2]) <= 28:
        return ""
    value = text.encode("utf-8", "surrogatepass")
    rest = value
    for prefix, element, read in _STEPS:
        if prefix and rest[:1] != prefix:
            return _refusal(value, rest, prefix.decode())
        rest = rest[len(prefix) :]
        after, out_of_range = read(rest)
        if out_of_range:
            return f"parsing time {_quote(value)}: {out_of_range} out of range"
        if after is None:
            return _refusal(value, rest, element)
        rest = after
    if rest:
        return f"parsing time {_quote(value)}: extra text: {_quote(rest)}"
    year, month, day = int(value[:4]), int(value[5:7]), int(value[8:10])
    if not 1 <= day <= monthrange(year or 2000, month)[1]:
        return f"parsing time {_quote(value)}: day out of range"
    return ""


def canonical_time(text: str) -> str:
    """A time as a server writes it: in UTC and whole seconds."""
    found = _PARTS.fullmatch(text.encode())
    if found is None or found[1] == b"0000":
        return text
    zone: timezone = UTC
    if found[7]:
        offset = timedelta(hours=int(found[8]), minutes=int(found[9]))
        zone = timezone(-offset if found[7] == b"-" else offset)
    moment = datetime(*(int(part) for part in found.groups()[:6]), tzinfo=zone)  # type: ignore[arg-type,misc]
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _year(rest: bytes) -> tuple[bytes | None, str]:
    return (rest[4:], "") if len(rest) >= 4 and rest[:4].isdigit() else (None, "")


def _number(
    low: int, high: int, name: str, *, short: bool = False
) -> Callable[[bytes], tuple[bytes | None, str]]:
    def read(rest: bytes) -> tuple[bytes | None, str]:
        if not rest[:1].isdigit():
            return None, ""
        size = 2 if rest[1:2].isdigit() else 1
        if size == 1 and not short:
            return None, ""
        return rest[size:], "" if low <= int(rest[:size]) <= high else name

    return read


def _second(rest: bytes) -> tuple[bytes | None, str]:
    after, out_of_range = _number(0, 59, "second")(rest)
    if after is None or out_of_range:
        return after, out_of_range
    fraction = re.match(rb"[.,][0-9]+", after)
    return (after[fraction.end() :] if fraction else after), ""


def _zone(rest: bytes) -> tuple[bytes | None, str]:
    if rest[:1] == b"Z":
        return rest[1:], ""
    if len(rest) < 6 or rest[3:4] != b":" or not (rest[1:3].isdigit() and rest[4:6].isdigit()):
        return None, ""
    if int(rest[4:6]) > 60:
        return rest[6:], "time zone offset minute"
    if int(rest[1:3]) > 24:
        return rest[6:], "time zone offset hour"
    return (rest[6:], "") if rest[:1] in (b"+", b"-") else (None, "")


_STEPS: Final[tuple[_Step, ...]] = (
    (b"", "2006", _year),
    (b"-", "01", _number(1, 12, "month")),
    # Go checks the day against the month when it has read everything.
    (b"-", "02", _number(0, 99, "day")),
    (b"T", "15", _number(0, 23, "hour", short=True)),
    (b":", "04", _number(0, 59, "minute")),
    (b":", "05", _second),
    (b"", "Z07:00", _zone),
)


def _refusal(value: bytes, rest: bytes, element: str) -> str:
    return f'parsing time {_quote(value)} as "{_LAYOUT}": cannot parse {_quote(rest)} as "{element}"'


def _quote(value: bytes) -> str:
    return f'"{"".join(map(_escape, value))}"'


def _escape(byte: int) -> str:
    if byte in b'"\\':
        return f"\\{chr(byte)}"
    # Go's time package escapes every byte that is no printable ASCII.
    return chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}"
