"""Regular expressions in RE2's dialect: `matches`, `find` and `findAll`.

The engine has RE2, whose replacing of all matches goes by the same rules as Go's finding of them: leftmost, and no empty
match right behind the one before. So matches are found by putting a mark on either side of them.

Upstream: k8s.io/apiserver/pkg/cel/library/regex.go, and FindAll of Go's regexp.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from dra_infra.cel.constants import refuse_pattern
from dra_infra.cel.interpreter.signatures import Overloads
from dra_infra.cel.interpreter.values import NO_SUCH_OVERLOAD, Err, UndecidedError, Value

_CONFIGURATION: Final = (
    "name: regex\nextensions:\n  - {name: optional, version: 2}\n  - {name: regex, version: 0}\n"
)
_MARKS: Final = range(0xE000, 0x110000)
"""Characters that mean nothing to anybody come first."""


@lru_cache(maxsize=2)
def _program(expression: str) -> Any:
    from cel_expr_python import cel

    environment = cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_CONFIGURATION),
        variables=dict.fromkeys(("text", "pattern", "marked"), cel.Type.STRING),
    )
    return environment.compile(expression)


def _run(expression: str, text: str, pattern: str, marked: str = "") -> Any:
    result = _program(expression).eval(data={"text": text, "pattern": pattern, "marked": marked})
    if result.type().name() == "ERROR":
        raise UndecidedError(f"a regular expression: {result.value()}")
    return result.value()


def _refusal(text: str, pattern: str) -> str:
    if "\0" in text or "\0" in pattern:
        raise UndecidedError("a text with NUL")
    return refuse_pattern(pattern)


def matches(text: Value, pattern: Value) -> Value:
    """Whether the pattern occurs in the text."""
    if type(text) is not str or type(pattern) is not str:
        return Err(NO_SUCH_OVERLOAD)
    refusal = _refusal(text, pattern)
    return Err(refusal) if refusal else bool(_run("text.matches(pattern)", text, pattern))


def find(text: str, pattern: str) -> Value:
    """The leftmost match, empty without one."""
    found = find_all(text, pattern)
    return found if type(found) is Err else found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> Value:
    """The matches from left to right, all of them when the limit is negative."""
    refusal = _refusal(text, pattern)
    if refusal:
        return Err(f"Illegal regex: {refusal}")
    mark = next(chr(code) for code in _MARKS if chr(code) not in text)
    parts = _run("regex.replace(text, pattern, marked)", text, pattern, rf"{mark}\0{mark}").split(mark)[1::2]
    return parts if limit < 0 else parts[:limit]


REGEX: Final[dict[str, Overloads]] = {
    "find": ((("string", "string"), find),),
    "findAll": ((("string", "string"), find_all), (("string", "string", "int"), find_all)),
}
"""Functions of regular expressions but `matches`, which takes anything."""
