from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

QUICKSTART = Path(__file__).parents[2] / "examples" / "00-quickstart"


@pytest.mark.parametrize(
    "command",
    [["synth"], ["synth", "--json"], ["simulate", "--fleet", "hgx-h100 x 3, a100-80gb x 2", "--json"]],
)
def test_output_does_not_depend_on_the_hash_seed(command: list[str]):
    def run(seed: str) -> bytes:
        main = "import sys; from dra_infra.cli.app import main; main()"
        return subprocess.run(
            [sys.executable, "-c", main, *command[:1], str(QUICKSTART), *command[1:]],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout

    assert run("1") == run("2")
