"""The engine's run-time error texts in cel-go's words."""

from __future__ import annotations

import re
from typing import Final

_STATUS = re.compile(r"[A-Z_]+: ")
"""The engine puts the class of its status in front."""

_TEXTS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (r'Key not found in map : "(.*)"', r"no such key: \1"),
        (r"Key not found in map : (.*)", r"no such key: \1"),
        (r"divide by zero", "division by zero"),
        (r"Index error: index=(-?\d+) size=\d+", r"index out of bounds: \1"),
        (r"No matching overloads found : <iter_range>.*", "expected iterable type"),
        (r"No matching overloads found : .*", "no such overload"),
        (r"cannot convert string to (\w+)", r"type conversion error from 'string' to '\1'"),
    )
)


_LIBRARY: Final = frozenset(
    {
        *(
            "charAt",
            "indexOf",
            "lastIndexOf",
            "lowerAscii",
            "upperAscii",
            "replace",
            "split",
            "substring",
            "trim",
        ),
        *("distinct", "flatten", "reverse", "slice", "join"),
    }
)
"""Functions for which cel-go names the types in its error."""

_OVERLOAD = re.compile(
    r"No matching overloads found : (?:\((?P<target>[^()]*)\)\.)?(?P<name>[\w<>=+]+)(?:\((?P<args>.*)\))?"
)
_ORDER: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_", "_+_"})


def _overload(match: re.Match[str]) -> str:
    kinds = [kind for text in (match["target"], match["args"]) if text for kind in text.split(", ")]
    if match["name"] == "size":
        return "no such overload: size"
    if match["name"] in _ORDER and kinds[:1] == ["bytes"]:
        return f"no such overload: {match['name']}"
    if match["name"] in _LIBRARY:
        names = {"int64": "int", "uint64": "uint", "bytes": "kubernetes.Semver"}
        return f"no such overload: {match['name']}({', '.join(names.get(kind, kind) for kind in kinds)})"
    return "no such overload"


def translate(text: str) -> str:
    """The error of the run environment as the scheduler reports it; an unknown one is kept."""
    text = _STATUS.sub("", text, count=1) if _STATUS.match(text) else text
    overload = _OVERLOAD.fullmatch(text)
    if overload:
        return _overload(overload)
    for pattern, replacement in _TEXTS:
        match = pattern.fullmatch(text)
        if match:
            return match.expand(replacement)
    return text
