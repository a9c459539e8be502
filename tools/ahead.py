"""Compile what is built next with what a build leaves idle: a linker uses one core, and a download none."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tools import toolsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.toolsets import Toolset

_LOWEST = 19


@contextmanager
def compiling(toolset: Toolset | None, *, jobs: int) -> Iterator[None]:
    """Let Go compile a toolset's packages into its cache during the block, below everything else that runs.

    Nothing depends on it: what it cannot do, or has not done at the end of the block, the toolset's own build does, and tells.
    """
    if toolset is None:
        yield
        return
    # Compilers outlive a Go that is killed, until they find their folder gone.
    with tempfile.TemporaryDirectory(prefix="dra-infra-ahead-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            toolset.compile_command(jobs=jobs),
            cwd=toolset.folder,
            env={**toolsets.build_environment(), "GOTMPDIR": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_come_last,  # noqa: PLW1509 - this process has one thread.
        )
        try:
            yield
        finally:
            process.kill()
            process.wait()


def _come_last() -> None:
    os.nice(_LOWEST)
