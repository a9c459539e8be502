"""A program that Python runs by itself: without Pulumi nothing is registered, and the SDK says nothing about it."""

from __future__ import annotations

import atexit
import sys
from functools import cache
from pathlib import Path
from typing import Final

from pulumi.runtime import settings

from dra_infra.output.escaping import one_line

_NOT_DEPLOYED: Final = (
    "{file}: nothing was deployed, for Python ran this program by itself\n"
    "  hint: `pulumi up` deploys it; `dra-infra synth` prints its objects and what is wrong with them"
)


@cache
def note_run_by_hand() -> None:
    """Say at the end of a process without an engine, real or of a test, that nothing is deployed; asked once in a process."""
    if settings.get_monitor() is None:
        file = one_line(Path(sys.argv[0]).name) or "the program"
        atexit.register(lambda: print(_NOT_DEPLOYED.format(file=file), file=sys.stderr))
