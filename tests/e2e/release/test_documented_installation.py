"""The ways to install that README and the tutorial name, in a copy of what git tracks. Asks the package index for what is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages.documents import ROOT, Command, blocks_of
from tools.release import sources

pytestmark = pytest.mark.e2e

PAGES = {"README.md": "dra-infra", "docs/tutorial.md": "pytest"}
"""Each page with a command that is there afterwards."""


def commands(page: str) -> list[Command]:
    return [
        command
        for block in blocks_of(ROOT / page)
        if "test_documented_installation" in block.markers.get("runs in", "")
        for command in block.commands
    ]


def run(line: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    copy = tmp_path / "clone"
    sources.copy(copy)
    return copy


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_install_the_command(page: str, clone: Path, tmp_path: Path):
    programs = tmp_path / "bin"
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(programs),
    }
    assert len(commands(page)) == 2
    for command in commands(page):
        run(command.text, clone, environment)
    assert (programs / PAGES[page]).exists()
    assert sources.version() in run(f"{programs / 'dra-infra'} --version", tmp_path, environment)
    # What the wheel has is enough for a project.
    run(f"{programs / 'dra-infra'} init gpus --fleet 'hgx-h100 x 2'", tmp_path, environment)
    assert "2 pods" in run(f"{programs / 'dra-infra'} simulate", tmp_path / "gpus", environment)


def test_the_wheel_that_pip_builds_has_the_same_code(clone: Path, tmp_path: Path):
    page = (ROOT / "docs/tutorial.md").read_text()
    line = "python3 -m pip wheel --no-deps --wheel-dir dist ."
    assert f"`{line}`" in page
    assert line in (ROOT / "README.md").read_text()
    python = tmp_path / "venv"
    run(f"{sys.executable} -m venv {python}", clone, dict(os.environ))
    run(line, clone, {**os.environ, "PATH": f"{python / 'bin'}{os.pathsep}{os.environ['PATH']}"})
    assert [path.suffix for path in (clone / "dist").iterdir()] == [".whl"]
