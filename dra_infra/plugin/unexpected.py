"""What nobody expected, in threads that have to go on: a bug in one part is told, and tried again, and stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Final

from dra_infra.errors import PluginError, Problem

_LONGEST: Final = 2000
"""Characters of a stranger's text; what is answered to the kubelet is cut again (service/answers.py)."""


@contextmanager
def expected(what: str, *, then: str = "it is tried again") -> Iterator[None]:
    """Have everything that is raised be a `PluginError`, with code `plugin-failed` and its cause where it is none.

    Args:
        what: Is done, for a person.
        then: What becomes of it.
    """
    try:
        yield
    except PluginError:
        raise
    except Exception as error:
        problem = Problem(
            path=what,
            code="plugin-failed",
            message=f"nobody expected this: {type(error).__name__}: {str(error)[:_LONGEST]} ({_line(error)})",
            hint=f"{then}; tell its authors, with the log",
        )
        raise PluginError([problem]) from error


def _line(error: Exception) -> str:
    """Where it was raised: whoever writes a back end has to know, and not each log has the traceback."""
    last = extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}, in {last.name}"
