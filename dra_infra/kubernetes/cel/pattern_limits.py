"""Says of which regular expressions Go and the engine differ: names of groups and of classes, and how deeply they nest.

Upstream: regexp/syntax/parse.go of Go, whose tree of an expression is at most 1,000 high. Its tables of characters
are those of the Go release that a server is built with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_MAX_HEIGHT: Final = 1000
_TOKEN: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\(\?P?<[^>]*>|\(\?[\w-]*[:)]|.", re.DOTALL
)
"""Matches what is quoted, an escape, a class, the start of a group, or a character."""
_NAMED: Final = re.compile(r"\(\?P?<([^>]*)>")
_CLASS: Final = re.compile(r"\\[pP](?:\{\^?([^}]*)\}|(.))", re.DOTALL)
_LONG_NAMES: Final = frozenset(
    {
        *("any", "assigned", "ascii", "lc", "cn", "casedletter", "combiningmark", "other", "number", "mark"),
        *("letter", "uppercaseletter", "lowercaseletter", "titlecaseletter", "modifierletter", "otherletter"),
        *("nonspacingmark", "spacingmark", "enclosingmark", "decimalnumber", "letternumber", "othernumber"),
        *("punctuation", "connectorpunctuation", "dashpunctuation", "openpunctuation", "closepunctuation"),
        *("initialpunctuation", "finalpunctuation", "otherpunctuation", "punct", "digit", "cntrl"),
        *("symbol", "mathsymbol", "currencysymbol", "modifiersymbol", "othersymbol", "unassigned"),
        *("separator", "spaceseparator", "lineseparator", "paragraphseparator", "control", "format"),
        *("surrogate", "privateuse"),
    }
)
"""Names of classes that Go knows from 1.25 on, besides those that differ in case only."""
_NEWER: Final = frozenset({"Kawi", "Nag_Mundari", "Garay", "Gurung_Khema", "Kirat_Rai", "Ol_Onal"}) | {
    *("Sunuwar", "Todhri", "Tulu_Tigalari", "Sidetic", "Tolong_Siki", "Beria_Erfe", "Tai_Yo")
}
"""Scripts of Unicode that the engine knows and Go may not."""


def wrong_name(pattern: str) -> str:
    """The first group whose name Go does not take, `(?P<é>`; empty when there is none."""
    for part in _TOKEN.findall(pattern):
        named = _NAMED.fullmatch(part)
        if named is not None and not re.fullmatch(r"[A-Za-z0-9_]+", named[1]):
            return str(part)
    return ""


def doubt_accepted(pattern: str) -> str:
    """Why it is not known that Go takes a pattern that the engine takes; empty when it does."""
    if any(name in _NEWER for name in _classes(pattern)):
        return "a class of characters that only some releases of Go know"
    if len(pattern) > _MAX_HEIGHT and _height(pattern) > _MAX_HEIGHT:
        return "a regular expression that Go may find nested too deeply"
    return ""


def doubt_refused(pattern: str) -> str:
    """Why it is not known that Go refuses a pattern in which the engine knows no class; empty when it does."""
    is_known = any(
        len(name) < 3 or name.lower().replace("_", "").replace(" ", "").replace("-", "") in _LONG_NAMES
        for name in _classes(pattern)
    )
    varies = any(name != name.title() and name.isascii() for name in _classes(pattern))
    return "a class of characters that only some releases of Go know" if is_known or varies else ""


def _classes(pattern: str) -> Iterator[str]:
    for long, short in _CLASS.findall(pattern):
        yield long or short


def _height(pattern: str) -> int:
    """No less than the height of Go's tree.

    A group is one level, with one more for what repeats it, for its alternatives, and for what stands in a row;
    a prefix that alternatives share is taken out of them, which makes two levels for each of its characters.
    """
    depth = deepest = bars = run = longest = 0
    for part in _TOKEN.findall(pattern):
        run += 1
        if part == "|":
            bars += 1
            longest, run = max(longest, run), 0
        elif part == ")":
            depth -= 1
        elif part.startswith("(") and not part.endswith(")"):
            depth += 1
            deepest, longest, run = max(deepest, depth), max(longest, run), 0
    return 4 * (deepest + 1) + 2 * min(bars, max(longest, run))
