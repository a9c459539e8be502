"""The name by which kubectl finds the command: `kubectl-`, and the command with `_` for `-` (kubectl's page on plugins)."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


def test_kubectl_finds_the_command_under_its_own_name():
    installed = {name: ROOT / file for file, name in WHEEL["shared-scripts"].items()}
    assert installed.keys() == {"dra-infra", "kubectl-" + "dra-infra".replace("-", "_")}
    assert 'exec "${0%/*}/dra-infra" "$@"' in installed["kubectl-dra_infra"].read_text()
