"""Install the wheel in an empty environment, and use it as somebody does who has nothing else of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.errors import ToolError


def check(wheel: Path, requirements: Path, example: Path, version: str) -> list[str]:
    """Install *wheel* and run its commands; returns what was tried, in words.

    Args:
        wheel: The wheel.
        requirements: Pins of what it needs, with hashes.
        example: Folder of a program, with its objects in `expected.yaml`.
        version: What the command is to say of itself.

    Raises:
        ToolError: When a step fails, or a command says something else.
    """
    uv = Path(sys.executable).parent / "uv"
    with tempfile.TemporaryDirectory(prefix="dra-infra-installed-") as folder:
        home = Path(folder)
        python = home / "venv/bin/python"
        command = home / "venv/bin/dra-infra"
        _run([uv, "venv", "--quiet", "--python", sys.executable, home / "venv"], home)
        install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python]
        _run([*install, "--require-hashes", "--requirement", requirements], home)
        _run([*install, "--no-deps", wheel], home)
        # What the wheel says that it needs is what is pinned.
        _run([uv, "pip", "check", "--quiet", "--python", python], home)
        shutil.copytree(example, home / "program")
        expected = (example / "expected.yaml").read_text()
        said = _run([command, "--version"], home)
        if version not in said.split():
            raise ToolError(f"dra-infra --version says {said.strip()!r}, and is to name {version}")
        _run([command, "validate", home / "program" / "expected.yaml"], home)
        if _run([command, "synth", home / "program"], home) != expected:
            raise ToolError(f"dra-infra synth writes other objects than {example.name}/expected.yaml")
    return [f"--version says {version}", "validate accepts the quickstart's objects", "synth writes them"]


def _run(command: Sequence[str | Path], home: Path) -> str:
    # uv needs the user's caches and settings; our commands get nothing that could point at a checkout.
    own = Path(command[0]).name == "dra-infra"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)} if own else {**os.environ, "PYTHONPATH": ""}
    line = [str(each) for each in command]
    done = subprocess.run(line, cwd=home, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        name = " ".join([Path(line[0]).name, *line[1:3]])
        raise ToolError(f"`{name} ...` ends with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
