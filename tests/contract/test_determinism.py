from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

QUICKSTART = str(Path(__file__).parents[2] / "examples" / "00-quickstart")
COMMANDS = (
    ("synth", QUICKSTART),
    ("synth", QUICKSTART, "--json"),
    ("simulate", QUICKSTART, "--fleet", "hgx-h100 x 3, a100-80gb x 2", "--json"),
)
RUN_ALL = """
import json, sys
from click.testing import CliRunner
from dra_infra.cli.app import app
answers = [CliRunner().invoke(app, words, catch_exceptions=False) for words in json.loads(sys.argv[1])]
print(json.dumps([[each.exit_code, each.stdout] for each in answers]))
"""


@functools.cache
def answers(seed: str) -> list[tuple[int, str]]:
    """Exit code and standard output of each command, in one process: the seed is one of a process."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, json.dumps(COMMANDS)],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    return [(code, text) for code, text in json.loads(done.stdout)]


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=["synth", "synth as JSON", "simulate"])
def test_output_does_not_depend_on_the_hash_seed(number: int):
    code, text = answers("1")[number]
    assert code == 0
    assert text
    assert (code, text) == answers("2")[number]
