from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api.go_time import canonical_time, check_time

LAYOUT = '"2006-01-02T15:04:05Z07:00"'


_EARLIEST, _LATEST = (datetime(year, 1, 1) for year in (2, 9998))  # noqa: DTZ001  (the strategy wants them so)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.123456789Z",
        "2026-01-02T03:04:05,5Z",
        "2026-01-02T3:04:05Z",
        "2024-02-29T03:04:05-23:59",
        "2026-01-02T03:04:05+24:60",
        "0000-02-29T00:00:00Z",
    ],
)
def test_what_go_takes_for_a_time_is_one(text):
    assert check_time(text) == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", f'parsing time "" as {LAYOUT}: cannot parse "" as "2006"'),
        ("soon", f'parsing time "soon" as {LAYOUT}: cannot parse "soon" as "2006"'),
        ("2026-01-02", f'parsing time "2026-01-02" as {LAYOUT}: cannot parse "" as "T"'),
        (
            "2026-01-02 03:04:05Z",
            f'parsing time "2026-01-02 03:04:05Z" as {LAYOUT}: cannot parse " 03:04:05Z" as "T"',
        ),
        (
            "2026-1-02T03:04:05Z",
            f'parsing time "2026-1-02T03:04:05Z" as {LAYOUT}: cannot parse "1-02T03:04:05Z" as "01"',
        ),
        ("2026-13-02T03:04:05Z", 'parsing time "2026-13-02T03:04:05Z": month out of range'),
        ("2026-02-30T03:04:05Z", 'parsing time "2026-02-30T03:04:05Z": day out of range'),
        ("2026-02-00T03:04:05Z", 'parsing time "2026-02-00T03:04:05Z": day out of range'),
        ("2026-01-02T24:04:05Z", 'parsing time "2026-01-02T24:04:05Z": hour out of range'),
        ("2026-01-02T03:60:05Z", 'parsing time "2026-01-02T03:60:05Z": minute out of range'),
        ("2026-01-02T03:04:60Z", 'parsing time "2026-01-02T03:04:60Z": second out of range'),
        (
            "2026-01-02T03:04:05",
            f'parsing time "2026-01-02T03:04:05" as {LAYOUT}: cannot parse "" as "Z07:00"',
        ),
        ("2026-01-02T03:04:05Zx", 'parsing time "2026-01-02T03:04:05Zx": extra text: "x"'),
        (
            "2026-01-02T03:04:05+25:00",
            'parsing time "2026-01-02T03:04:05+25:00": time zone offset hour out of range',
        ),
        (
            '2"é\n',
            f'parsing time "2\\"\\xc3\\xa9\\x0a" as {LAYOUT}: cannot parse "2\\"\\xc3\\xa9\\x0a" as "2006"',
        ),
    ],
)
def test_what_is_no_time_is_told_in_the_words_of_go(text, told):
    assert check_time(text) == told


@given(
    st.datetimes(min_value=_EARLIEST, max_value=_LATEST),
    st.integers(-23 * 60, 23 * 60),
)
def test_times_are_written_in_utc_and_whole_seconds(moment, minutes):
    there = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    text = there.isoformat(timespec="microseconds")
    assert check_time(text) == ""
    written = canonical_time(text)
    assert datetime.fromisoformat(written) == there.astimezone(UTC).replace(microsecond=0)
    assert canonical_time(written) == written


@given(st.text(alphabet="0123456789-T:Z+., ", max_size=30))
def test_any_text_is_a_time_or_told(text):
    assert check_time(text) == "" or check_time(text).startswith("parsing time ")
