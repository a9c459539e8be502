"""Compile what is built next with what a build leaves idle: a linker uses one core, and a download none."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tools import toolsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.toolsets import Toolset

_LOWEST = 19
_PR_SET_PDEATHSIG = 1


@contextmanager
def compiling(toolset: Toolset | None, *, jobs: int) -> Iterator[None]:
    """Let Go compile a toolset's packages into its cache during the block, at the lowest priority.

    Nothing depends on it: what it cannot do, or has not done at the end of the block, the toolset's own build does, and tells.
    Two compilers beside a linker take less memory than two linkers, for which there is room where there are two jobs.
    """
    if toolset is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="dra-infra-ahead-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            toolset.compile_command(jobs=jobs),
            cwd=toolset.folder,
            env={**toolsets.build_environment(), "GOTMPDIR": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=_come_last,  # noqa: PLW1509 - this process has one thread.
        )
        try:
            yield
        finally:
            # With its compilers, which would go on beside the build.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _come_last() -> None:
    os.nice(_LOWEST)
    # Who is killed cannot end it any more.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
