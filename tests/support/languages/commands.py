"""Runs commands of dra-infra on projects in several languages, with the hosts of a folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.forge.sample import git

SECONDS = 240
_SCRIPT = "from dra_infra.cli.process import main; main()"


@dataclass(frozen=True)
class Team:
    """A repository with a project in `infra`, whose hosts lie in `hosts`."""

    top: Path
    hosts: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return self.top / "infra"

    def write(self, **files: str) -> None:
        """Write files of the project; a name has `_yaml` in place of its ending."""
        self.project.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            self.project.joinpath(re.sub("_yaml$", ".yaml", name).replace("_dev.", ".dev.")).write_text(text)

    def commit(self) -> None:
        """Commit all files."""
        if not (self.top / ".git").exists():
            git(self.top, "init", "-q")
        git(self.top, "add", "-A")
        git(self.top, "commit", "-q", "-m", "change")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder of the project."""
        path = os.pathsep.join([str(self.hosts), os.environ.get("PATH", os.defpath)])
        return subprocess.run(
            [sys.executable, "-P", "-c", _SCRIPT, *arguments],
            cwd=self.project,
            env={**os.environ, "PATH": path, **self.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def synth(self) -> str:
        """Return the objects of the program as YAML."""
        done = self.run("synth")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def copy_host(binary: Path, folder: Path) -> Path:
    """Return *folder*, which has the host alone: no CLI and no other host is found there."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(binary, folder / binary.name)
    return folder
