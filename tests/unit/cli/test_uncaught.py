"""An error that nobody expected ends a command with 2: the 1 of Python would say that the gate is closed."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
from dra_infra.cli import app, process

def fail():
    raise RuntimeError("a bug")

app.main = fail
process.main()
"""


def test_a_command_that_fails_by_itself_has_no_answer() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("RuntimeError: a bug\n")
