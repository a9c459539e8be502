"""An interpreter for the engine's many short processes that has loaded its modules before they start.

One command of the engine starts three Python processes: language host, program and provider. Each loads for a third of a second
what the one before it has loaded, and the end-to-end tests run six hundred commands. Here one server loads everything once and
forks a copy for each script: a process of its own, with the caller's folder, environment and streams, as if `python` had run it.

The fast tests run `dra-infra` so, and the programs that it runs (`tests/support/warm_commands.py`).

Programs that name a virtual environment, and everything outside of tests, are run by that interpreter itself.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.errors import ToolError

_HERE: Final = Path(__file__).resolve().parent
_STOP_SECONDS: Final = 60.0


@contextmanager
def warm_python(directory: Path, *modules: str) -> Iterator[Path]:
    """Yield a command that runs scripts as `python` does, in copies of a process that has loaded *modules*.

    Args:
        directory: Gets the command and its socket; the path of a socket has 107 usable bytes.
        modules: Of the environment, or of this repository.

    Raises:
        ToolError: The server did not start.
    """
    address = directory / "warm"
    command = directory / "warm-python"
    server = subprocess.Popen(
        [sys.executable, "-u", "-P", str(_HERE / "server.py"), str(address), *modules],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if server.stdout is None or server.stdout.readline() != "ready\n":
            raise ToolError(
                f"{_HERE / 'server.py'}: ended before it was ready", hint="its own output says why"
            )
        words = (sys.executable, "-I", "-S", str(_HERE / "client.py"), str(address), sys.executable)
        command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        command.chmod(0o755)
        yield command
    finally:
        # It ends when its standard input does, so also when this process is killed.
        server.communicate(timeout=_STOP_SECONDS)
