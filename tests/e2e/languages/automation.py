"""Runs the programs in TypeScript and Go by Pulumi's Automation API, in the project of a lab."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.lab import Lab

SECONDS = 240


def write_project(lab: Lab, runtime: str, package: Path | None = None) -> None:
    """Make the project one of an inline program, with the provider of the tests and our package."""
    project: dict[str, Any] = {"name": "project", "runtime": runtime, "plugins": lab.home.plugins}
    if package is not None:
        project["packages"] = {"dra-infra": str(package)}
        providers = [*project["plugins"].get("providers", ()), {"name": "dra-infra", "path": str(package)}]
        project["plugins"] = {**project["plugins"], "providers": providers}
    lab.stack.directory.joinpath("Pulumi.yaml").write_text(yaml.safe_dump(project))


def run(lab: Lab, command: Sequence[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; what it prints is both streams."""
    return subprocess.run(
        [*command, *arguments],
        cwd=lab.stack.directory,
        env=dict(lab.stack.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
