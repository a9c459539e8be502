"""What nobody expected, in threads that have to go on: a bug in one part is told, and tried again, and stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dra_infra.errors import PluginError, Problem


@contextmanager
def expected(what: str) -> Iterator[None]:
    """Have everything that is raised be a `PluginError`, with code `plugin-failed` and its cause where it is none.

    Args:
        what: Is done, for a person.
    """
    try:
        yield
    except PluginError:
        raise
    except Exception as error:
        problem = Problem(
            path=what,
            code="plugin-failed",
            message=f"{type(error).__name__}: {str(error)[:300]}",
            hint="it is tried again; tell its authors, with the log",
        )
        raise PluginError([problem]) from error
