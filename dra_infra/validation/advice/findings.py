"""A piece of advice before it has a path, and the parts of an expression that hints quote."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dra_infra.errors import Problem

MAX_QUOTED = 200
"""Longest clause, in characters, that a hint repeats."""

_JOINTS: Final = re.compile(r"""\"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[()\[\]{}?]|&&|\|\|""", re.DOTALL)
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")


class Finding(NamedTuple):
    """What is wrong and what to write, for any place where it is written."""

    code: str
    message: str
    hint: str = ""

    def at(self, path: str) -> Problem:
        """The warning at *path*."""
        return Problem(path=path, code=self.code, message=self.message, hint=self.hint, severity="warning")


def clauses(text: str) -> tuple[str, ...]:
    """The parts of an expression between `&&` outside of brackets; the whole when `||` or `?` joins them looser."""
    parts: list[str] = []
    depth, start = 0, 0
    for match in _JOINTS.finditer(text):
        joint = match[0]
        if joint in _OPENING:
            depth += 1
        elif joint in _CLOSING:
            depth -= 1
        elif depth == 0 and (joint == "||" or (joint == "?" and _is_choice(text, match.start()))):
            return (text.strip(),)
        elif depth == 0 and joint == "&&":
            parts.append(text[start : match.start()].strip())
            start = match.end()
    return (*parts, text[start:].strip())


def clause_with(text: str, word: str) -> str:
    """The first clause of *text* in which *word* is, on one line; empty when it is too long to be quoted."""
    for clause in clauses(text):
        if word in clause:
            line = " ".join(clause.split())
            return line if len(line) <= MAX_QUOTED else ""
    return ""


def show(text: str) -> str:
    """*text* in quotes, in bounded length."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def listed(names: list[str], *, most: int = 4) -> str:
    """`a, b and 3 more`."""
    if len(names) <= most:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def _is_choice(text: str, index: int) -> bool:
    """Whether a `?` is the operator, and not the mark of `.?name` or `[?"name"]`."""
    before = text[:index].rstrip()[-1:]
    return before not in (".", "[")
