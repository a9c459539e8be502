"""Spellings that Kubernetes' parser takes and the engine does not, written so that the engine takes them.

Every replacement is as wide as what it replaces, so that positions in errors stay right.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from dra_infra.cel.declare import device_fields, has_lists
from dra_infra.cel.release import Environment

_STRING: Final = (
    r"(?:[rR][bB]?|[bB][rR])(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n]*\"|'[^'\n]*')"
    r"|\"\"\"(?:[^\\]|\\[\s\S])*?\"\"\"|'''(?:[^\\]|\\[\s\S])*?'''"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
)
_CANDIDATE = re.compile(r"\bhas\s*\(\s*device\s*\.\s*\w+\s*\)|\bexists_one\b|\bflatten\b")
_ESCAPED = re.compile(rf"\w+(?={_STRING})|{_STRING}|//[^\n]*|(?P<escaped>`[^`\n]*`)")
_STAND_IN: Final = "flatteN"


def respell(text: str, environment: Environment) -> str:
    """The same expression for the engine.

    A field of `device` is a variable of the engine, and has() of a variable has no meaning there; the fields are
    always present. The engine lacks the older spelling of existsOne with two variables, and its flatten() takes lists
    that the server's does not, so that one is declared anew under another name.
    """
    if not _CANDIDATE.search(text):
        return text
    return _spellings(environment).sub(_replace, text)


def find_escaped(text: str) -> list[int]:
    """Offsets of names in backticks, which servers before 1.37 do not parse."""
    return [match.start() for match in _ESCAPED.finditer(text) if match["escaped"]] if "`" in text else []


def is_reserved(text: str) -> bool:
    """Whether *text* holds a name that is needed here."""
    return _STAND_IN in text


def stand_in(function: str) -> str:
    """The name under which a function is declared."""
    return _STAND_IN if function == "flatten" else function


def restore_bytes(serialized: bytes) -> bytes:
    """A serialized tree with the server's names."""
    return serialized.replace(_STAND_IN.encode(), b"flatten")


def restore_text(report: str) -> str:
    """A report of the engine with the server's names."""
    return report.replace(_STAND_IN, "flatten")


@lru_cache(maxsize=32)
def _spellings(environment: Environment) -> re.Pattern[str]:
    flatten = r"|(?P<flatten>\bflatten)(?=\s*\()" if has_lists(environment) else "|(?P<flatten>(?!))"
    return re.compile(
        rf"(?P<kept>\w+(?={_STRING})|{_STRING}|//[^\n]*)"
        rf"|(?P<has>\bhas\s*\(\s*device\s*\.\s*(?:{'|'.join(device_fields(environment))})\s*\))"
        rf"|(?P<exists>\bexists_one)(?=\s*\(\s*\w+\s*,\s*\w+\s*,){flatten}"
    )


def _replace(match: re.Match[str]) -> str:
    if match["has"]:
        return re.sub(" {4}", "true", re.sub(r"[^\n]", " ", match["has"]), count=1)
    if match["flatten"]:
        return _STAND_IN
    return "existsOne " if match["exists"] else match["kept"]
