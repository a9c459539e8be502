"""Projects of tests: what `write_program` writes is what runs next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.engine_cli import write_program


def run(folder: Path) -> str:
    command = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    arguments = [sys.executable, "-c", command, str(folder)]
    return subprocess.run(arguments, env=variables, capture_output=True, text=True, check=True).stdout


def test_the_second_program_of_one_second_runs(tmp_path: Path) -> None:
    seen = []
    for number in (1, 2):
        write_program(tmp_path, f"print({number})\n")
        # Both of one second, as a fast machine has them.
        os.utime(tmp_path / "__main__.py", (1_700_000_000, 1_700_000_000))
        seen.append(run(tmp_path).strip())

    assert seen == ["1", "2"]
