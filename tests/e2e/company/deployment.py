"""The stacks of the example of a company, and the package that its teams share, as tests deploy them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tools.engine_cli import Stack
from tools.pulumi_home import PulumiHome

EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "20-company"
SECONDS: Final = 900.0
"""Longest time for a command; the platform has some three hundred resources."""


@dataclass(frozen=True, kw_only=True)
class Company:
    """A copy of the example with state of its own.

    Args:
        folder: Of the copy, in a repository of its own as `examples/20-company`.
        home: The engine's parts.
    """

    folder: Path
    home: PulumiHome
    _stacks: dict[str, Stack] = field(default_factory=dict, repr=False)

    @classmethod
    def copy(cls, root: Path, home: PulumiHome) -> Company:
        """Lay the example out below *root*, with the provider to use in each Pulumi.yaml."""
        folder = root / "examples" / EXAMPLE.name
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        for file in folder.glob("*/Pulumi.yaml"):
            project = yaml.safe_load(file.read_text())
            if home.plugins:
                project["plugins"] = home.plugins
            file.write_text(yaml.safe_dump(project))
        for name in ("state", "wheels", "vision-packages", "speech-packages"):
            (root / name).mkdir()
        return cls(folder=folder, home=home)

    @property
    def root(self) -> Path:
        """Where state, wheels and installed packages lie."""
        return self.folder.parents[1]

    def stack(self, project: str, kubeconfig: Path) -> Stack:
        """The stack `dev` of *project*, which acts on the cluster as the user of *kubeconfig*; made at the first call."""
        stack = Stack(
            self.folder / project,
            home=self.home,
            environment={
                "KUBECONFIG": str(kubeconfig),
                "PULUMI_BACKEND_URL": (self.root / "state").as_uri(),
                "PYTHONPATH": str(self.packages(project)),
            },
            seconds=SECONDS,
        )
        if project not in self._stacks:
            stack.init()
            self._stacks[project] = stack
        return stack

    def packages(self, team: str) -> Path:
        """Where the packages of a team's stack are installed."""
        return self.root / f"{team}-packages"

    def build_package(self) -> None:
        """Build the wheel of the package as it stands in the copy; the folder of wheels is the company's index."""
        options = (
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--wheel-dir",
            str(self.root / "wheels"),
        )
        _pip("wheel", *options, str(self.folder / "acme-gpus"))

    def install(self, team: str) -> str:
        """Install what the requirements of a team's stack pin; returns the version that is installed then."""
        target = self.packages(team)
        # pip leaves what it says of the old version in such a folder.
        shutil.rmtree(target)
        options = ("--no-index", "--no-deps", "--find-links", str(self.root / "wheels"))
        _pip(
            "install",
            *options,
            "--target",
            str(target),
            "--requirement",
            str(self.folder / team / "requirements.txt"),
        )
        (found,) = target.glob("acme_gpus-*.dist-info")
        return found.name.removeprefix("acme_gpus-").removesuffix(".dist-info")

    def apply_diff(self) -> None:
        """Change the copy as the README says."""
        readme = (self.folder / "README.md").read_text()
        diff = readme.partition("```diff\n")[2].partition("```")[0]
        command = ["git", "apply", "--recount", "-"]
        subprocess.run(command, input=diff, text=True, cwd=self.root, check=True, capture_output=True)


def outputs_of(stack: Stack) -> Any:
    """The document that `pulumi stack output --json` prints."""
    return json.loads(stack.run("stack", "output", "--json", "--stack", stack.name).check().stdout)


def _pip(*arguments: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        *arguments[:1],
        "--quiet",
        "--disable-pip-version-check",
        *arguments[1:],
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
