"""`kubectl dra-infra`: the real kubectl finds the command that the package installs."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_infra import __version__

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
Kubectl = Callable[..., subprocess.CompletedProcess[str]]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
SCRIPTS = WHEEL["shared-scripts"]


@pytest.fixture
def kubectl(
    binaries: Callable[[str], Path], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs kubectl with the package's commands on PATH, by links as `uv tool install` and `pipx` make them."""
    for name in SCRIPTS.values():
        (tmp_path / name).symlink_to(Path(sys.executable).parent / name)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "KUBECONFIG": str(tmp_path / "none"),
        }
        return subprocess.run(
            [str(binaries("kubectl")), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_kubectl_runs_it_with_all_arguments_and_its_exit_code(kubectl: Kubectl) -> None:
    assert kubectl("dra-infra", "--version").stdout == f"dra-infra {__version__}\n"
    told = kubectl("dra-infra", "explain", "count-below-one")
    assert (told.returncode, told.stderr) == (0, "")
    assert "count-below-one" in told.stdout
    assert kubectl("dra-infra", "explain", "--nonsense").returncode == 2


def test_kubectl_lists_it(kubectl: Kubectl, tmp_path: Path) -> None:
    assert str(tmp_path / "kubectl-dra_infra") in kubectl("plugin", "list").stdout


def test_kubectl_completes_its_commands_and_options(kubectl: Kubectl) -> None:
    assert kubectl("__complete", "dra-infra", "simu").stdout.splitlines()[0].startswith("simulate")
    assert (
        kubectl("__complete", "dra-infra", "simulate", "--fle").stdout.splitlines()[0].startswith("--fleet")
    )
