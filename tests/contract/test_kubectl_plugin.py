"""The names by which kubectl finds and completes the command: `kubectl-` and `kubectl_complete-`, with `_` for `-` (kubectl's page on plugins)."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dra_infra.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


def test_kubectl_finds_the_command_under_its_own_name():
    installed = {name: ROOT / file for file, name in WHEEL["shared-scripts"].items()}
    own = "dra-infra".replace("-", "_")
    assert installed.keys() == {"dra-infra", f"kubectl-{own}", f"kubectl_complete-{own}"}
    assert 'exec "${0%/*}/dra-infra" "$@"' in installed["kubectl-dra_infra"].read_text()
    assert all(os.access(each, os.X_OK) for each in installed.values())


@pytest.fixture
def complete(tmp_path: Path):
    """Completes words as kubectl asks for it: candidates, and the number of Cobra."""
    for name in ("kubectl-dra_infra", "kubectl_complete-dra_infra"):
        (tmp_path / name).symlink_to(ROOT / "bin" / name)
    (tmp_path / "dra-infra").symlink_to(Path(sys.executable).parent / "dra-infra")

    def ask(*words: str) -> tuple[list[str], str]:
        printed = subprocess.run(
            [tmp_path / "kubectl_complete-dra_infra", *words], capture_output=True, text=True, check=True
        ).stdout
        *candidates, number = printed.splitlines()
        return [each.partition("\t")[0] for each in candidates], number

    return ask


def test_commands_options_and_values_are_completed(complete):
    assert complete("") == (list(COMMANDS), ":4")
    assert complete("si") == (["simulate"], ":4")
    assert complete("simulate", "--fle") == (["--fleet"], ":4")
    assert complete("catalog", "mi") == (["mig"], ":4")
    assert "hgx-h100" in complete("simulate", "--fleet", "hgx-h")[0]


def test_files_are_left_to_the_shell(complete):
    assert complete("validate", "it's $(a)", "") == ([], ":0")
    assert complete("simulate", "") == ([], ":0")
