"""The diffs of a page: the first ones as text in it, the rest as data that is drawn when a reader opens one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dra_infra.planning.changes import Change
from dra_infra.planning.diff import Hunk
from dra_infra.planning.wording import count_of, show_hidden

MAX_LINES: Final = 2_000
"""Lines of one object's diff on the page."""

INLINE_LINES: Final = 3_000
"""Lines that are in the page as text: enough for nearly every pull request, also where scripts do not run."""

DATA_CHARACTERS: Final = 5_000_000
"""What all diffs that are drawn later may take; those after it are left to the JSON report."""

_SCRIPT_ESCAPES: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
# In JSON these only stand in strings, where an escape means the same. Without them nothing ends the script element.


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line on the page.

    Args:
        style: `add`, `del`, `at` for a path or a remark, empty for what stays.
        text: With hidden characters spelled out.
    """

    style: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddedDiffs:
    """The diffs of all changes.

    Args:
        inline: Lines by position of the change.
        left_out: Positions of changes whose diff is not on the page.
        data: The rest, as JSON that may stand in a script element: `lines` holds each text once with its style,
            `diffs` the numbers of lines by position of the change.
    """

    inline: Mapping[int, tuple[Line, ...]]
    left_out: frozenset[int]
    data: str


def embed_diffs(changes: Iterable[Change]) -> EmbeddedDiffs:
    """Share out the room of one page; what comes first in the review is served first."""
    inline: dict[int, tuple[Line, ...]] = {}
    left_out: set[int] = set()
    numbers: dict[tuple[str, str], int] = {}
    later: dict[int, list[int]] = {}
    inline_left, data_left = INLINE_LINES, DATA_CHARACTERS
    for position, change in enumerate(changes):
        lines = tuple(_lines(change))
        if len(lines) <= inline_left:
            inline[position] = lines
            inline_left -= len(lines)
            continue
        keys = [(line.style, line.text) for line in lines]
        size = sum(8 if key in numbers else len(key[1]) + 20 for key in keys)
        if size > data_left:
            left_out.add(position)
            continue
        data_left -= size
        later[position] = [numbers.setdefault(key, len(numbers)) for key in keys]
    data = {"lines": list(numbers), "diffs": later} if later else {}
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return EmbeddedDiffs(inline=inline, left_out=frozenset(left_out), data=text.translate(_SCRIPT_ESCAPES))


def _lines(change: Change) -> Iterator[Line]:
    left = MAX_LINES
    for hunk in change.diff:
        if left > 0:
            yield from _hunk(hunk, left, with_path=change.action in ("changed", "replaced"))
        left -= len(hunk.lines)
    if left < 0:
        yield Line(style="at", text=f"… {count_of(-left, 'more line')}")


def _hunk(hunk: Hunk, most: int, *, with_path: bool) -> Iterator[Line]:
    if with_path:
        yield Line(style="at", text=f"@@ {show_hidden(hunk.path)}")
    for line in hunk.lines[:most]:
        style = {"+": "add", "-": "del"}.get(line[:1], "")
        yield Line(style=style, text=show_hidden(line))
