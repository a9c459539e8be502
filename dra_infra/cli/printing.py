"""What goes to a terminal: data on standard output, everything said about it on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dra_infra.errors import Problem
from dra_infra.model.secrets import SecretMask, secret_texts

if TYPE_CHECKING:
    from dra_infra.model.program import NotSeen

_RED, _YELLOW, _DIM, _RESET = "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"


def print_problems(problems: Sequence[Problem], *, with_count: bool = True) -> None:
    """Every problem with its hint on standard error, and how many there are."""
    colours = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    mask = SecretMask(secret_texts(os.environ))
    for problem in map(mask.problem, problems):
        mark = "✗" if problem.severity == "error" else "!"
        colour = _RED if problem.severity == "error" else _YELLOW
        line, _, hint = str(problem).partition("\n")
        print(f"{colour}{mark}{_RESET} {line}" if colours else f"{mark} {line}", file=sys.stderr)
        if hint:
            print(f"{_DIM}{hint}{_RESET}" if colours else hint, file=sys.stderr)
    errors = sum(problem.severity == "error" for problem in problems)
    if errors and with_count:
        print("1 problem" if errors == 1 else f"{errors} problems", file=sys.stderr)


def print_not_seen(not_seen: Iterable[NotSeen]) -> None:
    """What the answer leaves out, on standard error."""
    for each in not_seen:
        print(f"not seen: {each}", file=sys.stderr)


def write_output(text: str) -> None:
    """Data on standard output, ending with a line break."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()
