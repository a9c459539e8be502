"""The name by which kubectl finds the command: `kubectl-`, and the command with `_` for `-` (kubectl's page on plugins)."""

from __future__ import annotations

import tomllib
from pathlib import Path

SCRIPTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]


def test_kubectl_finds_the_command_under_its_own_name():
    assert SCRIPTS["kubectl-" + "dra-infra".replace("-", "_")] == SCRIPTS["dra-infra"]
