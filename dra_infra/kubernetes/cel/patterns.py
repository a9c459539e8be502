"""Regular expressions in RE2's dialect, which the engine has, with the words of Go for those that do not compile.

These are the only expressions that the engine evaluates, and all of them stand in this module: it has RE2, and Python
has nothing that reads patterns as Go does. Its replacing of all matches goes by the same rules as Go's finding of them:
leftmost, and no empty match right behind the one before. So matches are found by putting a mark on either side of them.

Go and the engine differ in names of groups and of classes, and in how deeply they nest: Go's tree of an expression is at
most 1,000 high, and its tables of characters are those of the Go release that a server is built with.

Upstream: k8s.io/apiserver/pkg/cel/library/regex.go, and FindAll and syntax/parse.go of Go's regexp.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

_CONFIGURATION: Final = """
name: patterns
extensions:
  - {name: optional, version: 2}
  - {name: regex, version: 0}
  - {name: encoders, version: 0}
"""
_COMPILE: Final = "''.matches(string(base64.decode(pattern)))"
"""The engine cuts a text that it is given at the first NUL, which a pattern may hold."""

_REASONS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
_ESCAPE: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\(.)", re.DOTALL)
"""A text that `\\Q` quotes, or the character of an escape."""
_NO_ESCAPES: Final = "yjigmoquMHJKLNOTUXY"
"""Letters that are escapes to neither."""
_SHORT: Final = 256
"""Characters of a text and a pattern together."""
_MARKS: Final = range(0xE000, 0x110000)
"""Characters that mean nothing to anybody come first."""


class PatternError(Exception):
    """It is not known what Go says of a pattern, or the engine gives up on one that compiles."""


@lru_cache(maxsize=1024)
def refuse_pattern(pattern: str) -> str:
    """Why a regular expression does not compile in Go, in its words; empty when it does.

    Raises:
        PatternError: When it is not known whether it does.
    """
    if "C" in _ESCAPE.findall(pattern):
        # RE2 has this escape and Go has not. Another one that neither has is refused at the same place.
        letter = next(each for each in _NO_ESCAPES if f"\\{each}" not in pattern)
        without = _ESCAPE.sub(lambda found: f"\\{letter}" if found[1] == "C" else found[0], pattern)
        return refuse_pattern(without).replace(f"\\{letter}", "\\C")
    value = _evaluate(_COMPILE, pattern=b64encode(pattern.encode()).decode())
    if value.type().name() != "ERROR":
        if named := _wrong_name(pattern):
            return f"error parsing regexp: invalid named capture: `{named}`"
        if doubt := _doubt_accepted(pattern):
            raise PatternError(doubt)
        return ""
    reason = str(value.value()).partition("invalid regular expression: ")[2]
    if not reason or reason.startswith("pattern too large"):
        raise PatternError("a regular expression that is too large for the engine")
    if reason.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    name, _, place = reason.partition(": ")
    if name == "invalid UTF-8":
        # The engine reads on behind the end of the escape.
        name = "invalid escape sequence"
        place = pattern[pattern.rfind("\\x") :]
    if name == "invalid perl operator" and place.startswith("(?<"):
        rest = pattern[pattern.find("(?<") :]
        name = "invalid named capture"
        place = rest[: rest.find(">") + 1] or rest
    if (
        name == "invalid character class range"
        and place[:2] in ("\\p", "\\P")
        and (doubt := _doubt_refused(place))
    ):
        raise PatternError(doubt)
    return f"error parsing regexp: {_REASONS.get(name, name)}: `{place}`"


def is_match(text: str, pattern: str) -> bool:
    """Looks for a pattern that compiles in a text; neither holds NUL.

    Devices of a kind have the same texts, so the answers for short ones are kept.

    Raises:
        PatternError: When the engine does not say.
    """
    return (_match_short if len(text) + len(pattern) <= _SHORT else _match)(text, pattern)


def _match(text: str, pattern: str) -> bool:
    return bool(_read("text.matches(pattern)", text=text, pattern=pattern))


_match_short: Final = lru_cache(maxsize=4096)(_match)


def find_matches(text: str, pattern: str) -> list[str]:
    """All matches of a pattern that compiles, from left to right; neither it nor the text holds NUL.

    Raises:
        PatternError: When the engine does not say.
    """
    mark = next(chr(code) for code in _MARKS if chr(code) not in text)
    marked = _read(
        "regex.replace(text, pattern, marked)", text=text, pattern=pattern, marked=rf"{mark}\0{mark}"
    )
    return str(marked).split(mark)[1::2]


def _read(expression: str, **variables: str) -> Any:
    result = _evaluate(expression, **variables)
    if result.type().name() == "ERROR":
        raise PatternError(str(result.value()))
    return result.value()


def _evaluate(expression: str, **variables: str) -> Any:
    return _program(expression).eval(data=variables)


@lru_cache(maxsize=4)
def _program(expression: str) -> Any:
    return _environment().compile(expression)


@lru_cache(maxsize=1)
def _environment() -> Any:
    from cel_expr_python import cel

    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_CONFIGURATION),
        variables=dict.fromkeys(("text", "pattern", "marked"), cel.Type.STRING),
    )


_MAX_HEIGHT: Final = 1000
_TOKEN: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\(\?P?<[^>]*>|\(\?[\w-]*[:)]|.", re.DOTALL
)
"""Matches what is quoted, an escape, a class, the start of a group, or a character."""
_NAMED: Final = re.compile(r"\(\?P?<([^>]*)>")
_CLASS: Final = re.compile(r"\\[pP](?:\{\^?([^}]*)\}|(.))", re.DOTALL)
_LONG_NAMES: Final = frozenset(
    {
        "any",
        "assigned",
        "ascii",
        "lc",
        "cn",
        "casedletter",
        "combiningmark",
        "other",
        "number",
        "mark",
        "letter",
        "uppercaseletter",
        "lowercaseletter",
        "titlecaseletter",
        "modifierletter",
        "otherletter",
        "nonspacingmark",
        "spacingmark",
        "enclosingmark",
        "decimalnumber",
        "letternumber",
        "othernumber",
        "punctuation",
        "connectorpunctuation",
        "dashpunctuation",
        "openpunctuation",
        "closepunctuation",
        "initialpunctuation",
        "finalpunctuation",
        "otherpunctuation",
        "punct",
        "digit",
        "cntrl",
        "symbol",
        "mathsymbol",
        "currencysymbol",
        "modifiersymbol",
        "othersymbol",
        "unassigned",
        "separator",
        "spaceseparator",
        "lineseparator",
        "paragraphseparator",
        "control",
        "format",
        "surrogate",
        "privateuse",
    }
)
"""Names of classes that Go knows from 1.25 on, besides those that differ in case only."""
_NEWER: Final = frozenset({"Kawi", "Nag_Mundari", "Garay", "Gurung_Khema", "Kirat_Rai", "Ol_Onal"}) | {
    "Sunuwar",
    "Todhri",
    "Tulu_Tigalari",
    "Sidetic",
    "Tolong_Siki",
    "Beria_Erfe",
    "Tai_Yo",
}
"""Scripts of Unicode that the engine knows and Go may not."""


def _wrong_name(pattern: str) -> str:
    """The first group whose name Go does not take, `(?P<é>`; empty when there is none."""
    for part in _TOKEN.findall(pattern):
        named = _NAMED.fullmatch(part)
        if named is not None and not re.fullmatch(r"[A-Za-z0-9_]+", named[1]):
            return str(part)
    return ""


def _doubt_accepted(pattern: str) -> str:
    """Why it is not known that Go takes a pattern that the engine takes; empty when it does."""
    if any(name in _NEWER for name in _classes(pattern)):
        return "a class of characters that only some releases of Go know"
    if len(pattern) > _MAX_HEIGHT and _height(pattern) > _MAX_HEIGHT:
        return "a regular expression that Go may find nested too deeply"
    return ""


def _doubt_refused(pattern: str) -> str:
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
            longest = max(longest, run)
            run = 0
        elif part == ")":
            depth -= 1
        elif part.startswith("(") and not part.endswith(")"):
            depth += 1
            deepest = max(deepest, depth)
            longest = max(longest, run)
            run = 0
    return 4 * (deepest + 1) + 2 * min(bars, max(longest, run))
