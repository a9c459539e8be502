"""Regular expressions in RE2's dialect, which the engine has, with the words of Go for those that do not compile.

These are the only expressions that the engine evaluates, and all of them stand in this module: it has RE2, and Python
has nothing that reads patterns as Go does. Its replacing of all matches goes by the same rules as Go's finding of them:
leftmost, and no empty match right behind the one before. So matches are found by putting a mark on either side of them.

Upstream: k8s.io/apiserver/pkg/cel/library/regex.go, and FindAll of Go's regexp.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import lru_cache
from typing import Any, Final

from dra_infra.kubernetes.cel.pattern_limits import doubt_accepted, doubt_refused, wrong_name

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
    value = _evaluate(_COMPILE, pattern=b64encode(pattern.encode()).decode())
    if value.type().name() != "ERROR":
        if named := wrong_name(pattern):
            return f"error parsing regexp: invalid named capture: `{named}`"
        if doubt := doubt_accepted(pattern):
            raise PatternError(doubt)
        # The engine's dialect knows one escape more.
        return (
            "error parsing regexp: invalid escape sequence: `\\C`" if "C" in _ESCAPE.findall(pattern) else ""
        )
    reason = str(value.value()).partition("invalid regular expression: ")[2]
    if not reason or reason.startswith("pattern too large"):
        raise PatternError("a regular expression that is too large for the engine")
    if reason.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    name, _, place = reason.partition(": ")
    if name == "invalid UTF-8":
        # The engine reads on behind the end of the escape.
        name, place = "invalid escape sequence", pattern[pattern.rfind("\\x") :]
    if name == "invalid perl operator" and place.startswith("(?<"):
        rest = pattern[pattern.find("(?<") :]
        name, place = "invalid named capture", rest[: rest.find(">") + 1] or rest
    if (
        name == "invalid character class range"
        and place[:2] in ("\\p", "\\P")
        and (doubt := doubt_refused(place))
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
