"""Timestamps and durations: reading and printing them as Go does, and their parts.

Upstream: common/types/{timestamp,duration}.go; without a zone the parts are those in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from dra_infra.kubernetes.api.go_text import quoted
from dra_infra.kubernetes.cel.constants import read_digits
from dra_infra.kubernetes.cel.interpreter.values import (
    INT64,
    MAX_SECONDS,
    MIN_SECONDS,
    Duration,
    Err,
    Overload,
    Overloads,
    Timestamp,
    UndecidedError,
    Value,
)

_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_OFFSET = re.compile(r"[+-]?[0-9]+", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_DURATION: Final = "google.protobuf.Duration"
_CYCLE: Final = 146097 * 86400
"""Seconds of 400 years, after which the calendar is the same again, weekdays too."""
_SECOND_DAY: Final = MIN_SECONDS + 86400
_LAST_DAY: Final = MAX_SECONDS + 1 - 86400


def parse_timestamp(text: str) -> Timestamp | None:
    """A time of RFC 3339 as Go's time.Parse takes it, which is a little more than the RFC; None when it does not."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    if hour > 23 or minute > 59 or second > 59 or int(match[9] or 0) > 24 or int(match[10] or 0) > 60:
        return None
    days = _days(year, month, day)
    if days is None:
        return None
    offset = (int(match[9] or 0) * 60 + int(match[10] or 0)) * 60 * (-1 if match[8] == "-" else 1)
    nanos = int((match[7] or "")[:9].ljust(9, "0"))
    return Timestamp(days * 86400 + hour * 3600 + minute * 60 + second - offset, nanos, offset)


def _days(year: int, month: int, day: int) -> int | None:
    try:
        # The year 0 has the calendar of the year 400.
        return date(year or 400, month, day).toordinal() - 719163 - (146097 if year == 0 else 0)
    except ValueError:
        return None


def print_timestamp(time: Timestamp) -> Value:
    """The time as RFC 3339 with its own offset."""
    local, years = _local(time, time.offset)
    fraction = f".{time.nanos:09}".rstrip("0") if time.nanos else ""
    sign = "-" if time.offset < 0 else "+"
    minutes = abs(time.offset) // 60
    zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}" if time.offset else "Z"
    return f"{local.year + years:04}-{local:%m-%dT%H:%M:%S}{fraction}{zone}"


def _local(time: Timestamp, offset: int = 0) -> tuple[datetime, int]:
    """The time in a zone, and the years that it lacks: a datetime has only those from 1 to 9999."""
    seconds = time.seconds + offset
    cycles = (seconds >= _LAST_DAY) - (seconds < _SECOND_DAY)
    return _EPOCH + timedelta(seconds=seconds - cycles * _CYCLE), cycles * 400


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda time: time.year,
    "getMonth": lambda time: time.month - 1,
    "getDayOfYear": lambda time: time.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda time: time.day - 1,
    "getDate": lambda time: time.day,
    "getDayOfWeek": lambda time: time.isoweekday() % 7,
    "getHours": lambda time: time.hour,
    "getMinutes": lambda time: time.minute,
    "getSeconds": lambda time: time.second,
    "getMilliseconds": lambda time: time.microsecond // 1000,
}
_MILLISECOND: Final = 10**6
_SPAN_UNITS: Final = {
    "getHours": 3600 * 10**9,
    "getMinutes": 60 * 10**9,
    "getSeconds": 10**9,
    "getMilliseconds": _MILLISECOND,
}


def _part(name: str) -> Overloads:
    def part(time: Timestamp, offset: int) -> int:
        local, years = _local(time, offset)
        lacking = years if name == "getFullYear" else 0
        return _PARTS[name](local.replace(microsecond=time.nanos // 1000)) + lacking

    def in_zone(time: Timestamp, zone: str) -> Value:
        offset = _offset(time, zone)
        return offset if isinstance(offset, Err) else part(time, offset)

    overloads: list[Overload] = [
        ((_TIMESTAMP,), lambda time: part(time, 0)),
        ((_TIMESTAMP, "string"), in_zone),
    ]
    if name in _SPAN_UNITS:
        overloads.append(((_DURATION,), lambda span: _whole(span, _SPAN_UNITS[name])))
    return tuple(overloads)


def _whole(span: Duration, unit: int) -> int:
    whole, rest = divmod(abs(span.nanos), unit)
    if unit > _MILLISECOND:
        # Go asks Seconds, Minutes and Hours, which are float64: a nanosecond less than 2**33 seconds is 2**33 (time/time.go).
        whole = int(whole + rest / unit)
    return -whole if span.nanos < 0 else whole


def _offset(time: Timestamp, zone: str) -> int | Err:
    """Seconds from UTC of a zone, which is a name or `+01:30`."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        return _offset_of_name(time, zone)
    numbers = []
    for part in (hours, minutes):
        if not _OFFSET.fullmatch(part):
            return Err(f"strconv.Atoi: parsing {quoted(part)}: invalid syntax")
        numbers.append(read_digits(part))
        if numbers[-1] not in INT64:
            return Err(f"strconv.Atoi: parsing {quoted(part)}: value out of range")
    if max(map(abs, numbers)) > 10**6:
        raise UndecidedError("a time zone that far from UTC")
    sign = -1 if zone[0] == "-" else 1
    return (numbers[0] * 60 + sign * numbers[1]) * 60


def _offset_of_name(time: Timestamp, name: str) -> int | Err:
    if name in ("", "UTC"):
        return 0
    if name == "Local":
        raise UndecidedError("the time zone of the server")
    if ".." in name or name[0] in "/\\":
        return Err("time: invalid location name")
    zone = _zone(name)
    if zone is None:
        return Err(f"unknown time zone {name}")
    local, _ = _local(time)
    offset = local.astimezone(zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError:
        known = available_timezones()
        if not known:
            raise UndecidedError("a time zone, for this system has no table of them") from None
        if not any(each.startswith(f"{name.rstrip('/')}/") for each in known):
            return None
    except (ValueError, OSError):
        pass
    raise UndecidedError("a time zone that is a file or folder of the server")


TIMES: Final[dict[str, Overloads]] = {name: _part(name) for name in _PARTS}
"""The parts of times and spans."""
