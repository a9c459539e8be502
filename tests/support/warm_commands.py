"""`dra-infra` for tests: each command is a process of its own, forked from one that has loaded what commands load.

A command as users start it loads for half a second what the one before it has loaded, and so does each process in which
`review` and `compile` run a program; the tests run hundreds. Exit codes, streams, signals, confinement and environment are
those of a real process. Tests of what is loaded, and when, start Python themselves.
"""

from __future__ import annotations

import functools
import shlex
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from tools.warm_python import warm_python

_ROOT: Final = Path(__file__).parents[2]
_PACKAGES: Final = ("advice", "cli", "components", "review")
_LATE: Final = (
    "cel_expr_python",
    "encodings.utf_8_sig",
    "pulumi_kubernetes.apps.v1",
    "pulumi_kubernetes.batch.v1",
    "pulumi_kubernetes.core.v1",
    "pulumi_kubernetes.resource.v1",
    "pydantic.dataclasses",
    "pydantic.type_adapter",
)
"""What these packages load when they need it, and programs."""

_COMMAND: Final = """\
import gc
import sys

# A run of a program counts frozen objects, and the server has many.
gc.unfreeze()

# Where `review` and `compile` run programs.
sys.executable = {python!r}

from dra_infra.cli.process import main

sys.exit(main())
"""
_open: Final = ExitStack()


class Warm(NamedTuple):
    """What the server runs."""

    command: str
    """`dra-infra`; its folder may come first on a PATH."""

    python: str
    """Runs `-s -P -S -c CODE`, and scripts with `-u`, as `python` does."""


@functools.cache
def warm() -> Warm:
    """Start the server of this test process, which ends with the session."""
    directory = Path(_open.enter_context(tempfile.TemporaryDirectory(prefix="dra-infra-warm-")))
    python = _open.enter_context(warm_python(directory, *_modules(), *_LATE))
    # Messages of usage name the command as the script is named.
    script = directory / "script" / "dra-infra"
    command = directory / "bin" / "dra-infra"
    for file, text in (
        (script, _COMMAND.format(python=str(python))),
        (command, f'#!/bin/sh\nexec {shlex.join([str(python), "-u", str(script)])} "$@"\n'),
    ):
        file.parent.mkdir()
        file.write_text(text)
    command.chmod(0o755)
    return Warm(str(command), str(python))


def stop() -> None:
    """End the server, if there is one."""
    _open.close()
    warm.cache_clear()


def _modules() -> list[str]:
    files = (file for name in _PACKAGES for file in (_ROOT / "dra_infra" / name).rglob("*.py"))
    return sorted(
        ".".join(file.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files
    )
